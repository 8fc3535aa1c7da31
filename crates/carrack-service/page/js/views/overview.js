// For whoever looks after it: what moves and waits, what was moved in a time, which pairs work, what went wrong and when.
import { html, useMemo, useState } from "../ui.js";
import { all } from "../api.js";
import { useLive } from "../store.js";
import { Empty, Progress, Segments, State, Time, Trouble } from "../parts.js";
import { Plot } from "../plot.js";
import { bytes, count, duration, percent, plural, rate, title } from "../format.js";
import { share, tone } from "./tasks.js";

/** @typedef {import("../types.js").Task} Task */
/** @typedef {{from: number, step: number, slots: number}} Span milliseconds; what is shown in `slots` steps */
const LATEST = 5000, SHOWN = 8, HOUR = 3_600_000, DAY = 24 * HOUR;
/** Open tasks that have not moved for so long are stuck, in seconds. */
const STUCK = 600;
/** @type {Record<string, [number, number]>} how long, and in which steps */
const SPANS = { day: [DAY, HOUR], week: [7 * DAY, 6 * HOUR], month: [30 * DAY, DAY] };

export function Overview() {
  const [over, setOver] = useState("week");
  const [length, step] = SPANS[over];
  const view = useLive(async (signal) => {
    const to = Math.ceil(Date.now() / step) * step;
    const span = { from: to - length, step, slots: length / step };
    const [open, ended] = await Promise.all([
      all("/tasks", { state: "ACTIVE,STAGING,CANCELLING,QUEUED,PAUSED" }, LATEST, signal),
      all("/tasks", { state: "SUCCEEDED,PARTIAL,FAILED,CANCELLED", since: new Date(span.from).toISOString() }, LATEST, signal)]);
    return { span, open: /** @type {Task[]} */ (open.items), ended: /** @type {Task[]} */ (ended.items), whole: open.complete && ended.complete };
  }, [over], (event, now) => {
    if (event.kind !== "progress" || !now) return event.task != null;
    return { ...now, open: now.open.map((task) => task.id === event.task && event.detail.progress ? { ...task, progress: event.detail.progress } : task) };
  });
  const head = html`<div class="view-head"><h1>Overview</h1>
    <${Segments} value=${over} set=${setOver} label="Over how long" choices=${[["day", "24 hours"], ["week", "7 days"], ["month", "30 days"]]} /></div>`;
  if (!view.value) return html`${head}${view.problem ? html`<${Trouble} problem=${view.problem} again=${view.again} />` : html`<p class="quiet">Loading…</p>`}`;
  return html`${head}<${Trouble} problem=${view.problem} again=${view.again} />
    ${!view.value.whole && html`<p class="quiet">Of the latest ${count(LATEST)} tasks.</p>`}<${Shown} ...${view.value} />`;
}

/** @param {{span: Span, open: Task[], ended: Task[]}} props */
function Shown({ span, open, ended }) {
  const active = open.filter((task) => task.state === "ACTIVE"), waiting = open.filter((task) => task.state !== "ACTIVE");
  const now = active.reduce((sum, task) => sum + (task.progress.rates?.now ?? 0), 0);
  const told = useMemo(() => {
    const judged = ended.filter((task) => task.state !== "CANCELLED"), bad = judged.filter((task) => task.state !== "SUCCEEDED");
    const moved = sums(ended, span, (task) => task.progress.bytes_moved ?? 0);
    const times = Array.from({ length: span.slots }, (_, slot) => (span.from + (slot + 0.5) * span.step) / 1000);
    return { judged, bad, times, all: moved.reduce((sum, one) => sum + one, 0), panels: [
      { label: "Moved", bars: true, lines: [{ label: "Moved", unit: /** @type {const} */ ("size"), values: moved }] },
      { label: "Tasks that ended", bars: true, lines: [{ label: "All", unit: /** @type {const} */ ("count"), values: sums(judged, span, () => 1) }, { label: "Not succeeded", unit: /** @type {const} */ ("count"), values: sums(bad, span, () => 1) }] }] };
  }, [ended, span]);
  const { judged, bad } = told;
  return html`<dl class="sheet totals"><div><dt>Rate now</dt><dd>${rate(now)}</dd></div><div><dt>Active</dt><dd>${count(active.length)}</dd></div><div><dt>Waiting</dt><dd>${count(waiting.length)}</dd></div>
      <div><dt>Moved by ended tasks</dt><dd>${bytes(told.all)}</dd></div><div><dt>Succeeded</dt><dd>${judged.length ? `${percent(judged.length - bad.length, judged.length)} %` : "–"}<small>${judged.length ? `of ${plural(judged.length, "task")}` : "no task has ended"}</small></dd></div></dl>
    ${judged.length > 0 && html`<${Plot} label="Throughput" times=${told.times} panels=${told.panels} />`}
    <div class="columns"><${Queue} title="Active" empty="No task is active." tasks=${active} more="running" />
      <${Queue} title="Waiting" empty="No task waits." tasks=${waiting} more="waiting" /></div>
    <${Attention} open=${open} />
    <section class="sheet" aria-label="Failures by cause"><div class="part-head"><h2>Failures by cause</h2><a class="button" href="#/tasks?state=trouble">All of them</a></div><${Causes} tasks=${bad} span=${span} /></section>
    <section class="sheet" aria-label="Pairs of endpoints"><div class="part-head"><h2>Pairs of endpoints</h2></div><${Pairs} tasks=${judged} /></section>`;
}

/** Sums by the time at which tasks ended. @param {Task[]} tasks @param {Span} span @param {(task: Task) => number} of */
function sums(tasks, span, of) {
  const slots = Array.from({ length: span.slots }, () => 0);
  for (const task of tasks) {
    const slot = Math.floor((Date.parse(task.ended ?? "") - span.from) / span.step);
    if (slot >= 0 && slot < span.slots) slots[slot] += of(task);
  }
  return slots;
}

/** @param {{title: string, empty: string, tasks: Task[], more: string}} props */
function Queue({ title: name, empty, tasks, more }) {
  return html`<section class="sheet" aria-label=${name}><div class="part-head"><h2>${name}</h2>${tasks.length > SHOWN && html`<a href=${`#/tasks?state=${more}`}>all ${count(tasks.length)}</a>`}</div>
    ${tasks.length === 0 ? html`<p class="pad quiet">${empty}</p>` : html`<ul class="causes">${tasks.slice(0, SHOWN).map((task) => html`<li key=${task.id}><div class="task-title"><a class="one-line" href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a><${State} state=${task.state} /></div>
      ${task.state === "ACTIVE" && html`<${Progress} share=${share(task)} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} />`}
      <span class="quiet small">${task.state === "ACTIVE" ? [rate(task.progress.rates?.now), task.progress.eta_seconds != null && `${duration(task.progress.eta_seconds)} left`, task.progress.limited_by && `limited by ${task.progress.limited_by}`].filter(Boolean).join(", ")
        : task.blocked ? `${task.blocked.why}${task.position != null ? `, number ${task.position} in the queue` : ""}` : "will go on when somebody resumes it"}</span></li>`)}</ul>`}</section>`;
}

/** Open tasks that stand still, and the slowest of those that move. @param {{open: Task[]}} props */
function Attention({ open }) {
  const age = (/** @type {string|null|undefined} */ at) => at ? (Date.now() - Date.parse(at)) / 1000 : 0;
  const stuck = open.filter((task) => task.state === "ACTIVE" ? !(task.progress.rates?.now ?? 0) && !(task.progress.rates?.five_minutes ?? 0) && age(task.started) > STUCK
    : task.blocked?.cause === "retry" && age(task.blocked.since) > STUCK);
  const moving = open.filter((task) => task.state === "ACTIVE" && (task.progress.rates?.five_minutes ?? task.progress.rates?.now ?? 0) > 0);
  const slow = moving.sort((one, other) => (one.progress.rates?.five_minutes ?? 0) - (other.progress.rates?.five_minutes ?? 0)).slice(0, 5);
  if (!stuck.length && slow.length < 2) return null;
  const row = (/** @type {Task} */ task, /** @type {string} */ why) => html`<tr key=${task.id}><td><${State} state=${task.state} /></td><td class="path"><a href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a></td><td class="num">${rate(task.progress.rates?.five_minutes ?? task.progress.rates?.now)}</td><td>${why}</td></tr>`;
  return html`<section class="sheet" aria-label="Stuck and slowest"><div class="part-head"><h2>Stuck and slowest</h2></div><div class="scroll-x" tabindex="0" role="region" aria-label="Table of stuck and slow tasks"><table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">Task</th><th scope="col" class="num">Rate of 5 min</th><th scope="col">Why</th></tr></thead><tbody>
    ${stuck.map((task) => row(task, task.blocked ? `${task.blocked.why}, for ${duration(age(task.blocked.since))}` : "nothing has moved for minutes"))}
    ${slow.map((task) => row(task, task.progress.limited_by ? `limited by ${task.progress.limited_by}` : "no limit was found"))}</tbody></table></div></section>`;
}

/** How often in each step of the time. @param {{values: number[]}} props */
function Spark({ values }) {
  const high = Math.max(1, ...values), wide = 120 / values.length;
  return html`<svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">${values.map((value, place) => value > 0 && html`<rect x=${(place * wide).toFixed(2)} width=${Math.max(1, wide - 0.6).toFixed(2)} y=${(24 - Math.max(2, (value / high) * 24)).toFixed(2)} height="24" />`)}</svg>`;
}

/** @param {{tasks: Task[], span: Span}} props */
function Causes({ tasks, span }) {
  /** @type {Map<string, Task[]>} */
  const causes = new Map();
  for (const task of tasks) {
    const cause = task.failure ? `${task.failure.side}: ${task.failure.code}` : "some items failed", group = causes.get(cause);
    if (group) group.push(task); else causes.set(cause, [task]);
  }
  if (tasks.length === 0) return html`<p class="pad quiet">No task has failed.</p>`;
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of causes"><table class="plain-table"><thead><tr><th scope="col">Cause</th><th scope="col" class="num">Tasks</th><th scope="col">When</th><th scope="col">The latest</th><th scope="col">What it said, what to try</th></tr></thead><tbody>
    ${[...causes].sort((one, other) => other[1].length - one[1].length).map(([cause, group]) => html`<tr key=${cause}><td><strong>${cause}</strong></td><td class="num">${count(group.length)}</td><td><${Spark} values=${sums(group, span, () => 1)} /></td>
      <td class="nowrap"><a href=${`#/tasks/${group[0].id}`}><${Time} at=${group[0].ended} /></a></td><td class="path">${group[0].failure?.why ?? ""}${(group[0].failure?.hints ?? []).slice(0, 1).map((hint) => html`<div class="quiet">Try: ${hint}</div>`)}</td></tr>`)}</tbody></table></div>`;
}

/** The endpoint's name, or the host, of a location. @param {string|null|undefined} location */
const place = (location) => location?.startsWith("@") ? location.split(":")[0] : location?.split("://")[1]?.split("/")[0] ?? "this host";
/** @typedef {{tasks: number, good: number, moved: number, seconds: number}} Pair */

/** From each source to each destination: share that succeeded, and mean rate. @param {{tasks: Task[]}} props */
function Pairs({ tasks }) {
  const { sources, destinations, pairs } = useMemo(() => {
    /** @type {Map<string, Pair>} */
    const pairs = new Map();
    const sources = new Set(), destinations = new Set();
    for (const task of tasks) {
      const [pair] = task.request.pairs ?? [];
      if (!pair?.destination) continue;
      const from = place(pair.source), to = place(pair.destination), name = `${from}\n${to}`;
      const found = pairs.get(name) ?? { tasks: 0, good: 0, moved: 0, seconds: 0 }, moved = task.progress.bytes_moved ?? 0;
      sources.add(from); destinations.add(to);
      pairs.set(name, { tasks: found.tasks + 1, good: found.good + (task.state === "SUCCEEDED" ? 1 : 0), moved: found.moved + moved, seconds: found.seconds + (task.progress.rates?.all ? moved / task.progress.rates.all : 0) });
    }
    return { sources: /** @type {string[]} */ ([...sources]).sort(), destinations: /** @type {string[]} */ ([...destinations]).sort(), pairs };
  }, [tasks]);
  if (pairs.size === 0) return html`<${Empty} title="No transfer has ended yet" />`;
  const shareOf = (/** @type {Pair} */ pair) => percent(pair.good, pair.tasks);
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of pairs"><table class="plain-table matrix"><thead><tr><th scope="col">From, to</th>${destinations.map((to) => html`<th scope="col">${to}</th>`)}</tr></thead><tbody>
    ${sources.map((from) => html`<tr key=${from}><th scope="row">${from}</th>${destinations.map((to) => {
      const pair = pairs.get(`${from}\n${to}`);
      if (!pair) return html`<td class="quiet">–</td>`;
      const good = shareOf(pair);
      return html`<td><span class=${`chip ${good === 100 ? "good" : good >= 50 ? "warn" : "bad"}`}>${good} %</span> <strong>${pair.seconds ? rate(pair.moved / pair.seconds) : "–"}</strong><div class="quiet small">${plural(pair.tasks, "task")}, ${bytes(pair.moved)}</div></td>`; })}</tr>`)}</tbody></table></div>`;
}
