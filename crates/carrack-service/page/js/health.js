// What the service knows of endpoints and of tasks that wait, put together for those who look after it.

/** @typedef {{state: "ok"|"idle"|"degraded"|"down", last_contact: string|null, last_success: string|null, open_tasks: number, last_test: {time: string, ok: boolean}|null,
 *   last_fault: {time: string, code: string, why: string|null, task: string|null}|null}} Health */
/** @typedef {import("./types.js").Task} Task */

const RANK = ["down", "degraded", "ok", "idle"];
/** Those with trouble first, then by name. @template {{name: string, health?: any}} T @param {T[]} endpoints @returns {T[]} */
export const ordered = (endpoints) => [...endpoints].sort((one, other) => Math.min(2, RANK.indexOf(one.health?.state)) - Math.min(2, RANK.indexOf(other.health?.state)) || (one.name < other.name ? -1 : 1));

const UNITS = "KMGTPE";
/** A size as the service writes it. @param {string} text */
function sizeOf(text) {
  const [, number, unit] = /^([\d.]+) ([KMGTPE]?)i?B$/.exec(text) ?? [];
  return Math.round(Number(number) * 1024 ** (UNITS.indexOf(unit || "-") + 1));
}

/** Free bytes, and all where they are known: of a directory of the service's host, or as the last test has found. @param {string} name @param {any} node @returns {{free: number, total: number|null}|null} */
export function spaceOf(name, node) {
  const here = node?.storage?.find((/** @type {any} */ one) => one.endpoint === name && one.bytes_free !== null);
  if (here) return { free: here.bytes_free, total: here.bytes_total };
  const check = node?.tests?.find((/** @type {any} */ one) => one.endpoint === name)?.test.checks.find((/** @type {any} */ one) => one.name === "space");
  const [, free, total] = /([\d.]+ [KMGTPE]?i?B) free of ([\d.]+ [KMGTPE]?i?B)/.exec(check?.told ?? "") ?? [];
  return free && total ? { free: sizeOf(free), total: sizeOf(total) } : null;
}

/** Bytes a second to and from an endpoint while something moved; 0: nothing did. @param {string} name @param {{source: string, destination: string, bytes: number, rate: number|null}[]} pairs */
export function meanRate(name, pairs) {
  let moved = 0, seconds = 0;
  for (const pair of pairs) {
    if (!pair.rate || (pair.source !== `@${name}` && pair.destination !== `@${name}`)) continue;
    moved += pair.bytes; seconds += pair.bytes / pair.rate;
  }
  return seconds > 0 ? moved / seconds : 0;
}

/** @typedef {{cause: string, why: string, hint: string|null, endpoint: string|null, since: string, next: string|null, tasks: Task[]}} Wait */

/** @param {string|null|undefined} location */
const endpointOf = (location) => /^@([A-Za-z0-9._-]+):/.exec(location ?? "")?.[1] ?? null;

/** Tasks that wait, by what they wait for: one line for all that wait for the same. The most come first.
 * @param {Task[]} tasks @param {string[]} [sick] endpoints with trouble @returns {Wait[]} */
export function waits(tasks, sick = []) {
  /** @type {Map<string, Wait>} */
  const groups = new Map();
  for (const task of tasks) {
    const { blocked } = task, cause = blocked?.cause ?? (task.state === "PAUSED" || task.pause_wanted ? "paused" : "queued");
    const why = blocked?.why ?? (cause === "paused" ? "somebody has paused it" : "its turn has not come");
    const [pair] = task.request.pairs ?? [], [source, destination] = [endpointOf(pair?.source), endpointOf(pair?.destination)];
    // A failure names its side; other reasons name the endpoint itself, or none.
    const side = /^(source|destination): /.exec(why)?.[1];
    const named = [...new Set([source, destination])].filter((name) => name !== null && why.split(/[^A-Za-z0-9._-]+/).includes(name)), [only = null] = named;
    // Of two that are named, the one with trouble is to blame; it may be neither.
    const endpoint = side === "source" ? source : side === "destination" ? destination : named.length < 2 ? only : named.find((name) => name !== null && sick.includes(name)) ?? null;
    // Numbers (of attempts, of those before it) differ from task to task.
    const key = `${cause}\u0000${why.replace(/\d+/g, "#")}\u0000${endpoint}`, group = groups.get(key);
    const next = blocked?.next_try ?? null;
    if (!group) groups.set(key, { cause, why, hint: blocked?.hint ?? null, endpoint, since: blocked?.since ?? task.submitted, next, tasks: [task] });
    else {
      group.tasks.push(task);
      if ((blocked?.since ?? task.submitted) < group.since) group.since = blocked?.since ?? task.submitted;
      if (next && (!group.next || next < group.next)) group.next = next;
    }
  }
  return [...groups.values()].sort((one, other) => other.tasks.length - one.tasks.length || (one.since < other.since ? -1 : 1));
}
