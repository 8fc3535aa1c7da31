// What views read: one document or list, read again when something happened to it.
import { useEffect, useRef, useState } from "./ui.js";
import { onEvent, onGap } from "./live.js";

/** Changes that come within this time cause one more reading, in milliseconds. */
const CALM = 400;

/** Figures of a task that moves are read anew no more often than this, in milliseconds. */
const FIGURES_CALM = 3000;

/** Tells of events whether these figures of a task's progress have changed since it last said so. @param {string} id @param {(keyof import("./types.js").Progress)[]} names */
export function changesOf(id, names) {
  let before = "", at = -FIGURES_CALM;
  return (/** @type {import("./types.js").CarrackEvent} */ event) => {
    if (event.task !== id || event.kind !== "progress" || !event.detail.progress) return false;
    const figures = names.map((name) => event.detail.progress[name] ?? 0).join(), now = performance.now();
    if (figures === before || now - at < FIGURES_CALM) return false;
    before = figures;
    at = now;
    return true;
  };
}

/** Does something again and again while the page is looked at. @param {number} pause in milliseconds; 0: never @param {() => void} act */
export function useEvery(pause, act) {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (!pause) return undefined;
    const timer = setInterval(() => { if (!document.hidden) latest.current(); }, pause);
    return () => clearInterval(timer);
  }, [pause]);
}

/**
 * Reads by `load`, which may show what it has so far, and again after events for which `matters` is true, or when events may have been missed.
 * @template T
 * @param {(signal: AbortSignal, show: (value: T) => void) => Promise<T>} load
 * @param {unknown[]} inputs
 * @param {(event: import("./types.js").CarrackEvent, now: T|null) => boolean|T} [matters] a new value stands for a reading
 * @returns {{value: T|null, problem: Error|null, loading: boolean, again: () => void, put: (value: T) => void}}
 */
export function useLive(load, inputs, matters = () => false) {
  const [state, setState] = useState({ value: /** @type {T|null} */ (null), problem: /** @type {Error|null} */ (null), loading: true });
  const now = useRef(state);
  now.current = state;
  const again = useRef(() => {});
  const put = useRef((/** @type {T} */ value) => { setState({ value, problem: null, loading: false }); });
  useEffect(() => {
    const control = new AbortController();
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let timer;
    let busy = false, more = false;
    const read = async () => {
      if (busy) { more = true; return; }
      busy = true;
      try {
        const value = await load(control.signal, (value) => { if (!control.signal.aborted) setState({ value, problem: null, loading: true }); });
        if (!control.signal.aborted) setState({ value, problem: null, loading: false });
      } catch (error) {
        if (!control.signal.aborted) setState((old) => ({ ...old, problem: /** @type {Error} */ (error), loading: false }));
      }
      busy = false;
      if (more && !control.signal.aborted) { more = false; soon(); }
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(read, CALM); };
    again.current = read;
    setState({ value: null, problem: null, loading: true });
    void read();
    const off = [
      onGap(soon),
      onEvent((event) => {
        const answer = matters(event, now.current.value);
        if (answer === true) soon();
        else if (answer !== false) setState({ value: answer, problem: null, loading: false });
      }),
    ];
    return () => { control.abort(); clearTimeout(timer); for (const end of off) end(); };
  }, inputs);
  return { ...state, again: () => again.current(), put: (value) => put.current(value) };
}
