// The text of the filter box, as a query for the gateway and as a test for live exchanges.

const FIELDS = new Set(["client", "profile", "model", "status", "rule", "slow", "key", "team", "upstream", "session"]);
const EXACT = ["client", "profile", "key", "team", "session"];
const FLAGS = new Set(["failed", "mended"]);

/** `model:gpt failed some words` → {model: "gpt", failed: true, words: ["some", "words"]} */
export function parse(text) {
  const criteria = { words: [] };
  for (const word of text.trim().split(/\s+/).filter(Boolean)) {
    const [name, ...rest] = word.split(":");
    const value = rest.join(":");
    if (FIELDS.has(name) && value) criteria[name] = value;
    else if (FLAGS.has(word)) criteria[word] = true;
    else criteria.words.push(word);
  }
  return criteria;
}

/** The filter as a query of the API. */
export function query(criteria) {
  const params = {};
  for (const [name, value] of Object.entries(criteria)) {
    if (name === "model") params.model = glob(value);
    else if (name !== "words") params[name] = value === true ? "1" : value;
  }
  if (criteria.words.length) params.q = criteria.words.join(" ");
  return params;
}

export const failed = (x) => x.outcome !== "ok" && x.outcome !== "running";

/** The gateway expects a glob for the model's name; a plain word matches anywhere in it. */
const glob = (text) => (/[*?[]/.test(text) ? text : `*${text}*`);

function globbed(text, pattern) {
  const parts = pattern.split("*").map((part) => part.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("?", "."));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(text ?? "");
}

/** Would the gateway list this exchange? */
export function matches(criteria, x) {
  if (criteria.failed && !failed(x)) return false;
  if (criteria.mended && !x.mended) return false;
  if (criteria.slow && !(x.seconds >= Number(criteria.slow))) return false;
  if (criteria.status && String(x.status) !== criteria.status && x.outcome !== criteria.status) return false;
  if (criteria.rule && !x.rules?.includes(criteria.rule)) return false;
  if (EXACT.some((name) => criteria[name] && x[name] !== criteria[name])) return false;
  if (criteria.upstream && x.target?.split("/")[0] !== criteria.upstream) return false;
  if (criteria.model && !globbed(x.model, glob(criteria.model))) return false;
  const all = [x.id, x.model, x.target, x.client, x.profile, x.outcome, x.error, ...(x.rules ?? [])].join(" ");
  return criteria.words.every((word) => all.toLowerCase().includes(word.toLowerCase()));
}
