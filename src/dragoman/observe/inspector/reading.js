// Reads the chunks of one side: frames with their times, text in order, and calls with their fragments.

import { fields, Frames } from "./sse.js";
import { frameContent } from "./wires.js";

/** The text of each chunk. A chunk that is cut inside a character arrives as base64. */
export function texts(chunks) {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => {
    const text = chunk.text ?? decoder.decode(fromBase64(chunk.base64), { stream: true });
    return { t: chunk.t, attempt: chunk.attempt ?? 0, text };
  });
}

function fromBase64(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

/** {frames, blocks, calls} of one side. */
export function read(chunks) {
  const side = { frames: [], blocks: [], calls: [] };
  const attempts = Map.groupBy(texts(chunks), (chunk) => chunk.attempt);
  for (const [attempt, own] of attempts) {
    const state = { byKey: new Map() };
    for (const found of framesOf(own)) {
      const frame = { ...found, attempt };
      side.frames.push({ ...frame, content: readFrame(side, frame, state) });
    }
  }
  return side;
}

function framesOf(chunks) {
  const first = chunks.find((chunk) => chunk.text.trim() !== "");
  return first && /^\s*[[{]/.test(first.text) ? bodyOf(chunks) : streamOf(chunks);
}

function* streamOf(chunks) {
  const frames = new Frames();
  for (const [index, chunk] of chunks.entries()) {
    for (const raw of frames.feed(chunk.text)) yield { t: chunk.t, chunk: index, raw, json: parsed(raw) };
  }
  const last = chunks.at(-1);
  for (const raw of frames.end()) yield { t: last.t, chunk: chunks.length - 1, raw, json: parsed(raw) };
}

/** A plain body is one frame; Gemini's array of chunks has one frame per chunk. */
function* bodyOf(chunks) {
  const raw = chunks.map((chunk) => chunk.text).join("");
  const at = { t: chunks.at(-1).t, chunk: chunks.length - 1 };
  const body = json(raw);
  if (!Array.isArray(body)) yield { ...at, raw, json: body };
  else for (const part of body) yield { ...at, raw: JSON.stringify(part), json: part };
}

function parsed(raw) {
  const event = fields(raw);
  return event ? json(event.data) : undefined;
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function readFrame(side, frame, state) {
  if (frame.json === undefined) {
    const comment = frame.raw.startsWith(":");
    const done = fields(frame.raw)?.data === "[DONE]";
    return [{ kind: "mark", text: comment ? "keepalive" : done ? "[DONE]" : "not JSON" }];
  }
  const found = frameContent(frame.json, state);
  for (const one of found) gather(side, frame, one, state.byKey);
  return found;
}

function gather(side, frame, one, byKey) {
  if (one.kind === "text" || one.kind === "thinking") {
    const last = side.blocks.at(-1);
    if (last?.kind === one.kind) last.text += one.text;
    else side.blocks.push({ kind: one.kind, text: one.text });
  } else if (one.kind === "call") {
    begin(side, frame, one, byKey);
  } else if (one.kind === "arguments") {
    one.call = byKey.get(one.key);
    one.call?.fragments.push({ t: frame.t, text: one.text });
  }
}

/** Some upstreams repeat the name in every fragment: the same key is the same call, unless the id is new. */
function begin(side, frame, one, byKey) {
  const known = byKey.get(one.key);
  one.call = known;
  if (known && (!one.id || known.id === one.id)) return;
  const call = one.call = { id: one.id, name: one.name, t: frame.t, attempt: frame.attempt, fragments: [] };
  byKey.set(one.key, call);
  side.calls.push(call);
  side.blocks.push({ kind: "call", call });
}

export const assembled = (call) => call.fragments.map((fragment) => fragment.text).join("");

/**
 * Numbers the calls of both sides, so that interleaved fragments can be told apart. A call has one number on both
 * sides: that of the upstream's call which its receipt names, or the one with its id. Without one it has none.
 */
export function numberCalls(sides, receipts) {
  sides.upstream.calls.forEach((call, at) => (call.number = at + 1));
  const upstreamIds = new Map(receipts.map((receipt) => [receipt.id, receipt.upstream_id ?? receipt.id]));
  for (const call of sides.client.calls) {
    const id = upstreamIds.get(call.id) ?? call.id;
    call.number = id ? sides.upstream.calls.findLast((one) => one.id === id)?.number : undefined;
  }
}
