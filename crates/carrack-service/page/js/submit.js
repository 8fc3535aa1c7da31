// The sheet that submits a task: where from, where to, how; and what the server says would happen.
import { html, useEffect, useRef, useState } from "./ui.js";
import { call } from "./api.js";
import { submitLine } from "./command.js";
import { Command, Dialog, Name, Trouble, useAction } from "./parts.js";
import { Expected, Measure, OptionFields, fill, optionTable, optionsOf, useOptions } from "./files/sheet.js";
import { placeOf } from "./files/names.js";
import { bounded, written } from "./files/typed.js";

/** @typedef {import("./types.js").OptionTable} OptionTable */

/** What a form says, with the options of a table where that is read. @param {HTMLFormElement} form @param {OptionTable|null} known @returns {import("./types.js").NewTask} */
export function taskOf(form, known) {
  const said = new FormData(form), text = (/** @type {string} */ name) => String(said.get(name) ?? "").trim();
  const destination = written(text("destination")), kind = text("kind") || "copy";
  const pairs = text("sources").split("\n").map(written).filter(Boolean)
    .map((source) => kind === "delete" ? { source } : { source, destination });
  const { task, options } = known ? optionsOf(form, known, kind) : { task: {}, options: {} };
  return { pairs, kind, ...(Object.keys(options).length > 0 && { options }), ...task };
}

/** Fields of a task, for whoever submits one now or by a timer. `filled`: what they hold at first.
 * @param {{endpoints: string[], known: OptionTable|null, filled?: import("./types.js").NewTask}} props */
export function TaskFields({ endpoints, known, filled = {} }) {
  const [kind, setKind] = useState(filled.kind ?? "copy");
  const pairs = filled.pairs ?? [];
  const [first] = endpoints;
  return html`
    <label class="field"><span>What</span><select name="kind" value=${kind} onChange=${(/** @type {Event} */ event) => setKind(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
      <option value="copy">Copy</option><option value="move">Move: delete sources once verified</option><option value="delete">Delete</option><option value="check">Check: compare, and change nothing</option></select></label>
    <label class="field"><span>${kind === "delete" ? "Paths to delete" : "From"}</span><textarea name="sources" rows=${Math.max(2, Math.min(8, pairs.length))} required spellcheck=${false} placeholder=${`@${first ?? "lab"}:/path`} defaultValue=${pairs.map((pair) => bounded(pair.source)).join("\n")}></textarea>
      <small class="help">One path a line, as @ENDPOINT:/PATH. A directory with a slash at its end means its contents. A space at an end of a line is written %20.</small></label>
    ${kind !== "delete" && html`<label class="field"><span>To</span><input name="destination" required spellcheck=${false} defaultValue=${bounded(pairs[0]?.destination ?? "")} list="endpoint-names" placeholder=${`@${endpoints[1] ?? "archive"}:/`} /></label>`}
    <datalist id="endpoint-names">${endpoints.map((name) => html`<option value=${`@${name}:/`}></option>`)}</datalist>
    ${known && html`<div class="task-sheet stack"><${OptionFields} known=${known} kind=${kind} /></div>`}`;
}

/** What a task is asked to do once more: without what the service sets, and without a deadline that has passed. @param {Record<string, any>} request @returns {Record<string, any>} */
export const anew = ({ timer, guard, token, ceilings, deadline, preview, ...rest }) => rest;

/** What a form says over what was asked before: options that the form has, and does not say, are left to the service.
 * @param {Record<string, any>} before @param {Record<string, any>} said @param {OptionTable|null} known */
export function over(before, said, known) {
  const merged = { ...before, ...said, options: { ...before.options } };
  for (const { at, name } of known?.groups.flatMap((group) => group.options) ?? []) {
    const of = at === "task" ? merged : merged.options, from = at === "task" ? said : said.options ?? {};
    if (name in from) of[name] = from[name]; else delete of[name];
  }
  return merged;
}

/** What lies at the sources today, by endpoint. @param {{sources: string[], done: (size: {bytes: number, items: number}) => void}} props */
function Today({ sources, done }) {
  const [sizes] = useState(() => new Map());
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const source of sources) {
    const place = placeOf(source, "");
    if (place) found.set(place.endpoint, [...(found.get(place.endpoint) ?? []), place.path]);
  }
  return [...found].map(([endpoint, paths]) => html`<div key=${endpoint}><span class="quiet">At @${endpoint} today:</span><${Measure} place=${{ endpoint, path: "/" }} paths=${paths} done=${(/** @type {any} */ counted) => {
    sizes.set(endpoint, counted);
    const known = [...found.keys()].map((name) => sizes.get(name)), sum = (/** @type {string} */ of) => known.reduce((all, one) => all + one[of], 0);
    if (known.every(Boolean)) done({ bytes: sum("bytes"), items: sum("files") + sum("directories") });
  }} /></div>`);
}

/** @type {Record<string, [string, string, string]>} heading, button, what to know before */
const AGAIN = { copy: ["Copy again?", "Start copy", ""], move: ["Move again?", "Move", "Each source is deleted once its copy is verified and durable, whatever has come there since."],
  check: ["Check again?", "Check", ""], delete: ["Delete again?", "Delete", "It deletes what is there today, whatever has come there since. It cannot be taken back."] };

/** A task that is submitted; `again`: as an earlier one was.
 * @param {{endpoints: string[], again?: import("./types.js").NewTask, close: () => void, done: (task: import("./types.js").Task) => void}} props */
export function Submit({ endpoints, again, close, done }) {
  const [before] = useState(() => again && anew(again)), pairs = before?.pairs ?? [];
  // Pairs of their own destinations do not fit the form, and are taken as they were.
  const apart = pairs.some((/** @type {any} */ pair) => pair.destination !== pairs[0].destination);
  const [kind, setKind] = useState(before?.kind ?? "copy");
  const [sources, setSources] = useState(/** @type {string[]} */ (pairs.map((/** @type {any} */ pair) => pair.source)));
  const form = useRef(/** @type {HTMLFormElement|null} */ (null));
  const [size, setSize] = useState(/** @type {{bytes: number, items: number}|null} */ (null));
  const [id] = useState(() => crypto.randomUUID());
  const [seen, setSeen] = useState(/** @type {{line: string, preview: any}|null} */ (null));
  const { known, problem } = useOptions();
  useEffect(() => { if (before && known && form.current) fill(form.current, known, before); }, [known]);
  const asked = (/** @type {HTMLFormElement} */ form) => {
    const said = taskOf(form, known);
    return before ? over(before, apart ? { ...said, kind: before.kind, pairs } : said, known) : said;
  };
  const preview = useAction(async (form) => {
    const task = asked(form);
    return { line: submitLine(await optionTable(), task), preview: await call("POST", "/tasks", { query: { dry_run: true, ...size }, body: task }) };
  }, setSeen);
  // The same identifier again is the same task: a repeated click, or an answer that was lost, submits nothing twice.
  const submit = useAction((form) => call("POST", "/tasks", { query: { submission_id: id, ...size }, body: asked(form) }), done);
  const read = (/** @type {Event} */ event) => /** @type {HTMLFormElement} */ (/** @type {HTMLElement} */ (event.currentTarget).closest("form"));
  const deletes = kind === "copy" && Boolean(before?.options?.delete || before?.options?.delete_excluded || before?.options?.delete_before);
  const [title, act, usual] = before ? AGAIN[kind] ?? AGAIN.copy : ["New task", "Submit", ""];
  const warning = deletes ? "What only the destination has is deleted there, whatever has come there since." : usual;
  return html`<${Dialog} title=${title} close=${close}><form ref=${form} onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); void submit.go(read(event)); }}
      onInput=${(/** @type {Event} */ event) => { setSeen(null); setKind(taskOf(read(event), known).kind ?? "copy"); }}
      onChange=${(/** @type {Event} */ event) => { if (before && !apart) setSources((taskOf(read(event), known).pairs ?? []).map((pair) => pair.source)); }}>
    <h2>${title}</h2>
    ${before && html`<section class=${`notice preview ${warning ? "warn" : ""}`} aria-label="What is there today"><${Today} sources=${sources} done=${setSize} />${warning && html`<p><strong>${warning}</strong></p>`}</section>`}
    ${apart ? html`<ul class="names-list mono" tabindex="0" aria-label="Pairs">${pairs.slice(0, 100).map((/** @type {any} */ pair) => html`<li class="one-line"><${Name}>${pair.source}<//> → <${Name}>${pair.destination ?? ""}<//></li>`)}${pairs.length > 100 && html`<li class="quiet">and ${pairs.length - 100} more</li>`}</ul>
      ${known && html`<div class="task-sheet stack"><${OptionFields} known=${known} kind=${kind} /></div>`}` : html`<${TaskFields} endpoints=${endpoints} known=${known} filled=${before} />`}
    ${seen && html`<div class="stack"><${Preview} of=${seen.preview} /><${Command} line=${seen.line} /></div>`}
    <${Trouble} problem=${submit.problem ?? preview.problem ?? problem} />
    <div class="bar-of-buttons end sheet-end"><button type="button" class="plain" onClick=${close}>${warning ? "Keep" : "Cancel"}</button>
      <button type="button" disabled=${preview.busy} onClick=${(/** @type {MouseEvent} */ event) => { if (/** @type {HTMLFormElement} */ (/** @type {HTMLElement} */ (event.currentTarget).closest("form")).reportValidity()) void preview.go(read(event)); }}>Preview</button>
      <button class=${warning ? "danger" : "main"} disabled=${submit.busy || Boolean(before && !known)}>${act}</button></div></form><//>`;
}

/** @param {{of: any}} props */
const Preview = ({ of }) => html`<div class="notice" role="status"><p><strong>The service would take this task.</strong></p><${Expected} of=${of} /></div>`;
