// Numbers, times and names as people read them. Sizes are written as the command line writes them.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const COUNT = new Intl.NumberFormat("en-US");
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const DAY_THIS_YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** How far this computer's clock is behind the server's, in milliseconds; little is nothing: answers take their time. */
export const clock = { behind: 0 };
const CLOCK_LITTLE = 10_000;
/** The server's time. */
export const now = () => Date.now() + clock.behind;
/** So many days before the server's time. @param {number} days */
export const daysAgo = (days) => new Date(now() - days * 86_400_000).toISOString();
/** Compares the clocks. @param {string|null} told when the server has answered, as its answer says */
export function setClock(told) {
  const behind = Date.parse(told ?? "") - Date.now();
  if (Number.isFinite(behind)) clock.behind = Math.abs(behind) < CLOCK_LITTLE ? 0 : behind;
}

/** @param {number|null|undefined} value */
export function bytes(value) {
  let left = value ?? 0, unit = 0;
  while (left >= 1023.95 && unit < UNITS.length - 1) { left /= 1024; unit += 1; }
  return unit === 0 ? `${left} B` : `${left.toFixed(1)} ${UNITS[unit]}`;
}

/** @param {number|null|undefined} value */
export const rate = (value) => `${bytes(Math.round(value ?? 0))}/s`;
/** @param {number|null|undefined} value */
export const count = (value) => COUNT.format(value ?? 0);
/** @param {number} n @param {string} one @param {string} [many] */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** @param {number|null|undefined} seconds */
export function duration(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  if (seconds > 0 && seconds < 9.95) return `${seconds < 0.05 ? "under 0.1" : Number(seconds.toFixed(1))} s`;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${count(Math.floor(s / 86400))} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** The time that something takes, from the least to the most, in one unit where it can be. @param {number} least @param {number} most */
export function range(least, most) {
  const [from, to] = [least, most].map(duration);
  if (from === to) return from;
  const [one, unit, more] = from.split(" "), [, other] = to.split(" ");
  return !more && unit === other && to.split(" ").length === 2 ? `${one} to ${to}` : `${from} to ${to}`;
}

/**
 * The time of day today, else the day with it. `exact`: with its seconds on every day. `file`: today by its name, and
 * other years without the time of day.
 * @param {string|null|undefined} moment @param {""|"exact"|"file"} [form]
 */
export function when(moment, form = "") {
  if (!moment) return "–";
  const date = new Date(moment), today = new Date(now()), time = CLOCK.format(date), short = time.slice(0, 5);
  if (date.toDateString() === today.toDateString()) return form === "file" ? `today ${short}` : time;
  const isThisYear = date.getFullYear() === today.getFullYear();
  const day = isThisYear ? DAY_THIS_YEAR.format(date) : DAY.format(date);
  return form === "file" && !isThisYear ? day : `${day} ${form === "exact" ? time : short}`;
}

/** A time that lies ahead; null: there is none, or it has passed. @param {string|null|undefined} moment */
export const ahead = (moment) => moment && Date.parse(moment) > now() ? moment : null;

/** @param {string} from @param {string} to */
export const between = (from, to) => duration((Date.parse(to) - Date.parse(from)) / 1000);

/** A share in percent, rounded down: 100 only when all is there, and with decimals below 10. @param {number} part @param {number} whole */
export function percent(part, whole) {
  if (whole <= 0 || part <= 0) return 0;
  if (part >= whole) return 100;
  const exact = (part / whole) * 100, steps = exact < 1 ? 100 : exact < 10 ? 10 : 1;
  return exact < 0.01 ? exact : Math.min(99, Math.floor(exact * steps) / steps);
}
/** @param {number} value of `percent` */
export const percentText = (value) => value > 0 && value < 0.01 ? "under 0.01 %" : `${value} %`;

/** Controls and marks of direction. */
// eslint-disable-next-line no-control-regex
export const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * A name that can be shown on one line: controls and marks of direction become visible escapes.
 * @param {string} name
 */
export const shown = (name) => name.replace(HIDDEN, (mark) =>
  mark === "\n" ? "\\n" : mark === "\t" ? "\\t" : `\\u{${mark.codePointAt(0)?.toString(16)}}`);

/** @param {import("./types.js").Task} task */
export function title(task) {
  if (task.request.label) return shown(task.request.label);
  return route(task);
}

/** @param {import("./types.js").Task} task */
export function route(task) {
  const [first, ...more] = task.request.pairs ?? [];
  if (!first) return "no paths";
  const to = first.destination ? ` → ${shown(first.destination)}` : "";
  return `${shown(first.source)}${to}${more.length ? ` and ${plural(more.length, "more pair")}` : ""}`;
}
