// Bookmarks and recent places, kept by the browser for each user.
import { same } from "./names.js";

/** @typedef {import("./names.js").Place} Place */
/** @typedef {{marks: Place[], recent: Place[], sides: Record<string, Place|null>, hidden: boolean, sort: Record<string, string>}} Kept */
const RECENT_MOST = 12;

/** @param {string} user @returns {Kept} */
export function read(user) {
  const empty = { marks: [], recent: [], sides: {}, hidden: false, sort: {} };
  try { return { ...empty, ...JSON.parse(localStorage.getItem(`carrack-places-${user}`) ?? "{}") }; } catch { return empty; }
}

/** Changes what is kept, beside what other tabs have changed. @param {string} user @param {(kept: Kept) => Partial<Kept>} change */
export function keep(user, change) {
  const kept = read(user), next = { ...kept, ...change(kept) };
  try { localStorage.setItem(`carrack-places-${user}`, JSON.stringify(next)); } catch { /* A browser that keeps nothing. */ }
  return next;
}

/** @param {Place} place @returns {(kept: Kept) => Partial<Kept>} */
export const visit = (place) => ({ recent }) => ({ recent: [place, ...recent.filter((one) => !same(one, place))].slice(0, RECENT_MOST) });
/** @param {Place} place @returns {(kept: Kept) => Partial<Kept>} */
export const mark = (place) => ({ marks }) => ({ marks: marks.some((one) => same(one, place)) ? marks.filter((one) => !same(one, place)) : [...marks, place] });
