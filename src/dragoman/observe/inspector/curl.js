// An exchange as a curl command for a POSIX shell. The key is a shell variable, because keys are not recorded.
//
// All values come from a client. The shell, curl (`@file`, globs) and the terminal must not interpret them, and
// the key must only go to the gateway.

const OURS = new Set(["host", "content-length", "connection", "accept-encoding", "transfer-encoding", "upgrade"]);
const KEYS = new Set(["x-api-key", "authorization", "x-goog-api-key", "api-key", "proxy-authorization", "cookie"]);
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/gu;
const CONTROL_BUT_LINES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/u;
const MAX_INLINE = 100_000; // bytes; Linux allows 128 KiB in one argument

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(request, base) {
  // "." keeps a path with two leading slashes on the gateway's own host.
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

/** curl omits a header that ends with a colon, and sends an empty one for a semicolon. */
const header = (name, value) => (value.trim() ? `${name}: ${value}` : `${name};`);

/** A body that a command-line argument cannot hold, in base64; "" for any other body. */
function inBase64({ body = "", body_base64: given }) {
  if (given) return given;
  const bytes = new TextEncoder().encode(body);
  if (!CONTROL_BUT_LINES.test(body) && bytes.length <= MAX_INLINE) return "";
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** Gemini's clients send their key in the query. */
function withoutKey(path) {
  const [place, query] = path.split("?");
  const kept = (query ?? "").split("&").filter((pair) => pair && !pair.startsWith("key="));
  return kept.length ? `${place}?${kept.join("&")}` : place;
}
