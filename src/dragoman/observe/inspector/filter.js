// The text of the filter box, as a query for the gateway and as a test for live exchanges.

const FIELDS = new Set(["client", "profile", "model", "status", "rule", "slow"]);
const FLAGS = new Set(["failed", "mended"]);

/** `model:gpt failed some words` → {model: "gpt", failed: true, words: ["some", "words"]} */
export function parse(text) {
  const wish = { words: [] };
  for (const word of text.trim().split(/\s+/).filter(Boolean)) {
    const [name, ...rest] = word.split(":");
    const value = rest.join(":");
    if (FIELDS.has(name) && value) wish[name] = value;
    else if (FLAGS.has(word)) wish[word] = true;
    else wish.words.push(word);
  }
  return wish;
}

/** The filter as a query of the API. */
export function query(wish) {
  const asked = {};
  for (const [name, value] of Object.entries(wish)) {
    if (name === "model") asked.model = glob(value);
    else if (name !== "words") asked[name] = value === true ? "1" : value;
  }
  if (wish.words.length) asked.q = wish.words.join(" ");
  return asked;
}

export const failed = (x) => x.outcome !== "ok" && x.outcome !== "running";

/** The gateway expects a glob for the model's name; a plain word matches anywhere in it. */
const glob = (text) => (/[*?[]/.test(text) ? text : `*${text}*`);

function globbed(text, pattern) {
  const parts = pattern.split("*").map((part) => part.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("?", "."));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(text ?? "");
}

/** Would the gateway list this exchange? */
export function fits(wish, x) {
  if (wish.failed && !failed(x)) return false;
  if (wish.mended && !x.mended) return false;
  if (wish.slow && !(x.seconds >= Number(wish.slow))) return false;
  if (wish.status && String(x.status) !== wish.status && x.outcome !== wish.status) return false;
  if (wish.rule && !x.rules?.includes(wish.rule)) return false;
  if (wish.client && x.client !== wish.client) return false;
  if (wish.profile && x.profile !== wish.profile) return false;
  if (wish.model && !globbed(x.model, glob(wish.model))) return false;
  const all = [x.id, x.model, x.target, x.client, x.profile, x.outcome, x.error, ...(x.rules ?? [])].join(" ");
  return wish.words.every((word) => all.toLowerCase().includes(word.toLowerCase()));
}
