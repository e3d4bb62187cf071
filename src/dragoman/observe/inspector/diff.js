// Differences: two JSON values as one list of lines, or two texts as one text.

import { valueLines } from "./code.js";
import { h } from "./dom.js";

const MAX_TOKENS = 1500;

/** The lines of `before` and `after` together; `fixes` give the rule of each change, by path. */
export function valueDiff(before, after, fixes) {
  return [...diff(before, after, { depth: 0, path: "", fixes })];
}

function* diff(a, b, at) {
  if (same(a, b)) {
    yield* valueLines(b, at);
  } else if (isObject(a) && isObject(b)) {
    yield* around("{}", at, members(a, b, at));
  } else if (Array.isArray(a) && Array.isArray(b)) {
    yield* around("[]", at, items(a, b, at));
  } else {
    yield* valueLines(a, { ...at, mark: "-" });
    yield* valueLines(b, { ...at, mark: "+", rules: rulesAt(at.fixes, at.path) });
  }
}

function* around([open, close], at, inside) {
  const head = at.key === undefined ? [] : [["key", JSON.stringify(at.key)], ["punct", ": "]];
  yield { depth: at.depth, mark: " ", parts: [...head, ["punct", open]], rules: rulesAt(at.fixes, at.path) };
  yield* inside;
  yield { depth: at.depth, mark: " ", parts: [["punct", close]] };
}

function* members(a, b, at) {
  const left = new Set(Object.keys(b).filter((key) => !(key in a)));
  const inner = (key) => ({ depth: at.depth + 1, key, path: `${at.path}/${key}`, fixes: at.fixes });
  for (const [key, value] of Object.entries(a)) {
    if (key in b) {
      yield* diff(value, b[key], inner(key));
      continue;
    }
    const fixes = rulesAt(at.fixes, `${at.path}/${key}`);
    const renamed = fixes.map((fix) => fix.after).find((name) => left.has(name));
    yield* valueLines(value, { ...inner(key), mark: "-", rules: renamed ? undefined : fixes });
    if (renamed !== undefined) {
      left.delete(renamed);
      const rules = [...fixes, ...rulesAt(at.fixes, `${at.path}/${renamed}`)];
      yield* valueLines(b[renamed], { ...inner(renamed), mark: "+", rules });
    }
  }
  for (const key of left) {
    yield* valueLines(b[key], { ...inner(key), mark: "+", rules: rulesAt(at.fixes, `${at.path}/${key}`) });
  }
}

function* items(a, b, at) {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const inner = { depth: at.depth + 1, path: `${at.path}/${index}`, fixes: at.fixes };
    if (index >= b.length) yield* valueLines(a[index], { ...inner, mark: "-" });
    else if (index >= a.length) yield* valueLines(b[index], { ...inner, mark: "+" });
    else yield* diff(a[index], b[index], inner);
  }
}

const rulesAt = (fixes, path) => fixes.filter((fix) => fix.path === path);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** Equal as JSON. */
export function same(a, b) {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== "object" || typeof b !== "object") return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => key in b && same(a[key], b[key]));
}

/** Two texts as one: removed words are struck out, new words are marked. */
export function textDiff(before, after) {
  const steps = merged(compared(tokens(before), tokens(after)));
  return h("pre.code.text", {}, steps.map(([mark, text]) =>
    mark === " " ? text : h(mark === "-" ? "del" : "ins", {}, text)));
}

const tokens = (text) => text.match(/\w+|\s+|[^\w\s]/g) ?? [];

/** [[" " | "-" | "+", text]…] of two lists of words or frames. */
export function compared(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return [
    ...a.slice(0, start).map((word) => [" ", word]),
    ...middle,
    ...a.slice(a.length - end).map((word) => [" ", word]),
  ];
}

/** Longest common subsequence. Two long different middles become one removal and one addition. */
function between(a, b) {
  if (!a.length || !b.length || a.length > MAX_TOKENS || b.length > MAX_TOKENS) {
    return [...a.map((word) => ["-", word]), ...b.map((word) => ["+", word])];
  }
  const width = b.length + 1;
  const table = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const here = i * width + j;
      table[here] = a[i] === b[j] ? table[here + width + 1] + 1 : Math.max(table[here + width], table[here + 1]);
    }
  }
  const steps = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      steps.push([" ", a[i++]]);
      j++;
    } else if (j >= b.length || (i < a.length && table[(i + 1) * width + j] >= table[i * width + j + 1])) {
      steps.push(["-", a[i++]]);
    } else {
      steps.push(["+", b[j++]]);
    }
  }
  return steps;
}

function merged(steps) {
  const out = [];
  for (const [mark, text] of steps) {
    if (out.at(-1)?.[0] === mark) out.at(-1)[1] += text;
    else out.push([mark, text]);
  }
  return out;
}

