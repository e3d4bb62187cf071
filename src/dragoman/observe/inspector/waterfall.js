// The turns of a session: when each one ran, what its request changed, and what the upstream cached.

import { h } from "./dom.js";
import { bytes, count, date, moment, percent, plural, seconds } from "./format.js";
import { stateOf } from "./store.js";

const LONGEST_GAP = 0.04; // of the width: hours without a request would leave no room for the turns

/** `opened`: the ids of the exchanges whose changes are unfolded. */
export function waterfall(found, opened) {
  const places = layout(found.turns.map((turn) => turn.exchange));
  const numbers = new Map(found.turns.map((turn, at) => [turn.exchange.id, at + 1 + found.left_out]));
  return [
    found.left_out ? h("p.faint", {}, `${plural(found.left_out, "older turn")} not shown.`) : "",
    h("p.legend.faint", {}, h("i.wait"), "until the first event", h("i.stream"), "until the end"),
    h("ol.turns", { start: found.left_out + 1 }, found.turns.map((turn, at) => drawn(turn, places[at], numbers, opened))),
  ];
}

/** The left edge and the widths of each turn in percent. Long pauses are shortened, and named. */
function layout(exchanges) {
  const busy = exchanges.reduce((sum, x) => sum + x.seconds, 0) || 1;
  const cap = busy * LONGEST_GAP;
  let end = null; // the latest end so far, in real time
  let shift = 0; // real time that is left out
  const places = exchanges.map((x) => {
    const pause = end === null ? 0 : x.at - end;
    if (end === null) shift = x.at;
    else if (pause > cap) shift += pause - cap;
    end = Math.max(end ?? 0, x.at + x.seconds);
    return { from: x.at - shift, pause };
  });
  const width = Math.max(...exchanges.map((x, at) => places[at].from + x.seconds), 1e-3);
  return exchanges.map((x, at) => {
    const wait = Math.min(x.first_event ?? x.seconds, x.seconds);
    const share = (value) => Math.max(0, (100 * value) / width);
    return { left: share(places[at].from), wait: share(wait), stream: share(x.seconds - wait), pause: places[at].pause };
  });
}

function drawn({ exchange: x, cache }, place, numbers, opened) {
  const state = stateOf(x);
  return h("li.turn", { "data-state": state },
    h("a.turn-link", { href: `#${x.id}`, title: date(x.at) }, h("b", {}, count(numbers.get(x.id))), ` ${moment(x.at)}`, h("span.turn-model", {}, x.model)),
    bar(x, place),
    h("span.turn-time", {}, seconds(x.seconds)),
    h("div.turn-cache", {}, meter(cache), h("span.why", {}, why(cache, numbers)), state === "failed" ? h("span.badge.bad", {}, x.error ?? x.outcome) : null),
    changes(x.id, cache, opened.has(x.id)));
}

function bar(x, { left, wait, stream, pause }) {
  const text = [x.first_event == null ? "no event" : `first event after ${seconds(x.first_event)}`, `took ${seconds(x.seconds)}`];
  if (pause > 60) text.push(`${seconds(pause)} after the turn before`);
  const part = (kind, size) => {
    const element = h(`i.${kind}`);
    element.style.width = `${size}%`;
    return element;
  };
  const space = part("space", left);
  return h("div.bar-line", { role: "img", "aria-label": text.join(", "), title: text.join(", ") }, space, part("wait", wait), part("stream", stream));
}

function meter(cache) {
  if (cache.input == null || cache.cached == null) return h("span.meter.none", { title: "the upstream did not report it" }, "–");
  const share = cache.input ? cache.cached / cache.input : 0;
  const kind = cache.hit === false ? "miss" : cache.hit ? "hit" : "first";
  return h(`span.meter.${kind}`, { title: `${count(cache.cached)} of ${count(cache.input)} prompt tokens came from the cache` }, `${percent(share)} cached`);
}

function why(cache, numbers) {
  const place = cache.compared ? ` Compared with turn ${numbers.get(cache.compared) ?? "before"}: ${bytes(cache.same_bytes)} of ${bytes(cache.prompt_bytes)} are the same from the start.` : "";
  return [h("span", {}, [cache.sentence, ...cache.also].join(" ")), h("span.faint", {}, place)];
}

function changes(id, cache, open) {
  if (!cache.changes.length) return null;
  return h("details.turn-changes", { "data-id": id, open },
    h("summary", {}, plural(cache.changes.length, "difference")),
    h("ul", {}, cache.changes.map((change) => h("li", {}, change))));
}
