// Parts that several views share.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { when, shown } from "./format.js";

const PATHS = {
  good: "M2.500 6.500 5 9l4.500-5.500", bad: "M3 3l6 6M9 3 3 9", warn: "M6 2v5M6 9.300v.4", live: "M4 2.500 9 6l-5 3.500z",
  wait: "M6 1.500a4.500 4.500 0 1 0 .01 0M6 3.700V6l1.700 1", pause: "M4 3v6M8 3v6",
};
/** @param {{of: keyof typeof PATHS}} props */
export const Mark = ({ of }) => html`<svg viewBox="0 0 12 12" aria-hidden="true" fill="none" stroke="currentColor"
  stroke-width="1.600" stroke-linecap="round" stroke-linejoin="round"><path d=${PATHS[of]} /></svg>`;

/** @type {Record<string, [string, keyof typeof PATHS, string]>} */
const STATES = {
  QUEUED: ["", "wait", "Queued"], STAGING: ["", "wait", "Staging"], ACTIVE: ["live", "live", "Active"],
  PAUSED: ["warn", "pause", "Paused"], CANCELLING: ["warn", "wait", "Cancelling"], SUCCEEDED: ["good", "good", "Succeeded"],
  PARTIAL: ["warn", "warn", "Partial"], FAILED: ["bad", "bad", "Failed"], CANCELLED: ["", "bad", "Cancelled"],
  done: ["good", "good", "Done"], skipped: ["", "wait", "Skipped"], failed: ["bad", "bad", "Failed"], deleted: ["warn", "bad", "Deleted"],
  planned: ["", "wait", "Planned"], "to-delete": ["warn", "wait", "To delete"],
  different: ["warn", "warn", "Different"], "only-source": ["warn", "warn", "Only at the source"], "only-destination": ["warn", "warn", "Only at the destination"],
  waiting: ["live", "wait", "Waiting"], paused: ["warn", "pause", "Paused"], ended: ["", "good", "Ended"],
};
/** A state by colour, mark and word. @param {{state: string}} props */
export function State({ state }) {
  const [tone, mark, word] = STATES[state] ?? ["", "wait", state];
  return html`<span class=${`chip ${tone}`}><${Mark} of=${mark} />${word}</span>`;
}

/** @param {{share: number|null, tone?: string, label: string}} props share from 0 to 100; null: not known */
export function Progress({ share, tone = "", label }) {
  const known = share !== null;
  return html`<div class=${`progress ${tone} ${known ? "" : "unknown"}`} role="progressbar" aria-label=${label}
    aria-valuemin="0" aria-valuemax="100" aria-valuenow=${known ? share : undefined}>
    <i style=${{ width: known ? `${share}%` : "100%" }}></i></div>`;
}

/** A time in the reader's zone; UTC on hover. @param {{at: string|null|undefined, form?: ""|"exact"|"file"}} props `form`: of `when` */
export const Time = ({ at, form }) => at
  ? html`<time datetime=${at} title=${new Date(at).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC")}>${when(at, form)}</time>`
  : html`<span class="quiet">–</span>`;

/** A name that came from outside. @param {{children?: any}} props */
export const Name = ({ children }) => html`<bdi class="name">${shown(String(children))}</bdi>`;

/** A message as a sentence: codes are for programs. @param {string} message */
const sentence = (message) => `${message.charAt(0).toUpperCase()}${message.slice(1)}`.replace(/ \([a-z]+(-[a-z]+)+\)$/, "");

/** What went wrong, and what to try. What is refused, or is not there, is no fault. @param {{problem: any, again?: () => void}} props */
export function Trouble({ problem, again }) {
  if (!problem) return null;
  const hints = problem.hints ?? [];
  return html`<div class=${`notice ${problem.status === 403 || problem.status === 404 ? "warn" : "bad"}`} role="alert"><p><strong>${sentence(problem.message)}</strong></p>
    ${hints.length > 0 && html`<ul>${hints.map((/** @type {string} */ hint) => html`<li>${hint}</li>`)}</ul>`}
    ${again && html`<p><button onClick=${again}>Try again</button></p>`}</div>`;
}

/** @param {{title: string, children?: any}} props */
export const Empty = ({ title, children }) => html`<div class="empty"><strong>${title}</strong><div>${children}</div></div>`;

/** @param {{text: string, label?: string}} props */
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button onClick=${copy}>${done ? "Copied" : label}</button>`;
}

/** A command line that does the same. @param {{line: string}} props */
export const Command = ({ line }) => html`<div class="command"><code>${line}</code><${Copy} text=${line} /></div>`;

/** Acts behind one button. A choice or Escape leads back to it. @param {{label: string, children?: any}} props */
export function Menu({ label, children }) {
  const [open, setOpen] = useState(false);
  /** @type {{current: HTMLDivElement|null}} */
  const box = useRef(null);
  const back = () => { box.current?.querySelector("button")?.focus(); setOpen(false); };
  useEffect(() => {
    if (!open) return undefined;
    const outside = (/** @type {Event} */ event) => { if (!box.current?.contains(/** @type {Node} */ (event.target))) setOpen(false); };
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [open]);
  return html`<div class="menu" ref=${box} onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (open && event.key === "Escape") { event.stopPropagation(); back(); } }}
    onFocusOut=${(/** @type {FocusEvent} */ event) => { if (event.relatedTarget && !box.current?.contains(/** @type {Node} */ (event.relatedTarget))) setOpen(false); }}>
    <button aria-expanded=${open} onClick=${() => setOpen(!open)}>${label}<span aria-hidden="true">▾</span></button>
    ${open && html`<div class="menu-list sheet" onClick=${(/** @type {Event} */ event) => { if (/** @type {Element} */ (event.target).closest("button, a")) back(); }}>${children}</div>`}</div>`;
}

/** @param {{title: string, close: () => void, children?: any}} props */
export function Dialog({ title, close, children }) {
  /** @type {{current: HTMLDialogElement|null}} */
  const box = useRef(null);
  const gone = useRef(false);
  // In the same step as the view, so that no key falls between a dialog and what lies under it.
  useLayoutEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => {
      // The browser leads back to whoever opened it. From a dialog that closed before, the reader may have gone elsewhere since, and stays there.
      gone.current = true;
      dialog?.close();
    };
  }, []);
  return html`<dialog ref=${box} aria-label=${title} onClose=${() => { if (!gone.current) close(); }}
    onClick=${(/** @type {MouseEvent} */ event) => { if (event.target === box.current) box.current?.close(); }}>
    ${children}</dialog>`;
}

/**
 * A question before something that cannot be taken back.
 * @param {{title: string, text: any, act: string, keep?: string, run: () => Promise<unknown>, close: () => void}} props `keep`: the button that does nothing
 */
export function Confirm({ title, text, act, keep = "Keep", run, close }) {
  const { busy, problem, go } = useAction(run, close);
  return html`<${Dialog} title=${title} close=${close}><div class="inside"><h2>${title}</h2><div>${text}</div>
    <${Trouble} problem=${problem} />
    <div class="bar-of-buttons end"><button onClick=${close}>${keep}</button>
      <button class="danger" disabled=${busy} onClick=${go}>${act}</button></div></div><//>`;
}

/**
 * Something that a button does, once at a time. @template T
 * @param {(...input: any[]) => Promise<T>} run @param {(value: T) => void} [then]
 */
export function useAction(run, then = () => {}) {
  const [state, setState] = useState({ busy: false, problem: /** @type {Error|null} */ (null) });
  const busy = useRef(false);
  const go = async (/** @type {any[]} */ ...input) => {
    if (busy.current) return;
    busy.current = true;
    setState({ busy: true, problem: null });
    try {
      const value = await run(...input);
      setState({ busy: false, problem: null });
      then(value);
    } catch (error) {
      setState({ busy: false, problem: /** @type {Error} */ (error) });
    } finally {
      busy.current = false;
    }
  };
  return { ...state, go };
}

/** Text that filters a list, which follows as soon as the writer rests. @param {{value: string, set: (value: string) => void, label: string}} props */
export function Search({ value, set, label }) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const timer = useRef(/** @type {ReturnType<typeof setTimeout>|undefined} */ (undefined));
  useEffect(() => { if (value !== sent.current) { sent.current = value; setText(value); } }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const send = (/** @type {string} */ typed) => { clearTimeout(timer.current); if (typed !== sent.current) { sent.current = typed; set(typed); } };
  const type = (/** @type {Event} */ event) => {
    const typed = /** @type {HTMLInputElement} */ (event.currentTarget).value;
    setText(typed);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => send(typed), 250);
  };
  return html`<input type="search" aria-label=${label} placeholder=${`${label}…`} value=${text} spellcheck=${false}
    onInput=${type} onChange=${(/** @type {Event} */ event) => send(/** @type {HTMLInputElement} */ (event.currentTarget).value)} />`;
}

/** @param {{value: string, set: (value: string) => void, label: string, choices: [string, string][]}} props */
export const Segments = ({ value, set, label, choices }) => html`<div class="segments" role="group" aria-label=${label}>
  ${choices.map(([name, text]) => html`<button aria-pressed=${value === name} onClick=${() => set(name)}>${text}</button>`)}</div>`;
