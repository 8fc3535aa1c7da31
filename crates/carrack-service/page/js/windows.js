// A long list of which the server gives rows by their place: it sorts, filters and counts, the page holds what is near.
import { useEffect, useRef, useState } from "./ui.js";

/** Rows that are asked for at once, how many such pieces are kept, and rows beside the view that should be there too. */
const PIECE = 200, KEPT = 40, MARGIN = 60;
/** A list that is still being counted is asked for again after this time, in milliseconds. */
const COUNTING = 250;

/** @template T @typedef {{items: T[], offset: number, total: number, complete: boolean}} Windowed */

/**
 * The new rows; one that tells what it told before stays the same object, and is not drawn again. @template T
 * @param {T[]|undefined} before @param {T[]} now
 */
function kept(before, now) {
  if (!before) return now;
  const held = new Map(before.map((row) => [JSON.stringify(row), row]));
  return now.map((row) => held.get(JSON.stringify(row)) ?? row);
}

/**
 * @template T
 * @param {(offset: number, limit: number, signal: AbortSignal) => Promise<Windowed<T>>} fetchRows
 * @param {(row: T) => string} key @param {unknown[]} inputs other inputs are another list
 */
export function useWindows(fetchRows, key, inputs) {
  const first = { pieces: /** @type {Map<number, T[]>} */ (new Map()), total: 0, complete: false, loading: true, problem: /** @type {Error|null} */ (null) };
  const [state, setState] = useState(first);
  const work = useRef({ control: new AbortController(), asked: /** @type {Map<number, boolean>} */ (new Map()), seen: [0, 0], timer: /** @type {any} */ (0) });
  /** `stale`: what an answer on its way tells may be old by now. @param {number} piece @param {boolean} [stale] */
  const load = async (piece, stale = false) => {
    const mine = work.current;
    if (mine.asked.has(piece)) { if (stale) mine.asked.set(piece, true); return; }
    mine.asked.set(piece, false);
    try {
      const found = await fetchRows(piece * PIECE, PIECE, mine.control.signal);
      if (mine.control.signal.aborted) return;
      setState((old) => {
        const pieces = new Map(old.pieces);
        pieces.delete(piece);
        pieces.set(piece, kept(old.pieces.get(piece), found.items));
        // What is far from the view goes first.
        const middle = (mine.seen[0] + mine.seen[1]) / 2 / PIECE;
        for (const far of [...pieces.keys()].sort((one, other) => Math.abs(other - middle) - Math.abs(one - middle)).slice(0, Math.max(0, pieces.size - KEPT))) pieces.delete(far);
        return { pieces, total: found.total, complete: found.complete, loading: false, problem: null };
      });
      if (!found.complete) { clearTimeout(mine.timer); mine.timer = setTimeout(() => void load(piece), COUNTING); }
    } catch (error) {
      if (!mine.control.signal.aborted) setState((old) => ({ ...old, loading: false, problem: /** @type {Error} */ (error) }));
    }
    const more = mine.asked.get(piece);
    mine.asked.delete(piece);
    if (more && !mine.control.signal.aborted) void load(piece);
  };
  const near = (margin = 0) => {
    const [from, to] = work.current.seen, first = Math.floor(Math.max(0, from - margin) / PIECE), last = Math.floor((to + margin) / PIECE);
    return Array.from({ length: last - first + 1 }, (_, step) => first + step);
  };
  useEffect(() => {
    const mine = { control: new AbortController(), asked: new Map(), seen: [0, 0], timer: 0 };
    work.current = mine;
    setState(first);
    void load(0);
    return () => { mine.control.abort(); clearTimeout(mine.timer); };
  }, inputs);
  /** @type {import("./table.js").Source<T>} */
  const source = {
    length: state.total, complete: state.complete && !state.loading, key,
    row: (index) => state.pieces.get(Math.floor(index / PIECE))?.[index % PIECE],
    need: (from, to) => {
      work.current.seen = [from, Math.max(from, to - 1)];
      for (const piece of near(MARGIN)) if (!state.pieces.has(piece) && piece * PIECE < state.total) void load(piece);
    },
  };
  /** Reads again what is near the view. */
  const again = () => { for (const piece of near()) void load(piece, true); };
  /** Another state of a row that is held. @param {string} id @param {(row: T) => T} change */
  const change = (id, change) => setState((old) => {
    for (const [piece, rows] of old.pieces) {
      const at = rows.findIndex((row) => key(row) === id);
      if (at >= 0) return { ...old, pieces: new Map(old.pieces).set(piece, rows.with(at, change(rows[at]))) };
    }
    return old;
  });
  return { source, total: state.total, loading: state.loading, problem: state.problem, again, change };
}
