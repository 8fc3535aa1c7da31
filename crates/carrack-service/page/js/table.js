// The windowed table that all long lists share: rows exist only near the view. Focus stays on the grid itself and
// names the active row (aria-activedescendant), so that nothing is lost when rows come and go. The data source decides
// what the whole set is; the table never sorts or filters what happens to be loaded.
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

const ROW = 34, HEAD = 35, OVERSCAN = 8;
/** Browsers lose positions in elements that are taller. */
const HEIGHT_MAX = 8_000_000;
let grids = 0;

/**
 * @template T
 * @typedef {object} Source
 * @property {number} length rows that can be shown now
 * @property {boolean} complete whether `length` is all of them
 * @property {(index: number) => T|undefined} row undefined: not loaded yet
 * @property {(row: T) => string} key stays the same while the row moves
 * @property {(from: number, to: number) => void} need rows that are about to be seen
 */
/** @template T @typedef {{title: string, cls?: string, cell: (row: T) => any}} Column */

/**
 * @param {{source: Source<any>, columns: Column<any>[], label: string, cls?: string, busy?: boolean, fitted?: boolean,
 *   open?: (row: any) => void, empty?: any}} props
 */
export function Table({ source, columns, label, cls = "", busy = false, fitted = false, open, empty }) {
  /** @type {{current: HTMLDivElement|null}} */
  const body = useRef(null);
  const id = useRef("");
  if (!id.current) { grids += 1; id.current = `grid-${grids}`; }
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState({ index: 0, key: /** @type {string|null} */ (null) });
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

  /** @param {number} to */
  const move = (to) => {
    const next = Math.max(0, Math.min(count - 1, to));
    const row = source.row(next);
    setActive({ index: next, key: row ? source.key(row) : null });
    const element = body.current;
    if (!element) return;
    const y = next * ROW;
    if (y < at) element.scrollTop = y / scale;
    else if (y + ROW > at + view.height) element.scrollTop = (y + ROW - view.height) / scale;
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.altKey || event.metaKey || (event.ctrlKey && !["Home", "End"].includes(event.key))) return;
    const page = Math.max(1, Math.floor(view.height / ROW) - 1);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + page, PageUp: index - page, Home: 0, End: count - 1 };
    if (event.key in moves) { move(moves[event.key]); event.preventDefault(); }
    if (event.key === "Enter" && open && event.target === event.currentTarget) {
      const row = source.row(index);
      if (row) { open(row); event.preventDefault(); }
    }
  };
  const rows = [];
  for (let place = first; place < last; place += 1) {
    const row = source.row(place);
    rows.push(html`<div key=${place} id=${`${id.current}-${place}`} role="row" aria-rowindex=${place + 2}
      class=${`grid-row ${place === index ? "active" : ""}`} aria-selected=${place === index}
      style=${{ transform: `translateY(${place * ROW - at + view.top}px)` }}
      onMouseDown=${() => move(place)} onDblClick=${() => row && open?.(row)}>
      ${columns.map((column) => html`<div role="gridcell" class=${`cell ${column.cls ?? ""}`}>${row ? column.cell(row) : ""}</div>`)}
    </div>`);
  }
  const seen = index >= first && index < last && count > 0;
  const height = fitted ? { height: `${Math.max(180, (Math.min(count, 40) + 1) * ROW + 6)}px` } : undefined;
  const scrolled = (/** @type {Event} */ event) => {
    const top = /** @type {HTMLElement} */ (event.currentTarget).scrollTop;
    setView((old) => ({ ...old, top }));
  };
  return html`<div class=${`grid sheet ${cls} ${fitted ? "fitted" : ""}`} style=${height} role="grid" tabindex="0" ref=${body}
    aria-label=${label} aria-busy=${busy} aria-rowcount=${source.complete ? count + 1 : -1} aria-colcount=${columns.length}
    aria-activedescendant=${seen ? `${id.current}-${index}` : undefined} onKeyDown=${press} onScroll=${scrolled}>
    <div role="rowgroup" class="grid-top"><div class="grid-row grid-head" role="row" aria-rowindex="1">
      ${columns.map((column) => html`<div role="columnheader" class=${`cell ${column.cls ?? ""}`}>${column.title}</div>`)}</div></div>
    ${count > 0 ? html`<div class="grid-body" role="rowgroup" style=${{ height: `${tall}px` }}>${rows}</div>`
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
  const work = useRef({ control: new AbortController(), busy: false });
  /** @param {string|null} cursor @param {T[]} before */
  const load = async (cursor, before) => {
    const mine = work.current;
    if (mine.busy) return;
    mine.busy = true;
    try {
      const page = await fetchPage(cursor, mine.control.signal);
      if (!mine.control.signal.aborted) {
        const known = new Set(before.map(key));
        const rows = before.concat(page.items.filter((row) => !known.has(key(row))));
        setState({ rows, next: page.next ?? null, loading: false, problem: null });
      }
    } catch (error) {
      if (!mine.control.signal.aborted) setState((old) => ({ ...old, loading: false, problem: /** @type {Error} */ (error) }));
    }
    mine.busy = false;
  };
  useEffect(() => {
    work.current = { control: new AbortController(), busy: false };
    const mine = work.current;
    setState({ rows: [], next: null, loading: true, problem: null });
    void load(null, []);
    return () => mine.control.abort();
  }, inputs);
  /** @type {Source<T>} */
  const source = {
    length: state.rows.length, complete: !state.next && !state.loading, row: (index) => state.rows[index], key,
    need: (_, to) => { if (state.next && to + 200 > state.rows.length) void load(state.next, state.rows); },
  };
  return { source, ...state, setState };
}
