// What is selected in a directory: entries by name, or all but some that a filter shows. It holds for the whole
// directory, whatever part of it is loaded.

/** @typedef {import("./listing.js").Entry} Entry */
/** @typedef {import("./listing.js").Query} Query */
/**
 * @typedef {object} Selection
 * @property {Map<string, Entry>} named the selected entries; with `all`, those that are not
 * @property {{query: Query, total: number, bytes: number, whole: boolean}|null} all made by Ctrl+A under this query;
 *   `whole`: it showed every entry of the directory
 */

/** @type {Selection} */
export const NONE = { named: new Map(), all: null };

/** Whether a filter shows a name, by the rule of the service. @param {Query} query @param {string} name */
export function shows(query, name) {
  if (!query.hidden && name.startsWith(".")) return false;
  const filter = query.filter.toLowerCase(), low = name.toLowerCase();
  if (!/[*?]/.test(filter)) return low.includes(filter);
  const pattern = filter.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
  return new RegExp(`^${pattern}$`, "su").test(low);
}

/** @param {Selection} of @param {Entry} entry */
export const has = (of, entry) => of.all ? !of.named.has(entry.name) && shows(of.all.query, entry.name) : of.named.has(entry.name);

/** @param {Selection} of @param {Entry} entry @returns {Selection} */
export function toggle(of, entry) {
  const named = new Map(of.named);
  if (of.all && !shows(of.all.query, entry.name)) return of;
  if (!named.delete(entry.name)) named.set(entry.name, entry);
  return { ...of, named };
}

/** @param {Selection} of @param {Entry[]} entries @returns {Selection} */
export function add(of, entries) {
  const named = new Map(of.named);
  for (const entry of entries) if (of.all) named.delete(entry.name); else named.set(entry.name, entry);
  return { ...of, named };
}

/** How many, and the bytes of the files among them. @param {Selection} of */
export function sum(of) {
  const named = [...of.named.values()];
  const bytes = named.reduce((total, entry) => total + (entry.kind === "file" ? entry.size : 0), 0);
  return of.all ? { count: of.all.total - named.length, bytes: of.all.bytes - bytes, folders: null }
    : { count: named.length, bytes, folders: named.filter((entry) => entry.kind === "directory").length };
}

/** Selected entries that the present query does not show, where they are known one by one. @param {Selection} of @param {Query} query */
export const unseen = (of, query) => of.all ? 0 : [...of.named.keys()].filter((name) => !shows(query, name)).length;
