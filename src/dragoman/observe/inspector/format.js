// Formats numbers, times and sizes.

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const COUNT = new Intl.NumberFormat("en");
const CENTS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

export const clock = (at) => CLOCK.format(at * 1000);
export const date = (at) => DATE.format(at * 1000);
const today = (at, now) => new Date(at * 1000).toDateString() === now.toDateString();
const two = (n) => String(n).padStart(2, "0");

/** The time of day; with the date if that is not today, and with the year instead if that is not this one. */
export function moment(at, now = new Date()) {
  if (today(at, now)) return clock(at);
  const then = new Date(at * 1000);
  const day = `${two(then.getMonth() + 1)}-${two(then.getDate())}`;
  if (then.getFullYear() !== now.getFullYear()) return `${then.getFullYear()}-${day}`;
  return `${day} ${two(then.getHours())}:${two(then.getMinutes())}`;
}

export const count = (n) => COUNT.format(n);
export const plural = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

export function seconds(s) {
  if (s == null) return "";
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 59.95) return `${s.toFixed(s < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(s);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** The time since the start of the exchange, for the left column. */
export const since = (s) => (s < 10 ? `+${s.toFixed(3)}` : `+${s.toFixed(2)}`);

export function short(n) {
  if (n < 10_000) return COUNT.format(n);
  if (n < 999_500) return `${(n / 1000).toFixed(n < 99_950 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  if (n < 999_500) return `${(n / 1000).toFixed(n < 99_950 ? 1 : 0)} kB`;
  return `${(n / 1e6).toFixed(1)} MB`;
}

export function money(n) {
  if (n == null) return "";
  if (n === 0) return "$0";
  if (n < 0.0001) return "<$0.0001";
  return `$${n.toFixed(n < 0.1 ? 4 : 2)}`;
}

/** The cost of an exchange; `unknown` if it used tokens and nobody knows their price. */
export const cost = (x, unknown) => (x.cost == null && x.usage && x.outcome !== "running" ? unknown : money(x.cost));

export const tokens = (usage) =>
  usage ? `${short(usage.input ?? 0)} → ${short(usage.output ?? 0)}` : "";

/** Sums of money: cents, and more places only for what is less than ten cents. */
export const dollars = (n) => (n === 0 ? "$0" : n < 0.0995 ? money(n) : n < 9_999.5 ? `$${CENTS.format(n)}` : `$${COUNT.format(Math.round(n))}`);
export const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)}\u00a0%`;
