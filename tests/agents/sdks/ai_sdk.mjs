// Vercel's AI SDK, over the protocol that WIRE names: bodies, then streams.
import { execSync } from "node:child_process";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.MODULES);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { BASE, KEY, MODEL, WIRE } = process.env;
const { generateText, stepCountIs, isStepCount, streamText, tool } = await load("ai");
const { z } = await load("zod");

const kinds = {
  anthropic: async () => (await load("@ai-sdk/anthropic")).createAnthropic({ baseURL: `${BASE}/v1`, apiKey: KEY })(MODEL),
  chat: async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: `${BASE}/v1`, apiKey: KEY }).chat(MODEL),
  responses: async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL: `${BASE}/v1`, apiKey: KEY }).responses(MODEL),
  compatible: async () =>
    (await load("@ai-sdk/openai-compatible")).createOpenAICompatible({ name: "d", baseURL: `${BASE}/v1`, apiKey: KEY })(MODEL),
  gemini: async () =>
    (await load("@ai-sdk/google")).createGoogleGenerativeAI({ baseURL: `${BASE}/v1beta`, apiKey: KEY })(MODEL),
};
const asked = {
  model: await kinds[WIRE](),
  prompt: "Run the command `echo well done >> proof.txt`",
  stopWhen: (stepCountIs ?? isStepCount)(5),
  tools: {
    run_shell: tool({
      description: "Run a shell command and return what it printed.",
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => execSync(command).toString() || "(no output)",
    }),
  },
};
console.log((await generateText(asked)).text);
const streamed = streamText({ ...asked, onError: ({ error }) => { throw error; } });
console.log(await streamed.text);
