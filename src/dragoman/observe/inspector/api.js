// The gateway's API, with the key where one is needed. Addresses are relative to the page's.

import { lines } from "./sse.js";

const KEY = "dragoman-key";
let askForKey = null;
let asking = null;

/** Who is asked when the gateway wants a key: a function that gives a promise of one. */
export function whenLocked(ask) {
  askForKey = ask;
}

/** What went wrong, as the gateway says it. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function send(path, options = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const headers = { ...options.headers, ...(key ? { "x-api-key": key } : {}) };
    const response = await fetch(path, { ...options, headers, cache: "no-store" });
    if (response.status !== 401) {
      if (response.ok) return response;
      throw new ApiError(response.status, await sentence(response));
    }
    // Several requests may find the door shut; the user is asked once.
    if (key === sessionStorage.getItem(KEY)) {
      asking ??= askForKey(key !== null).finally(() => (asking = null));
      sessionStorage.setItem(KEY, await asking);
    }
  }
}

async function sentence(response) {
  try {
    const body = await response.json();
    return body.error?.message ?? body.message ?? `HTTP ${response.status}`;
  } catch {
    return `HTTP ${response.status}`;
  }
}

const json = async (path, options) => (await send(path, options)).json();
const at = (id, rest = "") => `exchanges/${encodeURIComponent(id)}${rest}`;

export const list = (query, signal) => json(`exchanges?${new URLSearchParams(query)}`, { signal });
export const receipt = (id, signal) => json(at(id), { signal });

/** Both sides' bytes; null when they have left the gateway's memory. */
export async function traffic(id, signal) {
  try {
    return await json(at(id, "/bytes"), { signal });
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

export async function recording(id) {
  const response = await send(at(id, "/recording"));
  const named = /filename="?([^";]+)"?/.exec(response.headers.get("content-disposition") ?? "");
  return { blob: await response.blob(), name: named ? named[1] : `${id}.recording` };
}

export const replay = (id, wishes) =>
  json(at(id, "/replay"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(wishes),
  });

/**
 * Summaries as exchanges begin, change and end. Server-sent events read with fetch, because EventSource
 * cannot send a key. Comes back by itself; `onState` hears "on" and "off".
 */
export async function follow(onSummary, onState) {
  for (let wait = 500; ; wait = Math.min(wait * 2, 10_000)) {
    try {
      const response = await send("exchanges/live", { headers: { accept: "text/event-stream" } });
      onState("on");
      wait = 500;
      for await (const event of lines(response.body)) {
        if (event.event === "exchange") onSummary(JSON.parse(event.data));
      }
    } catch {
      // Said below: whatever the reason, the answer is to try again.
    }
    onState("off");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
