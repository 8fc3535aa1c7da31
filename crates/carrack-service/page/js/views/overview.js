// For whoever looks after it: what moves and waits, what was moved in a time, which pairs work, what went wrong and when.
import { html, useMemo, useRef, useState } from "../ui.js";
import { call } from "../api.js";
import { useEvery, useLive } from "../store.js";
import { Confirm, Mark, Name, Progress, Segments, State, Time, Trouble, useAction } from "../parts.js";
import { Plot } from "../plot.js";
import { ahead, bytes, count, duration, now, percent, percentText, plural, rate, title } from "../format.js";
import { actOn } from "../acts.js";
import { ordered, waits } from "../health.js";
import { share, tone } from "../share.js";
import { limitOf } from "../verdict.js";

/** @typedef {import("../types.js").Task} Task */
/**
 * @typedef {object} Figures
 * @property {string} from @property {string} to @property {number} step_seconds @property {number[]} moved
 * @property {number[]} waiting @property {number[]} running @property {number} rate @property {{state: string, tasks: number}[]} ended @property {{state: string, tasks: number}[]} states
 * @property {{source: string, destination: string, bytes: number, rate: number|null, succeeded: number, partial: number, failed: number, cancelled: number, success: number|null}[]} pairs
 * @property {{code: string, side: string, count: number, steps: number[]}[]} failures @property {Task[]} slowest @property {Task[]} stuck
 */
/**
 * @typedef {{kind: string, host: string, disk?: string, path?: string, peer?: string}} FaultPlace
 * @typedef {object} Faults
 * @property {number} tasks @property {number} faulty @property {boolean} complete
 * @property {{place: FaultPlace, alike: FaultPlace[], endpoints: string[], from: string, to: string, tasks: number, faulty: number, tasks_elsewhere: number, faulty_elsewhere: number, codes: {code: string, tasks: number}[], examples: string[]}[]} bursts
 */
/** Waiting tasks that are grouped; of more, the rest is counted. */
const WAITING_MOST = 1000;
const SHOWN = 8, HOUR = 3_600_000, DAY = 24 * HOUR;
/** Figures are read again after an end, but no sooner than this, in milliseconds. */
const CALM = 5000;
/** How often they are read again for whoever is told of no events. */
const SECONDS = 10;
/** @type {Record<string, [number, number]>} how long, and in how many steps */
const SPANS = { day: [DAY, 24], week: [7 * DAY, 28], month: [30 * DAY, 30] };

/** @type {Record<string, string>} */
const DAYS = { day: "1", week: "7", month: "30" };

/** @param {{known: import("../types.js").Whoami, list: any, isWall?: boolean}} props `list`: all endpoints; `isWall`: for a screen that many look at */
export function Overview({ known, list, isWall = false }) {
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
  useEvery(isViewer || isWall ? SECONDS * 1000 : 0, () => { figures.again(); if (isWall) list.again(); });
  const open = useLive(async (signal) => {
    if (isViewer) return { active: [], waiting: [], more: 0 };
    const of = (/** @type {string} */ state, /** @type {number} */ limit) => call("GET", "/tasks", { query: { state, limit, offset: 0 }, signal });
    const [active, waiting] = await Promise.all([of("ACTIVE,CANCELLING", 200), of("QUEUED,STAGING,PAUSED", WAITING_MOST)]);
    return { active: /** @type {Task[]} */ (active.items), waiting: /** @type {Task[]} */ (waiting.items), more: waiting.total - waiting.items.length };
  }, [], (event, now) => {
    if (event.kind !== "progress" || !now) return event.task != null;
    return { ...now, active: now.active.map((task) => task.id === event.task && event.detail.progress ? { ...task, progress: event.detail.progress } : task) };
  });
  const asked = useRef(0);
  const faults = useLive(async (signal) => {
    if (isViewer) return null;
    asked.current = performance.now();
    return /** @type {Faults} */ (await call("GET", "/faults", { query: { from: new Date(now() - length).toISOString() }, signal }));
  }, [over], (event) => event.kind === "ended" && performance.now() - asked.current > CALM);
  const problem = figures.problem ?? open.problem ?? faults.problem;
  const head = html`<div class="view-head"><h1>Overview${isViewer ? " of all tasks" : ""}</h1>
    <${Segments} value=${over} set=${setOver} label="Over how long" choices=${[["day", "24 hours"], ["week", "7 days"], ["month", "30 days"]]} />${!isWall && html`<a class="button" href="#/overview?wall">Wall view</a>`}</div>`;
  if (!figures.value || !open.value) return html`${head}${problem ? html`<${Trouble} problem=${problem} again=${() => { figures.again(); open.again(); }} />` : html`<div class="sheet loading"><p class="quiet">Loading…</p></div>`}`;
  return html`${head}<${Trouble} problem=${problem} again=${() => { figures.again(); open.again(); }} /><${Shown} figures=${figures.value} isViewer=${isViewer} ...${open.value} days=${DAYS[over]} again=${open.again} endpoints=${list.value?.items ?? []} faults=${faults.value} />`;
}

/** What was moved in each step, over another panel. @param {Figures} figures @param {import("../plot.js").Panel} below */
export function overTime(figures, below) {
  const from = Date.parse(figures.from) / 1000, step = figures.step_seconds, end = Date.parse(figures.to) / 1000;
  // Of the step under way only a part has passed.
  const passed = (/** @type {number} */ at) => Math.max(1, Math.min(step, end - from - at * step));
  return { times: figures.moved.map((_, at) => from + (at + 0.5) * step), panels: [
    { label: "Mean rate", bars: true, lines: [{ label: "Mean rate", unit: /** @type {const} */ ("rate"), values: figures.moved.map((moved, at) => moved / passed(at)) }] }, below] };
}

/** @param {{figures: Figures, active: Task[], waiting: Task[], more: number, isViewer: boolean, days: string, endpoints: any[], again: () => void, faults: Faults|null|undefined}} props `more`: tasks that wait beside those in `waiting` */
function Shown({ figures, active, waiting, more, isViewer, days, endpoints, again, faults }) {
  const now = isViewer ? figures.rate : active.reduce((sum, task) => sum + (task.progress.rates?.now ?? 0), 0);
  const inState = (/** @type {string[]} */ ...states) => figures.states.filter((one) => states.includes(one.state)).reduce((sum, one) => sum + one.tasks, 0);
  const ended = (/** @type {string[]} */ ...states) => figures.ended.filter((one) => states.includes(one.state)).reduce((sum, one) => sum + one.tasks, 0);
  const good = ended("SUCCEEDED"), judged = ended("SUCCEEDED", "PARTIAL", "FAILED");
  const curve = useMemo(() => overTime(figures, { label: "Tasks", lines: [{ label: "Running", unit: "count", values: figures.running }, { label: "Waiting", unit: "count", values: figures.waiting }] }), [figures]);
  const sick = ordered(endpoints).filter(({ health }) => health?.state === "down" || health?.state === "degraded"), names = sick.map(({ name }) => name);
  const groups = useMemo(() => waits(waiting, names), [waiting, names.join()]);
  // Whoever sees no tasks is given no links to them.
  const link = (/** @type {string} */ to, /** @type {any} */ text) => isViewer ? text : html`<a class="soft" href=${`#/tasks?${to}`}>${text}</a>`;
  return html`<dl class="sheet totals"><div><dt>Rate now</dt><dd>${rate(now)}</dd></div><div><dt>Running</dt><dd>${link("state=running", count(inState("ACTIVE", "CANCELLING")))}</dd></div><div><dt>Waiting</dt><dd>${link("state=waiting", count(inState("QUEUED", "STAGING", "PAUSED")))}</dd></div>
      <div><dt>Moved</dt><dd>${bytes(figures.moved.reduce((all, one) => all + one, 0))}</dd></div><div><dt>Succeeded</dt><dd>${judged ? link(`state=done&days=${days}`, percentText(percent(good, judged))) : "–"}<small>${judged ? `of ${plural(judged, "task")}` : "no task has ended"}</small></dd></div></dl>
    <div class="flow">${sick.length > 0 && html`<${Sick} endpoints=${sick} />`}
    ${!isViewer && html`<${Waiting} groups=${groups} more=${more} again=${again} />`}
    ${!isViewer && html`<${Attention} stuck=${figures.stuck} slow=${figures.slowest} />`}
    <section class="sheet" aria-label="Failures by cause"><div class="part-head"><h2>Failures by cause</h2>${!isViewer && html`<a class="button" href=${`#/tasks?state=trouble&days=${days}`}>Tasks that failed</a>`}</div><${Causes} figures=${figures} days=${isViewer ? null : days} /></section>
    ${faults && html`<${Bursts} faults=${faults} />`}
    <${Plot} label="Throughput and queue" ...${curve} isEmpty=${!figures.moved.some(Boolean) && !figures.running.some(Boolean) && !figures.waiting.some(Boolean)} />
    ${!isViewer && html`<${Active} tasks=${active} />
    <section class="sheet" aria-label="Pairs of endpoints"><div class="part-head"><h2>Pairs of endpoints</h2></div><${Pairs} pairs=${figures.pairs} days=${days} /></section>`}</div>`;
}

/** Places that keep tasks from going on. @param {{endpoints: any[]}} props */
const Sick = ({ endpoints }) => html`<section class="sheet" aria-label="Endpoints with trouble"><div class="part-head"><h2>Endpoints with trouble</h2><a class="button" href="#/endpoints">All endpoints</a></div>
  <ul class="causes">${endpoints.map(({ name, health }) => html`<li key=${name}><div class="task-title"><a href=${`#/endpoints/${encodeURIComponent(name)}`}><strong>@${name}</strong></a><span class=${`chip ${health.state === "down" ? "bad" : "warn"}`}><${Mark} of=${health.state === "down" ? "bad" : "warn"} />${health.state === "down" ? "Down" : "Degraded"}</span>
    ${health.open_tasks > 0 && html`<a href=${`#/tasks?state=open&endpoint=${encodeURIComponent(name)}`}>${plural(health.open_tasks, "open task")}</a>`}</div>
    ${health.last_fault && html`<span class="small">${health.last_fault.code}${health.last_fault.why && html`, <${Name}>${health.last_fault.why}<//>`}</span>`}<span class="quiet small">last contact ${health.last_contact ? html`<${Time} at=${health.last_contact} />` : "never"}</span></li>`)}</ul></section>`;

/** @type {Record<string, string>} */
const WAIT_ACTS = { retry: "Try now", confirm: "", guard: "", paused: "Resume" };

/** Reasons by which the service finds tasks; it makes up the others as it plans. */
const LEDGER_CAUSES = ["guard", "confirm"];

/** Whether somebody can have them go on at once. Where a whole link got nowhere, the service itself tries one task at a time. @param {import("../health.js").Wait} group */
const canAct = ({ cause, why }) => cause !== "retry" || !why.includes("one task at a time");

/** What tasks wait for, a line for each reason. @param {{groups: import("../health.js").Wait[], more: number, again: () => void}} props */
function Waiting({ groups, more, again }) {
  const [asked, setAsked] = useState(/** @type {import("../health.js").Wait|null} */ (null));
  const [told, setTold] = useState("");
  const resume = useAction((/** @type {import("../health.js").Wait} */ group) => actOn("resume", group.tasks), (/** @type {import("../acts.js").Done} */ done) => { setTold(done.text); again(); });
  const words = (/** @type {import("../health.js").Wait} */ { cause, endpoint }) => `#/tasks?${new URLSearchParams({ state: cause === "paused" ? "paused" : "waiting", ...(LEDGER_CAUSES.includes(cause) && { cause }), ...(endpoint && { endpoint }) })}`;
  return html`<section class="sheet" aria-label="Waiting"><div class="part-head"><h2>Waiting</h2><a class="button" href="#/tasks?state=waiting">Tasks that wait</a></div>
    <p class="hidden-text" role="status">${told}</p><${Trouble} problem=${resume.problem} />
    ${groups.length === 0 ? html`<p class="pad quiet">No task waits.</p>` : html`<ul class="causes">${groups.slice(0, SHOWN).map((group) => { const { cause, why, hint, endpoint, since, next, tasks } = group, act = canAct(group) ? WAIT_ACTS[cause] : ""; return html`<li key=${`${cause} ${why} ${endpoint}`}><div class="task-title"><strong><a href=${words(group)}>${plural(tasks.length, "task")}</a></strong>${endpoint && html`<a href=${`#/endpoints/${encodeURIComponent(endpoint)}`}>@${endpoint}</a>`}
        ${act && html`<button class="small-button" disabled=${resume.busy} aria-label=${`${act}: ${plural(tasks.length, "task")}${endpoint ? ` of @${endpoint}` : ""}`} onClick=${() => setAsked(group)}>${act}</button>`}</div>
      <span><${Name}>${why}<//></span><span class="quiet small">since <${Time} at=${since} />${ahead(next) && html`, next try at <${Time} at=${next} />`}${hint && `. Try: ${hint}`}</span></li>`; })}
      ${groups.length > SHOWN && html`<li class="quiet">and ${plural(groups.length - SHOWN, "other reason")}</li>`}${more > 0 && html`<li class="quiet">and ${plural(more, "more task")}, which submitted before these</li>`}</ul>`}
    ${asked && html`<${Confirm} title=${`${WAIT_ACTS[asked.cause]}: ${plural(asked.tasks.length, "task")}?`} act=${WAIT_ACTS[asked.cause]} keep="Cancel" close=${() => setAsked(null)} text=${asked.why} run=${() => resume.go(asked)} />`}</section>`;
}

/** @param {{tasks: Task[]}} props */
const Active = ({ tasks }) => html`<section class="sheet" aria-label="Active"><div class="part-head"><h2>Active</h2>${tasks.length > SHOWN && html`<a href="#/tasks?state=running">all ${count(tasks.length)}</a>`}</div>
  ${tasks.length === 0 ? html`<p class="pad quiet">No task is active.</p>` : html`<ul class="causes">${tasks.slice(0, SHOWN).map((task) => html`<li key=${task.id}><div class="task-title"><a class="one-line" href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a><${State} state=${task.state} /></div>
    ${task.state === "ACTIVE" && html`<${Progress} share=${share(task)} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} />`}
    <span class="quiet small">${[rate(task.progress.rates?.now), task.progress.eta_seconds != null && `${duration(task.progress.eta_seconds)} left`, limitOf(task) && `limited by ${limitOf(task)}`].filter(Boolean).join(", ")}</span></li>`)}</ul>`}</section>`;

/** Tasks that do not get on, and the slowest of the rest. @param {{stuck: Task[], slow: Task[]}} props */
function Attention({ stuck, slow }) {
  if (!stuck.length && !slow.length) return null;
  const row = (/** @type {Task} */ task, /** @type {string} */ why) => html`<tr key=${task.id}><td><${State} state=${task.state} /></td><td class="path"><a href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a></td><td class="num">${rate(task.ended ? task.progress.rates?.all : task.progress.rates?.five_minutes ?? task.progress.rates?.now)}</td><td>${why}</td></tr>`;
  return html`<section class="sheet" aria-label="Stuck and slowest"><div class="part-head"><h2>Stuck and slowest</h2></div><div class="scroll-x" tabindex="0" role="region" aria-label="Table of stuck and slow tasks"><table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">Task</th><th scope="col" class="num">Rate</th><th scope="col">Why</th></tr></thead><tbody>
    ${stuck.map((task) => row(task, task.blocked ? `stuck: ${task.blocked.why}` : "stuck: nothing moves"))}
    ${slow.slice(0, SHOWN).map((task) => row(task, limitOf(task) ? `limited by ${limitOf(task)}` : "no limit was found"))}</tbody></table></div></section>`;
}

/** How often in each step of the time. @param {{values: number[]}} props */
function Spark({ values }) {
  const high = Math.max(1, ...values), wide = 120 / values.length;
  return html`<svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">${values.map((value, place) => value > 0 && html`<rect x=${(place * wide).toFixed(2)} width=${Math.max(1, wide - 0.6).toFixed(2)} y=${(24 - Math.max(2, (value / high) * 24)).toFixed(2)} height="24" />`)}</svg>`;
}

/** @param {{figures: Figures, days: string|null}} props `days` that the links to tasks go back; null: no links */
function Causes({ figures: { failures, from, to, step_seconds }, days }) {
  if (failures.length === 0) return html`<p class="pad quiet">Nothing has failed.</p>`;
  const last = (/** @type {number[]} */ steps) => new Date(Math.min(Date.parse(to), Date.parse(from) + (steps.findLastIndex((one) => one > 0) + 1) * step_seconds * 1000));
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of causes"><table class="plain-table"><thead><tr><th scope="col">Cause</th><th scope="col">Side</th><th scope="col" class="num">Times</th><th scope="col">When</th><th scope="col">Last seen before</th></tr></thead><tbody>
    ${failures.map((cause) => html`<tr key=${`${cause.side} ${cause.code}`}><td class="nowrap"><strong>${days ? html`<a href=${`#/tasks?${new URLSearchParams({ state: "trouble", cause: cause.code, days })}`}>${cause.code}</a>` : cause.code}</strong></td><td>${cause.side}</td><td class="num">${count(cause.count)}</td><td><${Spark} values=${cause.steps} /></td><td class="nowrap"><${Time} at=${last(cause.steps).toISOString()} /></td></tr>`)}</tbody></table></div>`;
}

/** A place that faults are counted by. @param {FaultPlace} place */
export function placeWords({ kind, host, disk, path, peer }) {
  if (kind === "host") return `host ${host}`;
  if (kind === "link") return `way between ${host} and ${peer}`;
  return kind === "disk" ? `file system ${disk?.slice(0, 8)} of host ${host}${path ? `, used at ${path}` : ""}` : `directory ${path} of host ${host}`;
}

/** Places where tasks fail far more often than elsewhere. @param {{faults: Faults}} props */
function Bursts({ faults: { tasks, faulty, complete, bursts } }) {
  const counted = `${complete ? "" : "the latest "}${plural(tasks, "task")}`;
  return html`<section class="sheet" aria-label="Bursts of faults"><div class="part-head"><h2>Bursts of faults</h2></div>
    ${bursts.length === 0 ? html`<p class="pad quiet">No place stands out: ${count(faulty)} of ${counted} had a fault.</p>` : html`<ul class="causes">${bursts.map((burst) => { const { place, alike, endpoints, codes } = burst; return html`<li key=${placeWords(place)}><div class="task-title"><strong><${Name}>${placeWords(place)}<//></strong>
      <span class="chip bad"><${Mark} of="bad" />${count(burst.faulty)} of ${plural(burst.tasks, "task")}</span>${endpoints.map((name) => html`<a key=${name} href=${`#/endpoints/${encodeURIComponent(name)}`}>@${name}</a>`)}</div>
      <span>${codes.map((one) => `${one.code} ${count(one.tasks)}`).join(", ")}; elsewhere ${count(burst.faulty_elsewhere)} of ${plural(burst.tasks_elsewhere, "task")} had a fault</span>
      ${alike.length > 0 && html`<span class="small">The same tasks were at: <${Name}>${alike.map(placeWords).join("; ")}<//></span>`}
      <span class="quiet small">from <${Time} at=${burst.from} /> to <${Time} at=${burst.to} />, ${burst.examples.slice(0, 3).map((id, at) => html`${at > 0 && ", "}<a key=${id} href=${`#/tasks/${id}`}>task ${id.slice(-6)}</a>`)}</span></li>`; })}</ul>`}</section>`;
}

/** From each source to each destination: share that succeeded, and rate. @param {{pairs: Figures["pairs"], days: string}} props */
function Pairs({ pairs, days }) {
  const two = pairs.filter((pair) => pair.destination);
  if (two.length === 0) return html`<p class="pad quiet">Nothing was moved in this time.</p>`;
  const sources = [...new Set(two.map((pair) => pair.source))].sort(), destinations = [...new Set(two.map((pair) => pair.destination))].sort();
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of pairs"><table class="plain-table matrix"><thead><tr><th scope="col">From, to</th>${destinations.map((to) => html`<th scope="col">${to}</th>`)}</tr></thead><tbody>
    ${sources.map((from) => html`<tr key=${from}><th scope="row">${from}</th>${destinations.map((to) => {
      const pair = two.find((one) => one.source === from && one.destination === to);
      if (!pair) return html`<td class="quiet">–</td>`;
      const { success, rate: speed, bytes: moved } = pair, ended = pair.succeeded + pair.partial + pair.failed;
      return html`<td>${success !== null && html`<span class=${`chip ${success === 1 ? "good" : success >= 0.5 ? "warn" : "bad"}`}>${percentText(percent(pair.succeeded, ended))}</span> `}<strong>${speed ? rate(speed) : "–"}</strong><div class="quiet small">${from.startsWith("@") && to.startsWith("@") ? html`<a href=${`#/tasks?${new URLSearchParams({ from: from.slice(1), to: to.slice(1), days })}`}>${plural(ended, "task")}</a>` : plural(ended, "task")}, ${bytes(moved)}</div></td>`; })}</tr>`)}</tbody></table></div>`;
}
