// For whoever looks after it: what moves and waits, what was moved in a time, which pairs work, what went wrong and when.
import { html, useMemo, useRef, useState } from "../ui.js";
import { call } from "../api.js";
import { useEvery, useLive } from "../store.js";
import { Progress, Segments, State, Time, Trouble } from "../parts.js";
import { Plot } from "../plot.js";
import { bytes, count, duration, now, percent, percentText, plural, rate, title } from "../format.js";
import { share, tone } from "./tasks.js";

/** @typedef {import("../types.js").Task} Task */
/**
 * @typedef {object} Figures
 * @property {string} from @property {string} to @property {number} step_seconds @property {number[]} moved
 * @property {number[]} waiting @property {number[]} running @property {number} rate @property {{state: string, tasks: number}[]} ended @property {{state: string, tasks: number}[]} states
 * @property {{source: string, destination: string, bytes: number, rate: number|null, succeeded: number, partial: number, failed: number, cancelled: number, success: number|null}[]} pairs
 * @property {{code: string, side: string, count: number, steps: number[]}[]} failures @property {Task[]} slowest @property {Task[]} stuck
 */
const SHOWN = 8, HOUR = 3_600_000, DAY = 24 * HOUR;
/** Figures are read again after an end, but no sooner than this, in milliseconds. */
const CALM = 5000;
/** How often they are read again for whoever is told of no events. */
const SECONDS = 10;
/** @type {Record<string, [number, number]>} how long, and in how many steps */
const SPANS = { day: [DAY, 24], week: [7 * DAY, 28], month: [30 * DAY, 30] };

/** @param {{known: import("../types.js").Whoami}} props */
export function Overview({ known }) {
  const [over, setOver] = useState("day");
  const [length, steps] = SPANS[over];
  const read = useRef(0);
  const figures = useLive(async (signal) => {
    read.current = performance.now();
    return /** @type {Figures} */ (await call("GET", "/overview", { query: { from: new Date(now() - length).toISOString(), steps }, signal }));
  }, [over], (event) => (event.kind === "ended" || event.kind === "submitted" || event.kind === "started") && performance.now() - read.current > CALM);
  // A viewer is told figures of all tasks, and none of the tasks themselves.
  const isViewer = known.role === "viewer";
  // No event comes of the tasks of others.
  useEvery(isViewer ? SECONDS * 1000 : 0, figures.again);
  const open = useLive(async (signal) => {
    if (isViewer) return { active: [], waiting: [] };
    const of = (/** @type {string} */ state) => call("GET", "/tasks", { query: { state, limit: 200 }, signal });
    const [active, waiting] = await Promise.all([of("ACTIVE,CANCELLING"), of("QUEUED,STAGING,PAUSED")]);
    return { active: /** @type {Task[]} */ (active.items), waiting: /** @type {Task[]} */ (waiting.items) };
  }, [], (event, now) => {
    if (event.kind !== "progress" || !now) return event.task != null;
    return { ...now, active: now.active.map((task) => task.id === event.task && event.detail.progress ? { ...task, progress: event.detail.progress } : task) };
  });
  const problem = figures.problem ?? open.problem;
  const head = html`<div class="view-head"><h1>Overview${isViewer ? " of all tasks" : ""}</h1>
    <${Segments} value=${over} set=${setOver} label="Over how long" choices=${[["day", "24 hours"], ["week", "7 days"], ["month", "30 days"]]} /></div>`;
  if (!figures.value || !open.value) return html`${head}${problem ? html`<${Trouble} problem=${problem} again=${() => { figures.again(); open.again(); }} />` : html`<p class="quiet">Loading…</p>`}`;
  return html`${head}<${Trouble} problem=${problem} again=${() => { figures.again(); open.again(); }} /><${Shown} figures=${figures.value} isViewer=${isViewer} ...${open.value} />`;
}

/** What was moved in each step, over another panel. @param {Figures} figures @param {import("../plot.js").Panel} below */
export function overTime(figures, below) {
  const from = Date.parse(figures.from) / 1000, step = figures.step_seconds, end = Date.parse(figures.to) / 1000;
  // Of the step under way only a part has passed.
  const passed = (/** @type {number} */ at) => Math.max(1, Math.min(step, end - from - at * step));
  return { times: figures.moved.map((_, at) => from + (at + 0.5) * step), panels: [
    { label: "Mean rate", bars: true, lines: [{ label: "Mean rate", unit: /** @type {const} */ ("rate"), values: figures.moved.map((moved, at) => moved / passed(at)) }] }, below] };
}

/** @param {{figures: Figures, active: Task[], waiting: Task[], isViewer: boolean}} props */
function Shown({ figures, active, waiting, isViewer }) {
  const now = isViewer ? figures.rate : active.reduce((sum, task) => sum + (task.progress.rates?.now ?? 0), 0);
  const inState = (/** @type {string[]} */ ...states) => figures.states.filter((one) => states.includes(one.state)).reduce((sum, one) => sum + one.tasks, 0);
  const ended = (/** @type {string[]} */ ...states) => figures.ended.filter((one) => states.includes(one.state)).reduce((sum, one) => sum + one.tasks, 0);
  const good = ended("SUCCEEDED"), judged = ended("SUCCEEDED", "PARTIAL", "FAILED");
  const curve = useMemo(() => overTime(figures, { label: "Tasks", lines: [{ label: "Running", unit: "count", values: figures.running }, { label: "Waiting", unit: "count", values: figures.waiting }] }), [figures]);
  return html`<dl class="sheet totals"><div><dt>Rate now</dt><dd>${rate(now)}</dd></div><div><dt>Running</dt><dd>${count(inState("ACTIVE", "CANCELLING"))}</dd></div><div><dt>Waiting</dt><dd>${count(inState("QUEUED", "STAGING", "PAUSED"))}</dd></div>
      <div><dt>Moved</dt><dd>${bytes(figures.moved.reduce((all, one) => all + one, 0))}</dd></div><div><dt>Succeeded</dt><dd>${judged ? percentText(percent(good, judged)) : "–"}<small>${judged ? `of ${plural(judged, "task")}` : "no task has ended"}</small></dd></div></dl>
    <${Plot} label="Throughput and queue" ...${curve} />
    ${!isViewer && html`<div class="columns"><${Queue} title="Active" empty="No task is active." tasks=${active} more="running" />
      <${Queue} title="Waiting" empty="No task waits." tasks=${waiting} more="waiting" /></div>
    <${Attention} stuck=${figures.stuck} slow=${figures.slowest} />`}
    <section class="sheet" aria-label="Failures by cause"><div class="part-head"><h2>Failures by cause</h2>${!isViewer && html`<a class="button" href="#/tasks?state=trouble">Tasks that failed</a>`}</div><${Causes} figures=${figures} /></section>
    ${!isViewer && html`<section class="sheet" aria-label="Pairs of endpoints"><div class="part-head"><h2>Pairs of endpoints</h2></div><${Pairs} pairs=${figures.pairs} /></section>`}`;
}

/** @param {{title: string, empty: string, tasks: Task[], more: string}} props */
function Queue({ title: name, empty, tasks, more }) {
  return html`<section class="sheet" aria-label=${name}><div class="part-head"><h2>${name}</h2>${tasks.length > SHOWN && html`<a href=${`#/tasks?state=${more}`}>all ${count(tasks.length)}</a>`}</div>
    ${tasks.length === 0 ? html`<p class="pad quiet">${empty}</p>` : html`<ul class="causes">${tasks.slice(0, SHOWN).map((task) => html`<li key=${task.id}><div class="task-title"><a class="one-line" href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a><${State} state=${task.state} /></div>
      ${task.state === "ACTIVE" && html`<${Progress} share=${share(task)} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} />`}
      <span class="quiet small">${task.state === "ACTIVE" ? [rate(task.progress.rates?.now), task.progress.eta_seconds != null && `${duration(task.progress.eta_seconds)} left`, task.progress.limited_by && `limited by ${task.progress.limited_by}`].filter(Boolean).join(", ")
        : task.blocked ? `${task.blocked.why}${task.position != null ? `, number ${task.position} in the queue` : ""}` : "will go on when somebody resumes it"}</span></li>`)}</ul>`}</section>`;
}

/** Tasks that do not get on, and the slowest of the rest. @param {{stuck: Task[], slow: Task[]}} props */
function Attention({ stuck, slow }) {
  if (!stuck.length && !slow.length) return null;
  const row = (/** @type {Task} */ task, /** @type {string} */ why) => html`<tr key=${task.id}><td><${State} state=${task.state} /></td><td class="path"><a href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a></td><td class="num">${rate(task.ended ? task.progress.rates?.all : task.progress.rates?.five_minutes ?? task.progress.rates?.now)}</td><td>${why}</td></tr>`;
  return html`<section class="sheet" aria-label="Stuck and slowest"><div class="part-head"><h2>Stuck and slowest</h2></div><div class="scroll-x" tabindex="0" role="region" aria-label="Table of stuck and slow tasks"><table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">Task</th><th scope="col" class="num">Rate</th><th scope="col">Why</th></tr></thead><tbody>
    ${stuck.map((task) => row(task, task.blocked ? `stuck: ${task.blocked.why}` : "stuck: nothing moves"))}
    ${slow.slice(0, SHOWN).map((task) => row(task, task.progress.limited_by ? `limited by ${task.progress.limited_by}` : "no limit was found"))}</tbody></table></div></section>`;
}

/** How often in each step of the time. @param {{values: number[]}} props */
function Spark({ values }) {
  const high = Math.max(1, ...values), wide = 120 / values.length;
  return html`<svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">${values.map((value, place) => value > 0 && html`<rect x=${(place * wide).toFixed(2)} width=${Math.max(1, wide - 0.6).toFixed(2)} y=${(24 - Math.max(2, (value / high) * 24)).toFixed(2)} height="24" />`)}</svg>`;
}

/** @param {{figures: Figures}} props */
function Causes({ figures: { failures, from, to, step_seconds } }) {
  if (failures.length === 0) return html`<p class="pad quiet">Nothing has failed.</p>`;
  const last = (/** @type {number[]} */ steps) => new Date(Math.min(Date.parse(to), Date.parse(from) + (steps.findLastIndex((one) => one > 0) + 1) * step_seconds * 1000));
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of causes"><table class="plain-table"><thead><tr><th scope="col">Cause</th><th scope="col">Side</th><th scope="col" class="num">Times</th><th scope="col">When</th><th scope="col">The last before</th></tr></thead><tbody>
    ${failures.map((cause) => html`<tr key=${`${cause.side} ${cause.code}`}><td><strong>${cause.code}</strong></td><td>${cause.side}</td><td class="num">${count(cause.count)}</td><td><${Spark} values=${cause.steps} /></td><td class="nowrap"><${Time} at=${last(cause.steps).toISOString()} /></td></tr>`)}</tbody></table></div>`;
}

/** From each source to each destination: share that succeeded, and rate. @param {{pairs: Figures["pairs"]}} props */
function Pairs({ pairs }) {
  const two = pairs.filter((pair) => pair.destination);
  if (two.length === 0) return html`<p class="pad quiet">Nothing was moved in this time.</p>`;
  const sources = [...new Set(two.map((pair) => pair.source))].sort(), destinations = [...new Set(two.map((pair) => pair.destination))].sort();
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of pairs"><table class="plain-table matrix"><thead><tr><th scope="col">From, to</th>${destinations.map((to) => html`<th scope="col">${to}</th>`)}</tr></thead><tbody>
    ${sources.map((from) => html`<tr key=${from}><th scope="row">${from}</th>${destinations.map((to) => {
      const pair = two.find((one) => one.source === from && one.destination === to);
      if (!pair) return html`<td class="quiet">–</td>`;
      const { success, rate: speed, bytes: moved } = pair, ended = pair.succeeded + pair.partial + pair.failed;
      return html`<td>${success !== null && html`<span class=${`chip ${success === 1 ? "good" : success >= 0.5 ? "warn" : "bad"}`}>${percentText(percent(pair.succeeded, ended))}</span> `}<strong>${speed ? rate(speed) : "–"}</strong><div class="quiet small">${plural(ended, "task")}, ${bytes(moved)}</div></td>`; })}</tr>`)}</tbody></table></div>`;
}
