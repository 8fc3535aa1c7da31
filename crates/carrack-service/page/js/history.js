// What a page keeps of a task's events: all that happened, and of its progress as much as a plot can show.

/** @typedef {import("./types.js").CarrackEvent} CarrackEvent */
/** @typedef {{items: CarrackEvent[], complete: boolean}} History the earliest first; `complete`: nothing is left out */

/** Events that are kept: of progress, and others. */
export const PROGRESS_MOST = 2000;
export const OTHERS_MOST = 3000;
/** @type {History} */
export const NOTHING = { items: [], complete: true };

/** @param {CarrackEvent} event */
const isProgress = ({ kind }) => kind === "progress";

/** Progress at even distances over the whole time, about half as much as is kept at most; the latest stays.
 * @param {CarrackEvent[]} told */
function spread(told) {
  const times = told.map(({ time }) => Date.parse(time)), last = told.length - 1;
  // What was thinned before stands a little closer than the new distance, and stays.
  const step = 0.75 * (times[last] - times[0]) / (PROGRESS_MOST / 2);
  let before = -Infinity;
  const kept = told.filter((_, at) => {
    if (at !== last && times[at] - before < step) return false;
    before = times[at];
    return true;
  });
  // Clocks that stand still or go back space nothing out.
  return kept.length > PROGRESS_MOST ? told.filter((_, at) => at === last || at % 2 === 0).slice(-PROGRESS_MOST) : kept;
}

/** No more events than a page can hold: the newest of all but progress, and progress over the whole time, less dense.
 * @param {History} of @returns {History} */
export function thinned({ items, complete }) {
  const progress = items.filter(isProgress), others = items.length - progress.length;
  const dense = progress.length > PROGRESS_MOST ? new Set(spread(progress)) : null;
  let gone = Math.max(0, others - OTHERS_MOST);
  const stays = (/** @type {CarrackEvent} */ event) => isProgress(event) ? !dense || dense.has(event) : (gone -= 1) < 0;
  const kept = items.filter(stays);
  return { items: kept, complete: complete && kept.length === items.length };
}

/** With further events; one that is there already is not taken twice.
 * @param {History} to @param {CarrackEvent[]} events */
export function added(to, events) {
  const known = new Set(to.items.map(({ id }) => id)), fresh = events.filter(({ id }) => !known.has(id));
  if (fresh.length === 0) return to;
  return thinned({ ...to, items: [...to.items, ...fresh].sort((one, other) => one.id - other.id) });
}

/** The number of the newest event; 0: there is none. @param {History} of */
export const newest = ({ items }) => items.at(-1)?.id ?? 0;
