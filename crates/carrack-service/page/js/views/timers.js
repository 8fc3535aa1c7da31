// Timers: tasks that are submitted again and again.
import { html, useState } from "../ui.js";
import { all, call } from "../api.js";
import { useLive } from "../store.js";
import { Confirm, Dialog, Empty, Name, State, Time, Trouble, useAction } from "../parts.js";
import { count, duration, shown } from "../format.js";
import { TaskFields, taskOf } from "../submit.js";

/** @param {any} schedule */
const rule = (schedule) => schedule.cron ? `${schedule.cron}${schedule.zone ? ` (${schedule.zone})` : ""}`
  : schedule.every_seconds ? `every ${duration(schedule.every_seconds)}` : "once";

/** @param {{known: import("../types.js").Whoami, endpoints: string[]}} props */
export function Timers({ known, endpoints }) {
  const list = useLive((signal) => all("/timers", {}, 5000, signal), [], (event) => event.kind.startsWith("timer-"));
  const [opened, setOpened] = useState(false);
  const [doomed, setDoomed] = useState(/** @type {any} */ (null));
  const act = useAction((id, verb) => call("POST", `/timers/${id}/${verb}`), list.again);
  const items = /** @type {any[]} */ (list.value?.items ?? []);
  return html`<div class="view-head"><h1>Timers</h1>${known.role !== "viewer" && html`<button class="main" onClick=${() => setOpened(true)}>New timer</button>`}</div>
    <${Trouble} problem=${list.problem ?? act.problem} again=${list.problem ? list.again : undefined} />
    <div class="sheet scroll-x" tabindex="0" role="region" aria-label="Timers">${list.loading ? html`<p class="pad quiet">Loading…</p>`
      : items.length === 0 && !list.problem ? html`<${Empty} title="No timers yet">A timer submits a task at set times, such as each night.<//>`
      : html`<table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">What</th><th scope="col">When</th><th scope="col">Next run</th><th scope="col" class="num">Runs</th><th scope="col">Last task</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
      ${items.map((timer) => { const [pair] = timer.task.pairs ?? []; const name = timer.label ?? timer.task.label ?? timer.id; return html`<tr key=${timer.id}><td><${State} state=${timer.state} /></td>
        <td class="path"><bdi>${shown(timer.label ?? timer.task.label ?? "")}</bdi> ${pair && html`<span class="mono"><${Name}>${pair.source}<//> ${pair.destination && html`→ <${Name}>${pair.destination}<//>`}</span>`}</td>
        <td class="mono">${rule(timer.schedule)}</td><td><${Time} at=${timer.next_run} /></td><td class="num">${count(timer.runs)}</td>
        <td>${timer.last_task ? html`<a href=${`#/tasks/${timer.last_task}`}>show</a>` : html`<span class="quiet">–</span>`}</td>
        <td class="acts"><div class="bar-of-buttons">${timer.state !== "ended" && known.role !== "viewer" && html`<button disabled=${act.busy} aria-label=${`${timer.state === "paused" ? "Resume" : "Pause"} ${name}`} onClick=${() => act.go(timer.id, timer.state === "paused" ? "resume" : "pause")}>${timer.state === "paused" ? "Resume" : "Pause"}</button>`}
          ${known.role !== "viewer" && html`<button class="plain danger" aria-label=${`Remove ${name}`} onClick=${() => setDoomed(timer)}>Remove</button>`}</div></td></tr>`; })}</tbody></table>`}</div>
    ${doomed && html`<${Confirm} title="Remove this timer?" act="Remove" text="No more tasks come from it. Those that it has submitted go on." close=${() => setDoomed(null)} run=${async () => { await call("DELETE", `/timers/${doomed.id}`); list.again(); }} />`}
    ${opened && html`<${NewTimer} endpoints=${endpoints} close=${() => setOpened(false)} done=${() => { setOpened(false); list.again(); }} />`}`;
}

/** @param {{endpoints: string[], close: () => void, done: () => void}} props */
function NewTimer({ endpoints, close, done }) {
  const [by, setBy] = useState("cron");
  const add = useAction((/** @type {FormData} */ form) => {
    const schedule = by === "cron" ? { cron: String(form.get("cron")).trim(), zone: String(form.get("zone")).trim() || null }
      : { every_seconds: Math.round(Number(form.get("hours")) * 3600) };
    const task = taskOf(form);
    return call("POST", "/timers", { body: { label: task.label ?? null, schedule, task } });
  }, done);
  return html`<${Dialog} title="New timer" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void add.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>New timer</h2>
    <div class="two"><label class="field"><span>When</span><select value=${by} onChange=${(/** @type {Event} */ event) => setBy(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}><option value="cron">by a cron line</option><option value="every">every so many hours</option></select></label>
    ${by === "cron" ? html`<label class="field"><span>Cron line</span><input name="cron" required class="mono" placeholder="30 2 * * *" /><small class="help">minute, hour, day, month, weekday</small></label>
      <label class="field"><span>Time zone</span><input name="zone" defaultValue=${Intl.DateTimeFormat().resolvedOptions().timeZone} /></label>`
    : html`<label class="field"><span>Hours</span><input name="hours" type="number" min="0.1" step="any" defaultValue="24" required /></label>`}</div>
    <${TaskFields} endpoints=${endpoints} /><${Trouble} problem=${add.problem} />
    <div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${add.busy}>Make timer</button></div></form><//>`;
}
