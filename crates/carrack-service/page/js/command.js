// The command line that does the same as the page.
import { HIDDEN } from "./format.js";

const UTF8 = new TextEncoder();
/** The word as `$'…'`, which shells read back: controls and marks of direction become the octal numbers of their bytes. @param {string} word */
const escaped = (word) => `$'${word.replace(/[\\']/g, "\\$&").replace(HIDDEN, (mark) =>
  [...UTF8.encode(mark)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join(""))}'`;
/** @param {string} word */
const quoted = (word) => word !== "" && /^[A-Za-z0-9./_\-+=:@%,]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
/** A word of a command line, which shows what it holds. @param {string} word */
export const quote = (word) => word.search(HIDDEN) >= 0 ? escaped(word) : quoted(word);

/** Options of a task by the flags of their names. @type {Record<string, string>} */
const FLAGS = { verify: "--verify", digest: "--digest", encrypt: "--encrypt", durable: "--durable", congestion: "--congestion",
  streams: "--streams", block_bytes: "--block", rate_limit: "--bwlimit" };
/** @type {Record<string, string>} */
const EXISTING = { keep: "--no-clobber", older: "--update", only: "--existing" };

/** @param {any} schedule @param {import("./types.js").NewTask} task */
export function timerLine(schedule, task) {
  const words = ["carrack", "timer", "create"];
  if (schedule.cron) words.push("--cron", quote(schedule.cron));
  if (schedule.cron && schedule.zone) words.push("--zone", quote(schedule.zone));
  if (schedule.every_seconds) words.push("--every", `${schedule.every_seconds}s`);
  if (schedule.start) words.push("--start", quote(schedule.start));
  if (schedule.until) words.push("--until", quote(schedule.until));
  if (schedule.runs) words.push("--runs", String(schedule.runs));
  if (schedule.overlap && schedule.overlap !== "skip") words.push("--overlap", schedule.overlap);
  return submitLine(task, words);
}

/** @param {import("./types.js").NewTask} task @param {string[]} [words] the verb */
export function submitLine(task, words = ["carrack", "task", "submit"]) {
  if (task.kind && task.kind !== "copy") words.push("--kind", task.kind);
  if (task.label) words.push("--label", quote(task.label));
  if (task.deadline) words.push("--deadline", quote(task.deadline));
  if (task.priority != null) words.push("--priority", String(task.priority));
  const options = task.options ?? {};
  for (const [name, flag] of Object.entries(FLAGS)) {
    if (options[name] != null) words.push(flag, quote(String(options[name])));
  }
  const existing = options.existing;
  if (typeof existing === "string" && EXISTING[existing]) words.push(EXISTING[existing]);
  if (options.polite) words.push("--polite");
  if (options.allow_growing) words.push("--allow-growing");
  if (task.skip_source_errors) words.push("--skip-source-errors");
  if (task.fail_on_quota_errors) words.push("--fail-on-quota-errors");
  const pairs = task.pairs ?? [], [first] = pairs;
  const together = pairs.every((pair) => pair.destination === first.destination);
  if (first && together) {
    words.push(...pairs.map((pair) => quote(pair.source)));
    if (first.destination) words.push(quote(first.destination));
    return words.join(" ");
  }
  const lines = pairs.map((pair) => [pair.source, pair.destination ?? ""].map(quoted).join(" ").trim());
  // The service reads the lines as they are, so the shell has to make the marks before.
  if (lines.some((line) => line.search(HIDDEN) >= 0)) return `printf '%s\\n' ${lines.map(quote).join(" ")} | ${words.join(" ")} --batch -`;
  return `${words.join(" ")} --batch - <<'PAIRS'\n${lines.join("\n")}\nPAIRS`;
}
