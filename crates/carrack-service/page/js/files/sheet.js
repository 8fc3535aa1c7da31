// The sheet that starts a task: what would move, by which options, when, and how long that may take.
import { html, useEffect, useRef, useState } from "../ui.js";
import { call, stream } from "../api.js";
import { submitLine } from "../command.js";
import { Command, Dialog, Time, Trouble, useAction } from "../parts.js";
import { bytes, count, plural, range } from "../format.js";
import { Spelled, location, spelled, typed } from "./names.js";
import { bounded, placeTyped } from "./typed.js";
import { clash, pairsOf, pathsOf } from "./actions.js";

/** @typedef {import("./actions.js").Targets} Targets */
/** @typedef {import("./names.js").Place} Place */
/** @typedef {import("../types.js").Option} Option */
/** @typedef {import("../types.js").OptionTable} OptionTable */

/** @type {Promise<OptionTable>|null} */
let table = null;
/** The options that the service has. @returns {Promise<OptionTable>} */
export const optionTable = () => table ??= call("GET", "/options/task").catch((error) => { table = null; throw error; });

/** The same in a view: null until they are read. */
export function useOptions() {
  const [known, setKnown] = useState(/** @type {OptionTable|null} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  useEffect(() => { optionTable().then(setKnown, setProblem); }, []);
  return { known, problem };
}

const UNITS = "KMGTPE";
/** A number of bytes as people write it, 64M or 100 MB; NaN: it is none. @param {string} text */
export function bytesOf(text) {
  const [, number, unit, i, b] = /^\s*(\d+(?:\.\d+)?)\s*([KMGTPE]?)(i?)(B?)\s*(?:\/s)?$/i.exec(text) ?? [];
  return number === undefined ? Number.NaN : Math.round(Number(number) * (unit ? (b && !i ? 1000 : 1024) ** (UNITS.indexOf(unit.toUpperCase()) + 1) : 1));
}
/** @type {Record<string, number>} */
const SECONDS = { s: 1, m: 60, h: 3600, d: 86400 };
/** Seconds as people write them, 90 or 2h 30m. @param {string} text */
export function secondsOf(text) {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*(s|m|h|d)?[a-z]*\s*/gi)];
  return parts.length && parts.map(([part]) => part).join("") === text.trimStart() ? Math.round(parts.reduce((sum, [, number, unit]) => sum + Number(number) * SECONDS[(unit ?? "s").toLowerCase()], 0)) : Number.NaN;
}

/** @type {Record<string, (text: string) => any>} what a text of a field stands for */
const VALUES = { number: Number, bytes: bytesOf, duration: secondsOf, moment: (text) => new Date(text).toISOString() };
/** @type {Record<string, string>} */
const WRONG = { bytes: "A number of bytes, like 64M or 100MB", duration: "A time, like 90s or 2h 30m" };

/** @param {Option} option @param {string} kind */
const fits = (option, kind) => !option.kinds?.length || option.kinds.includes(kind);

/** What a form of options says; fields that say nothing are left to the service.
 * @param {HTMLFormElement} form @param {OptionTable} known @param {string} kind */
export function optionsOf(form, known, kind) {
  /** @type {{task: Record<string, any>, options: Record<string, any>}} */
  const said = { task: {}, options: {} };
  for (const option of known.groups.flatMap((group) => group.options).filter((one) => fits(one, kind))) {
    const field = /** @type {HTMLInputElement|null} */ (form.elements.namedItem(`${option.at}.${option.name}`));
    if (!field) continue;
    if (option.kind === "flag") { if (field.checked !== Boolean(option.default)) said[option.at][option.name] = field.checked; continue; }
    const text = field.value.trim();
    if (!text) { field.setCustomValidity(""); continue; }
    const value = (VALUES[option.kind] ?? ((/** @type {string} */ same) => same))(text);
    const wrong = Number.isNaN(value) ? WRONG[option.kind] ?? "A number"
      : option.minimum != null && typeof value === "number" && value < option.minimum ? `At least ${option.minimum}`
      : option.maximum != null && typeof value === "number" && value > option.maximum ? `At most ${option.maximum}` : "";
    field.setCustomValidity(wrong);
    if (!wrong) said[option.at][option.name] = value;
  }
  return said;
}

/** Fills a form of options with what a task was asked for. @param {HTMLFormElement} form @param {OptionTable} known @param {Record<string, any>} request */
export function fill(form, known, request) {
  for (const option of known.groups.flatMap((group) => group.options)) {
    const field = /** @type {HTMLInputElement|null} */ (form.elements.namedItem(`${option.at}.${option.name}`));
    const value = (option.at === "task" ? request : request.options ?? {})[option.name];
    if (!field || value == null) continue;
    if (option.kind === "flag") { field.checked = Boolean(value); continue; }
    // What a form does not offer stays as the task has it.
    if (field instanceof HTMLSelectElement && ![...field.options].some((one) => one.value === String(value))) field.append(new Option(String(value)));
    field.value = String(value);
  }
}

/** Choices that no form offers. By its time alone a file is taken for one that is there: stale ones stay. @type {Record<string, string[]>} */
const KEPT_BACK = { existing: ["older"] };

/** @param {{option: Option}} props */
function Field({ option }) {
  const name = `${option.at}.${option.name}`, usual = option.default == null || option.kind === "flag" ? "" : String(option.default);
  const left = usual ? `Usual: ${usual}` : "As the service finds best";
  if (option.kind === "flag") return html`<label class="check wide-field"><input type="checkbox" name=${name} defaultChecked=${Boolean(option.default)} /><span>${option.label} <small class="help">${option.help}</small></span></label>`;
  const field = option.kind === "choice" ? html`<select name=${name}><option value="">${left}</option>${(option.choices ?? []).filter(({ value }) => !KEPT_BACK[option.name]?.includes(value)).map(({ value, meaning }) => html`<option value=${value}>${value}: ${meaning}</option>`)}</select>`
    : option.kind === "number" ? html`<input name=${name} type="number" min=${option.minimum} max=${option.maximum} placeholder=${usual || "automatic"} />`
    : option.kind === "lines" ? html`<textarea name=${name} rows="3" spellcheck=${false} maxlength=${option.maximum} placeholder=${(option.examples ?? [])[0] ?? ""}></textarea>`
    : option.kind === "moment" ? html`<input name=${name} type="datetime-local" />`
    : html`<input name=${name} spellcheck=${false} maxlength=${option.kind === "text" ? option.maximum : undefined} placeholder=${usual || (option.kind === "bytes" ? option.name.endsWith("rate_limit") ? "like 100 MB/s" : "like 64M" : option.kind === "duration" ? "like 2h" : "")} />`;
  return html`<label class="field"><span>${option.label}</span>${field}<small class="help">${option.help}</small></label>`;
}

/** What is asked first: what becomes of files that exist, and how all is verified. */
const FIRST = ["existing", "verify"];

/** What options and their groups are called where two places are compared. @type {Record<string, string>} */
const CHECKED = { "What is copied": "What is compared", compare: "Compared by", owner: "Compare owners", group: "Compare groups", special_bits: "Compare special bits",
  acls: "Compare ACLs", xattrs: "Compare extended attributes", trusted: "Compare trusted attributes", selinux: "Compare SELinux contexts", hard_links: "Compare hard links" };

/** Fields for all options that a kind of task takes. @param {{known: OptionTable, kind: string}} props */
export const OptionFields = ({ known, kind }) => {
  const isFirst = (/** @type {Option} */ { at, name }) => at === "options" && FIRST.includes(name), all = known.groups.flatMap((group) => group.options);
  const groups = [{ title: "What exists there, and how it is verified", options: all.filter(isFirst), isOpen: true },
    ...known.groups.map((group, at) => ({ title: group.title, options: group.options.filter((option) => !isFirst(option)), isOpen: at === 0 }))];
  return groups.map(({ title, options, isOpen }) => {
    const fitting = options.filter((option) => fits(option, kind)).map((option) => kind === "check" && CHECKED[option.name] ? { ...option, label: CHECKED[option.name], help: "" } : option);
    return fitting.length > 0 && html`<details open=${isOpen && kind !== "delete"} key=${title}><summary>${kind === "check" ? CHECKED[title] ?? title : title}</summary><div class="two">${fitting.map((option) => html`<${Field} key=${option.name} option=${option} />`)}</div></details>`;
  });
};

/** As a sentence of its own. @param {string|null|undefined} text */
const sentence = (text) => text ? `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}` : "";

/** When a task begins. @param {{earliest?: string|null, latest?: string|null}} props */
export const Begins = ({ earliest, latest }) => !earliest && !latest ? "When it begins is not known."
  : !latest ? html`It begins at <${Time} at=${earliest} /> at the earliest; how late is not known.`
  : !earliest || earliest === latest ? html`It begins by <${Time} at=${latest} />.`
  : html`It begins between <${Time} at=${earliest} /> and <${Time} at=${latest} />.`;

/** What to expect of a task. @param {{of: {earliest_start?: string|null, expected_start?: string|null, expected_seconds_least?: number|null, expected_seconds_most?: number|null, why?: string|null}}} props */
export const Expected = ({ of }) => html`<p>${of.expected_seconds_least != null && of.expected_seconds_most != null ? `It takes ${range(of.expected_seconds_least, of.expected_seconds_most)}` : "How long it takes is not known"}. <${Begins} earliest=${of.earliest_start} latest=${of.expected_start} /> <span class="quiet">${sentence(of.why)}</span></p>`;

/** Files, folders and bytes below some paths, counted at their endpoint; `done` is told the end.
 * @param {{place: Place, paths: string[], done?: (found: any) => void}} props */
export function Measure({ place, paths, done = () => {} }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const control = new AbortController();
    setFound(null);
    setProblem(null);
    stream("POST", `/endpoints/${encodeURIComponent(place.endpoint)}/files/du`, { body: { paths: paths.map((path) => path.replace(/(.)\/$/, "$1")) }, signal: control.signal }, (/** @type {any} */ now) => { setFound(now); if (now.done) done(now); })
      .catch((error) => { if (!control.signal.aborted) setProblem(error); });
    return () => control.abort();
  }, [place.endpoint, paths.join("\n"), turn]);
  if (problem) return html`<${Trouble} problem=${problem} again=${() => setTurn(turn + 1)} />`;
  return html`<p class="measure"><strong>${found ? `${plural(found.files, "file")}, ${plural(found.directories, "folder")}, ${bytes(found.bytes)}` : "Counting…"}</strong>
    ${found && !found.done && html` <span class="quiet">so far</span>`}${found?.done && found.allocated != null && html` <span class="quiet">${bytes(found.allocated)} on disk</span>`}
    ${found?.failed > 0 && html` <span class="bad">${count(found.failed)} could not be read</span>`}</p>
    ${found?.failures?.length > 0 && html`<details class="small"><summary>What could not be read</summary><ul>${found.failures.map((/** @type {any} */ one) => html`<li><code>${spelled(one.path)}</code> ${one.message}</li>`)}</ul></details>`}`;
}

/** @type {Record<string, [string, string]>} */
const VERBS = { copy: ["Copy", "Start copy"], move: ["Move", "Start move"], delete: ["Delete", "Delete"] };
/** @type {[string, string][]} */
const TIMES = [["now", "Now"], ["once", "Once, at a time"], ["every", "Every so many hours"], ["cron", "By a cron line"]];

/** When a task runs; null: now. @param {HTMLFormElement} form */
function scheduleOf(form) {
  const said = new FormData(form), text = (/** @type {string} */ name) => String(said.get(name) ?? "").trim();
  switch (text("when")) {
    case "once": return { start: text("start") ? new Date(text("start")).toISOString() : null };
    case "every": return { every_seconds: Math.round(Number(text("hours")) * 3600) };
    case "cron": return { cron: text("cron"), zone: text("zone") || null };
    default: return null;
  }
}

/**
 * @param {{kind: string, targets: Targets, to: Place|null, close: () => void, done: (made: {task?: any, timer?: any}, to: Place|null) => void}} props
 */
export function TaskSheet({ kind, targets, to, close, done }) {
  const [id] = useState(() => crypto.randomUUID());
  const { known, problem: unread } = useOptions();
  const [paths, setPaths] = useState(/** @type {string[]|null} */ (null));
  const [chosen, setChosen] = useState(targets);
  const [fault, setFault] = useState(/** @type {any} */ (null));
  const [into, setInto] = useState(to);
  const [when, setWhen] = useState("now");
  const [said, setSaid] = useState(/** @type {{task: Record<string, any>, options: Record<string, any>}} */ ({ task: {}, options: {} }));
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const form = useRef(/** @type {HTMLFormElement|null} */ (null));
  useEffect(() => { setFault(null); pathsOf(chosen, kind === "delete").then(setPaths, setFault); }, [chosen]);
  const [size, setSize] = useState(/** @type {{bytes: number, items: number}|null} */ (null));
  const why = into && clash(chosen, into);
  /** @type {import("../types.js").NewTask|null} */
  const task = paths && (kind === "delete" || into) ? { kind, pairs: pairsOf(paths, chosen.place, kind === "delete" ? null : into), options: said.options, ...said.task } : null;
  const asked = task && !why ? JSON.stringify(task) : "";
  useEffect(() => {
    setPreview(null);
    if (!asked) return undefined;
    const control = new AbortController();
    const timer = setTimeout(() => { call("POST", "/tasks", { query: { dry_run: true, ...size }, body: JSON.parse(asked), signal: control.signal }).then(setPreview, (problem) => { if (!control.signal.aborted) setPreview({ problem }); }); }, 350);
    return () => { clearTimeout(timer); control.abort(); };
  }, [asked, size]);
  const start = useAction(async () => {
    if (!form.current || !task) return null;
    const schedule = scheduleOf(form.current);
    if (schedule) return { timer: await call("POST", "/timers", { body: { label: task.label ?? null, schedule, task } }) };
    // The same identifier again is the same task: a repeated click, or an answer that was lost, submits nothing twice.
    return { task: await call("POST", "/tasks", { query: { submission_id: id, ...size }, body: task }) };
  }, (made) => { if (made) done(made, into); });
  // A task of its own, which goes on when the page is closed.
  const plan = useAction(async () => task ? { task: await call("POST", "/tasks", { body: { ...task, preview: true } }) } : null, (made) => { if (made) done(made, into); });
  const [verb, act] = VERBS[kind];
  const read = () => { if (form.current && known) setSaid(optionsOf(form.current, known, kind)); };
  const title = `${verb} ${chosen.whole ? "everything in the folder" : chosen.text}${kind === "delete" ? "?" : ""}`;
  return html`<${Dialog} title=${title} close=${close}><form ref=${form} class="task-sheet" onInput=${read} onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); void start.go(); }}>
    <h2>${title}</h2>
    <dl class="facts"><dt>${kind === "delete" ? "In" : "From"}</dt><dd class="mono">${spelled(location(chosen.place))}</dd>
      ${kind !== "delete" && html`<dt><label for="sheet-into">To</label></dt><dd><input id="sheet-into" class="mono" required spellcheck=${false} defaultValue=${into ? bounded(typed(location(into))) : ""} placeholder="@endpoint:/path"
        onChange=${(/** @type {Event} */ event) => setInto(placeTyped(/** @type {HTMLInputElement} */ (event.currentTarget).value, chosen.place.endpoint))} /></dd>`}</dl>
    ${paths && paths.length > 0 && !chosen.whole && html`<ul class="names-list mono" tabindex="0" aria-label=${kind === "delete" ? "What would be deleted" : "What is taken"}>${paths.slice(0, 100).map((path) => html`<li class="one-line"><${Spelled} of=${path.slice(path.lastIndexOf("/") + 1)} /></li>`)}
      ${paths.length > 100 && html`<li class="quiet">and ${plural(paths.length - 100, "more item")}</li>`}</ul>`}
    <section class=${`notice preview ${kind === "delete" ? "warn" : ""}`} aria-label="Preview">${paths && paths.length > 0 ? html`<${Measure} place=${chosen.place} paths=${paths} done=${(/** @type {any} */ found) => setSize({ bytes: found.bytes, items: found.files + found.directories })} />` : !fault && html`<p>Reading the names…</p>`}
      ${kind === "delete" && html`<p>It cannot be taken back.</p>`}${kind === "move" && html`<p>Each source is deleted once its copy is verified and durable.</p>`}
      ${preview && !preview.problem && kind !== "delete" && (size ? html`<${Expected} of=${preview} />` : html`<p class="quiet">How long it takes is told once the sources are counted.</p>`)}</section>
    ${why && html`<p class="notice warn" role="alert">${why}</p>`}
    <${Trouble} problem=${start.problem ?? plan.problem ?? preview?.problem ?? unread ?? fault} />
    ${fault?.code === "too-many" && kind !== "delete" && html`<p><button type="button" onClick=${() => setChosen({ ...chosen, all: true, whole: true })}>${verb} the whole folder, hidden entries too</button></p>`}
    ${known && html`<${OptionFields} known=${known} kind=${kind} />`}
    ${kind !== "delete" && html`<details><summary>When</summary><div class="two"><label class="field"><span>Run</span><select name="when" value=${when} onChange=${(/** @type {Event} */ event) => setWhen(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>${TIMES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select></label>
      ${when === "once" && html`<label class="field"><span>At</span><input name="start" type="datetime-local" required /></label>`}
      ${when === "every" && html`<label class="field"><span>Hours</span><input name="hours" type="number" min="0.1" step="any" defaultValue="24" required /></label>`}
      ${when === "cron" && html`<label class="field"><span>Cron line</span><input name="cron" class="mono" required placeholder="30 2 * * *" /><small class="help">minute, hour, day, month, weekday</small></label>
        <label class="field"><span>Time zone</span><input name="zone" defaultValue=${Intl.DateTimeFormat().resolvedOptions().timeZone} /></label>`}</div></details>`}
    ${known && task && task.pairs && task.pairs.length <= 50 && html`<details><summary>The same at the command line</summary><${Command} line=${submitLine(known, task)} /></details>`}
    <div class="bar-of-buttons end sheet-end"><button type="button" class="plain" onClick=${close}>${kind === "delete" ? "Keep" : "Cancel"}</button>
      ${kind === "copy" && when === "now" && html`<button type="button" disabled=${plan.busy || !task || Boolean(why) || paths?.length === 0} onClick=${() => { if (form.current?.reportValidity()) void plan.go(); }}>What would change</button>`}
      <button class=${kind === "delete" ? "danger" : "main"} disabled=${start.busy || !task || Boolean(why) || paths?.length === 0}>${start.busy ? "Starting…" : when === "now" || kind === "delete" ? act : "Make timer"}</button></div></form><//>`;
}
