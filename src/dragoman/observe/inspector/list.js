// The list. Only visible rows exist in the DOM, so a thousand exchanges are as fast as twenty.

import { h } from "./dom.js";
import { cost, date, moment, plural, seconds, tokens } from "./format.js";
import { stateOf, clientName } from "./store.js";

const SPARE = 6;

export class List {
  #rows = new Map();
  #space = h("div.space");
  #frame = 0;

  /** `hooks`: `open(id)` for a chosen row, `end()` when the end of the list comes near, `row(item)` draws one. */
  constructor(element, exchanges, hooks) {
    this.element = element;
    this.exchanges = exchanges;
    this.hooks = hooks;
    this.active = null;
    this.selected = null;
    this.more = false;
    element.append(this.#space);
    element.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(element);
    element.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) hooks.open(row.dataset.id);
    });
  }

  get rowHeight() {
    return parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 32;
  }

  get scrolled() {
    return this.element.scrollTop > this.rowHeight;
  }

  /** `inserted` rows were added above: keep the scroll position. */
  draw(inserted = 0) {
    if (inserted && this.scrolled) this.#anchor = (this.#anchor ?? 0) + inserted;
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  #anchor = 0;

  #draw() {
    const items = this.exchanges.items;
    const height = this.rowHeight;
    this.#space.style.height = `${items.length * height}px`;
    if (this.#anchor) this.element.scrollTop += this.#anchor * height;
    this.#anchor = 0;
    const top = this.element.scrollTop;
    const first = Math.max(0, Math.floor(top / height) - SPARE);
    const last = Math.min(items.length, Math.ceil((top + this.element.clientHeight) / height) + SPARE);
    const wanted = new Set();
    for (let index = first; index < last; index++) {
      const summary = items[index];
      wanted.add(summary.id);
      this.#place(summary, index, height);
    }
    for (const [id, row] of this.#rows) {
      if (!wanted.has(id)) {
        row.element.remove();
        this.#rows.delete(id);
      }
    }
    if (this.more && last >= items.length - SPARE) this.hooks.end();
  }

  #place(summary, index, height) {
    let row = this.#rows.get(summary.id);
    if (row?.summary !== summary) {
      const element = this.hooks.row(summary);
      if (row) row.element.replaceWith(element);
      else this.#space.append(element);
      row = { summary, element };
      this.#rows.set(summary.id, row);
    }
    const { element } = row;
    element.style.transform = `translateY(${index * height}px)`;
    element.setAttribute("aria-posinset", index + 1);
    element.setAttribute("aria-setsize", this.more ? -1 : this.exchanges.items.length);
    element.setAttribute("aria-selected", String(summary.id === this.selected));
    element.toggleAttribute("data-active", summary.id === this.active);
  }

  /** The row with the keyboard focus. */
  activate(id) {
    this.active = id;
    if (id) this.element.setAttribute("aria-activedescendant", `row-${id}`);
    else this.element.removeAttribute("aria-activedescendant");
    this.#reveal(this.exchanges.indexOf(id));
    this.draw();
  }

  /** The id `by` rows further down (or up); the first row if none was active. */
  step(by) {
    const { items } = this.exchanges;
    if (!items.length) return null;
    const at = this.exchanges.indexOf(this.active);
    const next = at < 0 ? 0 : Math.min(items.length - 1, Math.max(0, at + by));
    return items[next].id;
  }

  #reveal(index) {
    if (index < 0) return;
    const height = this.rowHeight;
    const { scrollTop, clientHeight } = this.element;
    if (index * height < scrollTop) this.element.scrollTop = index * height;
    else if ((index + 1) * height > scrollTop + clientHeight) {
      this.element.scrollTop = (index + 1) * height - clientHeight;
    }
  }

  /** Updates the duration of running exchanges. */
  tick(now) {
    for (const { summary, element } of this.#rows.values()) {
      if (summary.outcome === "running") {
        element.querySelector(".took").textContent = seconds(Math.max(0, now - summary.at));
      }
    }
  }
}

/** The row of an exchange. */
export function exchangeRow(x) {
  const state = stateOf(x);
  const client = clientName(x);
  const fresh = Date.now() / 1000 - x.at < 1.5;
  return h(
    "div.row",
    { role: "option", id: `row-${x.id}`, "data-id": x.id, "data-state": state, "data-new": fresh },
    h("span.hidden", {}, state),
    h("span.when", { title: date(x.at) }, moment(x.at)),
    h("span.client", { title: `${client} over ${x.client}` }, client),
    h("span.model", { title: `${x.model} → ${x.target ?? "nowhere"}` }, x.model || "no model", target(x)),
    h("span.outcome", {}, h("span.client-too", {}, client), outcome(x)),
    h("span.took", {}, seconds(x.seconds)),
    h("span.tokens", { title: "input → output tokens" }, tokens(x.usage)),
    h("span.cost", { title: x.cost == null ? "the price is unknown" : null }, cost(x, "?")),
  );
}

function target(x) {
  return x.target && x.target !== x.model ? h("span.target", {}, ` → ${x.target}`) : null;
}

/** The outcome, with the HTTP status if it is an error: a stream that fails later still has status 200. */
export const failure = (x) => (x.status >= 400 ? `${x.status} ${x.outcome}` : x.outcome);

function outcome(x) {
  const parts = [];
  if (stateOf(x) === "failed") parts.push(h("span.badge.bad", {}, failure(x)));
  if (x.outcome === "cancelled") parts.push(h("span.badge", {}, "cancelled"));
  if (x.invalid) parts.push(h("span.badge.bad", { title: "calls whose arguments do not fit the tool's schema" }, `${x.invalid} invalid`));
  if (x.mended) parts.push(h("span.badge.mended", { title: x.rules?.join(", ") }, `${x.mended} mended`));
  if (x.warnings) parts.push(h("span.badge.dropped", { title: "dropped or changed on the way to the upstream" }, `${x.warnings} dropped`));
  parts.push(h("span.words", {}, x.error ?? (x.mended ? x.rules.join(", ") : x.calls ? plural(x.calls, "call") : "")));
  return parts;
}
