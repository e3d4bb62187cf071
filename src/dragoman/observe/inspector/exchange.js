// One exchange: its head, and its five tabs.

import * as api from "./api.js";
import { answer } from "./answer.js";
import { curl } from "./curl.js";
import { copy, h, save, toast } from "./dom.js";
import { bytes, cost, count, date, seconds, short } from "./format.js";
import { failure } from "./list.js";
import { raw } from "./raw.js";
import { numberCalls, read } from "./reading.js";
import { replay } from "./replay.js";
import { request } from "./request.js";
import { stateOf, clientName } from "./store.js";
import { timeline } from "./timeline.js";

export const TABS = ["answer", "timeline", "request", "raw", "replay"];
const REFRESH = 400; // ms between two loads of a running exchange

export class ExchangeView {
  #id = null;
  #exchange = null;
  #traffic = undefined; // undefined: not loaded yet; null: no longer in memory
  #sides = null;
  #loading = null;
  #again = 0;

  /** `hooks`: {close(), tab(name)}. */
  constructor(element, hooks) {
    this.element = element;
    this.hooks = hooks;
    this.tab = TABS[0];
  }

  async show(id, tab) {
    this.tab = TABS.includes(tab) ? tab : TABS[0];
    if (id === this.#id) {
      if (this.#exchange) this.#draw();
      return;
    }
    this.#id = id;
    this.#exchange = null;
    this.#traffic = undefined;
    this.element.scrollTop = 0;
    this.element.replaceChildren(h("p.loading.faint", {}, "Loading…"));
    await this.#load();
  }

  hide() {
    this.#loading?.abort();
    this.#id = null;
    this.element.replaceChildren();
  }

  /** An exchange changed; if it is this one, load it again, but not too often. */
  refresh(summary) {
    if (summary.id !== this.#id || this.#again) return;
    this.#again = setTimeout(() => {
      this.#again = 0;
      if (summary.id === this.#id) this.#load();
    }, REFRESH);
  }

  async #load() {
    this.#loading?.abort();
    const { signal } = (this.#loading = new AbortController());
    try {
      this.#exchange = await api.receipt(this.#id, signal);
      if (this.#traffic === undefined) this.#draw();
      this.#traffic = await api.traffic(this.#id, signal);
      this.#sides = this.#traffic && { upstream: read(this.#traffic.upstream ?? []), client: read(this.#traffic.client ?? []) };
      if (this.#sides) numberCalls(this.#sides, this.#exchange.calls);
      this.#draw();
    } catch (error) {
      if (error.name !== "AbortError") this.#failed(error);
    }
  }

  #failed(error) {
    this.element.replaceChildren(h("div.head", {}, this.#back()),
      h("p.notice.bad", {}, error.status === 404 ? "The gateway does not know this exchange (any more)." : error.message));
  }

  #draw() {
    const top = this.element.scrollTop;
    const focused = document.activeElement?.closest?.("#exchange [role=tab]") != null;
    this.element.replaceChildren(this.#head(), this.#tabs(), this.#panel());
    this.element.scrollTop = top;
    if (focused) this.element.querySelector("[aria-selected=true]").focus();
  }

  #back() {
    return h("button.quiet.back", { type: "button", "aria-label": "Close (Esc)", onclick: this.hooks.close }, "←");
  }

  #head() {
    const x = this.#exchange;
    const state = stateOf(x);
    const kind = { failed: "bad", mended: "mended" }[state] ?? "plain";
    return h("div.head", {},
      h("div.title", {}, this.#back(),
        h("h2", {}, x.model || "no model", x.target ? h("span.target", {}, ` → ${x.target}`) : null),
        h(`span.badge.${kind}`, {}, state === "failed" ? failure(x) : x.outcome === "cancelled" ? x.outcome : state),
        this.#actions()),
      h("p.path", {}, [clientName(x) === x.client ? null : x.profile, route(x), date(x.at)].filter(Boolean).join(" · "), h("span.mono", {}, ` · ${x.id}`),
        x.session && x.outcome !== "running" ? [" · ", h("a", { href: `#sessions/${x.session}` }, "session")] : null),
      x.error ? h("p.notice.bad", { role: "alert" }, x.error) : null,
      figures(x));
  }

  #actions() {
    const gone = this.#traffic === null;
    const action = (text, title, run) => h("button.quiet", { type: "button", title, disabled: !this.#traffic?.client_request, onclick: run }, text);
    return h("span.actions", {},
      action("curl", gone ? "The gateway no longer has the request in memory" : "Copy as a curl command, with a placeholder for the key", () =>
        copy(curl(this.#traffic.client_request, new URL("./", location.href)), "curl line")),
      action("save", "Download as a recording", () => this.#save()));
  }

  async #save() {
    try {
      const { blob, name } = await api.recording(this.#id);
      save(blob, name);
    } catch (error) {
      toast(error.message);
    }
  }

  #tabs() {
    const tabs = TABS.map((name, index) =>
      h("button", {
        type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "panel", "aria-selected": String(name === this.tab),
        tabindex: name === this.tab ? 0 : -1, title: `${index + 1}`, onclick: () => this.hooks.tab(name),
      }, name));
    return h("div.tabs", { role: "tablist", "aria-label": "Views", onkeydown: (event) => this.#along(event) }, tabs);
  }

  #along(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.hooks.tab(TABS[(TABS.indexOf(this.tab) + by + TABS.length) % TABS.length]);
  }

  #panel() {
    return h("div.panel", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${this.tab}`, "data-tab": this.tab }, this.#content());
  }

  #content() {
    const x = this.#exchange;
    const traffic = this.#traffic;
    if (this.tab === "answer") return answer(x, this.#sides);
    if (traffic === undefined) return h("p.loading.faint", {}, "Loading the bytes…");
    if (traffic === null) return h("p.notice", {}, "The gateway no longer has the bytes of this exchange in memory. `dragoman serve --record DIR` keeps them in files; failed exchanges stay on disk (`server.keep_failed`).");
    if (this.tab === "timeline") return timeline(this.#sides, { upstream: x.upstream_protocol, client: x.client }, traffic.upstream_requests ?? []);
    if (this.tab === "request") return request(x, traffic);
    return this.tab === "raw" ? raw(traffic) : replay(x, traffic);
  }
}

function route(x) {
  return x.upstream_protocol ? `${x.client} → ${x.upstream_protocol}` : x.client;
}

function figures(x) {
  const shown = [
    ["took", seconds(x.seconds)],
    ["first event", seconds(x.first_event)],
    ["input", x.usage?.input != null ? short(x.usage.input) : ""],
    ["cached", x.usage?.cached_input ? short(x.usage.cached_input) : ""],
    ["output", x.usage?.output != null ? short(x.usage.output) : ""],
    ["reasoning", x.usage?.reasoning ? short(x.usage.reasoning) : ""],
    ["cost", cost(x, "unknown")],
    ["calls", x.calls.length ? count(x.calls.length) : ""],
    ["mended", x.mended ? count(x.mended) : ""],
    ["bytes in", bytes(x.bytes_in ?? 0)],
    ["bytes out", bytes(x.bytes_out ?? 0)],
  ].filter(([, value]) => value !== "");
  return h("dl.figures", {}, shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}
