// One tool call as a card: its fragments, its arguments, what was mended and why, and whether it is valid.

import { codeLines, longText, valueLines } from "./code.js";
import { textDiff, valueDiff } from "./diff.js";
import { copy, h, svg } from "./dom.js";
import { bytes, count, plural, seconds, since } from "./format.js";

const MAX_TICKS = 600;
const MAX_FRAGMENTS = 200;
const DIFF_TEXT = 200_000; // longer texts are not compared word by word

/** `call` is from the receipt; `fromUpstream` and `toClient` are the same call in the upstream's and the client's bytes, or null. */
export function card(call, fromUpstream, toClient) {
  const renamed = call.upstream_name && call.upstream_name !== call.name;
  const heading = h("h3", { class: "mono" }, renamed ? [h("del", {}, call.upstream_name), " "] : null, call.name || "no name");
  return h("article.card", { "aria-label": `Tool call ${call.name}`, "data-call": call.id },
    h("header", {}, heading, h("span.faint.mono", {}, call.id), badges(call), facts(call)),
    lane(fromUpstream, toClient),
    changes(call),
    verdict(call),
    fragments("Fragments from the upstream", fromUpstream),
    fragments("Fragments to the client", toClient),
    originalBytes(call),
  );
}

function badges(call) {
  const found = [];
  const badge = (kind, text, title) => found.push(h(`span.badge.${kind}`, { title }, text));
  if (call.dropped) badge("warn", `dropped: ${call.dropped}`, "The client did not get this call");
  if (call.recovered) badge("mended", `found in text: ${call.recovered}`, "The model wrote the call as text");
  if (call.fixes.length) badge("mended", "mended");
  if (call.running) badge("plain", "arriving");
  else if (!call.complete) badge("bad", "cut off", "The client did not get it as a complete call");
  else if (call.offered === false) badge("bad", "not offered", "The client declared no tool of this name");
  else if (call.problems.length) badge("bad", "does not fit");
  else if (!call.dropped && !call.fixes.length) badge("plain", "unchanged");
  return h("span.badges", {}, found);
}

function facts(call) {
  const parts = [];
  if (call.started != null && call.ended != null) parts.push(`took ${seconds(Math.max(0, call.ended - call.started))}`);
  if (call.held_seconds >= 0.001) parts.push(`held ${seconds(call.held_seconds)}`);
  parts.push(bytes((call.after || call.before || "").length));
  return h("span.facts", {}, parts.join(" · "));
}

/** Ticks over time: upstream above the line, client below it. A gap below means that the gateway held a fragment. */
function lane(fromUpstream, toClient) {
  const times = [fromUpstream, toClient].flatMap((side) => (side ? side.fragments.map((f) => f.t) : []));
  if (times.length < 2) return null;
  const first = Math.min(...times);
  const span = Math.max(...times) - first || 1;
  const ticks = (side, y, kind) => {
    const step = Math.ceil((side?.fragments.length ?? 0) / MAX_TICKS);
    return (side?.fragments ?? []).filter((_, index) => index % step === 0).map((fragment) =>
      svg("rect", { class: kind, x: `${(((fragment.t - first) / span) * 99).toFixed(2)}%`, y, width: 2, height: 7, rx: 1 }));
  };
  const label = `${plural(fromUpstream?.fragments.length ?? 0, "fragment")} in, ${plural(toClient?.fragments.length ?? 0, "fragment")} out, over ${seconds(span)}`;
  return h("div.lane", {},
    h("span.faint", {}, "upstream", h("br"), "client"),
    svg("svg", { role: "img", "aria-label": label, height: 24, width: "100%" },
      svg("line", { class: "axis", x1: 0, x2: "100%", y1: 12, y2: 12 }), ticks(fromUpstream, 2, "from-upstream"), ticks(toClient, 15, "to-client")),
    h("span.faint", { title: label }, seconds(span)));
}

function changes(call) {
  const before = parsed(call.before);
  const after = parsed(call.after);
  const changed = call.fixes.length > 0;
  let body;
  if (!changed) body = after === undefined ? plain(call.after || call.before || "") : codeLines([...valueLines(after)], { label: "Arguments" });
  else if (before !== undefined && after !== undefined) {
    body = codeLines(valueDiff(before, after, call.fixes), { label: "Arguments, before and after mending" });
  } else body = rewritten(call, after);
  return h("div.arguments", {},
    h("div.tools", {}, h("span.faint", {}, changed ? "from the upstream → to the client" : "arguments"),
      h("button.link", { type: "button", onclick: () => copy(call.after ?? call.before ?? "", "Arguments") }, "copy")),
    body, changed ? fixes(call.fixes) : null);
}

/** The upstream's arguments are not JSON: compare the words, if there are not too many. */
function rewritten(call, after) {
  if (call.before.length + call.after.length <= DIFF_TEXT) return textDiff(call.before, call.after);
  return after === undefined ? plain(call.after) : codeLines([...valueLines(after)], { label: "Arguments" });
}

const plain = (text) => h("pre.code.text", {}, longText(text, { label: "arguments" }));

function fixes(list) {
  return h("ul.fixes", { "aria-label": "What was mended" }, list.map((fix) =>
    h("li", {},
      h("span.badge.mended", {}, fix.rule),
      h("span.mono.path", {}, fix.path || "/"),
      h("span.mono.change", {}, change(fix)),
      h("span.reason", {}, fix.reason))));
}

/** A fix by a syntax rule only names the place: the text above shows the change. */
function change(fix) {
  return fix.after === "" ? fix.before : [h("del", {}, fix.before), " → ", h("ins", {}, fix.after)];
}

function verdict(call) {
  if (call.problems.length) {
    return h("ul.verdict.bad", { "aria-label": call.offered === false ? "Not offered" : "Does not fit its schema" },
      call.problems.map((problem) => h("li", {}, `✗ ${problem}`)));
  }
  if (call.running) return null;
  if (!call.complete) return h("p.verdict.bad", {}, "✗ The upstream stopped in the middle of this call. The client did not get it as a complete call.");
  if (call.valid) return h("p.verdict", {}, "✓ Fits the schema that the client declared");
  return call.valid === false ? h("p.verdict.bad", {}, "✗ Does not fit the schema that the client declared") : null;
}

function fragments(title, side) {
  if (!side?.fragments.length) return null;
  return lazy(`${title} (${count(side.fragments.length)})`, () => {
    const shown = side.fragments.slice(0, MAX_FRAGMENTS);
    const left = side.fragments.length - shown.length;
    return [
      h("ol.fragments", {}, shown.map((fragment) =>
        h("li", {}, h("span.faint", {}, since(fragment.t)), h("code", {}, longText(fragment.text, { shown: 160 }))))),
      left ? h("p.faint", {}, `… and ${count(left)} more: see the timeline`) : null,
    ];
  });
}

function originalBytes(call) {
  return lazy("Original bytes from the upstream", () => plain(call.before ?? ""));
}

/** A details element whose content is created when it is opened. */
export function lazy(title, make, open = false) {
  const details = h("details", { open }, h("summary", {}, title));
  const fill = () => {
    if (details.childElementCount === 1) details.append(...[make()].flat().filter(Boolean));
  };
  details.addEventListener("toggle", () => details.open && fill());
  if (open) fill();
  return details;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
