// What moves, what waits, and what went wrong among the latest tasks.
import { html } from "../ui.js";
import { all, call } from "../api.js";
import { useLive } from "../store.js";
import { Empty, Progress, State, Time, Trouble } from "../parts.js";
import { bytes, count, duration, percent, plural, rate, title } from "../format.js";
import { share, tone } from "./tasks.js";

/** @typedef {import("../types.js").Task} Task */
const LATEST = 1000, DAYS = 7;

export function Overview() {
  const since = new Date(Date.now() - DAYS * 86_400_000).toISOString();
  const view = useLive(async (signal) => {
    const [open, ended] = await Promise.all([
      all("/tasks", { state: "ACTIVE,STAGING,CANCELLING,QUEUED,PAUSED" }, LATEST, signal),
      call("GET", "/tasks", { query: { state: "SUCCEEDED,PARTIAL,FAILED,CANCELLED", since, limit: LATEST }, signal })]);
    return { open: /** @type {Task[]} */ (open.items), ended: /** @type {Task[]} */ (ended.items), whole: open.complete && !ended.next };
  }, [], (event, now) => {
    if (event.kind !== "progress" || !now) return event.task != null;
    return { ...now, open: now.open.map((task) => task.id === event.task && event.detail.progress ? { ...task, progress: event.detail.progress } : task) };
  });
  if (!view.value) return html`<div class="view-head"><h1>Overview</h1></div>${view.problem ? html`<${Trouble} problem=${view.problem} again=${view.again} />` : html`<p class="quiet">Loading…</p>`}`;
  const { open, ended, whole } = view.value;
  const active = open.filter((task) => task.state === "ACTIVE"), waiting = open.filter((task) => task.state !== "ACTIVE");
  const now = active.reduce((sum, task) => sum + (task.progress.rates?.now ?? 0), 0);
  const moved = ended.reduce((sum, task) => sum + (task.progress.bytes_moved ?? 0), 0);
  const bad = ended.filter((task) => task.state === "FAILED" || task.state === "PARTIAL");
  const judged = ended.filter((task) => task.state !== "CANCELLED");
  return html`<div class="view-head"><h1>Overview</h1><span class="quiet">tasks of the last ${DAYS} days${whole ? "" : `, the latest ${count(LATEST)}`}</span></div>
    <${Trouble} problem=${view.problem} again=${view.again} />
    <dl class="sheet totals"><div><dt>Rate now</dt><dd>${rate(now)}</dd></div><div><dt>Active</dt><dd>${count(active.length)}</dd></div><div><dt>Waiting</dt><dd>${count(waiting.length)}</dd></div>
      <div><dt>Moved by ended tasks</dt><dd>${bytes(moved)}</dd></div><div><dt>Success</dt><dd>${judged.length ? `${percent(judged.length - bad.length, judged.length)} %` : "–"}</dd></div></dl>
    <div class="columns"><section class="sheet" aria-label="Active and waiting"><div class="part-head"><h2>Active and waiting</h2></div>
        ${open.length === 0 ? html`<${Empty} title="Nothing moves">No task is active or waits.<//>` : html`<ul class="causes">${[...active, ...waiting].slice(0, 20).map((task) => html`<li key=${task.id}><div class="task-title"><${State} state=${task.state} /><a href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a></div>
          ${task.state === "ACTIVE" && html`<${Progress} share=${share(task)} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} />`}
          <span class="quiet small">${task.state === "ACTIVE" ? `${rate(task.progress.rates?.now)}${task.progress.eta_seconds != null ? `, ${duration(task.progress.eta_seconds)} left` : ""}${task.progress.limited_by ? `, limited by ${task.progress.limited_by}` : ""}` : task.blocked?.why ?? ""}</span></li>`)}</ul>`}</section>
      <section class="sheet" aria-label="Failures by cause"><div class="part-head"><h2>Failures by cause</h2></div><${Causes} tasks=${bad} /></section></div>
    <section class="sheet" aria-label="Pairs of endpoints"><div class="part-head"><h2>Pairs of endpoints</h2></div><${Pairs} tasks=${judged} /></section>`;
}

/** @param {{tasks: Task[]}} props */
function Causes({ tasks }) {
  /** @type {Map<string, Task[]>} */
  const causes = new Map();
  for (const task of tasks) { const cause = task.failure ? `${task.failure.side}: ${task.failure.code}` : "some items failed"; causes.set(cause, [...(causes.get(cause) ?? []), task]); }
  if (tasks.length === 0) return html`<${Empty} title="No failures" />`;
  return html`<ul class="causes">${[...causes].sort((one, other) => other[1].length - one[1].length).map(([cause, group]) => html`<li><strong>${cause}</strong><span class="quiet">${plural(group.length, "task")}, the latest <${Time} at=${group[0].ended} /></span>
    <span>${group[0].failure?.why ?? ""}</span><a href=${`#/tasks/${group[0].id}`}>${title(group[0])}</a></li>`)}</ul>`;
}

/** The endpoint's name, or the host, of a location. @param {string|null|undefined} location */
const place = (location) => location?.startsWith("@") ? location.split(":")[0] : location?.split("://")[1]?.split("/")[0] ?? "this host";

/** @param {{tasks: Task[]}} props */
function Pairs({ tasks }) {
  /** @type {Map<string, Task[]>} */
  const pairs = new Map();
  for (const task of tasks) {
    const [pair] = task.request.pairs ?? [];
    if (!pair?.destination) continue;
    const name = `${place(pair.source)} → ${place(pair.destination)}`;
    pairs.set(name, [...(pairs.get(name) ?? []), task]);
  }
  if (pairs.size === 0) return html`<${Empty} title="No transfer has ended yet" />`;
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of pairs"><table class="plain-table"><thead><tr><th scope="col">Pair</th><th scope="col" class="num">Tasks</th><th scope="col" class="num">Succeeded</th><th scope="col" class="num">Moved</th><th scope="col" class="num">Mean rate</th></tr></thead><tbody>
    ${[...pairs].sort((one, other) => other[1].length - one[1].length).map(([name, group]) => {
      const good = group.filter((task) => task.state === "SUCCEEDED").length;
      const moved = group.reduce((sum, task) => sum + (task.progress.bytes_moved ?? 0), 0);
      const seconds = group.reduce((sum, task) => sum + (task.progress.rates?.all ? (task.progress.bytes_moved ?? 0) / task.progress.rates.all : 0), 0);
      return html`<tr><td><strong>${name}</strong></td><td class="num">${count(group.length)}</td><td class="num">${percent(good, group.length)} %</td><td class="num">${bytes(moved)}</td><td class="num">${seconds ? rate(moved / seconds) : "–"}</td></tr>`; })}</tbody></table></div>`;
}
