// The small dialogs of the files view: names, properties, places, keys.
import { html, useState } from "../ui.js";
import { call, stream } from "../api.js";
import { locationWord } from "../command.js";
import { useLive } from "../store.js";
import { Copy, Dialog, Time, Trouble, useAction } from "../parts.js";
import { bytes, plural } from "../format.js";
import { Spelled, join, location, spelled, typed, wire } from "./names.js";
import { KINDS } from "./pane.js";
import { Measure } from "./sheet.js";
import { keep, mark, read } from "./places.js";

/** @typedef {import("./names.js").Place} Place */
/** @typedef {import("./actions.js").Targets} Targets */

/** @param {string} endpoint @param {string} what */
const files = (endpoint, what) => `/endpoints/${encodeURIComponent(endpoint)}/files/${what}`;

/**
 * Asks for a name: of a new folder, or another one for an entry.
 * @param {{place: Place, from?: string, close: () => void, done: (name: string) => void}} props
 */
export function NameDialog({ place, from, close, done }) {
  const title = from === undefined ? "New folder" : "Rename";
  const [there, setThere] = useState("");
  const act = useAction(async (/** @type {string} */ name, /** @type {boolean} */ replace) => {
    if (!name || name === "." || name === ".." || name.includes("/")) throw Object.assign(new Error("A name is not empty, is not . or .., and has no slash."), { hints: [] });
    try {
      await (from === undefined ? call("POST", files(place.endpoint, "mkdir"), { body: { path: join(place.path, name) } })
        : call("POST", files(place.endpoint, "rename"), { body: { from: join(place.path, from), to: join(place.path, name), ...(replace && { replace }) } }));
    } catch (error) {
      setThere(from !== undefined && /** @type {any} */ (error).code === "exists" ? name : "");
      throw error;
    }
    return name;
  }, done);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const name = wire(String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("name")));
    void act.go(name, there === name);
  };
  return html`<${Dialog} title=${title} close=${close}><form onSubmit=${submit} onInput=${() => setThere("")}><h2>${title}</h2>
    <label class="field"><span>${from === undefined ? "Name" : "New name"}</span><input name="name" class="mono" required autofocus autocomplete="off" autocapitalize="none" spellcheck=${false} defaultValue=${from === undefined ? "" : typed(from)} ref=${selectStem} /></label>
    ${from?.includes("%") && html`<p class="help">%XX stands for a byte that is no text.</p>`}
    <p class="help mono">${spelled(location(place))}</p><${Trouble} problem=${act.problem} />
    <div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button>
      <button class=${there ? "danger" : "main"} disabled=${act.busy}>${there ? "Replace it" : from === undefined ? "Make folder" : "Rename"}</button></div></form><//>`;
}
/** Selects a name without its ending. @param {HTMLInputElement|null} input */
const selectStem = (input) => { if (input && !input.dataset.seen) { input.dataset.seen = "1"; const dot = input.value.lastIndexOf("."); input.setSelectionRange(0, dot > 0 ? dot : input.value.length); } };

/** @param {number|null|undefined} mode */
const rights = (mode) => mode == null ? "–" : `${[6, 3, 0].map((shift) => ["r", "w", "x"].map((letter, at) => mode >> shift & 4 >> at ? letter : "-").join("")).join("")} (${(mode & 0o7777).toString(8).padStart(4, "0")})`;

/** @param {{targets: Targets, paths: string[], close: () => void, save: (() => void)|null}} props */
export function Properties({ targets, paths, close, save }) {
  const { place, entries, all } = targets, [path] = paths, one = !all && entries.length === 1;
  const found = useLive((signal) => one ? call("GET", files(place.endpoint, "properties"), { query: { path }, signal }) : Promise.resolve(null), [path]);
  const entry = found.value ?? (one ? entries[0] : null);
  const [digest, setDigest] = useState(/** @type {any} */ (null));
  const hash = useAction(async () => {
    setDigest(null);
    await stream("POST", files(place.endpoint, "sum"), { body: { path } }, (line) => { if (line.done) setDigest(line); });
  });
  const where = one ? location(place, entries[0].name) : location(place);
  return html`<${Dialog} title="Properties" close=${close}><div class="inside"><h2>${one ? html`<${Spelled} of=${entries[0].name} />` : targets.text}</h2>
    <${Trouble} problem=${found.problem} again=${found.again} />
    <dl class="facts"><dt>Location</dt><dd class="mono">${spelled(where)}</dd>
      ${entry && html`<dt>Kind</dt><dd>${KINDS[entry.kind]}</dd>
        ${entry.link_target != null && html`<dt>Points to</dt><dd class="mono"><${Spelled} of=${entry.link_target} /></dd>`}
        ${entry.kind === "file" && html`<dt>Size</dt><dd>${bytes(entry.size)} <span class="quiet">(${plural(entry.size, "byte")})</span></dd>`}
        <dt>Modified</dt><dd><${Time} at=${entry.modified} /></dd><dt>Rights</dt><dd class="mono">${rights(entry.mode)}</dd>`}
      ${(!entry || entry.kind === "directory") && html`<dt>Holds</dt><dd><${Measure} place=${place} paths=${paths} /></dd>`}
      ${entry?.kind === "file" && html`<dt>Digest</dt><dd>${digest?.digest ? html`<code>blake3 ${digest.digest}</code>` : html`<button disabled=${hash.busy} onClick=${() => hash.go()}>${hash.busy ? "Reading the file…" : "Compute BLAKE3"}</button>`}
        <${Trouble} problem=${hash.problem ?? digest?.failure} /></dd>`}</dl>
    <div class="bar-of-buttons end">${digest?.digest && html`<${Copy} text=${digest.digest} label="Copy digest" />`}<${Copy} text=${locationWord(where)} label="Copy location" />
      ${save && html`<button onClick=${save}>Download</button>`}<button class="main" onClick=${close}>Close</button></div></div><//>`;
}

/** @param {{user: string, go: (place: Place) => void, close: () => void}} props */
export function Places({ user, go, close }) {
  const [kept, setKept] = useState(() => read(user));
  const list = (/** @type {Place[]} */ places, /** @type {boolean} */ marks) => html`<ul class="places">${places.map((place) => html`<li><button class="plain one-line mono" onClick=${() => go(place)}>${spelled(location(place))}</button>
    ${marks && html`<button class="plain small-button" aria-label=${`Remove the bookmark of ${spelled(location(place))}`} onClick=${() => setKept(keep(user, mark(place)))}>Remove</button>`}</li>`)}</ul>`;
  return html`<${Dialog} title="Bookmarks and recent folders" close=${close}><div class="inside"><h2>Bookmarks</h2>
    ${kept.marks.length ? list(kept.marks, true) : html`<p class="quiet">None yet. The star above a pane bookmarks its folder.</p>`}
    <h2>Recent</h2>${kept.recent.length ? list(kept.recent, false) : html`<p class="quiet">None yet.</p>`}
    <div class="bar-of-buttons end"><button class="main" onClick=${close}>Close</button></div></div><//>`;
}

/** @type {[string, string][]} */
const MOVES = [["Tab, Shift+Tab", "Next pane, pane before"], ["↑ ↓ PgUp PgDn Home End", "Move; from the first row ↑ reaches the headings, Enter there sorts"], ["Backspace", "Folder above"],
  ["Space, Insert", "Select or not; Insert also moves on"], ["Shift with a move", "Select all rows on the way"], ["Ctrl+A", "Select the whole directory, loaded or not"], ["Esc", "Select nothing"],
  ["Letters", "Jump to a name; begin with a capital for c, m and n"], ["Ctrl+C", "Copy the locations of what is selected"]];
/** @param {{commands: {name: string, key?: string, word: string}[], uploads: boolean, close: () => void}} props */
export const Keys = ({ commands, uploads, close }) => html`<${Dialog} title="Keys" close=${close}><div class="inside"><h2>Keys</h2>
  <p class="quiet">They work in a pane's list. Each one is also a button, a row or a heading.</p>
  <dl class="facts keys">${MOVES.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}
    ${commands.filter(({ key }) => key).map(({ key, word }) => html`<dt><kbd>${key}</kbd></dt><dd>${word}</dd>`)}</dl>
  <h2>Mouse</h2><p>Click moves the focus, double click opens. Ctrl+click and the box select, Shift+click selects a range. Drag to the other pane or onto a folder copies; with Shift it moves.${uploads && " Files dropped from outside are uploaded."}</p>
  <div class="bar-of-buttons end"><button class="main" onClick=${close}>Close</button></div></div><//>`;
