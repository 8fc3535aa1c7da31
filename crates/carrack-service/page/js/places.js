// The places of files in flight: each keeps its own until it ends, so that nobody reads a line that turns into another.

/** @typedef {import("./types.js").InFlight} InFlight */

/** By what a file is known from one reading to the next. @param {InFlight} file */
export const keyOf = (file) => `${file.pair}/${file.path}`;

/**
 * Puts files where they were before, and new ones where others have ended. An empty place stays, for the next one.
 * @param {(InFlight|null)[]} before @param {InFlight[]} files @returns {(InFlight|null)[]}
 */
export function placed(before, files) {
  const left = new Map(files.map((file) => [keyOf(file), file]));
  const places = before.map((file) => {
    const key = file ? keyOf(file) : "", now = left.get(key) ?? null;
    left.delete(key);
    return now;
  });
  for (const file of left.values()) {
    const free = places.indexOf(null);
    if (free < 0) places.push(file); else places[free] = file;
  }
  return places;
}

/** The end of a name that stays where its middle is left out: the last part of a path, or the end of that. */
const TAIL_MOST = 24, TAIL_LEAST = 12;

/**
 * A name in two parts: of the first its end is left out where there is no room. A short one is all first part.
 * @param {string} name @returns {[string, string]}
 */
export function halves(name) {
  const marks = [...name];
  if (marks.length <= TAIL_MOST) return [name, ""];
  const slash = marks.lastIndexOf("/"), own = marks.length - slash;
  const tail = slash >= 0 && own <= TAIL_MOST ? own : TAIL_LEAST;
  return [marks.slice(0, -tail).join(""), marks.slice(-tail).join("")];
}
