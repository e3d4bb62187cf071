// The usage page: sums over time, and a table of keys, teams, models, upstreams or sessions.

import * as api from "./api.js";
import { fill, h } from "./dom.js";
import { count, percent, plural, short } from "./format.js";
import { GROUPS, longTime, MEASURES, RANGES, seriesOf, shortTime, times } from "./measures.js";
import { Plot, spark } from "./plot.js";

const USUAL = { by: "model", range: "7d", measure: "spend" };
const ROWS = 100;
const REFRESH = 30_000; // ms
const NAMELESS = { key: "keys without a name", team: "no team", session: "no session", upstream: "no upstream", model: "no model" };

export class UsageView {
  #choice = { ...USUAL };
  #report = null;
  #control = null;
  #timer = 0;
  #plot = new Plot();
  #tiles = h("div.tiles", { role: "group", "aria-label": "Measure" });
  #ranges = h("div.choice", { role: "group", "aria-label": "Time range" });
  #groups = h("div.choice", { role: "group", "aria-label": "Group by" });
  #body = h("div.usage-body");
  #numbers = h("details.numbers");
  #table = h("div.usage-table");
  #problem = h("p.notice.bad", { role: "alert", hidden: true });

  /** `hooks`: `go(hash)` to show other numbers, `filter(text)` to list exchanges. */
  constructor(element, hooks) {
    this.element = element;
    this.hooks = hooks;
    element.append(
      h("div.usage-head", {}, h("h2", {}, "Usage"), this.#groups, this.#ranges),
      this.#problem, this.#tiles, this.#body,
    );
  }

  /** `parameters`: the part of the URL's fragment after `usage?`. */
  show(parameters) {
    const given = new URLSearchParams(parameters);
    const one = (name, known) => (given.get(name) in known ? given.get(name) : USUAL[name]);
    const before = this.#choice;
    this.#choice = { by: one("by", GROUPS), range: one("range", RANGES), measure: one("measure", MEASURES) };
    this.#choices();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => document.hidden || this.#load(), REFRESH);
    const order = ({ measure }) => MEASURES[measure].order;
    const same = before.by === this.#choice.by && before.range === this.#choice.range && order(before) === order(this.#choice);
    if (this.#report && same) this.#draw();
    else this.#load();
  }

  hide() {
    clearInterval(this.#timer);
    this.#control?.abort();
  }

  async #load() {
    this.#control?.abort();
    const control = (this.#control = new AbortController());
    const { by, range, measure } = this.#choice;
    this.element.setAttribute("aria-busy", "true");
    try {
      this.#report = await api.usage({ by, since: range, over: RANGES[range].over, order: MEASURES[measure].order, limit: ROWS }, control.signal);
      this.#problem.hidden = true;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#problem.hidden = false;
      this.#problem.textContent = error.message;
    }
    this.element.removeAttribute("aria-busy");
    this.#draw();
  }

  #link(change) {
    const choice = { ...this.#choice, ...change };
    const given = Object.entries(choice).filter(([name, value]) => value !== USUAL[name]);
    return `#usage${given.length ? `?${new URLSearchParams(given)}` : ""}`;
  }

  #choices() {
    const button = (name, known, title) =>
      h("button", { type: "button", "aria-pressed": String(this.#choice[name] === known), onclick: () => this.hooks.go(this.#link({ [name]: known })) }, title);
    fill(this.#groups, Object.entries(GROUPS).map(([name, title]) => button("by", name, title)));
    fill(this.#ranges, Object.entries(RANGES).map(([name, { title }]) => button("range", name, title)));
  }

  #draw() {
    if (!this.#report) return;
    const report = this.#report;
    const none = report.total.requests === 0;
    this.#tiles.hidden = none;
    if (none) return this.#body.replaceChildren(this.#empty());
    const steps = times(report);
    this.#drawTiles(steps);
    const measure = MEASURES[this.#choice.measure];
    const series = seriesOf(report, measure, steps, (group) => this.#name(group));
    const label = `${measure.title} ${report.over === "hour" ? "per hour" : "per day"}, by ${report.by}`;
    if (!this.#plot.element.isConnected) {
      this.#body.replaceChildren(h("figure.usage-plot", {}, this.#plot.element, this.#numbers), this.#table);
    }
    const unpriced = new Map(report.total_series.map((point) => [point.group, point.unpriced]));
    this.#plot.draw({
      label, kind: measure.lines ? "lines" : "bars", times: steps, series, format: measure.format, most: measure.lines ? 1 : undefined,
      short: shortTime, long: longTime,
      note: (at) => (measure === MEASURES.spend && unpriced.get(steps[at]) ? `+ ${plural(unpriced.get(steps[at]), "request")} of unknown price` : null),
    });
    this.#drawNumbers(label, steps, series, measure);
    this.#drawTable(series);
  }

  #drawTiles(steps) {
    const { total, total_series: points } = this.#report;
    const known = new Map(points.map((point) => [point.group, point]));
    fill(this.#tiles, Object.entries(MEASURES).map(([name, measure]) =>
      h("button.tile", { type: "button", "aria-pressed": String(this.#choice.measure === name), onclick: () => this.hooks.go(this.#link({ measure: name })) },
        h("span.title", {}, measure.title),
        h("span.figure", {}, measure === MEASURES.spend ? cost(total) : measure.shown(total)),
        h("span.hint", {}, measure.hint(total)),
        spark(steps.map((step) => (known.has(step) ? measure.value(known.get(step)) ?? 0 : 0)), name === "failed" ? "bad" : "plain"))));
  }

  /** The values of the plot as a table, for those who cannot see it or want to copy it. */
  #drawNumbers(label, steps, series, measure) {
    const rows = steps.map((step, at) =>
      h("tr", {}, h("th", { scope: "row" }, longTime(step)), series.map((one) => h("td", {}, one.values[at] == null ? "–" : measure.format(one.values[at])))));
    this.#numbers.replaceChildren(
      h("summary", {}, "Values of the plot"),
      h("div.scroll", { tabindex: "0", role: "region", "aria-label": label },
        h("table", {}, h("caption.hidden", {}, label),
          h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "time"), series.map((one) => h("th", { scope: "col" }, one.name)))),
          h("tbody", {}, rows))));
  }

  #drawTable(series) {
    const report = this.#report;
    const marks = new Map(report.series.map((one, at) => [one.group, `s${at}`]));
    const heads = ["requests", "failed", "input", "cached", "output", "mended", "cost"];
    const rest = series.some((one) => one.mark === "rest") ? "rest" : "none";
    this.#table.replaceChildren(
      h("table", {}, h("caption.hidden", {}, `Usage by ${report.by}`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, report.by), heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, report.rows.map((row) => this.#row(row, this.#nameCell(row, marks.get(row.group) ?? rest)))),
        h("tfoot", {}, this.#row(report.total, [h("i.mark.none"), "total"]))),
      report.more ? h("p.faint", {}, `${plural(report.more, "more row")}: dragoman usage --by ${report.by} --csv has all`) : "",
    );
  }

  #nameCell(row, mark) {
    const name = this.#name(row.group);
    const filter = row.group ? `${this.#report.by}:${row.group}` : "";
    return [
      h(`i.mark.${mark}`),
      filter ? h("button.link", { type: "button", title: `List the exchanges of ${name}`, onclick: () => this.hooks.filter(filter) }, name) : h("span", {}, name),
    ];
  }

  #row(row, name) {
    const cached = row.input ? percent(row.cached / row.input) : "–";
    const sub = [plural(row.requests, "request"), row.failed && `${count(row.failed)} failed`, `${short(row.input + row.output)} tokens`, `${cached} cached`, row.mended && `${count(row.mended)} mended`];
    const cell = (text, kind = "") => h(`td${kind}`, {}, text);
    return h("tr", {},
      h("th", { scope: "row" }, h("span.name", {}, name), h("span.sub", {}, sub.filter(Boolean).join(" · "))),
      cell(count(row.requests), ".wide"), cell(row.failed ? count(row.failed) : "–", row.failed ? ".wide.bad" : ".wide"),
      cell(short(row.input), ".wide"), cell(cached, ".wide"), cell(short(row.output), ".wide"),
      cell(row.mended ? count(row.mended) : "–", ".wide"), h("td.cost", {}, cost(row)));
  }

  #name(group) {
    return group || NAMELESS[this.#report.by] || "none";
  }

  #empty() {
    const { range } = this.#choice;
    const longer = Object.keys(RANGES).slice(Object.keys(RANGES).indexOf(range) + 1)[0];
    return h("div.nothing", {},
      h("h2", {}, `No requests in the last ${RANGES[range].title}`),
      h("p", {}, "Usage is counted when a request ends. Point an agent at this gateway, and it appears here."),
      longer ? h("p", {}, h("button", { type: "button", onclick: () => this.hooks.go(this.#link({ range: longer })) }, `Show ${RANGES[longer].title}`)) : "");
  }
}

function cost(row) {
  const known = MEASURES.spend.shown(row);
  if (!row.unpriced || row.cost == null) return known;
  return [known, h("span.unknown", { title: `The price of ${plural(row.unpriced, "request")} is unknown` }, " + ?")];
}
