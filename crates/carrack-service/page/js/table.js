// The windowed table that all long lists share: rows exist only near the view. Focus stays on the grid itself and
// names the active row (aria-activedescendant), so that nothing is lost when rows come and go. The data source decides
// what the whole set is; the table never sorts or filters what happens to be loaded.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { entry, recall, remember } from "./entry.js";
import { onGap } from "./live.js";

const ROW = 34, HEAD = 35, OVERSCAN = 8, BASE = 128;
/** Browsers lose positions in elements that are taller: Firefox at 17.9 million pixels, others later. */
const HEIGHT_MAX = 16_000_000;
let grids = 0;

/**
 * @template T
 * @typedef {object} Source
 * @property {number} length rows that can be shown now
 * @property {boolean} complete whether `length` is all of them
 * @property {(index: number) => T|undefined} row undefined: not loaded yet
 * @property {(row: T) => string} key stays the same while the row moves
 * @property {(from: number, to: number) => void} need rows that are about to be seen
 * @property {unknown} [order] while it is the same, every row stands where it stood; undefined: rows may move
 */
/** @template T @typedef {{title: any, cls?: string, cell: (row: T) => any, sort?: string}} Column `sort`: what to sort by */
/**
 * The active row. `row` keeps what it is while it is far from the view; another `reveal` scrolls to it.
 * @typedef {{index: number, key: string|null, row?: any, reveal?: number}} Cursor
 */
/** @typedef {{top: number, cursor: Cursor}} Left where a list was left */
/** @type {Left} */
const NOWHERE = { top: 0, cursor: { index: 0, key: null } };

/**
 * Which rows are selected, and what changes that.
 * @typedef {object} Marks
 * @property {(row: any) => boolean} has
 * @property {(row: any) => void} toggle
 * @property {(from: number, to: number, fresh: boolean) => void} range beside what was selected when a `fresh` range began
 * @property {() => void} all
 * @property {() => boolean} clear false: there was nothing to clear
 */

/**
 * @param {{source: Source<any>, columns: Column<any>[], label: string, cls?: string, busy?: boolean, fitted?: boolean,
 *   open?: (row: any) => void, empty?: any, sort?: string, setSort?: (sort: string) => void, marks?: Marks,
 *   cursor?: Cursor, setCursor?: (cursor: Cursor) => void, keys?: (event: KeyboardEvent, row: any) => boolean, place?: string,
 *   drag?: (event: DragEvent, row: any) => void, over?: number|null}} props
 *   `sort` is a column's, with a minus before it for the greatest first; `over` is the row that something is dragged over;
 *   `place` names the list where Back leads to it again: it is as it was left, in this entry of the history
 */
export function Table({ source, columns, label, cls = "", busy = false, fitted = false, open, empty, sort, setSort, marks, cursor, setCursor, keys, drag, over, place: named }) {
  /** @type {{current: HTMLDivElement|null}} */
  const body = useRef(null);
  const id = useRef("");
  if (!id.current) { grids += 1; id.current = `grid-${grids}`; }
  /** Where this entry of the history was left, until the list stands there again. @type {{current: {at: string, name: string|undefined, left: Left}|null}} */
  const back = useRef(null);
  if (back.current === null || back.current.name !== named) {
    const at = named === undefined ? "" : entry();
    back.current = { at, name: named, left: named === undefined ? NOWHERE : recall(at, named) ?? NOWHERE };
  }
  const there = back.current;
  const [view, setView] = useState({ top: there.left.top, height: 600 });
  const [own, setOwn] = useState(/** @type {Cursor} */ (there.left.cursor));
  /** The column whose head is active; -1: a row is. */
  const [head, setHead] = useState(-1);
  /** The row at which a range of selected rows began, and whether it has been drawn further. */
  const anchor = useRef({ at: 0, key: /** @type {string|null} */ (null), order: /** @type {unknown} */ (undefined), drawn: false });
  const active = cursor ?? own, setActive = setCursor ?? setOwn;
  const count = source.length;
  const whole = count * ROW, tall = Math.min(whole, HEIGHT_MAX);
  const scale = tall > view.height ? (whole - view.height) / (tall - view.height) : 1;
  const at = Math.min(view.top * scale, Math.max(0, whole - view.height));
  const first = Math.max(0, Math.floor(at / ROW) - OVERSCAN);
  const last = Math.min(count, Math.ceil((at + view.height) / ROW) + OVERSCAN);
  // The active row is known by its key: new rows above it, or a filter, move it; when it is gone its place stays.
  let index = Math.min(active.index, Math.max(0, count - 1));
  if (active.key !== null && count > 0) {
    const here = source.row(index);
    if (!here || source.key(here) !== active.key) {
      for (let near = first; near < last; near += 1) {
        const row = source.row(near);
        if (row && source.key(row) === active.key) { index = near; break; }
      }
    }
  }
  const rowAt = (/** @type {number} */ place) => source.row(place) ?? (place === index && active.key !== null ? active.row : undefined);

  useLayoutEffect(() => {
    const element = body.current;
    if (!element) return undefined;
    const measure = () => setView((old) => ({ ...old, height: Math.max(ROW, element.clientHeight - HEAD) }));
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => { source.need(first, last); }, [first, last, source]);
  // Back to the same entry of the history: the list is scrolled as soon as it is as long as it was.
  useLayoutEffect(() => {
    const { top, cursor: was } = there.left, element = body.current;
    if (!element || there.left === NOWHERE || (tall - view.height < top && !source.complete)) return;
    there.left = NOWHERE;
    element.scrollTop = top;
    setActive(was);
  }, [tall, view.height, there, source.complete]);
  useEffect(() => { if (named && there.left === NOWHERE) remember(there.at, named, { top: view.top, cursor: { index, key: active.key } }); }, [there, view.top, index, active.key]);
  /** @param {number} y of the first visible row's top edge */
  const scroll = (y) => {
    const element = body.current;
    if (!element) return;
    element.scrollTop = y / scale;
    const { scrollTop: top } = element;
    setView((old) => ({ ...old, top }));
  };
  /** A range begins anew. @param {number} at @param {string|null} key */
  const begin = (at, key) => { anchor.current = { at, key, order: source.order, drawn: false }; };
  useLayoutEffect(() => {
    const y = active.index * ROW;
    if (active.reveal && (y < at || y + ROW > at + view.height)) scroll(Math.max(0, y - view.height / 3));
    begin(active.index, active.key);
  }, [active.reveal]);
  /** Where the row is at which a range began; null: it is gone, or far from what is loaded. */
  const begun = () => {
    const { at, key, order } = anchor.current, here = source.row(at);
    if (key === null || (here ? source.key(here) === key : order !== undefined && order === source.order)) return at;
    for (let step = 1; step < count; step += 1) {
      for (const near of [at - step, at + step]) {
        const row = near >= 0 && near < count ? source.row(near) : undefined;
        if (row && source.key(row) === key) return near;
      }
    }
    return null;
  };
  /** @param {number} to */
  const draw = (to) => {
    const from = begun(), row = source.row(to);
    // The row that was meant is not there to begin at: what stands in its place was chosen by nobody.
    if (from === null) begin(to, row ? source.key(row) : null);
    marks?.range(from ?? to, to, !anchor.current.drawn);
    anchor.current.drawn = true;
  };

  /** @param {number} to @param {boolean} [extend] */
  const move = (to, extend = false) => {
    const next = Math.max(0, Math.min(count - 1, to));
    const row = source.row(next);
    setHead(-1);
    setActive({ index: next, key: row ? source.key(row) : null, row });
    if (extend) draw(next); else begin(next, row ? source.key(row) : null);
    const y = next * ROW;
    if (y < at) scroll(y);
    else if (y + ROW > at + view.height) scroll(y + ROW - view.height);
  };
  /** @param {number} column */
  const sortBy = (column) => { const by = columns[column]?.sort; if (by) setSort?.(sort === by ? `-${by}` : by); };
  /** @param {number} from @param {number} step */
  const headFrom = (from, step) => { for (let near = from + step; columns[near]; near += step) if (columns[near].sort) return near; return from; };
  /** @param {KeyboardEvent} event @returns {boolean} whether the key was for the heads */
  const pressHead = (event) => {
    if (head < 0) {
      if (event.key !== "ArrowUp" || index > 0 || !setSort || event.shiftKey) return false;
      setHead(headFrom(-1, 1));
    } else if (event.key === "ArrowLeft") setHead(headFrom(head, -1));
    else if (event.key === "ArrowRight") setHead(headFrom(head, 1));
    else if (event.key === "Enter" || event.key === " ") sortBy(head);
    else if (event.key === "ArrowDown" || event.key === "Escape") setHead(-1);
    else return event.key === "ArrowUp";
    return true;
  };
  /** @param {KeyboardEvent} event @returns {boolean} whether the key was for the selection */
  const pressMark = (event) => {
    const row = rowAt(index);
    if (!marks) return false;
    if (event.key === "Escape") return marks.clear();
    if ((event.key !== " " && event.key !== "Insert") || count === 0) return false;
    if (row) marks.toggle(row);
    begin(index, row ? source.key(row) : null);
    if (event.key === "Insert") move(index + 1);
    return true;
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const target = /** @type {Element} */ (event.target);
    if (target !== event.currentTarget && target.getAttribute("tabindex") !== "-1") return;
    const row = rowAt(index), command = event.ctrlKey || event.metaKey;
    if (marks && command && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "a") { marks.all(); event.preventDefault(); return; }
    if (event.altKey || event.metaKey || (event.ctrlKey && !["Home", "End"].includes(event.key))) return;
    if (pressHead(event) || keys?.(event, row) || pressMark(event)) { event.preventDefault(); return; }
    const page = Math.max(1, Math.floor(view.height / ROW) - 1);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: count - 1 };
    if (event.key in moves) { move(moves[event.key], event.shiftKey && Boolean(marks)); event.preventDefault(); }
    if (event.key === "Enter" && open && row && target === event.currentTarget) { open(row); event.preventDefault(); }
  };
  /** The row that an event is about. @param {Event} event */
  const pointed = (event) => {
    const place = Number(/** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest("[data-row]"))?.dataset.row ?? -1);
    return { place, row: place < 0 ? undefined : rowAt(place) };
  };
  /** @param {Event} event */
  const isTick = (event) => Boolean(/** @type {Element} */ (event.target).closest(".tick"));
  /** @param {MouseEvent} event */
  const down = (event) => {
    const { place } = pointed(event), extend = event.shiftKey && Boolean(marks) && event.button === 0;
    if (place < 0) return;
    if (extend) event.preventDefault();
    body.current?.focus({ preventScroll: true });
    move(place, extend);
  };
  /** @param {MouseEvent} event */
  const click = (event) => {
    const { row } = pointed(event);
    if (!marks || !row || event.shiftKey) return;
    if (isTick(event) || event.ctrlKey || event.metaKey) marks.toggle(row);
    else if (/** @type {any} */ (event).pointerType === "touch") open?.(row);
    else marks.clear();
  };
  /** @param {MouseEvent} event */
  const twice = (event) => { const { row } = pointed(event); if (row && !isTick(event)) open?.(row); };
  /** @param {DragEvent} event */
  const lift = (event) => { const { row } = pointed(event); if (row) drag?.(event, row); };
  /** Rows as they were drawn: one that has not changed is not drawn again. @type {{current: Map<number, {state: unknown[], drawn: any}>}} */
  const drawn = useRef(new Map());
  /** @type {Map<number, {state: unknown[], drawn: any}>} */
  const now = new Map();
  /** @param {number} place @param {number} y @param {boolean} [parked] */
  const line = (place, y, parked) => {
    const row = rowAt(place), marked = Boolean(marks && row && marks.has(row)), isActive = place === index && head < 0;
    const chosen = marks ? marked : place === index;
    const state = [row, columns, y, isActive, marked, chosen, place === over, parked], before = drawn.current.get(place);
    const kept = before && state.every((value, at) => value === before.state[at]) ? before : { state, drawn: html`<div key=${place} id=${`${id.current}-${place}`} role="row" aria-rowindex=${place + 2} data-row=${place}
      class=${`grid-row ${place % 2 ? "odd" : ""} ${isActive ? "active" : ""} ${marked ? "marked" : ""} ${place === over ? "over" : ""} ${parked ? "parked" : ""}`}
      aria-selected=${chosen} style=${{ top: `${y}px` }} draggable=${drag && row ? true : undefined}>
      ${columns.map((column) => html`<div role="gridcell" class=${`cell ${column.cls ?? ""}`}>${row ? column.cell(row) : html`<i class="ghost"></i>`}</div>`)}
    </div>` };
    now.set(place, kept);
    return kept.drawn;
  };
  // Rows stand where they are in a shift, which alone moves while a long list is scrolled.
  const base = first - first % BASE, shift = base * ROW - at + view.top;
  const rows = [];
  for (let place = first; place < last; place += 1) rows.push(line(place, (place - base) * ROW));
  // The active row stays in the document when it is far from the view, so that assistive technology never loses it.
  if (count > 0 && index < first) rows.unshift(line(index, Math.max(0, view.top - 2 * ROW) - shift, true));
  if (count > 0 && index >= last) rows.push(line(index, Math.min(tall - ROW, view.top + view.height + ROW) - shift, true));
  drawn.current = now;
  const height = fitted ? { height: `${Math.max(180, (Math.min(count, 40) + 1) * ROW + 6)}px` } : undefined;
  const scrolled = (/** @type {Event} */ event) => {
    const top = /** @type {HTMLElement} */ (event.currentTarget).scrollTop;
    setView((old) => old.top === top ? old : { ...old, top });
  };
  const order = (/** @type {Column<any>} */ { sort: by }) => !setSort || !by ? undefined : sort === by ? "ascending" : sort === `-${by}` ? "descending" : "none";
  return html`<div class=${`grid sheet ${cls} ${fitted ? "fitted" : ""}`} style=${height} role="grid" tabindex="0" ref=${body}
    aria-label=${label} aria-busy=${busy} aria-rowcount=${source.complete ? count + 1 : -1} aria-colcount=${columns.length} aria-multiselectable=${marks ? true : undefined}
    aria-activedescendant=${head >= 0 ? `${id.current}-head-${head}` : count > 0 ? `${id.current}-${index}` : undefined}
    onKeyDown=${press} onScroll=${scrolled} onBlur=${() => setHead(-1)}>
    <div role="rowgroup" class="grid-top"><div class="grid-row grid-head" role="row" aria-rowindex="1">
      ${columns.map((column, place) => html`<div role="columnheader" id=${`${id.current}-head-${place}`} aria-sort=${order(column)}
        class=${`cell ${column.cls ?? ""} ${column.sort && setSort ? "sorts" : ""} ${place === head ? "active" : ""}`} onClick=${() => sortBy(place)}>${column.title}${
        order(column)?.endsWith("ing") && html`<span class="order" aria-hidden="true">${sort?.startsWith("-") ? "▼" : "▲"}</span>`}</div>`)}</div></div>
    ${count > 0 ? html`<div class="grid-body" role="rowgroup" style=${{ height: `${tall}px` }} onMouseDown=${down} onClick=${click} onDblClick=${twice} onDragStart=${lift}>
      <div class="grid-shift" role="presentation" style=${{ transform: `translateY(${shift}px)` }}>${rows}</div></div>`
      : !busy && html`<div role="rowgroup"><div role="row" aria-rowindex="2"><div role="gridcell" aria-colspan=${columns.length}>${empty}</div></div></div>`}
  </div>`;
}

/**
 * A source over a list that the server gives page by page. Filters are the server's: another query is another list.
 * @template T
 * @param {(cursor: string|null, signal: AbortSignal) => Promise<import("./types.js").Listed<T>>} fetchPage
 * @param {(row: T) => string} key @param {unknown[]} inputs
 */
export function usePages(fetchPage, key, inputs) {
  const [state, setState] = useState({ rows: /** @type {T[]} */ ([]), next: /** @type {string|null} */ (null), loading: true, problem: /** @type {Error|null} */ (null) });
  const work = useRef({ control: new AbortController(), busy: false, gap: false });
  const failed = useRef(/** @type {(() => void)|null} */ (null));
  /** @param {string|null} cursor @param {T[]} before */
  const load = async (cursor, before) => {
    const mine = work.current;
    if (mine.busy) return;
    let lost = false;
    [mine.busy, mine.gap] = [true, false];
    try {
      const page = await fetchPage(cursor, mine.control.signal);
      if (!mine.control.signal.aborted) {
        const known = new Set(before.map(key));
        const rows = before.concat(page.items.filter((row) => !known.has(key(row))));
        setState({ rows, next: page.next ?? null, loading: false, problem: null });
      }
    } catch (error) {
      lost = !mine.control.signal.aborted;
      if (lost) setState((old) => ({ ...old, loading: false, problem: /** @type {Error} */ (error) }));
    }
    mine.busy = false;
    // It was asked before the server was back.
    if (lost && mine.gap) void load(cursor, before);
  };
  useEffect(() => {
    work.current = { control: new AbortController(), busy: false, gap: false };
    const mine = work.current;
    setState({ rows: [], next: null, loading: true, problem: null });
    void load(null, []);
    // What could not be read while the server was away is read when it is back.
    const off = onGap(() => { mine.gap = mine.busy; failed.current?.(); });
    return () => { off(); mine.control.abort(); };
  }, inputs);
  const again = () => { setState((old) => ({ ...old, loading: old.rows.length === 0 })); void load(state.next, state.rows); };
  failed.current = state.problem ? again : null;
  /** @type {Source<T>} */
  const source = {
    length: state.rows.length, complete: !state.next && !state.loading, row: (index) => state.rows[index], key,
    need: (_, to) => { if (state.next && to + 200 > state.rows.length) void load(state.next, state.rows); },
  };
  return { source, ...state, setState, again };
}
