// Timers: tasks that are submitted again and again.
import { html, useEffect, useRef, useState } from "../ui.js";
import { all, call } from "../api.js";
import { useLive } from "../store.js";
import { Command, Confirm, Dialog, Empty, Name, Search, State, Time, Trouble, useAction } from "../parts.js";
import { between, bytes, count, duration, plural, rate, shown } from "../format.js";
import { timerLine } from "../command.js";
import { OptionFields, fill, useOptions } from "../files/sheet.js";
import { TaskFields, anew, over, taskOf } from "../submit.js";

/** @param {any} schedule */
const rule = (schedule) => schedule.cron ? `${schedule.cron}${schedule.zone ? ` (${schedule.zone})` : ""}`
  : schedule.every_seconds ? `every ${duration(schedule.every_seconds).replace(/ 0 (h|min|s)$/, "")}` : "once";

/** @param {any} timer */
const nameOf = (timer) => timer.label ?? timer.task.label ?? null;

/** @param {{known: import("../types.js").Whoami, endpoints: string[], id: string|null}} props */
export function Timers({ known, endpoints, id }) {
  const list = useLive((signal) => all("/timers", {}, 5000, signal), [], (event) => event.kind.startsWith("timer-") || (event.kind === "updated" && event.task == null));
  const [opened, setOpened] = useState(false);
  const [text, setText] = useState("");
  const [edited, setEdited] = useState(/** @type {any} */ (null));
  const [doomed, setDoomed] = useState(/** @type {any} */ (null));
  const act = useAction((id, verb) => call("POST", `/timers/${id}/${verb}`), list.again);
  const items = /** @type {any[]} */ (list.value?.items ?? []), changes = known.role !== "viewer";
  const one = id ? items.find((timer) => timer.id === id) : null;
  const shownItems = text ? items.filter((timer) => JSON.stringify([nameOf(timer), timer.owner, timer.task.pairs]).toLowerCase().includes(text.toLowerCase())) : items;
  const buttons = (/** @type {any} */ timer) => html`<div class="bar-of-buttons">${timer.state !== "ended" && changes && html`<button disabled=${act.busy} aria-label=${`${timer.state === "paused" ? "Resume" : "Pause"} ${nameOf(timer) ?? timer.id}`} onClick=${() => act.go(timer.id, timer.state === "paused" ? "resume" : "pause")}>${timer.state === "paused" ? "Resume" : "Pause"}</button>`}
    ${changes && html`<button aria-label=${`Edit ${nameOf(timer) ?? timer.id}`} onClick=${() => setEdited(timer)}>Edit</button><button class="plain danger" aria-label=${`Remove ${nameOf(timer) ?? timer.id}`} onClick=${() => setDoomed(timer)}>Remove</button>`}</div>`;
  const head = one ? html`<div class="view-head"><div><div class="task-title"><h1><bdi>${shown(nameOf(one) ?? "Timer")}</bdi></h1><${State} state=${one.state} /></div><p class="small quiet mono">${one.id}</p></div>${buttons(one)}</div>`
    : html`<div class="view-head"><h1>${id && list.value ? "No such timer" : "Timers"}</h1>${!id && changes && html`<button class="main" onClick=${() => setOpened(true)}>New timer</button>`}</div>`;
  return html`${head}<${Trouble} problem=${list.problem ?? act.problem} again=${list.problem ? list.again : undefined} />
    ${one ? html`<${One} timer=${one} />` : id ? list.value && html`<p><a href="#/timers">All timers</a></p>` : html`
    ${items.length > 8 && html`<div class="filters"><${Search} label="Find a timer" value=${text} set=${setText} /></div>`}
    <div class="sheet scroll-x" tabindex="0" role="region" aria-label="Timers">${list.loading ? html`<p class="pad quiet">Loading…</p>`
      : items.length === 0 ? !list.problem && html`<${Empty} title="No timers yet">A timer submits a task at set times, such as each night.<//>`
      : shownItems.length === 0 ? html`<${Empty} title="No timer fits"><button onClick=${() => setText("")}>Show all timers</button><//>`
      : html`<table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">What</th><th scope="col">When</th><th scope="col">Next run</th><th scope="col" class="num">Runs</th><th scope="col">Last task</th>${known.role === "admin" && html`<th scope="col">Owner</th>`}<th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
      ${shownItems.map((timer) => { const [pair, ...more] = timer.task.pairs ?? [], name = nameOf(timer); return html`<tr key=${timer.id}><td><${State} state=${timer.state} /></td>
        <td class="path"><a href=${`#/timers/${timer.id}`}><bdi>${name ? shown(name) : pair ? shown(pair.source) : timer.id}</bdi></a>
          ${pair && html`<div class="mono quiet"><${Name}>${pair.source}<//>${pair.destination && html` → <${Name}>${pair.destination}<//>`}${more.length > 0 && ` and ${plural(more.length, "more pair")}`}</div>`}</td>
        <td class="mono">${rule(timer.schedule)}</td><td><${Time} at=${timer.next_run} /></td><td class="num">${count(timer.runs)}</td>
        <td>${timer.last_task ? html`<a href=${`#/tasks/${timer.last_task}`} aria-label=${`Last task of ${nameOf(timer) ?? timer.id}`}>last task</a>` : html`<span class="quiet">–</span>`}</td>${known.role === "admin" && html`<td>${timer.owner}</td>`}
        <td class="acts">${buttons(timer)}</td></tr>`; })}</tbody></table>`}</div>`}
    ${doomed && html`<${Confirm} title="Remove this timer?" act="Remove" text="No more tasks come from it. Those that it has submitted go on." close=${() => setDoomed(null)} run=${async () => { await call("DELETE", `/timers/${doomed.id}`); if (id) location.hash = "#/timers"; list.again(); }} />`}
    ${edited && html`<${TimerForm} before=${edited} endpoints=${endpoints} close=${() => setEdited(null)} done=${() => { setEdited(null); list.again(); }} />`}
    ${opened && html`<${TimerForm} endpoints=${endpoints} close=${() => setOpened(false)} done=${() => { setOpened(false); list.again(); }} />`}`;
}

/** @type {Record<string, string>} */
const OVERLAPS = { skip: "the run is left out", wait: "the run comes when the task has ended", start: "the run comes all the same" };

/** One timer: its schedule, its task, and what its runs became. @param {{timer: any}} props */
function One({ timer }) {
  const { known: options } = useOptions();
  const tasks = useLive((signal) => call("GET", "/tasks", { query: { timer: timer.id, limit: 100 }, signal }), [timer.id], (event) => event.kind !== "progress" && event.task != null);
  const rows = /** @type {import("../types.js").Task[]} */ (tasks.value?.items ?? []), { schedule } = timer;
  return html`<div class="columns"><section class="sheet" aria-label="Schedule"><div class="part-head"><h2>Schedule</h2></div><dl class="facts pad">
      <dt>Runs</dt><dd class="mono">${rule(schedule)}</dd><dt>Next run</dt><dd><${Time} at=${timer.next_run} /></dd><dt>So far</dt><dd>${plural(timer.runs, "run")}${schedule.runs ? ` of ${count(schedule.runs)}` : ""}</dd>
      ${schedule.until && html`<dt>Until</dt><dd><${Time} at=${schedule.until} /></dd>`}
      <dt>If the task before still runs</dt><dd>${OVERLAPS[schedule.overlap ?? "skip"]}</dd><dt>Owner</dt><dd>${timer.owner}</dd><dt>Made</dt><dd><${Time} at=${timer.made} /></dd></dl></section>
    <section class="sheet" aria-label="Task"><div class="part-head"><h2>What it submits</h2></div><dl class="facts pad"><dt>Kind</dt><dd>${timer.task.kind ?? "copy"}</dd>
      ${(timer.task.pairs ?? []).slice(0, 8).map((/** @type {any} */ pair) => html`<dt>From</dt><dd class="mono"><${Name}>${pair.source}<//></dd>${pair.destination && html`<dt>To</dt><dd class="mono"><${Name}>${pair.destination}<//></dd>`}`)}</dl></section></div>
    <section class="sheet" aria-label="Runs"><div class="part-head"><h2>Runs</h2><a class="button" href=${`#/tasks?timer=${timer.id}`}>All in the list of tasks</a></div>
      <${Trouble} problem=${tasks.problem} again=${tasks.again} />
      ${rows.length === 0 ? html`<p class="pad quiet">${tasks.loading ? "Loading…" : "It has not run yet."}</p>` : html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of runs"><table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">Submitted</th><th scope="col">Took</th><th scope="col" class="num">Items</th><th scope="col" class="num">Moved</th><th scope="col" class="num">Mean rate</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
      ${rows.map((task) => html`<tr key=${task.id}><td><${State} state=${task.state} /></td><td><${Time} at=${task.submitted} /></td><td class="nowrap">${task.ended && task.started ? between(task.started, task.ended) : "–"}</td><td class="num">${count(task.progress.items_done)}</td><td class="num">${bytes(task.progress.bytes_moved)}</td><td class="num">${task.progress.rates?.all ? rate(task.progress.rates.all) : "–"}</td><td><a href=${`#/tasks/${task.id}`} aria-label=${`Show the task of ${task.submitted}`}>show</a></td></tr>`)}</tbody></table></div>`}</section>
    <section class="sheet" aria-label="At the command line"><div class="part-head"><h2>The same at the command line</h2></div><div class="pad">${options && html`<${Command} line=${timerLine(options, schedule, { label: timer.label, ...timer.task })} />`}</div></section>`;
}

/** A moment as a field for it has it, in the reader's zone. @param {string|null|undefined} moment */
export function localTime(moment) {
  if (!moment) return "";
  const date = new Date(moment);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
/** @type {[string, number][]} the greatest first */
const UNITS = [["86400", 86400], ["3600", 3600], ["60", 60]];

/** Makes a timer, or changes one. @param {{before?: any, endpoints: string[], close: () => void, done: () => void}} props */
function TimerForm({ before, endpoints, close, done }) {
  const [by, setBy] = useState(!before || before.schedule.cron ? "cron" : before.schedule.every_seconds ? "every" : "once");
  const form = useRef(/** @type {HTMLFormElement|null} */ (null)), every = before?.schedule.every_seconds ?? 86400;
  const [, unit] = UNITS.find(([, seconds]) => every % seconds === 0) ?? ["60", 60];
  const pairs = before?.task.pairs ?? [], apart = pairs.some((/** @type {any} */ pair) => pair.destination !== pairs[0].destination);
  const [line, setLine] = useState("");
  const { known, problem } = useOptions();
  const read = (/** @type {HTMLFormElement} */ whole) => {
    const form = new FormData(whole), text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    const moment = (/** @type {string} */ name) => text(name) && new Date(text(name)).toISOString();
    const task = taskOf(whole, known), start = moment("start"), until = moment("until"), runs = Number(text("runs"));
    // The form does not offer it.
    const jitter = by !== "once" && before?.schedule.jitter_seconds;
    const schedule = { ...(jitter && { jitter_seconds: jitter }), ...(by === "cron" ? { cron: text("cron"), zone: text("zone") || null } : by === "every" ? { every_seconds: Math.round(Number(text("every")) * Number(text("unit"))) } : {}),
      ...(start && { start }), ...(until && by !== "once" && { until }), ...(runs && by !== "once" && { runs }), ...(by !== "once" && { overlap: text("overlap") }) };
    if (!before) return { label: task.label ?? null, schedule, task };
    // What a form does not offer stays as the timer has it.
    const merged = over(anew(before.task), apart ? { ...task, kind: before.task.kind, pairs } : task, known);
    return { label: task.label ?? null, schedule, task: merged };
  };
  useEffect(() => { if (before && known && form.current) fill(form.current, known, { label: before.label, ...before.task }); }, [known]);
  // Somebody else's change since it was opened is not written over.
  const [version] = useState(before?.version);
  const add = useAction((/** @type {HTMLFormElement} */ form) => before ? call("PATCH", `/timers/${before.id}`, { headers: { "if-match": `"${version}"` }, body: read(form) }) : call("POST", "/timers", { body: read(form) }), done);
  const typed = (/** @type {Event} */ event) => {
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    // A time that is half typed is none yet.
    taskOf(form, known);
    if (known && form.checkValidity()) { const { schedule, task } = read(form); setLine(timerLine(known, schedule, task)); } else setLine("");
  };
  const title = before ? "Edit timer" : "New timer", { schedule = {} } = before ?? {};
  return html`<${Dialog} title=${title} close=${close}><form ref=${form} onInput=${typed} onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void add.go(event.currentTarget); }}><h2>${title}</h2>
    <div class="two"><label class="field"><span>When</span><select value=${by} onChange=${(/** @type {Event} */ event) => setBy(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}><option value="cron">by a cron line</option><option value="every">every so often</option><option value="once">once</option></select></label>
    ${by === "cron" ? html`<label class="field"><span>Cron line</span><input name="cron" required class="mono" placeholder="30 2 * * *" defaultValue=${schedule.cron ?? ""} /><small class="help">minute, hour, day, month, weekday</small></label>
      <label class="field"><span>Time zone</span><input name="zone" defaultValue=${before ? schedule.zone ?? "" : Intl.DateTimeFormat().resolvedOptions().timeZone} /></label>`
    : by === "every" ? html`<div class="two halves"><label class="field"><span>Every</span><input name="every" type="number" min="1" step="any" defaultValue=${before ? every / unit : 24} required /></label><label class="field"><span>Unit</span><select name="unit">${[["3600", "hours"], ["86400", "days"], ["60", "minutes"]].map(([value, text]) => html`<option value=${value} selected=${value === (before ? String(unit) : "3600")}>${text}</option>`)}</select></label></div>` : null}
    <label class="field"><span>${by === "once" ? "At" : "First run"}</span><input name="start" type="datetime-local" required=${by === "once"} defaultValue=${localTime(schedule.start)} />${by === "every" && html`<small class="help">left out: at once</small>`}</label></div>
    ${by !== "once" && html`<details open=${Boolean(before?.schedule.until || before?.schedule.runs || (before && before.schedule.overlap !== "skip"))}><summary>End, and overlapping runs</summary><div class="two pad-top"><label class="field"><span>No run after</span><input name="until" type="datetime-local" defaultValue=${localTime(schedule.until)} /></label><label class="field"><span>Runs in all</span><input name="runs" type="number" min="1" placeholder="no end" defaultValue=${schedule.runs ?? ""} /></label>
      <label class="field"><span>If the task before still runs</span><select name="overlap">${Object.entries(OVERLAPS).map(([name, text]) => html`<option value=${name} selected=${name === before?.schedule.overlap}>${text}</option>`)}</select></label></div></details>`}
    ${apart ? html`<p class="help">Its ${plural(pairs.length, "pair")} stay as they are.</p>${known && html`<div class="task-sheet stack"><${OptionFields} known=${known} kind=${before.task.kind ?? "copy"} /></div>`}` : html`<${TaskFields} endpoints=${endpoints} known=${known} filled=${before?.task} />`}${line && html`<${Command} line=${line} />`}<${Trouble} problem=${add.problem ?? problem} />
    <div class="bar-of-buttons end sheet-end"><button type="button" class="plain" onClick=${close}>Cancel</button><button class="main" disabled=${add.busy || Boolean(before && !known)}>${before ? "Save" : "Make timer"}</button></div></form><//>`;
}
