// Parses server-sent events from chunks that are cut anywhere: for the live list and for both sides' streams.

/** Collects text and returns complete frames; `end()` returns the rest. */
export class Frames {
  #rest = "";

  feed(text) {
    const parts = (this.#rest + text).split(/\r?\n\r?\n/);
    // A CR at the end may be the first half of CRLF.
    this.#rest = parts.pop();
    return parts.filter((part) => part.trim() !== "");
  }

  end() {
    const left = this.#rest;
    this.#rest = "";
    return left.trim() === "" ? [] : [left];
  }
}

/** {event, data} of one frame; null for a comment. */
export function fields(frame) {
  let event = "message";
  const data = [];
  for (const line of frame.split(/\r?\n/)) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("event:")) event = line.slice(6).trim();
  }
  return data.length ? { event, data: data.join("\n") } : null;
}

/** The events of a response's body, as they arrive. */
export async function* lines(body) {
  const frames = new Frames();
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    for (const frame of frames.feed(text)) {
      const event = fields(frame);
      if (event) yield event;
    }
  }
}
