// The request before and after translation: each field's counterpart, and both bodies.

import { longText } from "./code.js";
import { h } from "./dom.js";
import { bytes } from "./format.js";
import { badge } from "./notices.js";
import { tree } from "./tree.js";

/** `traffic` has the bytes. The last attempt is shown. */
export function request(exchange, traffic) {
  const received = traffic.client_request;
  if (!received) return h("p.notice", {}, "The gateway did not read the request.");
  const sent = traffic.upstream_requests?.at(-1);
  const client = parsed(received.body);
  const upstream = sent && parsed(sent.body);
  return [
    traffic.fields ? fieldChanges(traffic.fields) : null,
    h("div.bodies", {},
      bodyColumn("Request from the client", `${received.method} ${received.path}`, received, client, marked(traffic.fields ?? [], client)),
      sent ? bodyColumn("Request to the upstream", sent.url, sent, upstream, new Map()) : null),
  ];
}

/** A mark at each field that a notice is about, or at the item of its list. */
function marked(fields, client) {
  const marks = new Map();
  for (const { field, notices = [] } of fields) {
    const [top, inner] = field.split(/\.(.*)/);
    for (const notice of notices) {
      const index = /\[(\d+)\]/.exec(notice.path)?.[1];
      const item = Array.isArray(client?.[top]) && index in client[top] ? `/${index}` : "";
      marks.set(`/${top}${inner ? `/${inner}` : item}`, { kind: badge(notice), text: notice.rule, title: notice.message });
    }
  }
  return marks;
}

function bodyColumn(title, address, message, body, marks) {
  return h("section.body-column", { "aria-label": title },
    h("h3", {}, title, h("span.faint", {}, ` ${bytes(message.body?.length ?? 0)}`)),
    h("p.mono.address", {}, address),
    headers(message.headers),
    body && typeof body === "object"
      ? tree(body, { marks, label: title })
      : h("pre.code.text", {}, longText(message.body ?? "", { label: "body" })));
}

function headers(all) {
  const names = Object.entries(all ?? {});
  return h("details", {}, h("summary", {}, `${names.length} headers`),
    h("dl.headers", {}, names.map(([name, value]) => [h("dt.mono", {}, name), h("dd.mono", {}, String(value))])));
}

const CHANGES = { same: "unchanged", rewritten: "rewritten", emulated: "emulated", default: "not needed", overruled: "overruled", dropped: "dropped" };
const REASONS = {
  default: "Not sent: the request asks for the same without this field.",
  overruled: "Not sent: another field of the request sets the same.",
};

/** One line per field of the client's request, as the gateway reports it (`fields`). Lost fields come first. */
function fieldChanges(fields) {
  const lines = fields.map(({ field, kind, to = [], notices = [] }) => {
    const lost = kind === "dropped" || notices.some((notice) => badge(notice) === "warn");
    const text = CHANGES[kind] ?? `→ ${to.join(", ")}${kind === "joined" ? " (joined)" : ""}`;
    const why = notices.map((notice) => notice.message).join("; ");
    return h("li", { "data-change": kind, "data-lost": lost ? "" : null },
      h("span.mono.key", {}, field), h(`span.badge.${lost ? "warn" : "plain"}`, { title: REASONS[kind] }, text), why ? h("span.soft", {}, why) : null);
  });
  return h("section.field-changes", { "aria-label": "Fields of the request" }, h("ul", {}, lines));
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
