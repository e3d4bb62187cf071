// The page: the live list of exchanges, and next to it the open exchange. The URL's fragment names it.

import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { ExchangeView, TABS } from "./exchange.js";
import { fits, parse, query } from "./filter.js";
import { count, plural } from "./format.js";
import { askForKey, help, listen } from "./keys.js";
import { List } from "./list.js";
import { Exchanges } from "./store.js";

const PAGE = 200;
const RECENT = 50; // exchanges that are loaded again
const CATCH_UP = 3000; // ms between reloads; fewer while nothing happens
const QUIET = 5;
const TYPING = 180; // ms without typing before the filter is sent to the gateway

const exchanges = new Exchanges();
const list = new List(byId("list"), exchanges, { open: (id) => go(id), end: () => load(true) });
const view = new ExchangeView(byId("exchange"), { close: () => go(null), tab: (tab) => go(open.id, tab) });
const box = byId("filter");

let open = { id: null, tab: TABS[0] };
let wish = parse("");
let next = null;
let loading = null;
let unseen = 0;
let stirred = false;
let quiet = 0;

// The open exchange and tab: #id/tab

function go(id, tab = open.tab) {
  const hash = id ? `#${id}${tab === TABS[0] ? "" : `/${tab}`}` : "#";
  // Stepping through the list adds one history entry: Back leads to the list.
  if (id && open.id) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  arrive();
}

function arrive() {
  const [id, tab] = location.hash.slice(1).split("/");
  open = { id: id || null, tab: TABS.includes(tab) ? tab : TABS[0] };
  const shown = open.id !== null;
  byId("main").classList.toggle("open", shown);
  byId("exchange").hidden = !shown;
  list.selected = open.id;
  if (shown) {
    list.activate(open.id);
    view.show(open.id, open.tab);
    document.title = `${open.id.slice(0, 8)} · Dragoman inspector`;
  } else {
    view.hide();
    list.draw();
    if (document.activeElement !== box) list.element.focus({ preventScroll: true });
    document.title = "Dragoman inspector";
  }
}

// The list

async function load(more = false) {
  if (more && (loading || !next)) return;
  loading?.abort();
  const control = (loading = new AbortController());
  const asked = { limit: PAGE, ...query(wish), ...(more ? { cursor: next } : {}) };
  try {
    const page = await api.list(asked, control.signal);
    if (!more) exchanges.clear();
    exchanges.append(page.exchanges);
    next = page.next;
    list.more = next !== null;
    problem("");
  } catch (error) {
    if (error.name === "AbortError") return;
    problem(error.message);
  }
  if (loading === control) loading = null;
  changed();
}

function heard(summary) {
  if (JSON.stringify(exchanges.get(summary.id)) !== JSON.stringify(summary)) {
    stirred = true;
    view.heard(summary);
  }
  if (!fits(wish, summary)) {
    exchanges.remove(summary.id);
    return changed();
  }
  const place = exchanges.put(summary);
  if (place === 0 && list.scrolled) unseen++;
  changed(place >= 0 ? 1 : 0);
}

/**
 * Reload the newest exchanges now and then: the cost is known a little after the end, and with several
 * workers only one of them sends live updates to this page.
 */
async function catchUp() {
  if (!stirred && ++quiet < QUIET) return;
  stirred = false;
  quiet = 0;
  if (document.hidden || loading || byId("live").dataset.state !== "on") return;
  const asked = wish;
  const page = await api.list({ limit: RECENT, ...query(asked) }).catch(() => ({ exchanges: [] }));
  if (asked === wish && !loading) page.exchanges.reverse().forEach(heard);
}

function changed(inserted = 0) {
  if (!list.scrolled) unseen = 0;
  list.draw(inserted);
  byId("newer").hidden = unseen === 0;
  byId("newer").textContent = `↑ ${plural(unseen, "newer exchange")}`;
  empty();
  foot();
}

function foot() {
  const { items } = exchanges;
  const mended = items.filter((x) => x.mended).length;
  const running = items.filter((x) => x.outcome === "running").length;
  const parts = [`${count(items.length)}${next ? "+" : ""} ${items.length === 1 ? "exchange" : "exchanges"}`];
  if (running) parts.push(`${count(running)} running`);
  if (mended) parts.push(`${count(mended)} with mended calls`);
  byId("foot").textContent = parts.join(" · ");
}

function problem(text) {
  byId("foot").classList.toggle("bad", text !== "");
  if (text) byId("foot").textContent = text;
}

function empty() {
  const none = exchanges.items.length === 0 && !loading;
  byId("empty").hidden = !none;
  if (!none) return;
  const base = new URL("./", location.href).href.replace(/\/$/, "");
  byId("empty").replaceChildren(...(box.value.trim()
    ? [h("h2", {}, "No exchange matches this filter"), h("p", {}, h("button", { type: "button", onclick: () => filter("") }, "Clear the filter"))]
    : [
        h("h2", {}, "No exchanges yet"),
        h("p", {}, "Point an agent at this gateway; its exchanges appear here as they happen."),
        h("pre", {}, `dragoman run claude\n\nANTHROPIC_BASE_URL=${base} claude\nOPENAI_BASE_URL=${base}/v1 codex\nGOOGLE_GEMINI_BASE_URL=${base} gemini`),
      ]));
}

// The filter

const CHIPS = [["failed", "f"], ["mended", "m"], ["slow:10", ""]];

function chips() {
  const words = box.value.split(/\s+/);
  byId("chips").replaceChildren(...CHIPS.map(([word, key]) =>
    h("button", { type: "button", "aria-pressed": String(words.includes(word)), title: key && `Key: ${key}`, onclick: () => toggle(word) },
      word === "slow:10" ? "slow" : word)));
}

function toggle(word) {
  const words = box.value.split(/\s+/).filter(Boolean);
  filter((words.includes(word) ? words.filter((one) => one !== word) : [...words, word]).join(" "));
}

let typing = 0;

function filter(text = box.value) {
  box.value = text;
  chips();
  clearTimeout(typing);
  typing = setTimeout(() => {
    wish = parse(text);
    list.element.scrollTop = 0;
    load();
  }, TYPING);
}

// The keyboard

function step(by) {
  const id = list.step(by);
  if (!id) return;
  if (open.id) go(id);
  else list.activate(id);
}

function escape() {
  if (document.activeElement === box) list.element.focus();
  else if (open.id) go(null);
  else if (box.value) filter("");
}

const actions = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: (event) => (event.target.closest("#exchange") ? byId("exchange").scrollBy(0, 60) : step(1)),
  ArrowUp: (event) => (event.target.closest("#exchange") ? byId("exchange").scrollBy(0, -60) : step(-1)),
  g: () => step(-Infinity),
  G: () => step(Infinity),
  Enter: () => (document.activeElement === box ? list.element.focus() : list.active && go(list.active)),
  Escape: escape,
  "/": () => box.focus(),
  "?": help,
  f: () => toggle("failed"),
  m: () => toggle("mended"),
  c: () => byId("exchange").querySelector(".actions button:not(:disabled)")?.click(),
};
TABS.forEach((tab, index) => (actions[index + 1] = () => open.id && go(open.id, tab)));

// Begin

function state(now) {
  const element = byId("live");
  const was = element.dataset.state;
  element.dataset.state = now;
  element.textContent = now === "on" ? "live" : "reconnecting…";
  if (now === "on" && was === "off") load(); // exchanges since the connection was lost
}

api.whenLocked(askForKey);
listen(actions);
chips();
byId("help-button").addEventListener("click", help);
byId("newer").addEventListener("click", () => {
  list.element.scrollTop = 0;
  changed();
});
box.addEventListener("input", () => filter());
addEventListener("hashchange", arrive);
addEventListener("popstate", arrive);
setInterval(() => list.tick(Date.now() / 1000), 250);
setInterval(catchUp, CATCH_UP);
arrive();
await load();
api.follow(heard, state);
