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

/** A location as it is typed: behind `@NAME:`, and at a path of the service's host, nothing is decoded, and `%XX` stands for itself.
 * @param {string} location @returns {Uint8Array} */
function bytesTyped(location) {
  const bytes = UTF8.encode(location);
  if (!/^[@/]/.test(location)) return bytes;
  /** @type {number[]} */
  const out = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const hex = bytes[at] === 0x25 ? /^[0-9A-Fa-f]{2}/.exec(String.fromCharCode(...bytes.slice(at + 1, at + 3))) : null;
    out.push(hex ? Number.parseInt(hex[0], 16) : /** @type {number} */ (bytes[at]));
    if (hex) at += 2;
  }
  return Uint8Array.from(out);
}
const TEXT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** The text of a location as it is typed; null: it has bytes that are no text. @param {string} location */
function textTyped(location) {
  try { return TEXT.decode(bytesTyped(location)); } catch { return null; }
}
/** A location as a word of a command line. A name with the text `%XX` is quoted: unquoted, the page takes that for a byte.
 * @param {string} location */
export function locationWord(location) {
  const text = textTyped(location);
  if (text != null && /^[@/]/.test(text) && /%[0-9A-Fa-f]{2}/.test(text) && quote(text) === text) return `'${text}'`;
  return text != null ? quote(text) : `$'${[...bytesTyped(location)].map((byte) => byte > 0x20 && byte < 0x7f && byte !== 0x27 && byte !== 0x5c
    ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`).join("")}'`;
}

/** How an option's value is typed: the words that say it. @param {import("./types.js").Option} option @param {any} value @returns {string[]} */
function flagsOf(option, value) {
  if (option.kind === "flag") return option.flag && value ? [`--${option.flag}`] : [];
  // A flag for each line that says something.
  if (option.flag && option.kind === "lines") return String(value).split("\n").filter((line) => line && !/^[#;]/.test(line)).flatMap((line) => [`--${option.flag}`, quote(line)]);
  // The command line takes no rate without its unit.
  const word = quote(option.kind === "bytes" ? `${value}B` : String(value));
  // What begins with a dash would be taken for a flag, and a flag that says something alone takes its word so only.
  if (option.flag) return word.startsWith("-") || option.kind === "choice" ? [`--${option.flag}=${word}`] : [`--${option.flag}`, word];
  const flag = option.choices?.find((choice) => choice.value === value)?.flag;
  return flag ? [`--${flag}`] : [];
}

/** @param {import("./types.js").OptionTable} known @param {any} schedule @param {import("./types.js").NewTask} task */
export function timerLine(known, schedule, task) {
  const words = ["carrack", "timer", "create"];
  if (schedule.cron) words.push("--cron", quote(schedule.cron));
  if (schedule.cron && schedule.zone) words.push("--zone", quote(schedule.zone));
  if (schedule.every_seconds) words.push("--every", `${schedule.every_seconds}s`);
  if (schedule.start) words.push("--start", quote(schedule.start));
  if (schedule.until) words.push("--until", quote(schedule.until));
  if (schedule.runs) words.push("--runs", String(schedule.runs));
  if (schedule.jitter_seconds) words.push("--jitter", `${schedule.jitter_seconds}s`);
  if (schedule.overlap && schedule.overlap !== "skip") words.push("--overlap", schedule.overlap);
  return submitLine(known, task, words);
}

/** @param {import("./types.js").OptionTable} known @param {import("./types.js").NewTask} task @param {string[]} [words] the verb */
export function submitLine(known, task, words = ["carrack", "task", task.preview ? "preview" : "submit"]) {
  if (task.kind && task.kind !== "copy") words.push("--kind", task.kind);
  for (const option of known.groups.flatMap((group) => group.options)) {
    const value = option.at === "task" ? /** @type {Record<string, any>} */ (task)[option.name] : task.options?.[option.name];
    if (value != null) words.push(...flagsOf(option, value));
  }
  const pairs = task.pairs ?? [], [first] = pairs;
  const together = pairs.every((pair) => pair.destination === first.destination);
  if (first && together) {
    words.push(...pairs.map((pair) => locationWord(pair.source)));
    if (first.destination) words.push(locationWord(first.destination));
    return words.join(" ");
  }
  const lines = pairs.map((pair) => [pair.source, pair.destination ?? ""].map((one) => quoted(textTyped(one) ?? one)).join(" ").trim());
  // The service reads the lines as they are, so the shell has to make the marks before.
  if (lines.some((line) => line.search(HIDDEN) >= 0)) return `printf '%s\\n' ${lines.map(quote).join(" ")} | ${words.join(" ")} --batch -`;
  return `${words.join(" ")} --batch - <<'PAIRS'\n${lines.join("\n")}\nPAIRS`;
}
