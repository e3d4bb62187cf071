// The measures of the usage page: what each one is, how it is written, and how it is drawn.

import { count, dollars, percent, short } from "./format.js";

const share = (sums) => (sums.input ? sums.cached / sums.input : null);

export const MEASURES = {
  spend: {
    title: "Spend",
    order: "cost",
    value: (sums) => sums.cost ?? 0,
    format: dollars,
    shown: (sums) => (sums.cost == null ? "unknown" : dollars(sums.cost)),
    hint: (sums) => (sums.unpriced ? `${count(sums.unpriced)} of unknown price` : "all prices known"),
  },
  tokens: {
    title: "Tokens",
    order: "tokens",
    value: (sums) => sums.input + sums.output,
    format: short,
    shown: (sums) => short(sums.input + sums.output),
    hint: (sums) => `${short(sums.input)} in, ${short(sums.output)} out`,
  },
  cached: {
    title: "From cache",
    order: "tokens",
    lines: true,
    value: share,
    format: percent,
    shown: (sums) => (sums.input ? percent(share(sums)) : "–"),
    hint: (sums) => `${short(sums.cached)} of the input`,
  },
  failed: {
    title: "Failures",
    order: "failed",
    value: (sums) => sums.failed,
    format: count,
    shown: (sums) => count(sums.failed),
    hint: (sums) => (sums.requests ? `${percent(sums.failed / sums.requests)} of ${count(sums.requests)} requests` : "no requests"),
  },
  mended: {
    title: "Mended calls",
    order: "mended",
    value: (sums) => sums.mended,
    format: count,
    shown: (sums) => count(sums.mended),
    hint: (sums) => (sums.calls ? `${percent(sums.mended / sums.calls)} of ${count(sums.calls)} calls` : "no calls"),
  },
};

export const RANGES = {
  "24h": { title: "24 hours", over: "hour" },
  "7d": { title: "7 days", over: "day" },
  "30d": { title: "30 days", over: "day" },
  "90d": { title: "90 days", over: "day" },
  "365d": { title: "12 months", over: "day" },
};

export const GROUPS = { key: "key", team: "team", model: "model", upstream: "upstream", session: "session" };

const DAY = 86_400;

/** The names of all steps of a report, also of those without requests. */
export function times(report) {
  const size = report.over === "hour" ? DAY / 24 : DAY;
  const found = [];
  for (let at = report.since; at < report.until; at += size) {
    found.push(new Date(at * 1000).toISOString().slice(0, report.over === "hour" ? 13 : 10));
  }
  return found;
}

/** `2026-05-31` or `2026-05-31T13`, as the axis and the tooltip write it. */
export const shortTime = (time) => (time.length > 10 ? `${time.slice(11)}:00` : time.slice(5));
export const longTime = (time) => (time.length > 10 ? `${time.slice(0, 10)}, ${time.slice(11)}:00 UTC` : time);

/** The series of a plot: the first groups, and what remains of the total. */
export function seriesOf(report, measure, steps, nameOf) {
  const byTime = (points) => {
    const known = new Map(points.map((point) => [point.group, point]));
    return steps.map((step) => (known.has(step) ? measure.value(known.get(step)) : measure.lines ? null : 0));
  };
  const found = report.series.map((one, at) => ({ name: nameOf(one.group), mark: `s${at}`, values: byTime(one.points) }));
  const total = byTime(report.total_series);
  if (measure.lines) return found.length === 1 ? found : [...found, { name: "all", mark: "all", values: total }];
  const rest = total.map((value, at) => Math.max(0, value - found.reduce((sum, one) => sum + one.values[at], 0)));
  return rest.some((value) => value > 1e-9) ? [...found, { name: "others", mark: "rest", values: rest }] : found;
}
