// What a view keeps for the entry of the browser's history in which it is shown: Back finds it as it was left.

/** Things that are kept; of more, the oldest go. */
const KEPT_MOST = 200;
/** @type {Map<string, any>} */
const kept = new Map();
let made = 0;

/** The present entry of the history; it gets a name where it has none. @returns {string} */
export function entry() {
  const known = history.state?.entry;
  if (typeof known === "string") return known;
  made += 1;
  const name = `${Date.now()}-${made}`;
  history.replaceState({ ...history.state, entry: name }, "");
  return name;
}

/** @param {string} at the entry @param {string} what @returns {any} null: nothing is kept */
export const recall = (at, what) => kept.get(`${at} ${what}`) ?? null;

/** @param {string} at the entry @param {string} what @param {any} value */
export function remember(at, what, value) {
  kept.delete(`${at} ${what}`);
  kept.set(`${at} ${what}`, value);
  for (const oldest of kept.keys()) { if (kept.size <= KEPT_MOST) break; kept.delete(oldest); }
}
