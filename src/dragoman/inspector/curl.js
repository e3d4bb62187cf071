// An exchange as a curl line. The key is a variable: it was never kept.

const OURS = new Set(["host", "content-length", "connection", "accept-encoding", "transfer-encoding"]);
const KEYS = new Set(["x-api-key", "authorization", "x-goog-api-key", "api-key", "proxy-authorization", "cookie"]);

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(request, origin) {
  const parts = [`curl -sN -X ${request.method} ${quoted(new URL(withoutKey(request.path), origin).href)}`];
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (!OURS.has(name.toLowerCase()) && !KEYS.has(name.toLowerCase())) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  }
  parts.push(`-H "x-api-key: $DRAGOMAN_KEY"`);
  if (request.body) parts.push(`--data-binary ${quoted(request.body)}`);
  return parts.join(" \\\n  ");
}

/** Gemini's clients put their key into the query. */
function withoutKey(path) {
  const [place, query] = path.split("?");
  const kept = (query ?? "").split("&").filter((pair) => pair && !pair.startsWith("key="));
  return kept.length ? `${place}?${kept.join("&")}` : place;
}
