// Shows JSON and long text. Lays out only the part that is visible.

import { h } from "./dom.js";
import { bytes, count, plural } from "./format.js";

const SHOWN = 700; // characters of a long string before it is folded
const LINES = 10;
const PIECE = 16_384; // characters of an opened text that the browser lays out at once
const FIRST_LINES = 300;

/** A text, folded if it is long. When it is opened, only the visible part is laid out. */
export function longText(text, { shown = SHOWN, label = "text" } = {}) {
  const cut = foldAt(text, shown);
  if (cut === text.length) return document.createTextNode(text);
  const holder = h("span.folded", {}, text.slice(0, cut));
  const rest = `${bytes(text.length)}, ${plural(text.split("\n").length, "line")}`;
  const button = h("button.link", {
    type: "button",
    "aria-label": `Show all of this ${label}: ${rest}`,
    onclick: () => holder.replaceChildren(...pieces(text)),
  }, `… show all (${rest})`);
  holder.append(button);
  return holder;
}

function foldAt(text, shown) {
  if (text.length <= shown && !moreLines(text)) return text.length;
  let cut = Math.min(shown, text.length);
  let at = -1;
  for (let line = 0; line < LINES; line++) {
    at = text.indexOf("\n", at + 1);
    if (at < 0) break;
  }
  if (at >= 0) cut = Math.min(cut, at);
  return text.length - cut < 80 ? text.length : cut;
}

const moreLines = (text) => text.split("\n", LINES + 2).length > LINES + 1;

function* pieces(text) {
  for (let at = 0; at < text.length; ) {
    // End a piece at a line end if possible, so that no line is split.
    const line = text.lastIndexOf("\n", at + PIECE);
    const end = at + PIECE >= text.length ? text.length : line > at ? line + 1 : at + PIECE;
    yield h("span.piece", {}, text.slice(at, end));
    at = end;
  }
}

/** One line of code: {depth, mark: " ", "-" or "+", parts: [[class, text]], rules: [fix]}. */
export function codeLines(lines, { label, shown = FIRST_LINES } = {}) {
  const box = h("div.code", { role: "group", "aria-label": label });
  const add = (some) => box.append(...some.map(drawn));
  add(lines.slice(0, shown));
  if (lines.length > shown) {
    const more = h("button.link", { type: "button" }, `… ${count(lines.length - shown)} more lines`);
    more.addEventListener("click", () => {
      more.remove();
      add(lines.slice(shown));
    });
    box.append(more);
  }
  return box;
}

const MARKS = { "-": "was: ", "+": "now: ", " ": "" };
const CLASSES = { "-": "line.was", "+": "line.now", " ": "line" };

function drawn(line) {
  const element = h(`div.${CLASSES[line.mark]}`, {},
    line.mark === " " ? null : h("span.hidden", {}, MARKS[line.mark]),
    h("span.sign", { "aria-hidden": "true" }, line.mark),
    h("span.content", {}, line.parts.map(([kind, text]) => part(kind, text))),
    line.rules?.length ? h("span.why", {}, line.rules.map((fix) => h("span.badge.mended", { title: fix.reason }, fix.rule))) : null,
  );
  element.style.setProperty("--depth", line.depth);
  return element;
}

function part(kind, text) {
  if (kind !== "string" || (text.length <= SHOWN && !text.includes("\n"))) return h(`span.${kind}`, {}, text);
  // Show a string with line breaks as separate lines.
  return h("span.string.block", {}, longText(text, { label: "string" }));
}

/** A value as lines, after its `key`. Without commas: the line breaks are enough. */
export function* valueLines(value, { depth = 0, key, mark = " ", rules } = {}) {
  const head = key === undefined ? [] : [["key", JSON.stringify(key)], ["punct", ": "]];
  const line = (parts, at = depth) => ({ depth: at, mark, parts, rules: undefined });
  if (value === null || typeof value !== "object") {
    yield { ...line([...head, scalar(value)]), rules };
    return;
  }
  const list = Array.isArray(value);
  const [open, close] = list ? "[]" : "{}";
  const entries = list ? value.map((one) => [undefined, one]) : Object.entries(value);
  if (!entries.length) {
    yield { ...line([...head, ["punct", open + close]]), rules };
    return;
  }
  yield { ...line([...head, ["punct", open]]), rules };
  for (const [name, one] of entries) yield* valueLines(one, { depth: depth + 1, key: name, mark });
  yield line([["punct", close]]);
}

export function scalar(value) {
  if (typeof value !== "string") return ["literal", JSON.stringify(value)];
  return ["string", value.includes("\n") ? value : JSON.stringify(value)];
}
