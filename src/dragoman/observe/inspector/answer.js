// The answer as the client got it: thinking, text and calls in order, then the calls that the client did not get.

import { card, lazy } from "./card.js";
import { longText } from "./code.js";
import { h } from "./dom.js";
import { bytes, seconds } from "./format.js";
import { badge } from "./notices.js";
import { assembled } from "./reading.js";

/** `sides` is {upstream, client}, read from the bytes; null if the bytes are gone. */
export function answer(exchange, sides) {
  const calls = [...exchange.calls];
  const parts = [];
  for (const block of sides?.client.blocks ?? []) {
    if (block.kind !== "call") parts.push(words(block));
    else {
      const call = taken(calls, block.call) ?? unfinished(block.call, exchange);
      parts.push(card(call, ofUpstream(sides.upstream, call), block.call));
    }
  }
  for (const call of calls) parts.push(card(call, sides && ofUpstream(sides.upstream, call), null));
  if (!parts.length) parts.push(h("p.notice", {}, nothing(exchange, sides)));
  return [attempts(exchange), notices(exchange), ...parts];
}

/** The receipt of a call in the client's stream. Gemini's calls may have no ids: then the order decides. */
function taken(calls, seen) {
  let index = calls.findIndex((call) => call.id === seen.id);
  if (index < 0) index = calls.findIndex((call) => !call.dropped && call.name === seen.name);
  return index < 0 ? null : calls.splice(index, 1)[0];
}

/** A call without a receipt: it is still arriving, or was cut off. */
function unfinished(seen, exchange) {
  return {
    id: seen.id ?? "", name: seen.name ?? "", complete: false, running: exchange.outcome === "running",
    before: assembled(seen), after: assembled(seen), fixes: [], problems: [],
  };
}

/** The same call on the other side. The last attempt counts; ids may be missing or repeated. */
function ofUpstream(side, call) {
  const same = side.calls.filter((seen) => seen.id === (call.upstream_id ?? call.id));
  if (same.length === 1) return same[0];
  return side.calls.findLast((seen) => assembled(seen) === call.before) ?? same.at(-1) ?? null;
}

function words(block) {
  if (block.kind === "thinking") {
    return h("div.thinking", {}, lazy(`Thinking (${bytes(block.text.length)})`, () => h("p.prose", {}, longText(block.text, { shown: 4000 }))));
  }
  return h("p.prose", {}, longText(block.text, { shown: 2000 }));
}

function nothing(exchange, sides) {
  if (exchange.outcome === "running") return "No answer yet.";
  if (!sides) return "The gateway no longer has the bytes of this exchange in memory. The receipt is above.";
  return exchange.error ? "There was no answer." : "The answer has no text and no calls.";
}

function attempts(exchange) {
  const tried = exchange.attempts ?? [];
  if (tried.length < 2 && tried.every((one) => !one.error || one.error === exchange.error)) return null;
  return h("section.attempts", { "aria-label": "Attempts" }, h("ol", {}, tried.map((one) =>
    h("li", {},
      h(one.outcome === "ok" ? "span.badge.plain" : "span.badge.bad", {}, [one.status, one.outcome].filter(Boolean).join(" ")),
      h("span.mono", {}, one.target),
      h("span.faint", {}, [one.why, one.key && `key ${one.key}`, seconds(one.seconds)].filter(Boolean).join(" · ")),
      one.error ? h("span.words", {}, one.error) : null))));
}

function notices(exchange) {
  const notices = exchange.notices ?? [];
  if (!notices.length) return null;
  return lazy(`${notices.length} dropped, changed or added on the way to the upstream`, () =>
    h("ul.notices", {}, notices.map((notice) =>
      h("li", {}, h(`span.badge.${badge(notice)}`, {}, notice.rule), h("span.mono.path", {}, notice.path), h("span", {}, notice.message)))));
}
