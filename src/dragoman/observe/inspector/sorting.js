// The order of a list: the newest first, or the largest value of a column first.

import { h } from "./dom.js";

/** How many of the newest entries are loaded to be sorted: the most that one page of the API has. */
export const SORTED = 1000;

export class Sorting {
  #head;
  #columns;
  #changed;

  /**
   * `columns` are the heads of `element`: `{name, number, value}`. A column with `value` sorts by it. The first
   * column stands for the list's own order, by time. `changed()` is called when another one is chosen.
   */
  constructor(element, columns, changed) {
    this.#head = element;
    this.#columns = columns;
    this.#changed = changed;
    this.by = columns[0];
    this.#draw();
  }

  /** The value to sort by; null for the order of time. */
  get value() {
    return this.by === this.#columns[0] ? null : this.by.value;
  }

  /** Sort by the next column. */
  next() {
    const sortable = this.#sortable();
    this.#choose(sortable[(sortable.indexOf(this.by) + 1) % sortable.length]);
  }

  #sortable() {
    return this.#columns.filter((column) => column.value);
  }

  #choose(column) {
    if (column === this.by) return;
    this.by = column;
    this.#draw();
    this.#changed();
  }

  #draw() {
    const at = [...this.#head.children].indexOf(document.activeElement);
    this.#head.replaceChildren(...this.#columns.map((column) => {
      const kind = column.number ? ".number" : "";
      if (!column.value) return h(`span${kind}`, {}, column.name);
      const pressed = String(column === this.by);
      return h(`button.sort${kind}`, { type: "button", "aria-pressed": pressed, title: `Sort by ${column.name} (key: o)`, onclick: () => this.#choose(column) }, column.name);
    }));
    if (at >= 0) this.#head.children[at]?.focus();
  }
}

/** The loaded entries in the order of `value`, the largest first; of equal ones, and without `value`, the newest first. */
export function inOrder(value) {
  const of = (entry) => value?.(entry) ?? -1;
  return (a, b) => of(b) - of(a) || b.at - a.at;
}
