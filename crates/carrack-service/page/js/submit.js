// The sheet that submits a task: where from, where to, how; and what the server says would happen.
import { html, useEffect, useState } from "./ui.js";
import { call } from "./api.js";
import { submitLine } from "./command.js";
import { Command, Dialog, Time, Trouble, useAction } from "./parts.js";
import { duration } from "./format.js";
import { OptionFields, optionTable, optionsOf } from "./files/sheet.js";

/** @typedef {import("./files/sheet.js").OptionTable} OptionTable */

/** What a form says, with the options of a table where that is read. @param {HTMLFormElement} form @param {OptionTable|null} known @returns {import("./types.js").NewTask} */
export function taskOf(form, known) {
  const said = new FormData(form), text = (/** @type {string} */ name) => String(said.get(name) ?? "").trim();
  const destination = text("destination"), kind = text("kind") || "copy";
  const pairs = text("sources").split("\n").map((line) => line.trim()).filter(Boolean)
    .map((source) => kind === "delete" ? { source } : { source, destination });
  const { task, options } = known ? optionsOf(form, known, kind) : { task: {}, options: {} };
  return { pairs, kind, ...(Object.keys(options).length > 0 && { options }), ...task };
}

/** The options that the service has; null until they are read. */
export function useOptions() {
  const [known, setKnown] = useState(/** @type {OptionTable|null} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  useEffect(() => { optionTable().then(setKnown, setProblem); }, []);
  return { known, problem };
}

/** Fields of a task, for whoever submits one now or by a timer. @param {{endpoints: string[], known: OptionTable|null}} props */
export function TaskFields({ endpoints, known }) {
  const [kind, setKind] = useState("copy");
  const [first] = endpoints;
  return html`
    <label class="field"><span>What</span><select name="kind" value=${kind} onChange=${(/** @type {Event} */ event) => setKind(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
      <option value="copy">Copy</option><option value="move">Move: delete sources once verified</option><option value="delete">Delete</option></select></label>
    <label class="field"><span>${kind === "delete" ? "Paths to delete" : "From"}</span><textarea name="sources" rows="2" required spellcheck=${false} placeholder=${`@${first ?? "lab"}:/path`}></textarea>
      <small class="help">One path a line, as @ENDPOINT:/PATH. A directory with a slash at its end means its contents.</small></label>
    ${kind !== "delete" && html`<label class="field"><span>To</span><input name="destination" required spellcheck=${false} list="endpoint-names" placeholder=${`@${endpoints[1] ?? "archive"}:/`} /></label>`}
    <datalist id="endpoint-names">${endpoints.map((name) => html`<option value=${`@${name}:/`}></option>`)}</datalist>
    ${known && html`<div class="task-sheet stack"><${OptionFields} known=${known} kind=${kind} /></div>`}`;
}

/** @param {{endpoints: string[], close: () => void, done: (task: import("./types.js").Task) => void}} props */
export function Submit({ endpoints, close, done }) {
  const [id] = useState(() => crypto.randomUUID());
  const [seen, setSeen] = useState(/** @type {{line: string, preview: any}|null} */ (null));
  const { known, problem } = useOptions();
  const preview = useAction(async (form) => {
    const task = taskOf(form, known);
    return { line: submitLine(task), preview: await call("POST", "/tasks", { query: { dry_run: true }, body: task }) };
  }, setSeen);
  // The same identifier again is the same task: a repeated click, or an answer that was lost, submits nothing twice.
  const submit = useAction((form) => call("POST", "/tasks", { query: { submission_id: id }, body: taskOf(form, known) }), done);
  const read = (/** @type {Event} */ event) => /** @type {HTMLFormElement} */ (/** @type {HTMLElement} */ (event.currentTarget).closest("form"));
  return html`<${Dialog} title="New task" close=${close}><form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); void submit.go(read(event)); }}
      onInput=${(/** @type {Event} */ event) => { setSeen(null); taskOf(read(event), known); }}>
    <h2>New task</h2><${TaskFields} endpoints=${endpoints} known=${known} />
    ${seen && html`<div class="stack"><${Preview} of=${seen.preview} /><${Command} line=${seen.line} /></div>`}
    <${Trouble} problem=${submit.problem ?? preview.problem ?? problem} />
    <div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button>
      <button type="button" disabled=${preview.busy} onClick=${(/** @type {MouseEvent} */ event) => { if (/** @type {HTMLFormElement} */ (/** @type {HTMLElement} */ (event.currentTarget).closest("form")).reportValidity()) void preview.go(read(event)); }}>Preview</button>
      <button class="main" disabled=${submit.busy}>Submit</button></div></form><//>`;
}

/** @param {{of: {expected_start?: string|null, expected_seconds?: number|null, why?: string|null}}} props */
function Preview({ of }) {
  return html`<div class="notice" role="status"><p><strong>The service would take this task.</strong></p>
    ${of.expected_start && html`<p>It would start at about <${Time} at=${of.expected_start} />.</p>`}
    ${of.expected_seconds != null && html`<p>It would take about ${duration(of.expected_seconds)}.</p>`}
    ${of.why && html`<p class="quiet">${of.why}</p>`}</div>`;
}
