// Both sides over time: one line per step, the upstream's frames on the left, the client's frames on the right.

import { codeLines, longText, valueLines } from "./code.js";
import { h } from "./dom.js";
import { since } from "./format.js";
import { fields } from "./sse.js";

const PAGE = 150;

/** `sides` are read from the bytes; `requests` are those to the upstreams. */
export function timeline(sides, protocols, requests) {
  const sent = requests.filter((one) => one.t != null).map(requestStep);
  const fromUpstream = [...sent, ...sides.upstream.frames].sort((a, b) => a.t - b.t);
  const moments = joinText([...inSteps(fromUpstream, sides.client.frames)]);
  const body = h("div.moments", { role: "table", "aria-label": "Timeline" },
    h("div.moment.top", { role: "row" },
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

/** Adds more lines when the end of the list becomes visible. */
function watch(element, grow) {
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && !element.hidden) grow();
  }).observe(element);
}

/** A request is a step, too: the time to the next step is the upstream's. */
function requestStep(request) {
  return { t: request.t, attempt: request.attempt, raw: request.body, json: undefined, content: [{ kind: "ask", text: request.url }] };
}

/** Joins text that passes without delay into one line, however many frames it has. */
function joinText(moments) {
  const out = [];
  for (const moment of moments) {
    const kind = flow(moment);
    const last = out.at(-1);
    if (kind && last?.kind === kind) {
      last.fromUpstream.push(...moment.fromUpstream);
      last.toClient.push(...moment.toClient);
    } else out.push({ ...moment, kind });
  }
  return out;
}

function flow({ fromUpstream, toClient }) {
  const kinds = new Set([...fromUpstream, ...toClient].flatMap((frame) => frame.content.map((one) => one.kind)));
  const [kind] = kinds;
  return kinds.size === 1 && fromUpstream.length && toClient.length && (kind === "text" || kind === "thinking") ? kind : null;
}

/** A step starts with a frame of the upstream; the client's frames before the next one belong to it. */
function* inSteps(upstream, client) {
  let next = 0;
  const until = (t) => {
    const from = next;
    while (next < client.length && client[next].t < t) next++;
    return client.slice(from, next);
  };
  const chunks = chunked(upstream);
  const early = until(chunks[0]?.t ?? Infinity);
  if (early.length) yield { t: early[0].t, fromUpstream: [], toClient: early };
  for (const [index, chunk] of chunks.entries()) {
    yield { t: chunk.t, fromUpstream: chunk.frames, toClient: until(chunks[index + 1]?.t ?? Infinity) };
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

function moment({ t, fromUpstream, toClient, kind }) {
  const drawn = (frames) => (kind && frames.length > 1 ? run(kind, frames) : frames.map(line));
  return h("div.moment", { role: "row" },
    h("span.at", { role: "rowheader" }, since(t)),
    h("div.cell.from-upstream", { role: "cell" }, drawn(fromUpstream)),
    h("div.cell.to-client", { role: "cell" }, toClient.length ? drawn(toClient) : fromUpstream.length ? h("span.held", { title: "the client has not got anything for this yet" }, "·") : null));
}

const NAMES = { call: "call", arguments: "args", thinking: "think", opaque: "sealed", mark: "" };

/** Several frames of text: the text, and the frames when opened. */
function run(kind, frames) {
  const text = frames.flatMap((frame) => frame.content.map((one) => one.text)).join("");
  const details = h("details.frame.run", {}, h("summary", {},
    part({ kind, text }), h("span.badge.plain", { title: `${frames.length} frames` }, `×${frames.length}`)));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) {
      details.append(...frames.slice(0, PAGE).map((frame) => h("div.timed", {}, h("span.at", {}, since(frame.t)), line(frame))));
    }
  });
  return details;
}

const part = (one) => h(`span.part.${one.kind}`, {}, h("span.kind", {}, label(one)), h("span.what", {}, snippet(one)));

/** A piece of a call carries the number of its call: the pieces of several calls may interleave. */
const label = (one) => [NAMES[one.kind] ?? one.kind, one.call?.number].filter(Boolean).join("\u00a0");

function line(frame) {
  const content = frame.content.length ? frame.content : [{ kind: "mark", text: "empty" }];
  const details = h("details.frame", {}, h("summary", {}, content.map(part)));
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
