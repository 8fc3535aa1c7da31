// Uploads: files dropped on a pane go up in blocks. The service says which blocks it has not; so the same file dropped
// again goes on where it stood. They go on while another view is shown.
import { html, useEffect, useState } from "../ui.js";
import { Problem, address, call, headers, onEnd, problemOf, proved, sessionNumber } from "../api.js";
import { Progress, Trouble } from "../parts.js";
import { count, plural } from "../format.js";
import { paced, uploadWords } from "./pace.js";
import { exact, join, location, spelled } from "./names.js";

/** @typedef {import("./names.js").Place} Place */
/**
 * @typedef {object} Upload
 * @property {number} number @property {File} file @property {Place} place the directory @property {string} name below it
 * @property {"waiting"|"hashing"|"sending"|"publishing"|"done"|"failed"|"stopped"} state @property {number} [away] blocks that wait for the service to be back
 * @property {[number, number][]} [pace] when so many bytes had been sent, of the last seconds
 * @property {number} done bytes hashed or sent @property {number} kept bytes that were there before @property {any} problem
 * @property {AbortController} control @property {string|null} id @property {() => void} ended
 */
const BLOCK = 4 << 20;
/** Files at once, blocks of each at once, and attempts at one block. */
const FILES = 2, LANES = 3, ATTEMPTS = 4;
/** Files of one drop. */
const DROP_MOST = 5000;

/** @type {Upload[]} */
let uploads = [];
let number = 0;
/** @type {Set<() => void>} */
const watchers = new Set();
const told = () => { for (const watcher of watchers) watcher(); };
/** @param {Upload} upload @param {Partial<Upload>} change */
const put = (upload, change) => { Object.assign(upload, change); told(); };
const isOpen = (/** @type {Upload} */ { state }) => !["done", "failed", "stopped"].includes(state);

/** Why this browser cannot upload; null: it can. */
export const obstacle = () => globalThis.crypto?.subtle ? null : "Browsers hash only on pages that come over HTTPS. Open this page by its https address.";

// They are of whom this page has shown, and go on for nobody else.
onEnd(() => { for (const upload of uploads.filter(isOpen)) { upload.state = "stopped"; upload.control.abort(); } uploads = []; told(); });
addEventListener("beforeunload", (event) => { if (uploads.some(isOpen)) event.preventDefault(); });

/** @param {Place} place @param {{file: File, name: string}[]} files @param {() => void} ended called after each */
export function add(place, files, ended) {
  for (const { file, name } of files) {
    number += 1;
    uploads = [...uploads.filter((one) => isOpen(one) || one.name !== name || one.place.path !== place.path || one.place.endpoint !== place.endpoint),
      { number, file, place, name, state: "waiting", done: 0, kept: 0, problem: null, control: new AbortController(), id: null, ended }];
  }
  told();
  next();
}

function next() {
  for (const upload of uploads) {
    if (uploads.filter((one) => isOpen(one) && one.state !== "waiting").length >= FILES) return;
    if (upload.state === "waiting") void run(upload, false);
  }
}

/** @param {Upload} upload @returns {Promise<string[]>} */
function hash(upload) {
  if (upload.file.size === 0) return Promise.resolve([]);
  const worker = new Worker("/page/js/files/upload-worker.js", { type: "module" });
  return new Promise((resolve, reject) => {
    upload.control.signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
    worker.onerror = () => reject(new Problem(0, "unreadable", "The page's worker did not start.", ["Reload the page, then drop the file again."]));
    worker.onmessage = ({ data }) => {
      if (data.hashed) put(upload, { done: data.hashed });
      if (data.failed) reject(new Problem(0, "unreadable", `${upload.name} cannot be read: ${data.failed}`, ["Drop it again. A folder is read only while its drop lasts."]));
      if (data.digests) resolve(data.digests);
    };
    worker.postMessage({ file: upload.file, block: BLOCK });
  }).finally(() => worker.terminate());
}

/** @param {number} ms @param {AbortSignal} signal */
const pause = (ms, signal) => new Promise((resolve) => { const timer = setTimeout(resolve, ms); signal.addEventListener("abort", () => { clearTimeout(timer); resolve(null); }, { once: true }); });

/** @param {Upload} upload @param {number} size */
function sent(upload, size) {
  const done = upload.done + size;
  put(upload, { done, pace: paced(upload.pace, performance.now(), done) });
}

/** One block, tried again where the connection or the service failed. @param {Upload} upload @param {number} block */
async function send(upload, block) {
  const part = upload.file.slice(block * BLOCK, (block + 1) * BLOCK), path = `/uploads/${upload.id}/blocks/${block}`;
  for (let attempt = 1; ; attempt += 1) {
    /** @type {any} */
    let fault;
    try {
      const number = sessionNumber(), { signal } = upload.control, kind = { "content-type": "application/octet-stream" };
      const answer = await proved(() => fetch(address(path), { method: "PUT", headers: headers(kind), body: part, signal }));
      if (answer.ok) { sent(upload, part.size); return; }
      fault = await problemOf(answer, path, number);
    } catch (error) {
      if (upload.control.signal.aborted) throw error;
      fault = new Problem(0, "unreachable", `${upload.name}: the connection to the service failed.`, ["Drop the same file again: it goes on where it stands."]);
    }
    if (attempt === ATTEMPTS || (fault.status >= 400 && fault.status < 500 && fault.status !== 429)) throw fault;
    put(upload, { away: (upload.away ?? 0) + 1 });
    await pause(500 * 3 ** attempt, upload.control.signal);
    put(upload, { away: Math.max(0, (upload.away ?? 1) - 1) });
  }
}

/** @param {Upload} upload @param {boolean} replace */
async function run(upload, replace) {
  const { file, place, name } = upload;
  upload.control = new AbortController();
  const { signal } = upload.control;
  put(upload, { state: "hashing", done: 0, problem: null, pace: [] });
  try {
    const blocks = await hash(upload);
    const body = { path: join(place.path, name), size: file.size, block_bytes: BLOCK, blocks, modified: new Date(file.lastModified).toISOString(), existing: replace ? "replace" : "fail" };
    const made = await call("POST", `/endpoints/${encodeURIComponent(place.endpoint)}/uploads`, { body, signal });
    /** @type {number[]} */
    const missing = made.missing.flatMap((/** @type {[number, number]} */ [from, to]) => Array.from({ length: to - from + 1 }, (_, at) => from + at));
    const left = missing.reduce((sum, block) => sum + Math.min(BLOCK, file.size - block * BLOCK), 0);
    const done = file.size - left;
    put(upload, { state: "sending", id: made.id, done, kept: done, pace: paced([], performance.now(), done) });
    await Promise.all(Array.from({ length: LANES }, async () => { for (let block = missing.shift(); block !== undefined; block = missing.shift()) await send(upload, block); }));
    put(upload, { state: "publishing" });
    let now = made.state === "published" ? made : await call("POST", `/uploads/${made.id}/publish`, { signal });
    while (now.state === "publishing" || now.state === "receiving") now = await call("GET", `/uploads/${made.id}`, { query: { wait: "published" }, signal });
    if (now.state === "failed") throw Object.assign(new Error(now.failure?.message ?? now.failure?.why ?? "The service could not publish the file."), { hints: now.failure?.hints ?? [], code: now.failure?.code });
    put(upload, { state: "done" });
    upload.ended();
  } catch (error) {
    // Lanes that still send would count into an attempt that has ended.
    upload.control.abort();
    if (upload.state !== "stopped") put(upload, { state: "failed", problem: error });
  }
  next();
}

/** @param {Upload} upload @param {boolean} forget what is there already is removed at the service, too */
function stop(upload, forget) {
  upload.state = "stopped";
  upload.control.abort();
  if (forget && upload.id) void call("DELETE", `/uploads/${upload.id}`).catch(() => {});
  uploads = uploads.filter((one) => one !== upload);
  told();
  next();
}

/**
 * The files of a drop, those in its folders too, by their paths below it; and the folders.
 * @param {DataTransfer} data @returns {Promise<{files: {file: File, name: string}[], folders: string[], more: boolean}>}
 */
export async function dropped(data) {
  // Entries must be taken before the first wait: the browser empties the list then.
  const roots = [...data.items].filter((item) => item.kind === "file").map((item) => /** @type {any} */ (item).webkitGetAsEntry?.() ?? item.getAsFile());
  /** @type {{file: File, name: string}[]} */
  const files = [];
  /** @type {string[]} */
  const folders = [];
  /** @param {any} entry @param {string} above */
  const walk = async (entry, above) => {
    if (!entry || files.length >= DROP_MOST) return;
    const name = above + exact(entry.name);
    if (entry instanceof File) files.push({ file: entry, name });
    else if (entry.isFile) files.push({ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), name });
    else {
      folders.push(name);
      const reader = entry.createReader();
      for (;;) {
        /** @type {any[]} */
        const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
        if (some.length === 0) break;
        for (const one of some) await walk(one, `${name}/`);
      }
    }
  };
  for (const root of roots) await walk(root, "");
  return { files, folders, more: files.length >= DROP_MOST };
}

/** The uploads of this tab. */
export function Uploads() {
  const [, redraw] = useState(0);
  useEffect(() => { const watch = () => redraw((turn) => turn + 1); watchers.add(watch); return () => { watchers.delete(watch); }; }, []);
  if (uploads.length === 0) return null;
  const open = uploads.filter(isOpen);
  return html`<section class="sheet running" aria-label="Uploads"><div class="part-head"><h2>Uploads</h2><span class="quiet small">${open.length ? `${plural(open.length, "file")} to go` : "all ended"}. They pass through the service over HTTPS; this is not the fast path. Much data goes faster with <code>carrack copy</code>.</span>
      ${open.length < uploads.length && html`<button class="plain small-button" onClick=${() => { uploads = open; told(); }}>Clear ended</button>`}</div>
    <ul class="causes">${uploads.slice(0, 50).map((upload) => { const { file, place, name, state, done, problem } = upload; return html`<li key=${upload.number}><div class="running-line"><span class="one-line" title=${spelled(location(place, name))}>${spelled(name)}</span>
        <span class="quiet small">${uploadWords({ ...upload, size: file.size })}</span>
        ${problem?.code === "exists" && html`<button onClick=${() => void run(upload, true)}>Replace</button>`}
        ${state === "failed" && problem?.code !== "exists" && html`<button onClick=${() => void run(upload, false)}>Go on</button>`}
        ${state !== "done" && html`<button class="plain" aria-label=${`${isOpen(upload) ? "Stop" : "Remove"} the upload of ${spelled(name)}`} onClick=${() => stop(upload, true)}>${isOpen(upload) ? "Stop" : "Remove"}</button>`}</div>
      ${isOpen(upload) && html`<${Progress} share=${file.size ? Math.floor(done / file.size * 100) : state === "waiting" ? 0 : 100} label=${`Upload of ${spelled(name)}`} />`}
      <${Trouble} problem=${problem} /></li>`; })}
      ${uploads.length > 50 && html`<li class="quiet">and ${count(uploads.length - 50)} more</li>`}</ul></section>`;
}
