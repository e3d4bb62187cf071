// The original bytes, with their times.

import { longText } from "./code.js";
import { copy, h, save } from "./dom.js";
import { bytes, count, since } from "./format.js";
import { texts } from "./reading.js";

const PAGE = 200;

export function raw(traffic) {
  const request = traffic.client_request;
  const sent = traffic.upstream_requests ?? [];
  return [
    traffic.dropped ? h("p.notice.bad", {}, `${count(traffic.dropped)} chunks are missing: they arrived faster than they could be recorded.`) : null,
    request ? section("1. The client's request", [{ t: request.t ?? 0, text: request.body ?? "" }]) : null,
    ...sent.map((one) => section(`2. To the upstream: ${one.url}`, [{ t: one.t ?? 0, text: one.body ?? "" }])),
    section("3. From the upstream", texts(traffic.upstream ?? [])),
    section("4. To the client", texts(traffic.client ?? [])),
  ];
}

function section(title, chunks) {
  const all = () => chunks.map((chunk) => chunk.text).join("");
  const size = chunks.reduce((sum, chunk) => sum + chunk.text.length, 0);
  const list = h("div.chunks", {});
  const grow = () => {
    const shown = list.childElementCount;
    list.append(...chunks.slice(shown, shown + PAGE).map(drawn));
    more.hidden = list.childElementCount >= chunks.length;
  };
  const more = h("button.link", { type: "button", onclick: () => grow() }, "more chunks");
  grow();
  return h("section.raw", { "aria-label": title },
    h("div.tools", {}, h("h3", {}, title), h("span.faint", {}, `${bytes(size)}, ${count(chunks.length)} chunks`),
      h("button.link", { type: "button", onclick: () => copy(all(), "Bytes") }, "copy"),
      h("button.link", { type: "button", onclick: () => save(new Blob([all()]), `${title.replace(/\W+/g, "-").toLowerCase()}.txt`) }, "save")),
    list, more);
}

function drawn(chunk) {
  return h("div.chunk", {}, h("span.at", {}, since(chunk.t)), h("pre", {}, longText(chunk.text, { shown: 1200, label: "chunk" })));
}
