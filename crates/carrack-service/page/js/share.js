// How far a task is.
import { percent } from "./format.js";

/** @typedef {import("./types.js").Task} Task */
const ENDED = ["SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"];

/** How much of a task is done, in percent, of what is listed so far; null: nothing is listed yet. 100 only where nothing is missing.
 * @param {Task} task @returns {number|null} */
export function share(task) {
  const { progress } = task, ended = ENDED.includes(task.state), total = progress.bytes_total ?? 0, items = progress.items_total ?? 0;
  if (task.state === "SUCCEEDED") return 100;
  // Nobody counts beforehand what a check has to compare.
  if (task.request?.kind === "check") return ended ? 99 : task.state === "ACTIVE" ? null : 0;
  if (!ended && total === 0 && !progress.scan_complete) return task.state === "ACTIVE" ? null : 0;
  const done = total > 0 ? percent((progress.bytes_moved ?? 0) + (progress.bytes_skipped ?? 0), total)
    : percent((progress.items_done ?? 0) + (progress.items_skipped ?? 0), items);
  // Bytes that nobody could count are not in the total: what failed, and what is not listed yet.
  return ended || (progress.items_failed ?? 0) > 0 || !progress.scan_complete ? Math.min(99, done) : done;
}
/** @param {string} state */
export const tone = (state) => state === "SUCCEEDED" ? "good" : state === "FAILED" ? "bad" : state === "PARTIAL" ? "warn" : "";
