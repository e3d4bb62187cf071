// The gateway's API. Sends the key if the gateway needs one. URLs are relative to the page.

import { lines } from "./sse.js";

const KEY = "dragoman-key";
let askForKey = null;
let asking = null;

/** The function that asks the user for the key; it returns a promise. */
export function onUnauthorized(ask) {
  askForKey = ask;
}

/** An error with the gateway's message. */
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
    // Several requests may get a 401 at once; ask the user only once.
    if (key === sessionStorage.getItem(KEY)) {
      asking ??= askForKey(key !== null).finally(() => (asking = null));
      // sessionStorage, not localStorage: the key must not outlive the tab.
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
export const usage = (query, signal) => json(`usage?${new URLSearchParams(query)}`, { signal });
export const scores = (query, signal) => json(`scores?${new URLSearchParams(query)}`, { signal });
export const sessions = (query, signal) => json(`sessions?${new URLSearchParams(query)}`, { signal });
export const session = (id, signal) => json(`sessions/${encodeURIComponent(id)}`, { signal });
export const receipt = (id, signal) => json(at(id), { signal });

/** The bytes of both sides; null if the gateway no longer has them in memory. */
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

export const replay = (id, options) =>
  json(at(id, "/replay"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(options),
  });

/**
 * A summary each time an exchange begins, changes or ends. Reads server-sent events with fetch, because
 * EventSource cannot send a key. Reconnects by itself; `onState` gets "on" and "off".
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
      // Reconnect below, whatever the reason.
    }
    onState("off");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
