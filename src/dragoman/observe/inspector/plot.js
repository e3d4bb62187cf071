// Draws values over time as stacked bars or as lines. The arrow keys and the pointer read single times.

import { h, svg } from "./dom.js";

const HEIGHT = 240;
const TOP = 10;
const BOTTOM = 22;
const LEFT = 52;
const RIGHT = 8;
const LABEL = 74; // px between labels of the time axis
const TICKS = 4;

/**
 * `data`: `label` for screen readers, `kind` ("bars" or "lines"), `times` (their names), `series`
 * ([{name, mark, values}], null where nothing is known), `format(value)`, `most` (the end of the axis, if it
 * is fixed), and `note(index)`: one more line for the tooltip, or null.
 */
export class Plot {
  #at = -1;
  #data = null;
  #picture = svg("svg", { "aria-hidden": "true" });
  #cursor = svg("line", { class: "cursor" });
  #tip = h("div.tip", { role: "status", hidden: true });

  constructor() {
    this.element = h("div.plot", {
      tabindex: "0", role: "group",
      onpointermove: (event) => this.#point(event),
      onpointerdown: (event) => this.#point(event),
      onpointerleave: () => this.#show(-1),
      onblur: () => this.#show(-1),
      onkeydown: (event) => this.#key(event),
    }, this.#picture, this.#tip);
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  draw(data) {
    this.#data = data;
    this.#at = -1;
    this.#tip.hidden = true;
    this.element.setAttribute("aria-label", `${data.label}. Use the left and right arrow keys to read the values.`);
    this.#draw();
  }

  #draw() {
    const width = this.element.clientWidth;
    if (!this.#data || width < 50) return;
    const { kind, series, times, most, format } = this.#data;
    const sums = times.map((_, at) => (kind === "bars" ? sum(series, at) : Math.max(0, ...series.map((one) => one.values[at] ?? 0))));
    const steps = scale(most ?? Math.max(...sums, 0));
    const end = steps.at(-1);
    const room = { width: width - LEFT - RIGHT, height: HEIGHT - TOP - BOTTOM };
    this.x = (at) => LEFT + ((at + 0.5) * room.width) / times.length;
    const y = (value) => TOP + room.height * (1 - value / end);
    this.#picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.#picture.setAttribute("height", HEIGHT);
    this.#picture.replaceChildren(
      ...steps.map((step) => [
        svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(step), y2: y(step) }),
        svg("text", { class: "axis", x: LEFT - 8, y: y(step) + 4, "text-anchor": "end" }, format(step)),
      ]).flat(),
      ...this.#labels(room.width),
      this.#cursor,
      ...(kind === "bars" ? bars(series, times.length, this.x, y, room.width) : lines(series, this.x, y)),
    );
    this.#place();
  }

  #labels(width) {
    const { times, short } = this.#data;
    const every = Math.max(1, Math.ceil(times.length / Math.max(1, Math.floor(width / LABEL))));
    return times.map((time, at) =>
      at % every ? null : svg("text", { class: "axis", x: this.x(at), y: HEIGHT - 5, "text-anchor": "middle" }, short(time))).filter(Boolean);
  }

  #point(event) {
    const { left } = this.element.getBoundingClientRect();
    const count = this.#data?.times.length ?? 0;
    if (!count) return;
    const wide = this.element.clientWidth - LEFT - RIGHT;
    const at = Math.floor(((event.clientX - left - LEFT) / wide) * count);
    this.#show(Math.min(count - 1, Math.max(0, at)));
  }

  #key(event) {
    const last = (this.#data?.times.length ?? 0) - 1;
    const to = { ArrowLeft: this.#at < 0 ? last : this.#at - 1, ArrowRight: this.#at + 1, Home: 0, End: last, Escape: -1 }[event.key];
    if (to === undefined || last < 0 || (event.key === "Escape" && this.#at < 0)) return;
    event.preventDefault();
    event.stopPropagation();
    this.#show(event.key === "Escape" ? -1 : Math.min(last, Math.max(0, to)));
  }

  #show(at) {
    if (at === this.#at) return;
    this.#at = at;
    this.#place();
    if (at < 0) return;
    const { kind, series, times, long, format, note } = this.#data;
    const told = series.filter((one) => one.values[at] != null && (kind === "lines" || one.values[at] > 0));
    const extra = note?.(at);
    this.#tip.replaceChildren(
      h("strong", {}, long(times[at])),
      ...told.map((one) => h("div.line", {}, h(`i.mark.${one.mark}`), h("span", {}, one.name), h("b", {}, format(one.values[at])))),
      told.length ? "" : h("div.faint", {}, "nothing"),
      kind === "bars" && told.length > 1 ? h("div.line.all", {}, h("i.mark"), h("span", {}, "total"), h("b", {}, format(sum(series, at)))) : "",
      extra ? h("div.faint", {}, extra) : "",
    );
    this.#place();
  }

  /** Puts the cursor and the tooltip beside the chosen time. */
  #place() {
    const shown = this.#at >= 0;
    this.#tip.hidden = !shown;
    this.#cursor.setAttribute("visibility", shown ? "visible" : "hidden");
    if (!shown) return;
    const x = this.x(this.#at);
    for (const [name, value] of Object.entries({ x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM })) this.#cursor.setAttribute(name, value);
    const width = this.element.clientWidth;
    const own = this.#tip.offsetWidth;
    const left = x + 14 + own < width ? x + 14 : x - 14 - own;
    this.#tip.style.left = `${Math.min(Math.max(0, left), Math.max(0, width - own))}px`;
  }
}

/** A small plot without axes, for a tile. */
export function spark(values, mark = "") {
  const most = Math.max(...values, 0) || 1;
  const wide = 100 / Math.max(values.length, 1);
  return svg("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" },
    values.map((value, at) => {
      const high = value > 0 ? Math.max(1, (value / most) * 24) : 0;
      return svg("rect", { class: mark, x: at * wide + wide * 0.12, width: wide * 0.76, y: 24 - high, height: high });
    }));
}

const sum = (series, at) => series.reduce((total, one) => total + (one.values[at] ?? 0), 0);

function bars(series, count, x, y, room) {
  const wide = Math.min(46, Math.max(1, (room / count) * 0.72));
  const found = [];
  for (let at = 0; at < count; at++) {
    let below = 0;
    for (const one of series) {
      const value = one.values[at] ?? 0;
      if (value <= 0) continue;
      const top = y(below + value);
      found.push(svg("rect", { class: one.mark, x: x(at) - wide / 2, width: wide, y: top, height: Math.max(0.75, y(below) - top) }));
      below += value;
    }
  }
  return found;
}

/** A line for each series, broken where nothing is known, with a dot at every value. */
function lines(series, x, y) {
  return series.flatMap((one) => {
    let path = "";
    let open = false;
    one.values.forEach((value, at) => {
      if (value != null) path += `${open ? "L" : "M"}${x(at)} ${y(value)}`;
      open = value != null;
    });
    const dots = one.values.map((value, at) => (value == null ? null : svg("circle", { class: one.mark, cx: x(at), cy: y(value), r: 2.5 })));
    return [svg("path", { class: `line ${one.mark}`, d: path }), ...dots.filter(Boolean)];
  });
}

/** Round numbers from 0 to at least `most`. */
function scale(most) {
  if (!(most > 0)) return [0, 1];
  const rough = most / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((one) => one * power >= rough);
  return Array.from({ length: Math.ceil(most / step - 1e-9) + 1 }, (_, at) => at * step);
}
