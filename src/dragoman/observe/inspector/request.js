// The request before and after translation: each field's counterpart, and both bodies.

import { longText } from "./code.js";
import { h } from "./dom.js";
import { bytes } from "./format.js";
import { same } from "./diff.js";
import { badge, place } from "./notices.js";
import { tree } from "./tree.js";

/** `traffic` has the bytes. The last attempt is shown. */
export function request(exchange, traffic) {
  const asked = traffic.client_request;
  if (!asked) return h("p.notice", {}, "The gateway did not read the request.");
  const sent = traffic.upstream_requests?.at(-1);
  const client = parsed(asked.body);
  const upstream = sent && parsed(sent.body);
  const notices = exchange.notices ?? [];
  return [
    client && upstream ? fates(client, upstream, notices) : null,
    h("div.halves", {},
      half("Request from the client", `${asked.method} ${asked.path}`, asked, client, marked(notices, client)),
      sent ? half("Request to the upstream", sent.url, sent, upstream, new Map()) : null),
  ];
}

function marked(notices, client) {
  const found = notices.map((notice) => [place(notice, client), { kind: badge(notice), text: notice.rule, title: notice.message }]);
  return new Map(found.filter(([pointer]) => pointer));
}

function half(title, address, message, body, marks) {
  return h("section.half", { "aria-label": title },
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

/** One line per field of the client's request: the upstream's field with its value, or a notice. */
function fates(client, upstream, notices) {
  const lines = Object.keys(client).map((key) => {
    const [kind, text, why] = fate(key, client, upstream, notices);
    return h("li", { "data-fate": kind }, h("span.mono.key", {}, key), h(`span.badge.${kind}`, {}, text), why ? h("span.soft", {}, why) : null);
  });
  return h("section.fates", { "aria-label": "Fields of the request" }, h("ul", {}, lines));
}

function fate(key, client, upstream, notices) {
  const told = notices.filter((notice) => place(notice, client)?.split("/")[1] === key);
  const whole = told.find((notice) => place(notice, client) === `/${key}`);
  if (whole && !(key in upstream)) return ["warn", whole.rule, whole.message];
  const other = counterpart(key, client[key], client, upstream);
  if (other === null) return ["warn", whole?.rule ?? "no counterpart", whole?.message ?? "not found in the upstream's request"];
  const more = told.length ? told.map((notice) => notice.message).join("; ") : null;
  if (other !== key) return ["plain", `→ ${other}`, more];
  return same(client[key], upstream[key]) ? ["plain", "unchanged", more] : ["plain", "rewritten", more];
}

/** The upstream's field with the value of `key`: found by name, then by equal value, then by shared words. */
function counterpart(key, value, client, upstream) {
  if (key in upstream) return key;
  const fresh = Object.keys(upstream).filter((name) => !(name in client));
  const equal = fresh.find((name) => same(upstream[name], value));
  if (equal) return equal;
  const words = leaves(value).filter((leaf) => typeof leaf === "string" && leaf.length > 3 || typeof leaf === "number" && leaf > 9);
  const holds = (name) => {
    const there = new Set(leaves(upstream[name]));
    return words.some((word) => there.has(word));
  };
  return fresh.find(holds) ?? Object.keys(upstream).find(holds) ?? null;
}

function leaves(value, found = []) {
  if (value === null || typeof value !== "object") found.push(value);
  else for (const one of Object.values(value)) leaves(one, found);
  return found;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
