// What somebody types or pastes to say where an endpoint is: a location, or the lines that `carrack serve` prints.
import { exact } from "./files/names.js";

/** @typedef {{kind: "local", root: string} | {kind: "ssh", host: string, path: string, user: string|null}
 *   | {kind: "node", host: string, port: number, path: string, fingerprint: string|null}} At */
/** @typedef {{at: At|null, why: string}} Understood `why` nothing was understood; empty where nothing is said yet */

const PORT = 7420, PIN = /^#?sha256:([0-9a-f]{64})$/i;
/** Hosts in lines that are to be copied, where the reader's own belongs. */
const STANDS_FOR_A_PATH = /^(\/PATH)?$/, STANDS_FOR_A_HOST = /^(HOST|NODE|SERVER)$/;
/** Addresses at which a node listens, and none that anybody could call. */
const EVERYWHERE = /^(0\.0\.0\.0|\[::\]|\*)$/;

/** @param {string} why @returns {Understood} */
const nothing = (why) => ({ at: null, why });

/** @param {string} text behind `carrack://` @param {string|null} known a fingerprint that stood beside it @returns {Understood} */
function node(text, known) {
  const [, host, port, path = "", pin] = /^(\[[0-9A-Fa-f:.]+\]|[^/:#?\s]+)(?::(\d+))?(\/[^#\s]*)?(#\S*)?$/.exec(text) ?? [];
  if (!host) return nothing("A node is written carrack://HOST:PORT/PATH#sha256:FINGERPRINT.");
  if (STANDS_FOR_A_HOST.test(host)) return nothing(`Put the node's name or address in place of ${host}.`);
  if (EVERYWHERE.test(host)) return nothing(`${host} is where the node listens: put its name or address in place of it.`);
  const [, fingerprint] = PIN.exec(pin ?? "") ?? [];
  if (pin && !fingerprint) return nothing("Behind the # stands sha256: and 64 hexadecimal digits. Copy the whole line.");
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65535)) return nothing(`${port} is not a port.`);
  return { why: "", at: { kind: "node", host: host.replace(/^\[|\]$/g, ""), port: Number(port ?? PORT), path: STANDS_FOR_A_PATH.test(path) ? "/" : path, fingerprint: (fingerprint ?? known)?.toLowerCase() ?? null } };
}

/** What a text says of where an endpoint is. @param {string} text @returns {Understood} */
export function addressOf(text) {
  const said = text.trim();
  if (!said) return nothing("");
  // A line that was copied whole may hold a command around the address, and the fingerprint stand on a line of its own.
  const [, found] = /carrack:\/\/([^\s'"]+)/.exec(said) ?? [];
  const [, pin] = /(?:^|\s)#?sha256:([0-9a-f]{64})(?:\s|$)/i.exec(said) ?? [];
  if (found) return node(found, pin ?? null);
  const [, listens] = /^listening on (\S+)$/m.exec(said) ?? [];
  if (listens) return node(`${listens}/`, pin ?? null);
  const [, login, host, path] = /^ssh:\/\/(?:([^@/\s]+)@)?([^@/:\s]+)(\/\S*)?$/.exec(said) ?? [];
  if (host) return { why: "", at: { kind: "ssh", user: login ?? null, host, path: path ?? "/" } };
  if (said.startsWith("/") && !said.includes("\n")) return { why: "", at: { kind: "local", root: exact(said) } };
  if (/^[a-z]+:\/\//i.test(said)) return nothing("An endpoint is at carrack://HOST/PATH, at ssh://HOST/PATH, or in a directory of the service's host, /PATH.");
  const [, user, far, below] = /^(?:([^@/\s]+)@)?([^@/:\s]+):(\S*)$/.exec(said) ?? [];
  if (far) return { why: "", at: { kind: "ssh", user: user ?? null, host: far, path: !below ? "~" : /^[/~]/.test(below) ? below : `~/${below}` } };
  return nothing("Paste the line that carrack serve prints, or type carrack://HOST/PATH, ssh://HOST/PATH or /PATH.");
}

/** A name that fits it; empty: none suggests itself. @param {At} at */
export function nameFor(at) {
  const said = at.kind === "local" ? at.root.split("/").filter(Boolean).at(-1) ?? "" : /^[\d.]+$|:/.test(at.host) ? "" : at.host.split(".")[0] ?? "";
  return said.toLowerCase().replace(/[^a-z0-9._-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
}
