// The scores page: how reliable each model of each upstream was, as shares with their intervals.

import * as api from "./api.js";
import { fill, h, svg } from "./dom.js";
import { count, plural } from "./format.js";

const RANGES = { "7d": "7 days", "30d": "30 days", "90d": "90 days" };
const USUAL = { range: "30d", measure: "good" };
const ROWS = 100;
const REFRESH = 60_000; // ms
const CLASSES = ["valid", "mended", "leaked", "invalid", "invented", "ghost", "duplicate", "cut"];
// Which share the plot shows. `bad`: less is better.
const MEASURES = {
  good: { title: "good answers", of: (row) => row.good, hint: "Answers that did not fail, and whose tool calls the agent could all use at once." },
  valid: { title: "valid", of: (row) => row.calls.valid, hint: "Tool calls that fit their schema as they came." },
  mended: { title: "mended", of: (row) => row.calls.mended, hint: "Tool calls that fit their schema after a rule mended them." },
  leaked: { title: "leaked", bad: true, of: (row) => row.calls.leaked, hint: "Tool calls that the model wrote as text. Dragoman made calls of them." },
  invalid: { title: "invalid", bad: true, of: (row) => row.calls.invalid, hint: "Tool calls that do not fit their schema, and that no rule could mend." },
  invented: { title: "invented", bad: true, of: (row) => row.calls.invented, hint: "Calls of tools that the client did not offer." },
  cut: { title: "cut", bad: true, of: (row) => row.calls.cut, hint: "Tool calls whose answer ended before they did." },
  reasked: { title: "reasked", bad: true, of: (row) => row.reasked, hint: "Answers whose model had to repeat its calls." },
};

export class ScoresView {
  #choice = { ...USUAL };
  #report = null;
  #control = null;
  #timer = 0;
  #ranges = h("div.choice", { role: "group", "aria-label": "Time range" });
  #measures = h("div.choice", { role: "group", "aria-label": "Measure" });
  #hint = h("p.faint");
  #body = h("div.usage-body");
  #problem = h("p.notice.bad", { role: "alert", hidden: true });

  /** `hooks`: `go(hash)` to show other numbers, `filter(text)` to list exchanges. */
  constructor(element, hooks) {
    this.element = element;
    this.hooks = hooks;
    element.append(h("div.usage-head", {}, h("h2", {}, "Scores"), this.#measures, this.#ranges), this.#problem, this.#hint, this.#body);
  }

  /** `parameters`: the part of the URL's fragment after `scores?`. */
  show(parameters) {
    const given = new URLSearchParams(parameters);
    const one = (name, known) => (Object.hasOwn(known, given.get(name) ?? "") ? given.get(name) : USUAL[name]);
    const before = this.#choice;
    this.#choice = { range: one("range", RANGES), measure: one("measure", MEASURES) };
    this.#choices();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => document.hidden || this.#load(), REFRESH);
    if (this.#report && before.range === this.#choice.range) this.#draw();
    else this.#load();
  }

  hide() {
    clearInterval(this.#timer);
    this.#control?.abort();
  }

  async #load() {
    this.#control?.abort();
    const control = (this.#control = new AbortController());
    this.element.setAttribute("aria-busy", "true");
    try {
      this.#report = await api.scores({ since: this.#choice.range, limit: ROWS }, control.signal);
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
    return `#scores${given.length ? `?${new URLSearchParams(given)}` : ""}`;
  }

  #choices() {
    const button = (name, known, title) =>
      h("button", { type: "button", "aria-pressed": String(this.#choice[name] === known), onclick: () => this.hooks.go(this.#link({ [name]: known })) }, title);
    fill(this.#measures, Object.entries(MEASURES).map(([name, { title }]) => button("measure", name, title)));
    fill(this.#ranges, Object.entries(RANGES).map(([name, title]) => button("range", name, title)));
    this.#hint.textContent = MEASURES[this.#choice.measure].hint;
  }

  #draw() {
    if (!this.#report) return;
    const { rows, more } = this.#report;
    this.#hint.hidden = !rows.length;
    if (!rows.length) return this.#body.replaceChildren(this.#empty());
    this.#body.replaceChildren(
      this.#plot(rows), calls(rows), this.#more(rows),
      more ? h("p.faint", {}, `${plural(more, "more target")}: dragoman scores --limit ${rows.length + more} has all`) : "",
    );
  }

  /** A dot for each share, and a whisker for its interval. */
  #plot(rows) {
    const measure = MEASURES[this.#choice.measure];
    return h("figure.usage-plot.whiskers", {},
      h("table", {}, h("caption.hidden", {}, `${measure.title}: share and 95% interval`),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "target"), h("th.drawn", { scope: "col" }, axis()), h("th", { scope: "col" }, "share"), h("th", { scope: "col" }, "95% interval"), h("th", { scope: "col" }, "of"))),
        h("tbody", {}, rows.map((row) => this.#whisker(row, measure)))));
  }

  #whisker(row, measure) {
    const share = measure.of(row);
    const known = share.share !== null;
    return h("tr", {},
      h("th", { scope: "row" }, this.#name(row)),
      h("td.drawn", {}, whisker(share, measure.bad ? "bad" : "good")),
      h("td.share", {}, known ? percent(share.share) : "–"),
      h("td.interval", {}, known ? `${percent(share.low)} – ${percent(share.high)}` : "–"),
      h("td.of", {}, count(share.of)));
  }

  #name(row) {
    const target = `${row.upstream}/${row.model}`;
    return h("button.link", { type: "button", title: `List the exchanges of ${row.upstream}`, onclick: () => this.hooks.filter(`upstream:${row.upstream} ${row.model}`) }, target);
  }

  /** Failures, rules and times. */
  #more(rows) {
    const heads = ["answers", "began within", "failed attempts", "rules that mended"];
    return h("div.usage-table.scroll", { tabindex: "0", role: "region", "aria-label": "Failures, rules and times" },
      h("table.scores-more", {}, h("caption.hidden", {}, "Failures, rules and times"),
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "target"), heads.map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, rows.map((row) => h("tr", {},
          h("th", { scope: "row" }, `${row.upstream}/${row.model}`), h("td", {}, count(row.answers)), h("td", {}, began(row.first_event)),
          h("td", {}, listed(row.failures)), h("td", {}, listed(row.rules)))))));
  }

  #empty() {
    const { range } = this.#choice;
    const longer = Object.keys(RANGES)[Object.keys(RANGES).indexOf(range) + 1];
    return h("div.nothing", {},
      h("h2", {}, `No answers in the last ${RANGES[range]}`),
      h("p", {}, "Scores are counted when a request ends. Point an agent at this gateway, and they appear here."),
      longer ? h("p", {}, h("button", { type: "button", onclick: () => this.hooks.go(this.#link({ range: longer })) }, `Show ${RANGES[longer]}`)) : "");
  }
}

/** Only all is 100 %, and only nothing is 0 %. */
const percent = (share) => (share === 0 || share === 1 ? `${share * 100}\u00a0%` : `${Math.min(99.9, Math.max(0.1, share * 100)).toFixed(1)}\u00a0%`);
const at = (share) => `${(share * 100).toFixed(2)}%`;

function axis() {
  return svg("svg", { class: "whisker axis", "aria-hidden": "true" },
    [[0, "start"], [0.5, "middle"], [1, "end"]].map(([share, anchor]) => svg("text", { x: at(share), y: "70%", "text-anchor": anchor }, `${share * 100} %`)));
}

function whisker(share, mark) {
  const known = share.share !== null;
  return svg("svg", { class: `whisker ${mark}`, "aria-hidden": "true" },
    [0, 0.25, 0.5, 0.75, 1].map((grid) => svg("line", { class: "grid", x1: at(grid), x2: at(grid), y1: 0, y2: "100%" })),
    known && svg("line", { class: "interval", x1: at(share.low), x2: at(share.high), y1: "50%", y2: "50%" }),
    known && [share.low, share.high].map((end) => svg("line", { class: "interval", x1: at(end), x2: at(end), y1: "30%", y2: "70%" })),
    known && svg("circle", { cx: at(share.share), cy: "50%", r: 4.5 }));
}

/** How the calls of each target came, in numbers. */
function calls(rows) {
  return h("div.usage-table.scroll", { tabindex: "0", role: "region", "aria-label": "How tool calls came" },
    h("table.scores-calls", {}, h("caption.hidden", {}, "How tool calls came"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "target"), h("th", { scope: "col" }, "calls"), CLASSES.map((name) => h("th", { scope: "col" }, name)), h("th", { scope: "col" }, "reasked"))),
      h("tbody", {}, rows.map((row) => h("tr", {},
        h("th", { scope: "row" }, `${row.upstream}/${row.model}`), h("td", {}, count(row.calls.valid.of)),
        [...CLASSES.map((name) => row.calls[name]), row.reasked].map((share) => h("td", {}, share.count ? [count(share.count), h("span.faint", {}, ` ${percent(share.share)}`)] : "–")))))));
}

function began(first) {
  if (!first.count) return "–";
  const within = (limit) => (limit === null ? "over 120 s" : `${limit} s`);
  return `half ${within(first.half_within)}, 9 of 10 ${within(first.nine_of_ten_within)}`;
}

const listed = (counts) => Object.entries(counts).map(([name, number]) => `${name} ${count(number)}`).join(", ") || "–";
