// The page: the live list of exchanges, and next to it the open exchange. The URL's fragment names it.

import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { ExchangeView, TABS } from "./exchange.js";
import { matches, parse, query } from "./filter.js";
import { count, plural } from "./format.js";
import { askForKey, help, listen } from "./keys.js";
import { firstSteps } from "./first_steps.js";
import { exchangeRow, List } from "./list.js";
import { ScoresView } from "./scores.js";
import { SessionsView } from "./sessions.js";
import { Sorting, SORTED } from "./sorting.js";
import { Exchanges } from "./store.js";
import { UsageView } from "./usage.js";

const PAGE = 200;
const RECENT = 50; // exchanges that are loaded again
const CATCH_UP = 3000; // ms between reloads; fewer while nothing happens
const IDLE_ROUNDS = 5;
const TYPING = 180; // ms without typing before the filter is sent to the gateway

const exchanges = new Exchanges();
const list = new List(byId("list"), exchanges, { open: (id) => go(id), end: () => load(true), row: exchangeRow });
const view = new ExchangeView(byId("exchange"), { close: () => go(null), tab: (tab) => go(open.id, tab) });
const hooks = { go: (hash) => navigate(hash), filter: (text) => showFiltered(text) };
const sessions = new SessionsView(byId("sessions"), hooks);
const pages = { usage: new UsageView(byId("usage"), hooks), scores: new ScoresView(byId("scores"), hooks), sessions };
const TITLES = { usage: "Usage", scores: "Scores", sessions: "Sessions" };
const box = byId("filter");
const COLUMNS = [
  { name: "time", value: (x) => x.at },
  { name: "client" }, { name: "model" }, { name: "what happened" },
  { name: "took", number: true, value: (x) => x.seconds },
  { name: "tokens", number: true, value: (x) => (x.usage ? x.usage.input + x.usage.output : -1) },
  { name: "cost", number: true, value: (x) => x.cost },
];
const sorting = new Sorting(byId("list-head"), COLUMNS, () => {
  list.element.scrollTop = 0;
  load();
});

let open = { id: null, tab: TABS[0], page: null };
let criteria = parse("");
let filtered = false;
let next = null;
const known = new Set(); // the ids of all exchanges that the page has heard of
let older = false; // are there exchanges before the known ones?
let loading = null;
let unseen = 0;
let active = false;
let idleRounds = 0;

// The open exchange and tab, or another page: #id/tab, #usage?by=key, #scores, #sessions, #sessions/id

function go(id, tab = open.tab) {
  const hash = id ? `#${id}${tab === TABS[0] ? "" : `/${tab}`}` : "#";
  // Stepping through the list adds one history entry: Back leads to the list.
  if (id && open.id) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  showLocation();
}

function navigate(hash) {
  history.pushState(null, "", hash);
  showLocation();
}

function showLocation() {
  const [place, parameters = ""] = location.hash.slice(1).split("?");
  const [id, tab] = place.split("/");
  const before = open;
  const page = Object.hasOwn(pages, id) ? id : null;
  open = { id: id && !page ? id : null, tab: TABS.includes(tab) ? tab : TABS[0], page };
  const shown = open.id !== null;
  byId("main").classList.toggle("open", shown);
  byId("main").classList.toggle("usage", page !== null && page !== "sessions");
  byId("main").classList.toggle("at-sessions", page === "sessions");
  byId("exchange").hidden = !shown;
  for (const name of Object.keys(pages)) {
    byId(name).hidden = name !== page;
    markCurrent(byId(`to-${name}`), name === page);
    if (name !== page) pages[name].hide();
  }
  markCurrent(byId("to-exchanges"), page === null);
  list.selected = open.id;
  if (!shown) view.hide();
  if (page) {
    pages[page].show(page === "sessions" ? tab : parameters);
    if (before.page !== page && page !== "sessions") byId(page).focus({ preventScroll: true });
    document.title = `${TITLES[page]} · Dragoman inspector`;
  } else if (shown) {
    list.activate(open.id);
    view.show(open.id, open.tab);
    document.title = `${open.id.slice(0, 8)} · Dragoman inspector`;
  } else {
    list.draw();
    if (document.activeElement !== box) list.element.focus({ preventScroll: true });
    document.title = "Dragoman inspector";
  }
}

function markCurrent(link, is) {
  if (is) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

/** The exchanges of a row of the usage page. */
function showFiltered(text) {
  go(null);
  filter(text);
}

// The list

async function load(more = false) {
  if (more && (loading || !next || sorting.value)) return;
  loading?.abort();
  const control = (loading = new AbortController());
  const params = { limit: sorting.value ? SORTED : PAGE, ...query(criteria), ...(more ? { cursor: next } : {}) };
  try {
    const page = await api.list(params, control.signal);
    if (!more) exchanges.clear();
    exchanges.sort(sorting.value);
    exchanges.append(page.exchanges);
    page.exchanges.forEach((x) => known.add(x.id));
    next = page.next;
    if (!filtered) older = next !== null;
    list.more = next !== null && !sorting.value;
    showProblem("");
  } catch (error) {
    if (error.name === "AbortError") return;
    showProblem(error.message);
  }
  if (loading === control) loading = null;
  changed();
}

function onSummary(summary) {
  known.add(summary.id);
  if (JSON.stringify(exchanges.get(summary.id)) !== JSON.stringify(summary)) {
    active = true;
    view.refresh(summary);
  }
  if (!matches(criteria, summary)) {
    exchanges.remove(summary.id);
    return changed();
  }
  const place = exchanges.put(summary);
  if (place === 0 && list.scrolled) unseen++;
  changed(place >= 0 && !sorting.value ? 1 : 0);
}

/**
 * Reload the newest exchanges now and then: with several workers, only one of them sends live updates to
 * this page.
 */
async function catchUp() {
  if (!active && ++idleRounds < IDLE_ROUNDS) return;
  active = false;
  idleRounds = 0;
  if (document.hidden || loading || byId("live").dataset.state !== "on") return;
  const params = criteria;
  const page = await api.list({ limit: RECENT, ...query(params) }).catch(() => ({ exchanges: [] }));
  if (params === criteria && !loading) page.exchanges.reverse().forEach(onSummary);
}

function changed(inserted = 0) {
  if (!list.scrolled) unseen = 0;
  list.draw(inserted);
  byId("newer").hidden = unseen === 0;
  byId("newer").textContent = `↑ ${plural(unseen, "newer exchange")}`;
  showEmpty();
  updateFooter();
}

function updateFooter() {
  const { items } = exchanges;
  const mended = items.filter((x) => x.mended).length;
  const running = items.filter((x) => x.outcome === "running").length;
  const all = filtered ? known.size : items.length;
  const shown = filtered ? `${count(items.length)}${next ? "+" : ""} of ` : "";
  const parts = [`${shown}${count(all)}${(filtered ? older : next) ? "+" : ""} ${all === 1 ? "exchange" : "exchanges"}`];
  if (sorting.value) parts.push(`${next ? `the newest ${count(items.length)} ` : ""}sorted by ${sorting.by.name}`);
  if (running) parts.push(`${count(running)} running`);
  if (mended) parts.push(`${count(mended)} with mended calls`);
  byId("foot").textContent = parts.join(" · ");
}

function showProblem(text) {
  byId("foot").classList.toggle("bad", text !== "");
  if (text) byId("foot").textContent = text;
}

function showEmpty() {
  const none = exchanges.items.length === 0 && !loading;
  byId("empty").hidden = !none;
  if (!none) return;
  byId("empty").replaceChildren(...(box.value.trim()
    ? [h("h2", {}, "No exchange matches this filter"), h("p", {}, h("button", { type: "button", onclick: () => filter("") }, "Clear the filter"))]
    : [
        h("h2", {}, "No exchanges yet"),
        h("p", {}, "Point an agent or an SDK at this gateway; its exchanges appear here as they happen."),
        h("pre", {}, firstSteps(new URL("./", location.href)).join("\n")),
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
    criteria = parse(text);
    filtered = text.trim() !== "";
    list.element.scrollTop = 0;
    load();
  }, TYPING);
}

// The keyboard

function step(by) {
  if (open.page === "sessions") return sessions.step(by);
  if (open.page) return;
  const id = list.step(by);
  if (!id) return;
  if (open.id) go(id);
  else list.activate(id);
}

function goBack() {
  if (document.activeElement === box) list.element.focus();
  else if (open.page === "sessions" && sessions.isOpen) navigate("#sessions");
  else if (open.id || open.page) go(null);
  else if (box.value) filter("");
}

/** The arrow keys scroll where there is no list: in an exchange, in a session, and on other pages. */
function scrollExchange(event, by) {
  const session = open.page === "sessions" && sessions.isOpen ? byId("sessions").querySelector(".session") : null;
  const page = open.page && open.page !== "sessions" ? byId(open.page) : null;
  const pane = page ?? session ?? event.target.closest("#exchange");
  pane?.scrollBy(0, by);
  return pane !== null;
}

function openActive() {
  if (document.activeElement === box) list.element.focus();
  else if (open.page === "sessions") sessions.active && navigate(`#sessions/${sessions.active}`);
  else if (list.active && !open.page) go(list.active);
}

const actions = {
  j: () => step(1),
  k: () => step(-1),
  ArrowDown: (event) => scrollExchange(event, 60) || step(1),
  ArrowUp: (event) => scrollExchange(event, -60) || step(-1),
  g: () => step(-Infinity),
  G: () => step(Infinity),
  Enter: openActive,
  Escape: goBack,
  "/": () => {
    if (open.page) go(null);
    box.focus();
  },
  u: () => (open.page === "usage" ? go(null) : navigate("#usage")),
  s: () => (open.page === "sessions" ? go(null) : navigate("#sessions")),
  r: () => (open.page === "scores" ? go(null) : navigate("#scores")),
  "?": help,
  o: () => (open.page === "sessions" ? sessions.sortNext() : open.page || sorting.next()),
  f: () => open.page || toggle("failed"),
  m: () => open.page || toggle("mended"),
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

api.onUnauthorized(askForKey);
listen(actions);
chips();
byId("help-button").addEventListener("click", help);
byId("newer").addEventListener("click", () => {
  list.element.scrollTop = 0;
  changed();
});
box.addEventListener("input", () => filter());
addEventListener("hashchange", showLocation);
addEventListener("popstate", showLocation);
setInterval(() => list.tick(Date.now() / 1000), 250);
setInterval(catchUp, CATCH_UP);
showLocation();
await load();
api.follow(onSummary, state);
