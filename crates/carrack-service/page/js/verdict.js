// One sentence on a task: what became of it, or what it does now, and what holds it.
import { between, bytes, count, duration, percentText, plural, rate } from "./format.js";
import { share } from "./share.js";

/** @typedef {import("./types.js").Task} Task */
/** A rate this near to the limit that was set is held by it. */
const AT_LIMIT = 0.9;

/** What limits a task that moves: the rate that its owner has set, else what its worker has found; empty: nothing is known. @param {Task} task */
export function limitOf(task) {
  const limit = Number(task.request.options?.rate_limit ?? 0), { rates } = task.progress, now = Math.max(rates?.now ?? 0, rates?.five_minutes ?? 0);
  // What its worker finds counts what the limit makes it wait for.
  if (limit > 0 && now >= AT_LIMIT * limit) return `the rate limit of ${rate(limit)} that was set`;
  return task.progress.limited_by ?? "";
}

/** @param {Task} task */
function moved({ progress }) {
  const { bytes_moved: sent, bytes_skipped: there } = progress;
  return `${bytes(sent)}${there ? ` moved, ${bytes(there)} there before` : " moved"}`;
}

/** What a check has found, in words. @param {any} check */
export function found(check) {
  const parts = [[check.different, "different"], [check.only_source, "only at the source"], [check.only_destination, "only at the destination"]].filter(([number]) => number > 0).map(([number, what]) => `${count(number)} ${what}`);
  return parts.length ? parts.join(", ") : "no differences";
}

/** Of a check. @param {Task} task @param {string} time */
function checked({ state, progress, failure }, time) {
  const check = progress.check ?? { same: 0, different: 0, only_source: 0, only_destination: 0, bytes: 0 }, failed = progress.items_failed ?? 0;
  const compared = `Compared ${plural(check.same + check.different + check.only_source + check.only_destination, "item")}, ${bytes(check.bytes)}`;
  const told = `${found(check)}${failed ? `; ${plural(failed, "item")} could not be read` : ""}`;
  switch (state) {
    case "SUCCEEDED": case "PARTIAL": return `${compared} in ${time}: ${told}.`;
    case "FAILED": return `Failed: ${failure ? `${failure.side}: ${failure.why}` : told}.`;
    case "CANCELLED": return `Cancelled: ${compared} before that; ${told}.`;
    case "ACTIVE": return `${compared} so far: ${told}.`;
    default: return "";
  }
}

/** @param {Task} task @returns {string} */
export function verdict(task) {
  const { state, progress, request, failure, blocked } = task, failed = progress.items_failed ?? 0;
  const time = task.ended ? between(task.started ?? task.submitted, task.ended) : "", mean = progress.rates?.all ? ` at ${rate(progress.rates.all)}` : "";
  const did = request.preview ? "Looked at both sides" : request.kind === "delete" ? `Deleted ${plural(progress.items_done ?? 0, "item")}` : `${moved(task)}`;
  const ofCheck = request.kind === "check" ? checked(task, time) : "";
  if (ofCheck) return ofCheck;
  switch (state) {
    case "SUCCEEDED": {
      const check = request.options?.verify === "none" || request.kind === "delete" || request.preview || !progress.items_done ? "" : ", all of it verified";
      return `${did} in ${time}${progress.bytes_moved ? mean : ""}${check}.`;
    }
    case "PARTIAL": return `${plural(failed, "item")} of ${plural(progress.items_total ?? 0, "item")} failed; the rest is done: ${did} in ${time}.`;
    // What has failed one by one is told below, with what to try.
    case "FAILED": return failed > 0 ? `Failed: ${failed === (progress.items_total ?? 0) ? "nothing could be done" : plural(failed, "item")}.` : `Failed: ${failure ? `${failure.side}: ${failure.why}` : "no cause was told"}.`;
    case "CANCELLED": return `Cancelled: ${did} before that; it stays.`;
    case "PAUSED": return blocked ? `Paused: ${blocked.why}.` : "Paused: it goes on when somebody resumes it.";
    case "CANCELLING": return "Ends as soon as its worker has stopped.";
    case "ACTIVE": {
      const done = share(task), limit = limitOf(task), left = progress.eta_seconds;
      if (!progress.scan_complete && !progress.bytes_moved) return "Lists its sources, and moves what it finds.";
      return [`${done === null ? "" : `${percentText(done)}${progress.scan_complete ? "" : " of what is listed so far"}, `}${rate(progress.rates?.now)}`, limit && `limited by ${limit}`, left != null && `${duration(left)} left`].filter(Boolean).join("; ").replace(/^./, (first) => first.toUpperCase()) + ".";
    }
    default: return blocked ? `Waits: ${blocked.why}.` : "Waits for its turn.";
  }
}
