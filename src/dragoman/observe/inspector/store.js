// The loaded exchanges in their order: newest first, or sorted by a column.

import { failed } from "./filter.js";
import { inOrder } from "./sorting.js";

export class Exchanges {
  #byId = new Map();
  #value = null;
  #order = inOrder(null);
  items = [];

  /** Sort by this value of an entry; null: the newest first. */
  sort(value) {
    this.#value = value;
    this.#order = inOrder(value);
    this.items.sort(this.#order);
  }

  get(id) {
    return this.#byId.get(id);
  }

  indexOf(id) {
    const item = this.#byId.get(id);
    return item ? this.items.indexOf(item) : -1;
  }

  clear() {
    this.#byId.clear();
    this.items = [];
  }

  /** Adds or updates a summary. Returns the index of a new one, else -1. Ignores a summary older than the known one. */
  put(summary) {
    const known = this.#byId.get(summary.id);
    if (known) {
      if (isNewer(summary, known)) {
        this.#byId.set(summary.id, summary);
        this.items[this.items.indexOf(known)] = summary;
        if (this.#value) this.items.sort(this.#order);
      }
      return -1;
    }
    this.#byId.set(summary.id, summary);
    let place = 0;
    while (place < this.items.length && this.#order(this.items[place], summary) < 0) place++;
    this.items.splice(place, 0, summary);
    return place;
  }

  /** Adds a page of older exchanges. */
  append(summaries) {
    for (const summary of summaries) {
      if (this.#byId.has(summary.id)) continue;
      this.#byId.set(summary.id, summary);
      this.items.push(summary);
    }
    if (this.#value) this.items.sort(this.#order);
  }

  remove(id) {
    const index = this.indexOf(id);
    if (index >= 0) this.items.splice(index, 1);
    this.#byId.delete(id);
  }
}

function isNewer(incoming, known) {
  if (incoming.outcome === "running" && known.outcome !== "running") return false;
  return JSON.stringify(incoming) !== JSON.stringify(known);
}

/** The client: the detected agent, else its protocol. */
export const clientName = (x) => (x.profile && x.profile !== "unknown" ? x.profile : x.client);

/** The state in one word, for the mark before a row. */
export function stateOf(x) {
  if (x.outcome === "running") return "running";
  if (failed(x) && x.outcome !== "cancelled") return "failed";
  return x.mended ? "mended" : "ok";
}
