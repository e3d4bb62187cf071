// What an empty list suggests. `make test-agents` runs these lines as they are.

const AGENTS = ["claude", "codex", "gemini"];
const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|localhost)$/;

/** The lines for the gateway at the URL `base`. `dragoman run` only finds gateways on its own machine. */
export function firstSteps(base) {
  const url = base.href.replace(/\/$/, "");
  const port = base.port || (base.protocol === "https:" ? "443" : "80");
  const sdks = [`ANTHROPIC_BASE_URL=${url}`, `OPENAI_BASE_URL=${url}/v1`, `GOOGLE_GEMINI_BASE_URL=${url}`];
  if (!LOOPBACK.test(base.hostname) || base.protocol === "https:") return sdks;
  return [...AGENTS.map((agent) => `dragoman run --port ${port} ${agent}`), "", "# or, for an SDK, one of", ...sdks];
}
