// How fast an upload goes, and what it does, in words.
import { bytes, duration, rate } from "../format.js";

/** @typedef {[number, number][]} Pace when so many bytes had been sent, of the last seconds */
/** @typedef {{state: string, done: number, size: number, kept: number, away?: number, pace?: Pace}} Going `away`: blocks that wait for the service to be back */

/** Rates are of so long, and of no less, in milliseconds. */
const LONG = 8000, LEAST = 500;
/** With one more sample. The latest of those before the last seconds stays: blocks come in bursts, which are counted whole.
 * @param {Pace|undefined} pace @param {number} now in milliseconds @param {number} done @returns {Pace} */
export function paced(pace, now, done) {
  const samples = pace ?? [], begin = samples.findLastIndex(([at]) => now - at >= LONG);
  return [...samples.slice(Math.max(0, begin)), [now, done]];
}

/** Bytes a second, and the seconds that are left; null: not known yet. @param {Going} going */
export function paceOf({ pace = [], done, size }) {
  const [first] = pace, last = pace.at(-1);
  if (!first || !last || last[0] - first[0] < LEAST) return null;
  const speed = (last[1] - first[1]) / ((last[0] - first[0]) / 1000);
  return speed > 0 ? { speed, left: (size - done) / speed } : null;
}

/** @type {Record<string, string>} */
const WORDS = { waiting: "waits", hashing: "hashing", sending: "sending", publishing: "being put in place", done: "done, verified", failed: "failed" };

/** @param {Going} going */
export function uploadWords(going) {
  const { state, done, size, kept, away = 0 } = going, pace = paceOf(going), before = kept ? `, ${bytes(kept)} were there` : "";
  if (state !== "sending") return `${WORDS[state]}${before}`;
  if (away > 0) return `waiting for the service: ${bytes(done)} of ${bytes(size)} are there`;
  return `${WORDS.sending} ${bytes(done)} of ${bytes(size)}${pace ? `, ${rate(pace.speed)}, ${duration(pace.left)} left` : ""}${before}`;
}
