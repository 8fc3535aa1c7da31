// What views read: one document or list, read again when something happened to it.
import { useEffect, useRef, useState } from "./ui.js";
import { onEvent, onGap } from "./live.js";

/** Changes that come within this time cause one more reading, in milliseconds. */
const CALM = 400;

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
 * Reads by `load`, and again after events for which `matters` is true, or when events may have been missed.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
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
        const value = await load(control.signal);
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
