// Everything on the page is made here. Text goes in as text: nothing a model wrote can become markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * h("div.card", {title: "…", onclick: fn}, "text", child, [more]) makes an element.
 * Functions become listeners, booleans become present or absent attributes, null children are left out.
 */
export function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  return dress(element, attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), attributes, children);
}

function dress(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A short word at the bottom of the page, also for those who listen. */
export function toast(text) {
  document.querySelector(".toast")?.remove();
  const note = h("div.toast", { role: "status" }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), 2200);
}

/** The clipboard proper needs a secure context; a gateway reached over plain HTTP has none. */
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

/** Hands a blob to the browser's downloads. */
export function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A modal that returns focus to where it was; `close` is handed to its content. */
export function modal(title, content, { closable = true } = {}) {
  const dialog = h("dialog", { "aria-label": title }, h("h2", {}, title));
  dialog.append(...[content(() => dialog.close())].flat());
  dialog.addEventListener("close", () => dialog.remove());
  if (!closable) dialog.addEventListener("cancel", (event) => event.preventDefault());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
