// Places and locations as somebody types or pastes them, and as forms show them so that they come back unchanged.
import { exact, placeOf, wire } from "./names.js";

/** @typedef {import("./names.js").Place} Place */

/** Text whose outer white space is written `%XX`: it is seen, and stays where what was typed is trimmed.
 * @param {string} text */
export const bounded = (text) => text.replace(/^\s+|\s+$/gu, encodeURIComponent);

/** The text of `'…'`, as a shell reads it; null: it is no such word. @param {string} word */
const plain = (word) => /^'[^']*'(?:\\''[^']*')*$/.test(word) ? word.slice(1, -1).replaceAll("'\\''", "'") : null;

const TEXT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }), UTF8 = new TextEncoder();
/** The text of `$'…'` as the service writes it; null: it is no such word. @param {string} word */
function escaped(word) {
  if (!/^\$'(?:[^\\']|\\[\\']|\\[0-3][0-7]{2})*'$/.test(word)) return null;
  const bytes = [...word.slice(2, -1).matchAll(/\\([0-7]{3})|\\([\\'])|([^\\]+)/gu)]
    .flatMap(([, octal, mark, text]) => octal ? [Number.parseInt(octal, 8)] : [...UTF8.encode(mark ?? text)]);
  try { return exact(TEXT.decode(Uint8Array.from(bytes))); } catch { /* Bytes that are no text. */ }
  const isPlain = (/** @type {number} */ byte) => byte > 0x1f && byte < 0x7f && byte !== 0x25;
  const coded = (/** @type {number} */ byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return bytes.map((byte) => isPlain(byte) ? String.fromCharCode(byte) : coded(byte)).join("");
}

/** A location or a path that was typed, or pasted as a word of a command line, as the service writes it.
 * @param {string} text */
export function written(text) {
  const said = text.trim(), word = plain(said);
  const read = word !== null ? exact(word) : escaped(said);
  if (read !== null && /^[@/]/.test(read)) return read;
  return /^[@/]/.test(said) ? wire(said) : said;
}

/** The place that somebody typed or pasted, `@NAME:/PATH` or a path at the same endpoint; null: it is none.
 * @param {string} text @param {string} endpoint @returns {Place|null} */
export function placeTyped(text, endpoint) {
  const place = placeOf(written(text), endpoint);
  if (!place) return null;
  // As the service spells it: one place has one path.
  try { return { ...place, path: exact(decodeURIComponent(place.path)) }; } catch { return place; /* Bytes that are no text. */ }
}
