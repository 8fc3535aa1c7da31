// What the button that copies says.
import { bytes, plural } from "../format.js";
import { sum } from "./selection.js";

/** How much goes where. @param {Pick<import("./actions.js").Targets, "entries"|"count">|null} targets @param {import("./selection.js").Selection} selection @param {import("./names.js").Place|null} to */
export function copyWords(targets, selection, to) {
  const where = to ? ` to @${to.endpoint}` : "";
  if (!targets) return `Copy${where}`;
  const [entry] = targets.entries, chosen = sum(selection), isOne = chosen.count === 0 && entry !== undefined;
  // What folders hold is counted by the sheet.
  const size = isOne ? (entry.kind === "file" ? entry.size : null) : chosen.folders === 0 && chosen.bytes > 0 ? chosen.bytes : null;
  return `Copy ${plural(targets.count, "item")}${size === null ? "" : ` (${bytes(size)})`}${where}`;
}
