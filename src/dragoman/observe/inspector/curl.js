// An exchange as a curl line for a POSIX shell. The key is a variable: it was never kept.
//
// All of it comes from a client. Nothing may be read by the shell, by curl (`@file`, globs), or by the terminal
// that it is pasted into, and the key goes to the gateway alone.

const OURS = new Set(["host", "content-length", "connection", "accept-encoding", "transfer-encoding", "upgrade"]);
const KEYS = new Set(["x-api-key", "authorization", "x-goog-api-key", "api-key", "proxy-authorization", "cookie"]);
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/gu;
const CONTROL_BUT_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u;
const MOST_INLINE = 100_000; // bytes; Linux takes 128 KiB in one argument

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(request, base) {
  // "." keeps a path that begins with two slashes below the gateway's own address.
  const url = new URL(`.${withoutKey(request.path)}`, base).href;
  const parts = [`curl -sN -g -X ${quoted(request.method)} ${quoted(url)}`];
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (HEADER_NAME.test(name) && !OURS.has(name.toLowerCase()) && !KEYS.has(name.toLowerCase())) {
      parts.push(`-H ${quoted(header(name, value.replace(CONTROL, " ")))}`);
    }
  }
  parts.push(`-H "x-api-key: $DRAGOMAN_KEY"`);
  const encoded = inBase64(request);
  if (encoded) return `printf %s ${encoded} | base64 --decode | ${[...parts, "--data-binary @-"].join(" \\\n  ")}`;
  if (request.body) parts.push(`--data-raw ${quoted(request.body)}`);
  return parts.join(" \\\n  ");
}

/** curl leaves out a header that ends in a colon, and sends an empty one for a semicolon. */
const header = (name, value) => (value.trim() ? `${name}: ${value}` : `${name};`);

/** A body that no argument can hold, in base64; nothing for any other. */
function inBase64({ body = "", body_base64: given }) {
  if (given) return given;
  const bytes = new TextEncoder().encode(body);
  if (!CONTROL_BUT_LINES.test(body) && bytes.length <= MOST_INLINE) return "";
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Gemini's clients put their key into the query. */
function withoutKey(path) {
  const [place, query] = path.split("?");
  const kept = (query ?? "").split("&").filter((pair) => pair && !pair.startsWith("key="));
  return kept.length ? `${place}?${kept.join("&")}` : place;
}
