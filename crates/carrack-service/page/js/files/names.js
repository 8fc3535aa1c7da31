// Names and paths as the service writes them: text, in which `%XX` stands for bytes that are no text, for controls, and
// for the percent sign itself. They are sent and copied as they came; only what is shown is decoded.
import { html } from "../ui.js";
import { HIDDEN, shown } from "../format.js";

/** @typedef {{endpoint: string, path: string}} Place a directory at an endpoint */

const PIECES = new RegExp(`(%[0-9A-Fa-f]{2}|${HIDDEN.source}|^ +| +$)`);
/** @param {string} piece */
function escape(piece) {
  if (piece.startsWith(" ")) return "␣".repeat(piece.length);
  if (!piece.startsWith("%")) return shown(piece);
  const byte = Number.parseInt(piece.slice(1), 16);
  return byte === 0x0a ? "\\n" : byte === 0x09 ? "\\t" : `\\x${piece.slice(1).toUpperCase()}`;
}
/** Text, and whether it stands for something else. @param {string} name @returns {[string, boolean][]} */
const pieces = (name) => name.split(PIECES).map((piece, at) => at % 2 === 0 ? [piece, false] : piece === "%25" ? ["%", false] : [escape(piece), true]);

/** A name as one line of text. @param {string} name */
export const spelled = (name) => pieces(name).map(([text]) => text).join("");
/** A name, with what could not be seen as marked escapes. @param {{of: string}} props */
export const Spelled = ({ of }) => html`<bdi class="name">${pieces(of).map(([text, stands]) => stands ? html`<span class="esc">${text}</span>` : text)}</bdi>`;

/** The path of a task's item as the service writes other paths: there a backslash stands for itself. @param {string} path */
export const itemPath = (path) => path.replaceAll("%", "%25").replace(/\\(?:\\|x([0-9a-f]{2}))/g, (_, byte) => byte ? `%${byte}` : "\\");

/** A name as people type it: a percent sign stands for itself where no two hexadecimal digits follow. @param {string} name */
export const typed = (name) => name.replace(/%25(?![0-9A-Fa-f]{2})/g, "%");
/** What was typed as the service writes it. @param {string} text */
export const wire = (text) => text.replace(/%(?![0-9A-Fa-f]{2})/g, "%25")
  // eslint-disable-next-line no-control-regex
  .replace(/[\u0000-\u001f\u007f-\u009f]/g, (mark) => encodeURIComponent(mark));

/** The name of a file as the service writes it. @param {string} name */
// eslint-disable-next-line no-control-regex
export const exact = (name) => name.replace(/[%\u0000-\u001f\u007f-\u009f]/g, encodeURIComponent);

/** @param {string} path @param {string} name */
export const join = (path, name) => path === "/" ? `/${name}` : `${path}/${name}`;
/** @param {string} path */
export const parent = (path) => path.slice(0, path.lastIndexOf("/")) || "/";
/** @param {string} path */
export const last = (path) => path.slice(path.lastIndexOf("/") + 1);
/** A location as tasks and the command line take it. @param {Place} place @param {string} [name] */
export const location = (place, name) => `@${place.endpoint}:${name === undefined ? place.path : join(place.path, name)}`;

/** The place of a location, `@NAME:/PATH` or a path at the same endpoint; null: it is none. White space is part of a name.
 * @param {string} text @param {string} endpoint @returns {Place|null} */
export function placeOf(text, endpoint) {
  const [, name, path] = /^@([A-Za-z0-9._-]+):(.*)$/s.exec(text) ?? [null, endpoint, text];
  /** @type {string[]} */
  const steps = [];
  for (const step of wire(path).split("/")) {
    if (step === "..") steps.pop();
    else if (step && step !== ".") steps.push(step);
  }
  return name ? { endpoint: name, path: `/${steps.join("/")}` } : null;
}

/** Whether two places are one. @param {Place|null} one @param {Place|null} other */
export const same = (one, other) => one?.endpoint === other?.endpoint && one?.path === other?.path;

/** @typedef {{left: Place, right: Place}} Way */
/** The folders between which the latest of these tasks went. @param {import("../types.js").Task[]} tasks @returns {Way|null} */
export function lastWay(tasks) {
  const folder = (/** @type {string|null|undefined} */ text) => { const place = text?.startsWith("@") ? placeOf(text, "") : null; return place && !text?.endsWith("/") ? { ...place, path: parent(place.path) } : place; };
  for (const { request } of tasks) {
    const [pair] = request.pairs ?? [], left = folder(pair?.source), right = folder(pair?.destination);
    if (left && right) return { left, right };
  }
  return null;
}

/** The page's own address for two places. @param {Place|null} left @param {Place|null} right @param {string} at */
export function linkTo(left, right, at) {
  const text = (/** @type {string} */ value) => encodeURIComponent(value).replace(/%(40|3A|2F)/g, decodeURIComponent);
  const said = [left && `left=${text(location(left))}`, right && `right=${text(location(right))}`, at === "right" && "at=right"].filter(Boolean);
  return `#/files${said.length ? `?${said.join("&")}` : ""}`;
}
