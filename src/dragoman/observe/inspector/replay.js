// Replays the upstream's bytes with this version: unchanged, for another client protocol, or in another mode.

import * as api from "./api.js";
import { card } from "./card.js";
import { compared } from "./diff.js";
import { h } from "./dom.js";
import { plural } from "./format.js";
import { texts } from "./reading.js";
import { Frames } from "./sse.js";
import { longText } from "./code.js";

const PROTOCOLS = ["anthropic", "openai-chat", "openai-responses", "gemini"];
const NEAR = 2;
const MOST = 400;

export function replay(exchange, traffic) {
  const to = choice("Answer for", [["", `${exchange.client} (unchanged)`], ...PROTOCOLS.filter((p) => p !== exchange.client).map((p) => [p, p])]);
  const mode = choice("Arguments", [["", "unchanged"], ["live", "live"], ["whole", "whole"]]);
  const result = h("div.result", { role: "status" });
  const run = h("button.strong", { type: "submit" }, "Replay");
  const form = h("form.replay", {
    onsubmit: async (event) => {
      event.preventDefault();
      run.disabled = true;
      result.replaceChildren(...await outcome(exchange, traffic, chosenOptions(to, mode)));
      run.disabled = false;
    },
  }, to.label, mode.label, run);
  return [
    h("p.soft", {}, "Translates the upstream's bytes again with this version. No request goes to the upstream, and nothing is spent."),
    form, result,
  ];
}

function choice(title, options) {
  const select = h("select", {}, options.map(([value, text]) => h("option", { value }, text)));
  return { select, label: h("label", {}, title, " ", select) };
}

function chosenOptions(to, mode) {
  const options = {};
  if (to.select.value) options.to = to.select.value;
  if (mode.select.value) options.mode = mode.select.value;
  return options;
}

async function outcome(exchange, traffic, options) {
  try {
    const got = await api.replay(exchange.id, options);
    const then = framesOf(traffic?.client ?? []);
    const now = framesOf(got.client);
    const calls = (got.receipts ?? []).map((call) => card(call, null, null));
    if (got.same) return [h("p.notice", {}, `✓ The same bytes as in the original answer: ${plural(now.length, "frame")}.`), ...calls];
    if (options.to) return [h("p.notice", {}, `${plural(now.length, "frame")} for ${options.to}.`), frames(now.map((frame) => [" ", frame])), ...calls];
    const steps = compared(then, now);
    const differ = steps.filter(([mark]) => mark !== " ").length;
    return [h("p.notice.bad", {}, `${plural(differ, "frame")} differ from the original answer.`), frames(near(steps)), ...calls];
  } catch (error) {
    return [h("p.notice.bad", {}, error.message)];
  }
}

/** A plain body is one frame. */
function framesOf(chunks) {
  const frames = new Frames();
  const text = texts(chunks.map((chunk) => (typeof chunk === "string" ? { t: 0, text: chunk } : chunk)));
  return [...text.flatMap((chunk) => frames.feed(chunk.text)), ...frames.end()];
}

/** Only the differences, with a few frames around them. */
function near(steps) {
  const wanted = new Set();
  steps.forEach(([mark], index) => {
    if (mark !== " ") for (let i = index - NEAR; i <= index + NEAR; i++) wanted.add(i);
  });
  const shown = [];
  let gap = 0;
  steps.forEach((step, index) => {
    if (wanted.has(index)) {
      if (gap) shown.push([" ", `… ${plural(gap, "equal frame")}`]);
      gap = 0;
      shown.push(step);
    } else gap++;
  });
  return gap ? [...shown, [" ", `… ${plural(gap, "equal frame")}`]] : shown;
}

const CLASSES = { " ": "line", "-": "line.was", "+": "line.now" };

function frames(steps) {
  const lines = steps.slice(0, MOST).map(([mark, text]) =>
    h(`div.${CLASSES[mark]}`, {}, h("span.sign", {}, mark), h("span.content", {}, longText(text, { shown: 400 }))));
  const left = steps.length - lines.length;
  return h("div.code", { role: "group", "aria-label": "Frames" }, lines, left > 0 ? h("p.faint", {}, `… ${plural(left, "more frame")}`) : null);
}
