// What an action is about: the selected entries, or the active one; and what a task is given of them.
import { Problem } from "../api.js";
import { count, plural } from "../format.js";
import { NAMES_MOST } from "./listing.js";
import { sum } from "./selection.js";
import { join, location, same, spelled } from "./names.js";

/** @typedef {import("./listing.js").Entry} Entry */
/** @typedef {import("./names.js").Place} Place */
/** @typedef {import("./pane.js").Pane} Pane */
/**
 * @typedef {object} Targets
 * @property {Pane} pane @property {Place} place @property {Entry[]} entries those that are known one by one
 * @property {boolean} all all but `entries` are meant @property {boolean} whole the directory's contents, whatever they are
 * @property {number} count @property {string} text
 */

/** @param {Pane} pane @param {Entry|null} [only] an entry that alone is meant @returns {Targets|null} */
export function targetsOf(pane, only = null) {
  const { place, selection } = pane, chosen = sum(selection);
  if (!place) return null;
  const entry = only ?? (chosen.count === 0 ? pane.current() : null);
  if (entry) return { pane, place, entries: [entry], all: false, whole: false, count: 1, text: spelled(entry.name) };
  if (chosen.count === 0) return null;
  const entries = [...selection.named.values()], all = selection.all !== null;
  const text = !all && entries.length === 1 ? spelled(entries[0].name) : `${all ? "all " : ""}${plural(chosen.count, "item")}`;
  return { pane, place, entries, all, whole: Boolean(selection.all?.whole && entries.length === 0), count: chosen.count, text };
}

/** The paths that are meant; the directory's own with a slash at its end where all in it is. @param {Targets} targets @param {boolean} [each] one by one
 * @returns {Promise<string[]>} */
export async function pathsOf(targets, each = false) {
  const { place, entries, pane } = targets;
  if (targets.whole && !each) return [place.path === "/" ? "/" : `${place.path}/`];
  if (!targets.all) return entries.map((entry) => join(place.path, entry.name));
  const query = pane.selection.all?.query ?? pane.query;
  const names = await pane.listing?.names(query, pane.selection.named);
  if (!names) {
    throw new Problem(0, "too-many", `A task names at most ${count(NAMES_MOST)} items one by one; ${count(targets.count)} are selected.`,
      [each ? "Go to the folder above and choose this folder itself." : "Choose the whole folder, or filter to fewer items."]);
  }
  return names.map((name) => join(place.path, name));
}

/** @param {string[]} paths @param {Place} from @param {Place|null} to @returns {import("../types.js").Pair[]} */
export const pairsOf = (paths, from, to) => paths.map((path) => {
  const source = location({ endpoint: from.endpoint, path });
  return to ? { source, destination: location({ endpoint: to.endpoint, path: to.path === "/" ? "/" : `${to.path}/` }) } : { source };
});

/** Why nothing can be copied there; null: it can. @param {Targets} targets @param {Place} to */
export function clash({ place, entries, all }, to) {
  if (same(place, to)) return "The other pane shows the same folder. Open another one there.";
  const inside = !all && entries.find((entry) => entry.kind === "directory" && place.endpoint === to.endpoint && `${to.path}/`.startsWith(`${join(place.path, entry.name)}/`));
  return inside ? `${spelled(inside.name)} cannot be copied into itself.` : null;
}
