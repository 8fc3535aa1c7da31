// Files: two panes, each a folder of an endpoint; tasks go from one to the other.
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { Problem, address, call, hasToken, headers, problemOf, sessionNumber } from "../api.js";
import { useLive } from "../store.js";
import { Empty, Menu, Progress, Segments, State, Trouble, useAction } from "../parts.js";
import { bytes, duration, title } from "../format.js";
import { locationWord } from "../command.js";
import { Bar, Foot, Grid, Icon, filterOf, gridOf, other, usePane } from "../files/pane.js";
import { entry, recall, remember } from "../entry.js";
import { exact, linkTo, join, last as baseName, lastWay, location, parent, placeOf, same, spelled } from "../files/names.js";
import { pathsOf, targetsOf } from "../files/actions.js";
import { copyWords } from "../files/copy-words.js";
import { TaskSheet } from "../files/sheet.js";
import { Keys, NameDialog, Places, Properties } from "../files/dialogs.js";
import { Uploads, add as upload, dropped, obstacle } from "../files/upload.js";
import { read } from "../files/places.js";
import { share, tone } from "../share.js";

/** @typedef {import("../files/listing.js").Entry} Entry */
/** @typedef {import("../files/names.js").Place} Place */
/** @typedef {import("../files/pane.js").Pane} Pane */
/** @typedef {import("../files/actions.js").Targets} Targets */

/** Buttons that stand together, and those behind one button. */
const GROUPS = [["move", "rename", "delete", "properties"], ["folder", "upload", "download"]], IN_MENU = ["open", "locate", "keys"];
/** What a link takes, and what a page can keep of a file that it must read itself. */
const LINK_MOST = 6000, BLOB_MOST = 2 ** 30;
/** What is dragged within the page. @type {{side: string, entry: Entry|null}|null} */
let dragged = null;

/** @param {{known: import("../types.js").Whoami, list: {value: {items: any[]}|null, problem: any, loading: boolean, again: () => void}, query: URLSearchParams, go: (to: string) => void}} props */
export function Files({ known, list, query, go }) {
  const endpoints = list.value?.items ?? [], { sides } = read(known.user);
  // A browser that knows no folders of this user lands at those of their last copy.
  const asks = !sides.left && !sides.right && !query.has("left") && !query.has("right") && known.role !== "viewer";
  const tasks = useLive(async (signal) => asks ? lastWay((await call("GET", "/tasks", { query: { owner: known.user, limit: 20 }, signal })).items) : null, []);
  if (known.role === "viewer") return html`<h1>Files</h1><div class="sheet"><${Empty} title="A viewer sees figures, not files"><a href="#/overview">Overview of all tasks</a><//></div>`;
  if (list.loading) return html`<h1>Files</h1><div class="sheet loading"><p class="quiet">Loading…</p></div>`;
  if (list.problem && !list.value) return html`<h1>Files</h1><${Trouble} problem=${list.problem} again=${list.again} />`;
  if (endpoints.length === 0) {
    return html`<h1>Files</h1><div class="sheet"><${Empty} title="No endpoints yet">Files are shown of endpoints: nodes, directories of the service's host, hosts behind ssh. <a class="button main" href="#/endpoints?add">Add the first one</a><//></div>`;
  }
  if (asks && tasks.loading) return html`<h1>Files</h1><div class="sheet loading"><p class="quiet">Loading…</p></div>`;
  return html`<${Panes} known=${known} endpoints=${endpoints} query=${query} last=${tasks.value} go=${go} />`;
}

/** The place that an address names, else where the user was; null: somebody has to choose. @param {string|null} said @param {Place|null|undefined} before @param {any[]} endpoints @returns {Place|null} */
const placeFor = (said, before, endpoints) => (said ? placeOf(said, "") : null) ?? (before && endpoints.some(({ name }) => name === before.endpoint) ? before : null);

/** @param {{known: import("../types.js").Whoami, endpoints: any[], query: URLSearchParams, last: import("../files/names.js").Way|null, go: (to: string) => void}} props `last`: the folders of the user's last copy */
function Panes({ known, endpoints, query, last, go }) {
  const [said, setSaid] = useState({ text: "", quiet: true });
  const speech = useRef(/** @type {ReturnType<typeof setTimeout>|undefined} */ (undefined));
  // One thing after a while of quiet: a live region that tells each step is not listened to.
  const say = (/** @type {string} */ text, quiet = false) => {
    clearTimeout(speech.current);
    speech.current = setTimeout(() => { setSaid({ text, quiet }); speech.current = setTimeout(() => setSaid({ text: "", quiet: true }), 5000); }, quiet ? 400 : 50);
  };
  const [at, setAt] = useState(query.get("at") === "right" ? "right" : "left");
  /** @type {[any, (ask: any) => void]} what is asked in a dialog */
  const [ask, setAsk] = useState(/** @type {any} */ (null));
  const [tasks, setTasks] = useState(/** @type {{id: string, places: (Place|null)[]}[]} */ ([]));
  /** @type {{current: {left: Place|null, right: Place|null, at: string}|null}} the folders that were shown last, and in which entry of the history */
  const before = useRef(null);
  const wishes = { left: useRef(/** @type {string|null} */ (null)), right: useRef(/** @type {string|null} */ (null)) };
  const places = useMemo(() => {
    const name = query.get("name"), { sides } = read(known.user), at = entry(), stood = recall(at, "files") ?? {};
    const next = { left: placeFor(query.get("left"), sides.left ?? last?.left, endpoints), right: placeFor(query.get("right"), sides.right ?? last?.right, endpoints) };
    for (const side of /** @type {("left"|"right")[]} */ (["left", "right"])) {
      const from = before.current?.[side], to = next[side];
      // Where it stood in this entry of the history, else on the folder that one comes from.
      if (to && !same(from ?? null, to)) wishes[side].current ??= stood[side] ?? (from && from.endpoint === to.endpoint && parent(from.path) === to.path && from.path !== "/" ? baseName(from.path) : null);
    }
    if (name !== null) wishes[query.get("at") === "right" ? "right" : "left"].current = name;
    before.current = { ...next, at };
    return next;
  }, [query]);
  const left = usePane("left", places.left, known.user, say, wishes.left), right = usePane("right", places.right, known.user, say, wishes.right);
  /** @type {Record<string, Pane>} */
  const panes = { left, right };
  useEffect(() => { if (before.current) remember(before.current.at, "files", { left: left.cursor.key, right: right.cursor.key }); }, [left.cursor.key, right.cursor.key, query]);
  // The view begins in its list; so does a pane that was empty, and got a folder.
  useEffect(() => { gridOf(at)?.focus({ preventScroll: true }); }, [!left.place, !right.place]);
  // An address that names an entry of a folder that is shown already.
  useEffect(() => { for (const one of [left, right]) { const wish = wishes[one === left ? "left" : "right"]; if (wish.current !== null) one.again(wish.current); wish.current = null; } }, [query]);
  const pane = panes[at], across = panes[other(at)];
  const endpointOf = (/** @type {Place|null} */ place) => endpoints.find((one) => one.name === place?.endpoint);
  const may = known.role !== "viewer";
  const writes = (/** @type {Place|null} */ place) => !may ? "Viewers change nothing" : !place ? "No folder is shown" : endpointOf(place)?.read_only ? `@${place.endpoint} is read only` : "";

  /** @param {string} side @param {Place} place @param {string|null} [name] */
  const open = (side, place, name = null) => {
    setAt(side);
    if (same(place, panes[side].place)) { panes[side].again(name); return; }
    wishes[side === "left" ? "left" : "right"].current = name;
    go(linkTo(side === "left" ? place : places.left, side === "right" ? place : places.right, side).slice(1));
  };
  const up = (/** @type {Pane} */ { side, place }) => { if (place && place.path !== "/") open(side, { ...place, path: parent(place.path) }, baseName(place.path)); };
  const enter = (/** @type {Pane} */ from, /** @type {Entry} */ entry) => {
    if (entry.kind === "directory" && from.place) open(from.side, { ...from.place, path: join(from.place.path, entry.name) });
    else void act.go("properties", from, entry);
  };
  const [lost, setLost] = useState(/** @type {any} */ (null));
  const refresh = (/** @type {(Place|null)[]} */ changed) => { for (const one of [left, right]) if (changed.some((place) => place && same(place, one.place))) one.again(); };
  const save = async (/** @type {Targets} */ targets) => {
    const { place, entries, all } = targets, file = !all && entries.length === 1 && entries[0].kind === "file" ? entries[0] : null;
    const paths = await pathsOf({ ...targets, pane: targets.pane }), base = `/endpoints/${encodeURIComponent(place.endpoint)}/files/`;
    const asked = new URLSearchParams(paths.map((path) => ["path", path.replace(/(.)\/$/, "$1")]));
    const url = `${address(base + (file ? "content" : "archive"))}?${asked}`;
    if (url.length > LINK_MOST) throw Object.assign(new Error("So many names do not fit into one download."), { hints: ["Download the folder itself, or fewer items."] });
    // What is wrong is told here, not in a file that holds an error.
    await call("GET", `${base}properties`, { query: { path: paths[0].replace(/(.)\/$/, "$1") } });
    const name = file ? spelled(file.name) : `${spelled(!all && entries.length === 1 ? entries[0].name : baseName(place.path) || place.endpoint)}.tar`;
    setLost(null);
    void fetchFile(url, name, file ? file.size : 0).catch(setLost);
  };
  const act = useAction(async (/** @type {string} */ name, /** @type {Pane} */ from, /** @type {Entry|null} */ only = null, /** @type {Place|null} */ into = null) => {
    const targets = targetsOf(from, only), to = into ?? panes[other(from.side)].place;
    if (name === "folder") { if (from.place) setAsk({ name, pane: from }); return; }
    if (!targets) return;
    if (name === "download") await save(targets);
    else if (name === "locate") {
      const paths = await pathsOf(targets);
      await navigator.clipboard.writeText(paths.map((path) => locationWord(location({ ...targets.place, path }))).join("\n"));
      say(`Copied ${paths.length === 1 ? "the location" : `${paths.length} locations`}`);
    } else setAsk({ name, targets, to, paths: name === "properties" ? await pathsOf(targets) : null, entry: targets.entries[0] });
  });
  const files = useRef(/** @type {HTMLInputElement|null} */ (null));
  const hasTarget = Boolean(pane.current()) || pane.selection.all !== null || pane.selection.named.size > 0;
  // A service that has no uploads says nothing about them.
  const canUpload = endpoints.some((one) => one.uploads !== undefined);
  const uploadsOff = (/** @type {Place|null} */ place) => writes(place) || (canUpload ? "" : "This service takes no uploads") || obstacle() || (endpointOf(place)?.uploads ? "" : `Uploads are off at @${place?.endpoint}. Its owner turns them on: carrack endpoint edit ${place?.endpoint} --uploads`);
  const need = hasTarget ? "" : "Nothing is selected";
  const arrow = at === "left" ? "right" : "left";
  const renames = pane.selection.all || pane.selection.named.size > 1 ? "Rename takes one entry" : need;
  /** @type {{name: string, key?: string, word: string, icon?: string, off: string}[]} */
  const commands = [
    { name: "open", key: "Enter", word: "Open", off: pane.current() ? "" : "No row is active" }, { name: "copy", key: "c", word: "Copy", icon: arrow, off: need || writes(across.place) }, { name: "move", key: "m", word: "Move", icon: arrow, off: need || writes(pane.place) || writes(across.place) },
    { name: "folder", key: "n", word: "New folder", off: writes(pane.place) }, { name: "rename", key: "F2", word: "Rename", off: renames || writes(pane.place) },
    { name: "delete", key: "Delete", word: "Delete", off: need || writes(pane.place) }, { name: "properties", word: "Properties", off: need }, { name: "locate", word: "Copy location", off: need },
    { name: "download", word: "Download", off: need }, { name: "upload", word: "Upload", off: uploadsOff(pane.place) }, { name: "filter", key: "/", word: "Filter", off: "" }, { name: "keys", key: "?", word: "Keys", off: "" },
  ];
  const run = (/** @type {string} */ name) => {
    const command = commands.find((one) => one.name === name);
    if (!command) return;
    if (command.off) { say(command.off); return; }
    const entry = pane.current();
    if (name === "filter") filterOf(at)?.focus();
    else if (name === "open") { if (entry) enter(pane, entry); }
    else if (name === "keys") setAsk({ name });
    else if (name === "upload") files.current?.click();
    else void act.go(name, pane);
  };
  const keys = (/** @type {Pane} */ on) => (/** @type {KeyboardEvent} */ event) => {
    if (on.isTyping() && on.typeAhead(event)) return true;
    if (event.key === "Backspace") { up(on); return true; }
    if (event.key === "Enter") return false;
    const command = event.shiftKey && event.key.length === 1 && event.key !== "?" && event.key !== "/" ? undefined : commands.find(({ key }) => key === event.key);
    if (command) { run(command.name); return true; }
    return on.typeAhead(event);
  };
  const drag = (/** @type {Pane} */ from) => (/** @type {DragEvent} */ event, /** @type {Entry} */ entry) => {
    dragged = { side: from.side, entry: from.marks.has(entry) ? null : entry };
    if (!event.dataTransfer || !from.place) return;
    event.dataTransfer.effectAllowed = "copyMove";
    event.dataTransfer.setData("text/plain", locationWord(location(from.place, entry.name)));
  };
  const takes = (/** @type {Pane} */ on) => (/** @type {DragEvent} */ event, /** @type {Entry|null} */ into) => {
    if (event.dataTransfer?.types.includes("Files")) return true;
    return Boolean(dragged) && !writes(on.place) && (dragged?.side !== on.side || (into !== null && into.name !== dragged.entry?.name && !(dragged.entry === null && on.marks.has(into))));
  };
  const drop = (/** @type {Pane} */ on) => (/** @type {DragEvent} */ event, /** @type {Entry|null} */ into) => {
    if (!on.place || !event.dataTransfer) return;
    const place = into ? { ...on.place, path: join(on.place.path, into.name) } : on.place;
    gridOf(on.side)?.focus({ preventScroll: true });
    if (event.dataTransfer.types.includes("Files")) { void send.go(on, place, dropped(event.dataTransfer)); return; }
    const from = dragged && panes[dragged.side], entry = dragged?.entry ?? null;
    dragged = null;
    if (from) void act.go(event.shiftKey ? "move" : "copy", from, entry, place);
  };
  const send = useAction(async (/** @type {Pane} */ on, /** @type {Place} */ place, /** @type {ReturnType<typeof dropped>} */ coming) => {
    const off = uploadsOff(place);
    const { files: found, folders, more } = await coming;
    if (off) throw Object.assign(new Error(off), { hints: ["Copy with carrack copy, or by a task from an endpoint that has the files."] });
    for (const folder of folders) await call("POST", `/endpoints/${encodeURIComponent(place.endpoint)}/files/mkdir`, { body: { path: join(place.path, folder), parents: true } });
    upload(place, found, () => on.again());
    if (more) throw Object.assign(new Error(`Only the first ${found.length} files are taken.`), { hints: ["Copy a large folder with carrack copy."] });
  });
  const started = (/** @type {{task?: any, timer?: any}} */ made, /** @type {Place|null} */ to) => {
    const { targets } = ask;
    setAsk(null);
    targets.pane.clear();
    if (made.task) { setTasks((before) => [{ id: made.task.id, places: [targets.place, to] }, ...before].slice(0, 4)); say("Task started"); }
    if (made.timer) go("/timers");
  };
  // A dialog that closes late leaves the next one open.
  const close = () => setAsk((/** @type {any} */ now) => now === ask ? null : now);
  const button = (/** @type {typeof commands[0]} */ { name, key, word, icon, off }) => html`<button key=${name} disabled=${Boolean(off)} title=${off || (key ? `${word} (${key})` : word)} aria-keyshortcuts=${key} onClick=${() => run(name)}>${icon && html`<${Icon} of=${icon} />`}${word}${key && html`<kbd aria-hidden="true">${({ Delete: "Del", Enter: "↵" })[key] ?? key}</kbd>`}</button>`;
  const copying = /** @type {typeof commands[0]} */ (commands.find(({ name }) => name === "copy")), meant = targetsOf(pane);
  const primary = html`<button class="main copy-button" disabled=${Boolean(copying.off)} title=${copying.off || "Copy (c)"} aria-keyshortcuts="c" onClick=${() => run("copy")}>${at === "right" && html`<${Icon} of="left" />`}<span class="one-line">${copyWords(meant, pane.selection, across.place)}</span>${at === "left" && html`<${Icon} of="right" />`}</button>`;
  const bar = (/** @type {Pane} */ of) => html`<${Bar} pane=${of} user=${known.user} endpoints=${endpoints} focus=${() => setAt(of.side)} go=${(/** @type {Place} */ place) => open(of.side, place)} choose=${() => setAsk({ name: "places", side: of.side })}
    link=${(/** @type {Place} */ place) => linkTo(of.side === "left" ? place : places.left, of.side === "right" ? place : places.right, of.side)} />`;
  const grid = (/** @type {Pane} */ of) => html`<${Grid} pane=${of} user=${known.user} endpoints=${endpoints} go=${(/** @type {Place} */ place) => open(of.side, place)} at=${at === of.side} focus=${() => setAt(of.side)} up=${() => up(of)} open=${(/** @type {Entry} */ entry) => enter(of, entry)} keys=${keys(of)} drag=${drag(of)} takes=${takes(of)} drop=${drop(of)} />`;
  const send1 = (/** @type {Pane} */ from) => { const off = !targetsOf(from) ? `Nothing is selected in the ${from.side} pane` : writes(panes[other(from.side)].place); return html`<button class="arrow" disabled=${Boolean(off)} title=${off || `Copy to the ${other(from.side)} pane`} aria-label=${`Copy from the ${from.side} pane to the ${other(from.side)} pane`} onClick=${() => { setAt(from.side); void act.go("copy", from); }}><${Icon} of=${other(from.side)} /></button>`; };
  return html`<div class="files-head"><h1>Files</h1><div class="bar-of-buttons files-tools" role="group" aria-label="Actions on the active pane">${primary}${GROUPS.map((names) => html`<div class="joined" key=${names[0]}>${names.map((name) => commands.find((one) => one.name === name)).filter((one) => one && (canUpload || one.name !== "upload")).map((one) => one && button(one))}</div>`)}
        <${Menu} label="More">${IN_MENU.map((name) => commands.find((one) => one.name === name)).map((one) => one && button(one))}<//></div>
      <div class="side-switch"><${Segments} value=${at} set=${(/** @type {string} */ side) => { setAt(side); }} label="Pane" choices=${[["left", "Left"], ["right", "Right"]]} /></div></div>
    <input type="file" multiple hidden ref=${files} onChange=${(/** @type {Event} */ event) => { const input = /** @type {HTMLInputElement} */ (event.currentTarget); if (pane.place) void send.go(pane, pane.place, Promise.resolve({ files: [...(input.files ?? [])].map((file) => ({ file, name: exact(file.name) })), folders: [], more: false })); input.value = ""; }} />
    <${Trouble} problem=${act.problem ?? send.problem ?? lost} />
    <div class="files" data-at=${at} onDragEnd=${() => { dragged = null; }} onCopy=${(/** @type {ClipboardEvent} */ event) => { if (/** @type {Element} */ (event.target).closest("[role=grid]") && getSelection()?.isCollapsed !== false) { event.preventDefault(); run("locate"); } }}>
      ${bar(left)}${bar(right)}<div class="arrows">${send1(left)}${send1(right)}</div>${grid(left)}${grid(right)}<${Foot} pane=${left} /><${Foot} pane=${right} /></div>
    ${tasks.length > 0 && html`<section class="sheet running" aria-label="Tasks started here"><ul class="causes">${tasks.map(({ id, places: changed }) => html`<${Running} key=${id} id=${id} ended=${() => refresh(changed)} forget=${() => setTasks((before) => before.filter((one) => one.id !== id))} />`)}</ul></section>`}
    <${Uploads} /><p class=${said.quiet ? "hidden-text" : "said"} role="status">${said.text}</p>
    ${ask && (ask.name === "copy" || ask.name === "move" || ask.name === "delete") && html`<${TaskSheet} kind=${ask.name} targets=${ask.targets} to=${ask.name === "delete" ? null : ask.to} close=${close} done=${started} />`}
    ${ask?.name === "folder" && html`<${NameDialog} place=${ask.pane.place} close=${close} done=${(/** @type {string} */ name) => { close(); ask.pane.again(name); if (!same(left.place, right.place)) return; panes[other(ask.pane.side)].again(); }} />`}
    ${ask?.name === "rename" && html`<${NameDialog} place=${ask.targets.place} from=${ask.entry.name} close=${close} done=${(/** @type {string} */ name) => { close(); ask.targets.pane.clear(); ask.targets.pane.again(name); if (same(left.place, right.place)) panes[other(ask.targets.pane.side)].again(); }} />`}
    ${ask?.name === "properties" && html`<${Properties} targets=${ask.targets} paths=${ask.paths} close=${close} save=${() => { close(); void act.go("download", ask.targets.pane, ask.targets.count === 1 && !ask.targets.all ? ask.entry : null); }} />`}
    ${ask?.name === "places" && html`<${Places} user=${known.user} close=${close} go=${(/** @type {Place} */ place) => { close(); open(ask.side, place); }} />`}
    ${ask?.name === "keys" && html`<${Keys} commands=${commands} uploads=${canUpload} close=${close} />`}`;
}

/** What a file of a download holds, as far as a page can keep it. @param {Response} answer */
async function blobOf(answer) {
  const parts = [], reader = answer.body?.getReader();
  let held = 0;
  for (;;) {
    const { done, value } = await reader?.read().catch(() => { throw new Problem(0, "unreachable", "The download broke off.", ["Download it again."]); }) ?? { done: true };
    if (done || !value) return new Blob(parts);
    held += value.length;
    if (held > BLOB_MOST) { void reader?.cancel(); throw tooMuch(`More than ${bytes(BLOB_MOST)}`); }
    parts.push(value);
  }
}
/** @param {string} how */
const tooMuch = (how) => new Problem(0, "too-many", `${how} are too much for a login by token.`, ["Log in with a password or a link; then the browser saves the file by itself."]);

/** Gives a file to the browser. A token is known to this page alone, so it reads the file itself.
 * @param {string} url @param {string} name @param {number} size 0: nobody knows */
async function fetchFile(url, name, size) {
  const link = document.createElement("a");
  link.download = name;
  if (!hasToken()) { link.href = url; link.click(); return; }
  if (size > BLOB_MOST) throw tooMuch(bytes(size));
  const number = sessionNumber(), answer = await fetch(url, { headers: headers({ accept: "*/*" }) }).catch(() => { throw new Problem(0, "unreachable", "The server does not answer.", ["Download it again."]); });
  if (!answer.ok) throw await problemOf(answer, url, number);
  link.href = URL.createObjectURL(await blobOf(answer));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A task that was started here. @param {{id: string, ended: () => void, forget: () => void}} props */
function Running({ id, ended, forget }) {
  const task = useLive((signal) => call("GET", `/tasks/${id}`, { signal }), [id], (event, now) => event.task !== id ? false : event.kind === "progress" && event.detail.progress && now ? { ...now, progress: event.detail.progress } : true);
  const { value } = task, over = Boolean(value?.ended);
  useEffect(() => { if (over) ended(); }, [over]);
  if (!value) return html`<li>${task.problem ? html`<${Trouble} problem=${task.problem} again=${task.again} />` : html`<span class="quiet">Loading…</span>`}</li>`;
  const { progress } = value, done = share(value);
  return html`<li><div class="running-line"><${State} state=${value.state} /><a class="one-line" href=${`#/tasks/${id}`}><bdi>${title(value)}</bdi></a>
    <span class="quiet small">${over ? bytes((progress.bytes_moved ?? 0) + (progress.bytes_skipped ?? 0)) : value.blocked ? value.blocked.why : progress.eta_seconds != null ? `${duration(progress.eta_seconds)} left` : ""}</span>
    <button class="plain icon-button" aria-label=${`Take ${title(value)} off this list`} onClick=${forget}><${Icon} of="close" /></button></div>
    ${!over && html`<${Progress} share=${done} tone=${tone(value.state)} label=${`Progress of ${title(value)}`} />`}${value.failure && html`<p class="bad small">${value.failure.why}</p>`}</li>`;
}
