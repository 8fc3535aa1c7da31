// One of the two panes: what it shows, what is selected in it, and where its focus is.
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { onGap } from "../live.js";
import { Table } from "../table.js";
import { Empty, Time, Trouble } from "../parts.js";
import { bytes, count, plural } from "../format.js";
import { Listing } from "./listing.js";
import { NONE, add, has, sum, toggle, unseen } from "./selection.js";
import { Spelled, location, parent, same, spelled, typed, wire } from "./names.js";
import { bounded, placeTyped } from "./typed.js";
import { keep, mark, read, visit } from "./places.js";

/** @typedef {import("./listing.js").Entry} Entry */
/** @typedef {import("./listing.js").Query} Query */
/** @typedef {import("./names.js").Place} Place */
/** @typedef {import("./selection.js").Selection} Selection */
/** @typedef {ReturnType<typeof usePane>} Pane */
/** Letters that follow each other within this time are one name, in milliseconds. */
const TYPING = 900;
/** Rows that Shift selects at once. */
const RANGE_MOST = 10_000;
/** @type {Record<string, string>} */
export const SIDES = { left: "Left", right: "Right" };
/** @param {string} side */
export const other = (side) => side === "left" ? "right" : "left";

/** @type {Record<string, string>} */
const ICONS = {
  directory: "M1.500 4.500v8h13v-7h-7l-1.500-2h-4.500z", file: "M3.500 1.500h6l3 3v10h-9zM9.500 1.500v3h3", symlink: "M3.500 8.500c0-3 2-4 8-4M8.500 1.500l3 3-3 3",
  special: "M8 2l6 6-6 6-6-6z", up: "M8 13V3M3.500 7.500 8 3l4.500 4.500", again: "M13 8a5 5 0 1 1-1.500-3.500M13 2v3h-3", star: "M8 2l1.800 3.900 4.200.5-3.100 2.900.8 4.200L8 11.400l-3.700 2.100.8-4.200L2 6.400l4.200-.5z",
  edit: "M3 13l.5-3 7-7 2.500 2.500-7 7z", right: "M2.500 8h11M9 3.500 13.500 8 9 12.500", left: "M13.500 8h-11M7 3.500 2.500 8 7 12.500", list: "M2.500 4h11M2.500 8h11M2.500 12h11", close: "M4 4l8 8M12 4l-8 8",
};
/** @param {{of: string, cls?: string}} props */
export const Icon = ({ of, cls = "" }) => html`<svg class=${`icon ${cls}`} viewBox="0 0 16 16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.300" stroke-linejoin="round" stroke-linecap="round"><path d=${ICONS[of]} /></svg>`;

/**
 * @param {string} side @param {Place|null} place @param {string} user @param {(text: string, quiet?: boolean) => void} say
 * @param {{current: string|null}} wish the entry that its cursor stands on when the place is shown
 */
export function usePane(side, place, user, say, wish) {
  const [, redraw] = useState(0);
  const [query, setQuery] = useState(() => { const kept = read(user); return /** @type {Query} */ ({ sort: kept.sort[side] ?? "name", filter: "", hidden: kept.hidden }); });
  const [selection, setSelection] = useState(NONE);
  const [cursor, setCursor] = useState(/** @type {import("../table.js").Cursor} */ ({ index: 0, key: null }));
  const revealed = useRef(0);
  const base = useRef({ from: NONE, turn: 0 });
  const typing = useRef({ text: "", at: -TYPING });
  const listing = useMemo(() => place && new Listing(place, query, () => redraw((turn) => turn + 1)), [place?.endpoint, place?.path]);

  const latest = useRef(cursor);
  latest.current = cursor;
  /** Asks the service, then stands where the active entry is by then: it may have been left meanwhile.
   * @param {Query} query @param {string|null} key @param {boolean} [anew] @returns {Promise<boolean>} false: another query came */
  const search = async (query, key, anew) => {
    if (!listing) return false;
    const before = latest.current, index = await listing.search(query, key, anew);
    if (index === undefined) return false;
    const { current: now } = latest;
    if (now === before || now.key === null) { if (now === before) stand(index, key); return true; }
    const found = await listing.find(now.key).catch(() => null);
    if (found && latest.current === now) stand(found.index, now.key);
    return true;
  };
  /** @param {number|null} index @param {string|null} key */
  const stand = (index, key) => {
    if (!listing) return;
    revealed.current += 1;
    const reveal = revealed.current;
    setCursor((before) => index === null ? { index: Math.min(before.index, Math.max(0, listing.total - 1)), key: null, reveal }
      : { index, key, row: listing.rows.get(index), reveal });
  };
  useEffect(() => {
    setSelection(NONE);
    latest.current = { index: 0, key: null };
    setCursor(latest.current);
    if (!listing || !place) return undefined;
    const now = { ...query, filter: "" }, wanted = wish.current;
    wish.current = null;
    setQuery(now);
    keep(user, visit(place));
    keep(user, ({ sides }) => ({ sides: { ...sides, [side]: place } }));
    void search(now, wanted);
    return () => listing.stop();
  }, [listing]);
  const state = listing?.state;
  useEffect(() => {
    if (state !== "complete" || !listing) return;
    if (listing.total > 0) say(`${SIDES[side]} pane: ${plural(listing.total, "entry", "entries")}`, true);
    // Names that were read later may stand before the active one.
    const { key } = cursor;
    if (key !== null && listing.rows.get(cursor.index)?.name !== key) void listing.find(key).then((found) => found && setCursor({ index: found.index, key, row: found.entry }), () => {});
  }, [state, listing]);

  const ask = (/** @type {Partial<Query>} */ change) => {
    if (!listing) return;
    const next = { ...query, ...change };
    setQuery(next);
    if (change.sort) keep(user, ({ sort }) => ({ sort: { ...sort, [side]: next.sort } }));
    if (change.hidden !== undefined) keep(user, () => ({ hidden: next.hidden }));
    void search(next, cursor.key).then((came) => { if (came && change.filter !== undefined) say(`${count(listing.total)} of ${plural(listing.count, "entry", "entries")} shown`, true); });
  };
  /** Reads the directory anew. @param {string|null} [name] the entry to stand on */
  const again = (name = cursor.key) => void search(query, name, true);
  // A folder that could not be read while the service was away is read when it is back.
  const retry = useRef(() => {});
  retry.current = () => { if (listing?.problem?.code === "unreachable") again(); };
  useEffect(() => onGap(() => retry.current()), []);
  const whole = () => Boolean(listing && listing.total === listing.count);
  /** A selection of all follows a directory that is still read. @type {Selection} */
  const chosen = selection.all && listing && selection.all.query === query
    ? { ...selection, all: { query, total: listing.total, bytes: listing.bytes, whole: whole() } } : selection;
  const change = (/** @type {(before: Selection) => Selection} */ by) => { base.current.turn += 1; setSelection(by); };
  /** @type {import("../table.js").Marks} */
  const marks = {
    has: (row) => has(chosen, row), toggle: (row) => change((before) => toggle(before, row)),
    all: () => {
      if (!listing) return;
      change(() => ({ named: new Map(), all: { query, total: listing.total, bytes: listing.bytes, whole: whole() } }));
      say(`All ${plural(listing.total, "entry", "entries")} selected`);
    },
    clear: () => { if (!selection.all && selection.named.size === 0) return false; change(() => NONE); say("Nothing selected", true); return true; },
    range: (from, to, fresh) => {
      if (!listing) return;
      if (fresh) base.current.from = selection;
      const before = base.current.from, turn = base.current.turn += 1;
      if (Math.abs(to - from) >= RANGE_MOST) { say(`Shift selects at most ${count(RANGE_MOST)} rows. Ctrl+A selects all of them.`); return; }
      void listing.range(Math.min(from, to), Math.max(from, to)).then((rows) => { if (turn === base.current.turn) setSelection(add(before, rows)); }, () => {});
    },
  };
  /** The active entry. Where rows have come anew, another entry may stand at its index until it has been found. */
  const current = () => {
    const there = listing?.rows.get(Math.min(cursor.index, Math.max(0, listing.total - 1)));
    return cursor.key === null || there?.name === cursor.key ? there : /** @type {Entry|undefined} */ (cursor.row);
  };
  /** Finds the name that is being typed. @param {KeyboardEvent} event @returns {boolean} whether the key was part of it */
  const typeAhead = (event) => {
    const now = performance.now(), going = now - typing.current.at < TYPING;
    // Space selects, and any key that moves ends the name.
    if (event.key.length !== 1 || event.key === " ") { typing.current.at = -TYPING; return false; }
    const text = (going ? typing.current.text : "") + event.key;
    typing.current = { text, at: now };
    listing?.find(wire(text)).then((found) => { if (found && typing.current.text === text) { revealed.current += 1; setCursor({ index: found.index, key: found.entry.name, row: found.entry, reveal: revealed.current }); } }, () => {});
    return true;
  };
  const isTyping = () => performance.now() - typing.current.at < TYPING;
  return { side, place, query, listing, selection: chosen, cursor, setCursor, marks, ask, again, current, typeAhead, isTyping, clear: () => change(() => NONE) };
}

/** @type {import("../table.js").Column<Entry>[]} */
const COLUMNS = [
  { title: html`<span class="hidden-text">Selected</span>`, cls: "tick", cell: () => html`<i class="box"></i>` },
  { title: "Name", sort: "name", cls: "name-cell", cell: (entry) => html`<${Icon} of=${entry.kind} cls=${entry.kind} /><span class="one-line" title=${spelled(entry.name)}><${Spelled} of=${entry.name} />${
    entry.link_target != null && html`<span class="quiet"> → <${Spelled} of=${entry.link_target} /></span>`}</span>${entry.error && html`<span class="chip warn" title=${entry.error}>unreadable</span>`}` },
  { title: "Kind", sort: "kind", cls: "kind-cell quiet", cell: (entry) => KINDS[entry.kind] ?? entry.kind },
  { title: "Size", sort: "size", cls: "num", cell: (entry) => entry.kind === "file" ? bytes(entry.size) : "" },
  { title: "Modified", sort: "modified", cls: "num time-cell quiet", cell: (entry) => entry.modified ? html`<${Time} at=${entry.modified} form="file" />` : "" },
];
/** @type {Record<string, string>} */
export const KINDS = { directory: "Folder", file: "File", symlink: "Link", special: "Special" };

/**
 * @param {{pane: Pane, focus: () => void, up: () => void, open: (entry: Entry) => void, keys: (event: KeyboardEvent) => boolean, at: boolean, user: string, endpoints: any[], go: (place: Place) => void,
 *   drop: (event: DragEvent, into: Entry|null) => void, drag: (event: DragEvent, entry: Entry) => void, takes: (event: DragEvent, into: Entry|null) => boolean}} props
 */
export function Grid({ pane, focus, up, open, keys, at, user, endpoints, go, drop, drag, takes }) {
  const { side, place, listing, query, cursor, setCursor, marks } = pane;
  const [over, setOver] = useState(/** @type {{row: number|null}|null} */ (null));
  if (!listing || !place) return html`<div class=${`pane-grid ${side} sheet`} onFocusIn=${focus}><${Choose} side=${side} user=${user} endpoints=${endpoints} go=${go} /></div>`;
  const pointed = (/** @type {DragEvent} */ event) => {
    const row = Number(/** @type {HTMLElement|null} */ (/** @type {Element} */ (event.target).closest("[data-row]"))?.dataset.row ?? -1);
    const entry = row >= 0 ? listing.rows.get(row) : undefined;
    return entry?.kind === "directory" ? { row, entry } : { row: null, entry: null };
  };
  const hover = (/** @type {DragEvent} */ event) => {
    const { row, entry } = pointed(event);
    const taken = takes(event, entry);
    if (taken) event.preventDefault();
    setOver((before) => !taken ? null : before?.row === row && before ? before : { row });
  };
  const { problem } = listing;
  const empty = problem ? html`<div class="pad stack"><${Trouble} problem=${problem} again=${() => pane.again()} />${place.path !== "/" && html`<p><button onClick=${up}>Go to the folder above</button></p>`}</div>`
    : query.filter ? html`<${Empty} title="Nothing matches the filter"><button onClick=${() => pane.ask({ filter: "" })}>Show all ${count(listing.count)}</button><//>`
    : listing.count > 0 ? html`<${Empty} title="Only hidden entries here"><button onClick=${() => pane.ask({ hidden: true })}>Show ${count(listing.count)} hidden</button><//>`
    : html`<${Empty} title="This folder is empty">Copy something here from the other pane.<//>`;
  return html`<div class=${`pane-grid ${side} ${at ? "at" : ""} ${over && over.row === null ? "over" : ""}`} onFocusIn=${focus} onDragOver=${hover} onDragLeave=${() => setOver(null)}
    onDrop=${(/** @type {DragEvent} */ event) => { setOver(null); const { entry } = pointed(event); if (takes(event, entry)) { event.preventDefault(); drop(event, entry); } }}>
    <${Table} source=${listing.source} columns=${COLUMNS} label=${`${SIDES[side]} pane: ${spelled(location(place))}`} cls="files-grid" busy=${listing.busy && listing.total === 0} open=${open}
      sort=${query.sort} setSort=${(/** @type {string} */ sort) => pane.ask({ sort })} marks=${marks} cursor=${cursor} setCursor=${setCursor} keys=${keys} drag=${drag} over=${over?.row} empty=${html`<div onClick=${() => gridOf(side)?.focus({ preventScroll: true })}>${empty}</div>`} /></div>`;
}

/** Places that a pane without one offers, of each kind. */
const OFFERED = 8;
/** @type {Record<string, [string, string]>} */
const CHOICES = { left: ["Choose where your data is", "An endpoint is a place that this service reaches."], right: ["Choose where your data should go", "Any endpoint may be either end of a copy."] };

/** What a pane that shows no folder yet offers. @param {{side: string, user: string, endpoints: any[], go: (place: Place) => void}} props */
function Choose({ side, user, endpoints, go }) {
  const { marks, recent } = read(user), [text, setText] = useState(""), [title, more] = CHOICES[side];
  const isThere = (/** @type {Place} */ place) => endpoints.some(({ name }) => name === place.endpoint);
  const known = [...marks, ...recent.filter((one) => !marks.some((other) => same(one, other)))].filter(isThere).slice(0, OFFERED);
  const fits = endpoints.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(text.toLowerCase()));
  return html`<div class="choose"><h2>${title}</h2><p class="quiet">${more}</p>
    ${known.length > 0 && html`<h3>Where you were</h3><ul>${known.map((place) => html`<li><button class="plain one-line mono" onClick=${() => go(place)}>${spelled(location(place))}</button></li>`)}</ul><h3>Endpoints</h3>`}
    ${endpoints.length > OFFERED && html`<input type="search" aria-label=${`Find an endpoint for the ${side} pane`} placeholder="Find an endpoint…" spellcheck=${false} value=${text} onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLInputElement} */ (event.currentTarget).value)} />`}
    <ul>${fits.map(({ name, description, health }) => html`<li key=${name}><button class="plain" onClick=${() => go({ endpoint: name, path: "/" })}><strong>@${name}</strong>${health?.state === "down" && html`<span class="chip bad">Down</span>`}<span class="quiet one-line">${description}</span></button></li>`)}</ul>
    ${fits.length === 0 && html`<p class="quiet">No endpoint fits.</p>`}
    <p class="quiet">Is yours not among them? <a href="#/endpoints?add">Add an endpoint</a></p></div>`;
}

/** @param {{pane: Pane, user: string, endpoints: any[], go: (place: Place) => void, link: (place: Place) => string, choose: () => void, focus: () => void}} props */
export function Bar({ pane, user, endpoints, go, link, choose, focus }) {
  const { side, place, query, listing } = pane;
  const [edits, setEdits] = useState(false);
  const [, redraw] = useState(0);
  const [wanted, setWanted] = useState(query.filter);
  useEffect(() => setWanted(query.filter), [query.filter]);
  useEffect(() => {
    if (wanted === query.filter) return undefined;
    const timer = setTimeout(() => pane.ask({ filter: wanted }), 150);
    return () => clearTimeout(timer);
  }, [wanted]);
  const steps = place ? place.path.split("/").filter(Boolean) : [];
  const shownSteps = steps.map((step, at) => ({ step, path: `/${steps.slice(0, at + 1).join("/")}` })).slice(-3);
  const marked = place !== null && read(user).marks.some((one) => same(one, place));
  const word = SIDES[side].toLowerCase();
  return html`<div class=${`pane-bar ${side}`} role="group" aria-label=${`${SIDES[side]} pane`} onFocusIn=${focus}>
    <div class="bar-line"><select aria-label=${`Endpoint of the ${word} pane`} value=${place?.endpoint ?? ""} onChange=${(/** @type {Event} */ event) => { const { value } = /** @type {HTMLSelectElement} */ (event.currentTarget); if (value) go({ endpoint: value, path: "/" }); }}>
        ${!endpoints.some((one) => one.name === place?.endpoint) && html`<option value=${place?.endpoint ?? ""}>${place ? `@${place.endpoint}` : "Choose…"}</option>`}
        ${endpoints.map((one) => html`<option value=${one.name}>@${one.name}${one.read_only ? " (read only)" : ""}</option>`)}</select>
      ${edits ? html`<input class="path-box mono" aria-label=${`Path of the ${word} pane`} autofocus spellcheck=${false} autocapitalize="none" defaultValue=${place ? bounded(typed(place.path)) : "/"} ref=${focusOnce} onBlur=${() => setEdits(false)}
          onKeyDown=${(/** @type {KeyboardEvent} */ event) => { const to = placeTyped(/** @type {HTMLInputElement} */ (event.currentTarget).value, place?.endpoint ?? ""); if (event.key !== "Escape" && (event.key !== "Enter" || !to)) return; setEdits(false); gridOf(side)?.focus(); if (event.key === "Enter" && to) go(to); event.preventDefault(); }} />`
        : html`<nav class="crumbs" aria-label=${`Path of the ${word} pane`}>${place && html`<a href=${link({ ...place, path: "/" })} aria-current=${steps.length ? undefined : "location"} aria-label="Root folder">/</a>
          ${steps.length > 3 && html`<button class="plain small-button" onClick=${() => setEdits(true)} aria-label="Whole path">…</button><span aria-hidden="true">/</span>`}
          ${shownSteps.map(({ step, path }, at) => html`<a class="one-line" href=${link({ ...place, path })} aria-current=${path === place.path ? "location" : undefined}><${Spelled} of=${step} /></a>${at < shownSteps.length - 1 && html`<span aria-hidden="true">/</span>`}`)}`}</nav>`}
      <button class="plain icon-button" title="Type a path" aria-label=${`Type a path for the ${word} pane`} onClick=${() => setEdits(!edits)}><${Icon} of="edit" /></button></div>
    <div class="bar-line"><button class="icon-button" title="Up (Backspace)" aria-label="Folder above" aria-keyshortcuts="Backspace" disabled=${!place || place.path === "/"} onClick=${() => place && go({ ...place, path: parent(place.path) })}><${Icon} of="up" /></button>
      <button class="icon-button" title="Read again" aria-label="Read the folder again" disabled=${!place} onClick=${() => pane.again()}><${Icon} of="again" /></button>
      <button class=${`icon-button ${marked ? "on" : ""}`} title="Bookmark" aria-label="Bookmark this folder" aria-pressed=${marked} disabled=${!place} onClick=${() => { if (place) keep(user, mark(place)); redraw((turn) => turn + 1); }}><${Icon} of="star" /></button>
      <button onClick=${choose} title="Bookmarks and recent folders">Bookmarks</button>
      <button aria-pressed=${query.hidden} class=${query.hidden ? "on" : ""} disabled=${!place} onClick=${() => pane.ask({ hidden: !query.hidden })}>Show hidden</button>
      <input type="search" class="filter" aria-label=${`Filter of the ${word} pane`} aria-keyshortcuts="/" placeholder="Filter: text, or *.dat  ( / )" spellcheck=${false} autocapitalize="none" value=${wanted} disabled=${!listing}
        onInput=${(/** @type {Event} */ event) => setWanted(/** @type {HTMLInputElement} */ (event.currentTarget).value)}
        onKeyDown=${(/** @type {KeyboardEvent} */ event) => { if (event.key === "Escape") { setWanted(""); gridOf(side)?.focus(); event.preventDefault(); } if (event.key === "Enter" || event.key === "ArrowDown") { gridOf(side)?.focus(); event.preventDefault(); } }} /></div></div>`;
}
/** @param {HTMLInputElement|null} input */
const focusOnce = (input) => { if (input && document.activeElement !== input && !input.dataset.seen) { input.dataset.seen = "1"; input.focus(); input.select(); } };
/** @param {string} side @returns {HTMLElement|null} */
export const gridOf = (side) => document.querySelector(`.pane-grid.${side} [role=grid]`);
/** @param {string} side @returns {HTMLElement|null} */
export const filterOf = (side) => document.querySelector(`.pane-bar.${side} .filter`);

/** @param {{pane: Pane}} props */
export function Foot({ pane }) {
  const { side, listing, selection, query, marks } = pane;
  const chosen = sum(selection), away = unseen(selection, query);
  const shown = !listing ? "" : listing.problem && listing.total === 0 ? "" : listing.state === "opening" ? "Reading…"
    : `${listing.state === "reading" ? "Reading: " : ""}${query.filter ? `${count(listing.total)} of ` : ""}${plural(query.filter ? listing.count : listing.total, "entry", "entries")}${
      listing.state === "reading" ? " so far" : listing.bytes ? `, ${bytes(listing.bytes)} in files` : ""}${!query.filter && !query.hidden && listing.count > listing.total ? `, ${count(listing.count - listing.total)} hidden` : ""}`;
  return html`<div class=${`pane-foot ${side} small`}>${chosen.count > 0
    ? html`<strong>${plural(chosen.count, "selected", "selected")}${chosen.bytes ? `, ${bytes(chosen.bytes)} in files` : ""}${away ? `, ${count(away)} not shown` : ""}</strong>
      <button class="plain small-button" onClick=${() => { marks.clear(); gridOf(side)?.focus(); }}>Clear</button>`
    : html`<span class="quiet">${shown}</span>`}
    <span class="push"></span>${chosen.count > 0 && html`<span class="quiet wide">${shown}</span>`}<button class="plain small-button" title="Ctrl+A" disabled=${!listing || listing.total === 0} onClick=${() => { marks.all(); gridOf(side)?.focus(); }}>Select all</button></div>`;
}
