// Creates all elements of the page. Text is inserted as text, so a model's output can never become markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * h("div.card", {title: "…", onclick: fn}, "text", child, [more]) makes an element.
 * Functions become listeners, booleans become present or absent attributes, null children are skipped.
 */
export function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  return setUp(element, attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return setUp(document.createElementNS(SVG, tag), attributes, children);
}

function setUp(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

/** Replaces the buttons of a group, and keeps the focus at its place. */
export function fill(element, buttons) {
  const at = [...element.children].indexOf(document.activeElement);
  element.replaceChildren(...buttons);
  if (at >= 0) element.children[at]?.focus();
}

export const byId = (id) => document.getElementById(id);

/** A short message at the bottom of the page, also for screen readers. */
export function toast(text) {
  document.querySelector(".toast")?.remove();
  const note = h("div.toast", { role: "status" }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), 2200);
}

/** The clipboard API needs a secure context, which a gateway over plain HTTP does not have. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea.hidden", { "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast(`${what} copied`);
}

/** Downloads a blob. */
export function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A modal that returns the focus when it closes; its content gets the `close` function. */
export function modal(title, content, { closable = true } = {}) {
  const dialog = h("dialog", { "aria-label": title }, h("h2", {}, title));
  dialog.append(...[content(() => dialog.close())].flat());
  dialog.addEventListener("close", () => dialog.remove());
  if (!closable) dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
