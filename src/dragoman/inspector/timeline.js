// Both sides in step: a line per moment, what came from the upstream left, what the client got of it right.

import { codeLines, longText, valueLines } from "./code.js";
import { h } from "./dom.js";
import { since } from "./format.js";
import { fields } from "./sse.js";

const PAGE = 150;

/** `sides` as read from the bytes. */
export function timeline(sides, protocols) {
  const moments = [...inStep(sides.upstream.frames, sides.client.frames)];
  const body = h("div.moments", { role: "table", "aria-label": "Timeline" },
    h("div.moment.head", { role: "row" },
      h("span", { role: "columnheader" }, "s"),
      h("span", { role: "columnheader" }, `from the upstream${protocols.upstream ? ` · ${protocols.upstream}` : ""}`),
      h("span", { role: "columnheader" }, `to the client · ${protocols.client}`)));
  const more = h("button.link", { type: "button" });
  let shown = 0;
  const grow = () => {
    body.append(...moments.slice(shown, shown + PAGE).map(moment));
    shown = Math.min(moments.length, shown + PAGE);
    more.textContent = `${moments.length - shown} more moments`;
    more.hidden = shown >= moments.length;
  };
  more.addEventListener("click", grow);
  grow();
  watch(more, grow);
  return [body, more];
}

/** The rest comes by itself when its end comes into view. */
function watch(element, grow) {
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && !element.hidden) grow();
  }).observe(element);
}

/** A moment begins with something from the upstream; what the client gets before the next one belongs to it. */
function* inStep(upstream, client) {
  let next = 0;
  const until = (t) => {
    const from = next;
    while (next < client.length && client[next].t < t) next++;
    return client.slice(from, next);
  };
  const chunks = chunked(upstream);
  const early = until(chunks[0]?.t ?? Infinity);
  if (early.length) yield { t: early[0].t, came: [], went: early };
  for (const [index, chunk] of chunks.entries()) {
    yield { t: chunk.t, came: chunk.frames, went: until(chunks[index + 1]?.t ?? Infinity) };
  }
}

function chunked(frames) {
  const chunks = [];
  for (const frame of frames) {
    const last = chunks.at(-1);
    if (last && last.t === frame.t && last.attempt === frame.attempt) last.frames.push(frame);
    else chunks.push({ t: frame.t, attempt: frame.attempt, frames: [frame] });
  }
  return chunks;
}

function moment({ t, came, went }) {
  return h("div.moment", { role: "row" },
    h("span.at", { role: "rowheader" }, since(t)),
    h("div.cell.came", { role: "cell" }, came.map(line)),
    h("div.cell.went", { role: "cell" }, went.length ? went.map(line) : came.length ? h("span.held", { title: "nothing went to the client yet" }, "·") : null));
}

const NAMES = { call: "call", arguments: "args", thinking: "think", opaque: "sealed", mark: "" };

function line(frame) {
  const said = frame.says.length ? frame.says : [{ kind: "mark", text: "empty" }];
  const details = h("details.frame", {}, h("summary", {}, said.map((one) =>
    h(`span.say.${one.kind}`, {}, h("span.kind", {}, NAMES[one.kind] ?? one.kind), h("span.what", {}, snippet(one))))));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(opened(frame));
  });
  return details;
}

const LONG = 300;
const snippet = (one) => (one.text.length > LONG ? `${one.text.slice(0, LONG)}…` : one.text);

function opened(frame) {
  if (frame.json === undefined) return h("pre.code.text", {}, longText(frame.raw));
  const event = fields(frame.raw)?.event;
  return h("div", {},
    event && event !== "message" ? h("p.faint.mono", {}, `event: ${event}`) : null,
    codeLines([...valueLines(frame.json)], { label: "Frame" }));
}
