// Notices use neutral names (`settings.top_k`). This module finds the member of the client's request.

// Neutral names whose names in some protocol are very different.
const ALSO = {
  maxtokens: ["maxoutputtokens", "maxcompletiontokens"],
  reasoning: ["thinking", "thinkingconfig", "reasoningeffort"],
  format: ["responseformat", "responsemimetype", "responseschema", "outputformat", "text"],
  toolchoice: ["toolconfig"],
  stop: ["stopsequences"],
};

/** The kind of badge: a notice that is no warning says what was added, not what was lost. */
export const badge = (notice) => (notice.warning === false ? "plain" : "warn");

const plain = (name) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");

/** The JSON pointer in `client` for a notice; null if it is not found. */
export function place(notice, client) {
  const [first, ...rest] = notice.path.split(/[.[\]/]+/).filter(Boolean);
  if (first === undefined) return null;
  if (first === "settings" || first === "extras") return named(rest[0] ?? "", client);
  if (first === "tools" && Array.isArray(client.tools)) return rest[0] in client.tools ? `/tools/${rest[0]}` : "/tools";
  return first === "messages" ? named("messages", client) ?? named("input", client) ?? named("contents", client) : named(first, client);
}

/** Searches the members, and one level deeper (Gemini's `generationConfig`). */
function named(name, client) {
  const wanted = [plain(name), ...(ALSO[plain(name)] ?? [])];
  const fits = (key) => wanted.includes(plain(key));
  const field = Object.keys(client).find(fits);
  if (field) return `/${field}`;
  for (const [key, value] of Object.entries(client)) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) continue;
    const inner = Object.keys(value).find(fits);
    if (inner) return `/${key}/${inner}`;
  }
  return null;
}
