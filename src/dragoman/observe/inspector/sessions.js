// The sessions page: the list of conversations, and the turns of one of them.

import * as api from "./api.js";
import { h } from "./dom.js";
import { count, date, moment, money, percent, plural, short } from "./format.js";
import { List } from "./list.js";
import { Sorting, SORTED } from "./sorting.js";
import { Exchanges } from "./store.js";
import { waterfall } from "./waterfall.js";

const PAGE = 500;
const COLUMNS = [
  { name: "last", value: (x) => x.last },
  { name: "agent" }, { name: "began with" }, { name: "what happened" },
  { name: "turns", number: true, value: (x) => x.turns },
  { name: "tokens", number: true, value: (x) => x.input + x.output },
  { name: "cost", number: true, value: (x) => x.cost },
];
const REFRESH = 10_000; // ms

export class SessionsView {
  #items = new Exchanges();
  #next = null;
  #loading = null;
  #timer = 0;
  #id = null;
  #list;
  #sorting;
  #rows = h("div.list", { role: "listbox", tabindex: "0", "aria-label": "Sessions" });
  #foot = h("p.foot", { role: "status" });
  #all;
  #one = h("div.session", { hidden: true });

  /** `hooks`: `go(hash)` to another place of the page. */
  constructor(element, hooks) {
    this.element = element;
    this.hooks = hooks;
    const heads = h("div.list-head", { role: "group", "aria-label": "Order" });
    this.#sorting = new Sorting(heads, COLUMNS, () => {
      this.#rows.scrollTop = 0;
      this.#load();
    });
    this.#all = h("section.list-pane.sessions", { "aria-label": "Sessions" }, heads, this.#rows, this.#foot);
    element.append(this.#all, this.#one);
    this.#list = new List(this.#rows, this.#items, { open: (id) => hooks.go(`#sessions/${id}`), end: () => this.#load(true), row });
  }

  /** `id`: the session to show; without it, the list. */
  show(id) {
    this.#id = id || null;
    this.#all.hidden = this.#id !== null;
    this.#one.hidden = this.#id === null;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => document.hidden || this.#refresh(), REFRESH);
    this.#refresh();
    if (this.#id) this.element.focus({ preventScroll: true });
    else this.#rows.focus({ preventScroll: true });
  }

  hide() {
    clearInterval(this.#timer);
    this.#loading?.abort();
  }

  get isOpen() {
    return this.#id !== null;
  }

  step(by) {
    if (!this.#id) this.#list.activate(this.#list.step(by));
  }

  /** The session with the keyboard focus. */
  get active() {
    return this.#id ? null : this.#list.active;
  }

  #refresh() {
    if (this.#id) this.#open(this.#id);
    else if (!this.#list.scrolled) this.#load();
  }

  async #load(more = false) {
    if (more && (this.#loading || !this.#next || this.#sorting.value)) return;
    this.#loading?.abort();
    const control = (this.#loading = new AbortController());
    try {
      const page = await api.sessions({ limit: this.#sorting.value ? SORTED : PAGE, ...(more ? { cursor: this.#next } : {}) }, control.signal);
      if (!more) this.#items.clear();
      this.#items.sort(this.#sorting.value);
      this.#items.append(page.sessions.map((one) => ({ ...one, id: one.session, at: one.last })));
      this.#next = page.next;
      this.#list.more = page.next !== null && !this.#sorting.value;
      this.#say(this.#summary());
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#say(error.message, true);
    }
    if (this.#loading === control) this.#loading = null;
    this.#list.draw();
  }

  #summary() {
    const loaded = this.#items.items.length;
    if (!loaded) return "No sessions yet. A conversation appears here when its first request has ended.";
    const found = `${plural(loaded, "session")}${this.#next ? " and more" : ""}`;
    if (!this.#sorting.value) return found;
    return `${found} · ${this.#next ? `the newest ${count(loaded)} ` : ""}sorted by ${this.#sorting.by.name}`;
  }

  sortNext() {
    if (!this.#id) this.#sorting.next();
  }

  #say(text, bad = false) {
    this.#foot.textContent = text;
    this.#foot.classList.toggle("bad", bad);
  }

  async #open(id) {
    this.#loading?.abort();
    const control = (this.#loading = new AbortController());
    let found;
    try {
      found = await api.session(id, control.signal);
    } catch (error) {
      if (error.name !== "AbortError") this.#one.replaceChildren(back(), h("p.notice.bad", { role: "alert" }, error.message));
      return;
    } finally {
      if (this.#loading === control) this.#loading = null;
    }
    const opened = new Set([...this.#one.querySelectorAll("details[open]")].map((one) => one.dataset.id));
    this.#one.replaceChildren(back(), head(found.session), ...waterfall(found, opened));
  }
}

const back = () => h("p", {}, h("a", { href: "#sessions" }, "← All sessions"));

function head(x) {
  const facts = [
    [plural(x.turns, "turn")], [agent(x)], [x.models.join(", ")],
    [`${short(x.input)} → ${short(x.output)} tokens`],
    [x.input ? `${percent(x.cached / x.input)} of the prompts from cache` : ""],
    [cost(x), x.unpriced ? `The price of ${plural(x.unpriced, "turn")} is unknown` : null],
    [x.mended ? `${plural(x.mended, "call")} mended` : ""], [x.failed ? `${count(x.failed)} failed` : ""],
  ].filter(([text]) => text);
  return h("header.session-head", {},
    h("h2", {}, title(x)),
    h("p.soft", {}, facts.map(([text, hint]) => h("span.fact", { title: hint }, text))),
    h("p.faint", {}, `${date(x.first)} to ${date(x.last)} · session `, h("code", {}, x.session)));
}

const title = (x) => x.opening || "A conversation whose first words are not known";
const agent = (x) => (x.profile && x.profile !== "unknown" ? x.profile : "");
/** A failed turn costs nothing: if all others have no known price, the sum is not known either. */
const cost = (x) => (x.unpriced && !x.cost ? "price unknown" : `${money(x.cost)}${x.unpriced ? " + ?" : ""}`);

function row(x) {
  const state = x.failed ? "failed" : x.mended ? "mended" : "ok";
  const parts = [];
  if (x.failed) parts.push(h("span.badge.bad", {}, `${count(x.failed)} failed`));
  if (x.invalid) parts.push(h("span.badge.bad", {}, `${count(x.invalid)} invalid`));
  if (x.mended) parts.push(h("span.badge.mended", {}, `${count(x.mended)} mended`));
  if (x.input) parts.push(h("span.words", { title: "prompt tokens that the upstream read from its cache" }, `${percent(x.cached / x.input)} cached`));
  return h("div.row", { role: "option", id: `row-${x.id}`, "data-id": x.id, "data-state": state },
    h("span.hidden", {}, state),
    h("span.when", { title: date(x.last) }, moment(x.last)),
    h("span.client", {}, agent(x) || x.key),
    h("span.model", { title: title(x) }, title(x), h("span.target", {}, ` ${x.models.join(", ")}`)),
    h("span.outcome", {}, h("span.client-too", {}, agent(x)), parts),
    h("span.took", {}, plural(x.turns, "turn")),
    h("span.tokens", { title: "input → output tokens" }, `${short(x.input)} → ${short(x.output)}`),
    h("span.cost", { title: x.unpriced ? `The price of ${plural(x.unpriced, "turn")} is unknown` : null }, cost(x).replace("price unknown", "?")));
}
