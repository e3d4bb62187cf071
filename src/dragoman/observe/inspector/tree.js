// A JSON value as a tree. The children of a node are created when it is opened.

import { longText, scalar } from "./code.js";
import { h } from "./dom.js";
import { plural } from "./format.js";

const PAGE = 100;

/** `marks` maps a JSON pointer to {kind, text}, shown next to the member. */
export function tree(value, { marks = new Map(), open = 1, label } = {}) {
  return h("div.tree", { role: "group", "aria-label": label }, [...children(value, "", marks, open)]);
}

function* children(value, path, marks, open) {
  const entries = Object.entries(value);
  for (const [key, child] of entries.slice(0, PAGE)) yield node(key, child, `${path}/${escaped(key)}`, marks, open);
  if (entries.length > PAGE) yield more(entries.slice(PAGE), path, marks);
}

function more(entries, path, marks) {
  const button = h("button.link", { type: "button" }, `… ${entries.length} more`);
  button.addEventListener("click", () => {
    const shown = entries.slice(0, PAGE).map(([key, child]) => node(key, child, `${path}/${escaped(key)}`, marks, 0));
    const rest = entries.slice(PAGE);
    button.replaceWith(...shown, ...(rest.length ? [more(rest, path, marks)] : []));
  });
  return button;
}

const escaped = (key) => key.replaceAll("~", "~0").replaceAll("/", "~1");

function node(key, value, path, marks, open) {
  const mark = marks.get(path);
  const note = mark ? h(`span.badge.${mark.kind}`, { title: mark.title }, mark.text) : null;
  const name = h("span.key", {}, key);
  if (value === null || typeof value !== "object" || !Object.keys(value).length) {
    const [kind, text] = value !== null && typeof value === "object" ? ["punct", Array.isArray(value) ? "[]" : "{}"] : scalar(value);
    return h("div.leaf", { "data-marked": mark?.kind }, name, h(`span.${kind}`, {}, longText(text, { shown: 300 })), note);
  }
  const inside = [...marks.keys()].some((marked) => marked.startsWith(`${path}/`));
  const details = h("details", { open: open > 0, "data-marked": mark?.kind },
    h("summary", {}, name, h("span.preview", {}, preview(value)), note, inside && !mark ? h("span.badge.warn", {}, "•") : null));
  const fill = () => details.childElementCount === 1 && details.append(...children(value, path, marks, open - 1));
  details.addEventListener("toggle", () => details.open && fill());
  if (open > 0) fill();
  return details;
}

/** A preview of a closed node: its role and its first words. */
function preview(value) {
  if (Array.isArray(value)) return `[${plural(value.length, "item")}]`;
  const words = [value.role ?? value.type, value.name ?? value.function?.name].filter((word) => typeof word === "string");
  const text = firstWords(value);
  if (words.length || text) return [words.join(" "), text?.slice(0, 80)].filter(Boolean).join(": ");
  const keys = Object.keys(value);
  return `{${keys.slice(0, 5).join(", ")}${keys.length > 5 ? ", …" : ""}}`;
}

function firstWords(value) {
  for (const inner of [value.text, value.content, value.parts, value.content?.[0]?.text, value.parts?.[0]?.text]) {
    if (typeof inner === "string") return inner;
  }
  return null;
}
