// The sheet that submits a task: where from, where to, how; and what the server says would happen.
import { html, useState } from "./ui.js";
import { call } from "./api.js";
import { submitLine } from "./command.js";
import { Command, Dialog, Time, Trouble, useAction } from "./parts.js";
import { duration } from "./format.js";

/** @typedef {{name: string, text: string, choices: [string, string][]}} Choice */
/** @type {Choice[]} */
const CHOICES = [
  { name: "verify", text: "Verify", choices: [["wire", "what the receiver wrote"], ["disk", "also what storage gives back"], ["source", "also the source, read twice"], ["none", "nothing"]] },
  { name: "encrypt", text: "Encrypt", choices: [["tls", "TLS 1.3 on every stream"], ["none", "in the clear, authenticated"]] },
  { name: "durable", text: "Sync to disk", choices: [["group", "in groups"], ["each", "each file"], ["none", "nothing"]] },
];

/** @param {FormData} form @returns {import("./types.js").NewTask} */
export function taskOf(form) {
  const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
  const destination = text("destination"), kind = text("kind") || "copy";
  const pairs = text("sources").split("\n").map((line) => line.trim()).filter(Boolean)
    .map((source) => kind === "delete" ? { source } : { source, destination });
  /** @type {import("./types.js").Options} */
  const options = {};
  for (const { name } of CHOICES) if (text(name)) options[name] = text(name);
  /** @type {import("./types.js").NewTask} */
  const task = { pairs, kind, options };
  if (text("label")) task.label = text("label");
  if (text("priority")) task.priority = Number(text("priority"));
  if (text("deadline")) task.deadline = new Date(text("deadline")).toISOString();
  if (form.get("skip_source_errors")) task.skip_source_errors = true;
  return task;
}

/** Fields of a task, for whoever submits one now or by a timer. @param {{endpoints: string[]}} props */
export function TaskFields({ endpoints }) {
  const [kind, setKind] = useState("copy");
  const [first] = endpoints;
  return html`
    <div class="two"><label class="field"><span>What</span><select name="kind" value=${kind} onChange=${(/** @type {Event} */ event) => setKind(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
      <option value="copy">Copy</option><option value="move">Move: delete sources once verified</option><option value="delete">Delete</option></select></label>
    <label class="field"><span>Label</span><input name="label" placeholder="what you call it" maxlength="200" /></label></div>
    <label class="field"><span>${kind === "delete" ? "Paths to delete" : "From"}</span><textarea name="sources" rows="2" required spellcheck=${false} placeholder=${`@${first ?? "lab"}:/path`}></textarea>
      <small class="help">One path a line, as @ENDPOINT:/PATH. A directory with a slash at its end means its contents.</small></label>
    ${kind !== "delete" && html`<label class="field"><span>To</span><input name="destination" required spellcheck=${false} list="endpoint-names" placeholder=${`@${endpoints[1] ?? "archive"}:/`} /></label>`}
    <datalist id="endpoint-names">${endpoints.map((name) => html`<option value=${`@${name}:/`}></option>`)}</datalist>
    <details><summary>Options</summary><div class="stack">
      <div class="two">${CHOICES.map(({ name, text, choices }) => html`<label class="field"><span>${text}</span><select name=${name}>
        <option value="">As the endpoints say</option>${choices.map(([value, meaning]) => html`<option value=${value}>${value}: ${meaning}</option>`)}</select></label>`)}
      <label class="field"><span>Priority</span><input name="priority" type="number" min="0" max="9" placeholder="4" /></label>
      <label class="field"><span>Deadline</span><input name="deadline" type="datetime-local" /></label></div>
      <label class="check"><input type="checkbox" name="skip_source_errors" />Skip sources that are missing or may not be read</label></div></details>`;
}

/** @param {{endpoints: string[], close: () => void, done: (task: import("./types.js").Task) => void}} props */
export function Submit({ endpoints, close, done }) {
  const [id] = useState(() => crypto.randomUUID());
  const [seen, setSeen] = useState(/** @type {{line: string, preview: any}|null} */ (null));
  const preview = useAction(async (form) => {
    const task = taskOf(form);
    return { line: submitLine(task), preview: await call("POST", "/tasks", { query: { dry_run: true }, body: task }) };
  }, setSeen);
  // The same identifier again is the same task: a repeated click, or an answer that was lost, submits nothing twice.
  const submit = useAction((form) => call("POST", "/tasks", { query: { submission_id: id }, body: taskOf(form) }), done);
  const read = (/** @type {Event} */ event) => new FormData(/** @type {HTMLFormElement} */ (/** @type {HTMLElement} */ (event.currentTarget).closest("form")));
  return html`<${Dialog} title="New task" close=${close}><form onSubmit=${(/** @type {Event} */ event) => { event.preventDefault(); void submit.go(read(event)); }}
      onInput=${() => setSeen(null)}>
    <h2>New task</h2><${TaskFields} endpoints=${endpoints} />
    ${seen && html`<div class="stack"><${Preview} of=${seen.preview} /><${Command} line=${seen.line} /></div>`}
    <${Trouble} problem=${submit.problem ?? preview.problem} />
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
