// Keyboard shortcuts, and the dialogs for help and for the key.

import { h, modal } from "./dom.js";

const HELP = [
  [["j", "k"], "next, previous exchange"],
  [["Enter"], "open the exchange"],
  [["Esc"], "close the exchange, or leave the filter"],
  [["1", "…", "5"], "answer, timeline, request, raw, replay"],
  [["g", "G"], "newest, oldest exchange"],
  [["/"], "filter"],
  [["s", "u", "r"], "sessions, usage, scores, or back to the exchanges"],
  [["f", "m"], "only failed, only mended"],
  [["o"], "sort by the next column"],
  [["c"], "copy as curl"],
  [["?"], "this help"],
];

/** `actions` maps a key to its function. Keys typed into fields are ignored, except Escape. */
export function listen(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const typing = event.target.closest?.("input, select, textarea");
    if (typing && event.key !== "Escape" && !(event.key === "Enter" && typing.id === "filter")) return;
    if (event.key === "Enter" && event.target.closest?.("button, summary, a")) return;
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}

export function help() {
  modal("Keyboard", (close) => [
    h("dl", {}, HELP.map(([keys, text]) => [h("dt", {}, keys.map((key) => [h("kbd", {}, key), " "])), h("dd", {}, text)])),
    h("div.actions", {}, h("button", { type: "button", onclick: close }, "Close")),
  ]);
}

/** Asks for the gateway's key, and keeps it as long as this tab is open. */
export function askForKey(wrong) {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", "aria-label": "Key", autocomplete: "off", required: true });
    modal("This gateway needs a key", (close) =>
      h("form", {
        onsubmit: (event) => {
          event.preventDefault();
          close();
          resolve(input.value.trim());
        },
      },
      h("p.soft", {}, wrong ? "The gateway refused that key. Use a valid key of this gateway." : "Your key of this gateway. It is only kept until you close this tab."),
      input, h("div.actions", {}, h("button.strong", { type: "submit" }, "Open"))), { closable: false });
    input.focus();
  });
}
