// Portkey 1.15 writes to the headers of what `fetch` gave it, which Node forbids for streams: it answers 500.
// With headers that can be written, it streams.
const ask = globalThis.fetch;
globalThis.fetch = async (...words) => {
  const answer = await ask(...words);
  Object.defineProperty(answer, "headers", { value: new Headers(answer.headers) });
  return answer;
};
