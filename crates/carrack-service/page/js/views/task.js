// One task: where it stands, its time line, what happened, its items, and what can be done with it.
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { all, call } from "../api.js";
import { changesOf, useLive } from "../store.js";
import { onGap } from "../live.js";
import { NOTHING, added, newest } from "../history.js";
import { Command, Confirm, Copy, Dialog, Empty, Name, Progress, Segments, State, Time, Trouble, useAction } from "../parts.js";
import { verdict } from "../verdict.js";
import { linkToPath } from "../path-words.js";
import { ahead, between, bytes, count, duration, percentText, plural, range, rate, shown, title } from "../format.js";
import { Plot } from "../plot.js";
import { submitLine } from "../command.js";
import { Submit } from "../submit.js";
import { last, linkTo, parent, placeOf } from "../files/names.js";
import { Begins, useOptions } from "../files/sheet.js";
import { share, tone } from "../share.js";
import { InFlight } from "./in-flight.js";
import { Failures, Items } from "./items.js";
import { Receipts } from "./receipts.js";

/** @typedef {import("../types.js").Task} Task */
/** @typedef {import("../types.js").CarrackEvent} CarrackEvent */

/** States in which a worker may be copying. */
const RUNNING = ["ACTIVE", "CANCELLING"];

/** The events of a task, from its first to what happens now. @param {string} id */
function useEvents(id) {
  /** `since`: behind which event some may be missing; null: behind none. */
  const kept = useRef({ id: "", since: /** @type {number|null} */ (0), history: NOTHING });
  useEffect(() => onGap(() => { kept.current.since ??= newest(kept.current.history); }), []);
  return useLive(async (signal, show) => {
    if (kept.current.id !== id) kept.current = { id, since: 0, history: NOTHING };
    const mine = kept.current;
    mine.since ??= newest(mine.history);
    for (let isMore = true; isMore;) {
      const page = await call("GET", `/tasks/${id}/events`, { query: { limit: 1000, since: mine.since }, signal });
      mine.history = added(mine.history, page.items);
      isMore = Boolean(page.next) && page.items.length > 0;
      mine.since = isMore ? page.items.at(-1).id : null;
      if (isMore) show(mine.history);
    }
    return mine.history;
  }, [id], (event, now) => {
    if (event.task !== id || kept.current.id !== id) return false;
    kept.current.history = added(kept.current.history, [event]);
    return now ? kept.current.history : false;
  });
}

/** @param {{id: string, known: import("../types.js").Whoami, go: (to: string) => void}} props */
export function TaskView({ id, known, go }) {
  const task = useLive((signal) => call("GET", `/tasks/${id}`, { signal }), [id], (event, now) => {
    if (event.task !== id) return false;
    return event.kind === "progress" && event.detail.progress && now ? { ...now, progress: event.detail.progress } : true;
  });
  const events = useEvents(id);
  if (!task.value && /** @type {any} */ (task.problem)?.status === 404) {
    return html`<div class="view-head"><h1>No such task</h1></div><div class="sheet"><${Empty} title="This service has no such task"><p>It may be another user's, or the address may be cut. Tasks that ended long ago are forgotten, with their items.</p>
      <p class="mono">${shown(id)}</p><p class="bar-of-buttons centred"><a class="button main" href="#/tasks">All tasks</a><a class="button" href=${`#/tasks?q=${encodeURIComponent(id.slice(0, 64))}`}>Find it by its identifier</a></p><//></div>`;
  }
  if (!task.value) {
    return html`<div class="view-head"><h1>Task</h1></div>${task.problem ? html`<${Trouble} problem=${task.problem} again=${task.again} />
      <p><a href="#/tasks">All tasks</a></p>` : html`<div class="sheet loading"><p class="quiet">Loading…</p></div>`}`;
  }
  return html`<${Shown} task=${task.value} put=${task.put} events=${/** @type {CarrackEvent[]} */ (events.value?.items ?? [])}
    eventsComplete=${events.value?.complete ?? true} problem=${task.problem ?? events.problem} known=${known} go=${go} />`;
}

/** @param {{task: Task, put: (task: Task) => void, events: CarrackEvent[], eventsComplete: boolean, problem: any,
 *   known: import("../types.js").Whoami, go: (to: string) => void}} props */
function Shown({ task, put, events, eventsComplete, problem, known, go }) {
  const { known: options } = useOptions();
  const { progress, request } = task, ended = Boolean(task.ended);
  const done = share(task), failed = progress.items_failed ?? 0;
  const revision = `${task.state} ${ended}`;
  const fails = useMemo(() => changesOf(task.id, ["items_failed"]), [task.id]);
  const failures = useLive((signal) => failed ? all(`/tasks/${task.id}/items`, { state: "failed" }, 5000, signal) : Promise.resolve(null),
    [task.id, Boolean(failed), revision], (event) => fails(event) && failed > 0);
  const line = useMemo(() => timeLine(events), [events]);
  // A failed task that has done nothing has no figures to show.
  const isIdle = task.state === "FAILED" && !progress.bytes_moved && !progress.bytes_skipped && !progress.items_done;
  return html`<div class="view-head"><div><div class="task-title"><h1><bdi>${title(task)}</bdi></h1><${State} state=${task.state} /></div>
      <${Route} task=${task} /></div>
      ${known.role !== "viewer" && html`<${Actions} task=${task} put=${put} go=${go} />`}</div>
    <${Trouble} problem=${problem} />
    <section class=${`notice verdict ${VERDICT_TONES[task.state] ?? (task.blocked ? "warn" : "")}`} aria-label="Verdict"><p><strong><bdi>${shown(verdict(task))}</bdi></strong></p>
      ${task.blocked && !ended && html`<p>since <${Time} at=${task.blocked.since} />${task.position != null && `, number ${task.position} in the queue`}${ahead(task.blocked.next_try) && html`, next try at <${Time} at=${task.blocked.next_try} />`}</p>
      ${task.blocked.hint && html`<p>Try: ${task.blocked.hint}</p>`}`}
      ${linkToPath(task) && html`<p><a href=${linkToPath(task)}>Measure this path</a></p>`}
      ${failed === 0 && (task.failure?.hints ?? []).map((hint) => html`<p>Try: ${hint}</p>`)}</section>
    ${failures.value && failed > 0 && html`<${Failures} items=${failures.value.items} complete=${failures.value.complete} />`}
    ${!isIdle && html`<section class="sheet pad big" aria-label="Progress"><${Progress} share=${done} tone=${tone(task.state)} label="Progress" />
      <dl class="figures">
        <div><dt>Done</dt><dd>${done === null ? "counting…" : percentText(done)}<small>${ended || progress.scan_complete ? "" : "of what is listed so far"}</small></dd></div>
        <div><dt>Moved</dt><dd>${bytes(progress.bytes_moved)}<small>of ${bytes(progress.bytes_total)}${progress.bytes_skipped ? `, ${bytes(progress.bytes_skipped)} there before` : ""}</small></dd></div>
        <div><dt>Verified</dt><dd>${bytes(progress.bytes_verified)}<small>${progress.bytes_resent ? `${bytes(progress.bytes_resent)} sent again` : "nothing sent again"}</small></dd></div>
        <div><dt>Items</dt><dd>${count(progress.items_done)}<small>of ${count(progress.items_total)}${progress.items_skipped ? `, ${count(progress.items_skipped)} skipped` : ""}${progress.items_deleted ? `, ${count(progress.items_deleted)} deleted there` : ""}${failed ? html`, <span class="bad">${count(failed)} failed</span>` : ""}</small></dd></div>
        <div><dt>${ended ? "Mean rate" : "Rate"}</dt><dd>${ended ? (progress.rates?.all ? rate(progress.rates.all) : "–") : task.state === "ACTIVE" ? rate(progress.rates?.now) : "–"}<small>${task.state === "ACTIVE" ? `${rate(progress.rates?.five_minutes)} in 5 min` : ""}</small></dd></div>
        <div><dt>${ended ? "Took" : "Left"}</dt><dd>${ended ? between(task.started ?? task.submitted, task.ended ?? "") : task.state === "ACTIVE" && progress.eta_seconds != null ? duration(progress.eta_seconds) : "–"}<small>${plural(task.fence, "attempt")}, ${plural(progress.faults ?? 0, "fault")}</small></dd></div>
      </dl><${Estimated} task=${task} /></section>`}
    ${RUNNING.includes(task.state) && html`<${InFlight} key=${task.id} id=${task.id} />`}
    ${progress.plan && html`<${Plan} plan=${progress.plan} preview=${Boolean(request.preview)} />`}
    ${line.times.length > 1 && html`<${Plot} label="Over time" ...${line} />`}
    <div class="columns"><${Events} events=${events} complete=${eventsComplete} /><${Facts} task=${task} /></div>
    ${request.receipt && ended && html`<${Receipts} task=${task} />`}
    <${Items} id=${task.id} revision=${revision} />
    <section class="sheet" aria-label="At the command line"><div class="part-head"><h2>The same at the command line</h2></div><div class="pad stack">
      ${options && html`<${Command} line=${submitLine(options, request)} />`}<${Command} line=${`carrack task watch ${task.id}`} /></div></section>`;
}


/** @type {Record<string, string>} */
const VERDICT_TONES = { SUCCEEDED: "good", PARTIAL: "warn", FAILED: "bad", PAUSED: "warn" };

/** The folder that a location of an endpoint lies in, in the view of files. @param {string} location */
function folderOf(location) {
  const place = location.startsWith("@") ? placeOf(location, "") : null;
  return place && { place: location.endsWith("/") ? place : { ...place, path: parent(place.path) }, name: location.endsWith("/") ? null : last(place.path) };
}

/** Where it goes from and to, each a link to the folder. @param {{task: Task}} props */
function Route({ task: { request } }) {
  const [first, ...more] = request.pairs ?? [];
  if (!first) return null;
  const from = folderOf(first.source), to = first.destination ? folderOf(first.destination) : null;
  const one = (/** @type {string} */ text, /** @type {ReturnType<typeof folderOf>} */ at, /** @type {string} */ side) => at ? html`<a class="mono" href=${`${linkTo(from?.place ?? null, to?.place ?? null, side)}${at.name ? `&name=${encodeURIComponent(at.name)}` : ""}`}><${Name}>${text}<//></a>` : html`<span class="mono"><${Name}>${text}<//></span>`;
  return html`<p class="task-route">${one(first.source, from, "left")}${first.destination && html`<span aria-label="to">→</span>${one(first.destination, to, "right")}`}${more.length > 0 && html`<span>and ${plural(more.length, "more pair")}</span>`}</p>`;
}

/** What a task would do; of one that is no preview, what it would delete and did not. @param {{plan: import("../types.js").Plan, preview: boolean}} props */
function Plan({ plan, preview }) {
  const figure = (/** @type {string} */ name, /** @type {import("../types.js").Planned} */ of, item = "file") =>
    html`<div><dt>${name}</dt><dd>${plural(of.items, item)}<small>${bytes(of.bytes)}</small></dd></div>`;
  return html`<section class="sheet pad big" aria-label="Plan"><dl class="figures">
      ${preview && html`${figure("New", plan.new)}${figure("Changed", plan.changed)}${figure("Same", plan.same)}`}
      ${plan.left.items > 0 && figure("Left as they are", plan.left)}${figure("To delete", plan.to_delete, "item")}</dl>
    ${plan.held_by && html`<p class="small"><strong>${preview ? "Would keep it from deleting" : "Not deleted"}: ${plan.held_by}</strong></p>`}</section>`;
}

/** What was expected of a task, beside what it took. @param {{task: Task}} props */
function Estimated({ task: { estimate, state, fence } }) {
  if (!estimate) return null;
  const { seconds_least: least, seconds_most: most, took_seconds: took } = estimate;
  const known = least != null && most != null;
  const beside = took == null || !known ? "" : took > most ? ", longer than was expected" : took < least ? ", less than was expected" : ", as was expected";
  return html`<p class="small quiet" aria-label="Estimate">Estimate: ${known ? range(least, most) : "not known"}${took != null && html`; <strong>took ${duration(took)}${beside}</strong>`}.
    ${state === "QUEUED" && fence === 0 && html` <${Begins} earliest=${estimate.earliest_start} latest=${estimate.latest_start} />`} Made at <${Time} at=${estimate.made} />: ${estimate.why}</p>`;
}

/** Whether the scheduler or the tuner has decided something. @param {CarrackEvent} event */
const isDecision = (event) => event.kind === "decision" || event.detail?.before !== undefined;

/** What the events tell of the time, both ends on one axis. @param {CarrackEvent[]} events */
function timeLine(events) {
  const told = events.filter((event) => event.kind === "progress" && event.detail.progress);
  const times = told.map((event) => Date.parse(event.time) / 1000);
  // Counters begin anew with each attempt; what lies between two attempts is a gap.
  const slope = (/** @type {"source"|"destination"} */ side, /** @type {string} */ name) => told.map((event, place) => {
    const now = event.detail[side]?.[name], before = told[place - 1]?.detail[side]?.[name], seconds = times[place] - times[place - 1];
    return now == null || before == null || now < before || seconds <= 0 ? null : (now - before) / seconds;
  });
  const both = (/** @type {string} */ name) => [
    { label: "Source", unit: /** @type {const} */ ("share"), values: slope("source", name) },
    { label: "Destination", unit: /** @type {const} */ ("share"), values: slope("destination", name) }];
  const panels = [
    { label: "Rate and streams", lines: [
      { label: "Rate", unit: /** @type {const} */ ("rate"), values: told.map((event) => event.detail.progress.rates?.now ?? null) },
      { label: "Streams", unit: /** @type {const} */ ("count"), values: told.map((event) => event.detail.streams ?? null) }] },
    { label: "Processors at work", lines: both("processor_seconds") },
    { label: "Threads that wait for storage", lines: both("storage_wait_seconds") },
    { label: "Segments sent again, a second", lines: both("retransmits") },
  ];
  return {
    times, panels: panels.filter((panel, place) => place === 0 || panel.lines.some((line) => line.values.some((value) => value !== null && (place < 3 || value > 0)))),
    marks: events.filter((event) => event.kind === "fault" || event.kind === "started" || isDecision(event))
      .map((event) => ({ time: Date.parse(event.time) / 1000, text: event.text, fault: event.kind === "fault" })),
  };
}

/** @type {Record<string, (event: CarrackEvent) => boolean>} */
const EVENTS = { all: (event) => event.kind !== "progress", faults: (event) => event.kind === "fault", decisions: isDecision, progress: (event) => event.kind === "progress" };

/** @param {{events: CarrackEvent[], complete: boolean}} props */
function Events({ events, complete }) {
  const [which, setWhich] = useState("all");
  const told = events.filter(EVENTS[which]).reverse().slice(0, 500);
  return html`<section class="sheet" aria-label="Events"><div class="part-head"><h2>Events</h2>
      <${Segments} value=${which} set=${setWhich} label="Which events" choices=${[["all", "All"], ["faults", "Faults"], ["decisions", "Decisions"], ["progress", "Progress"]]} /></div>
    ${told.length === 0 && html`<p class="pad quiet">${which === "all" ? "Nothing has happened yet." : `No ${which} so far.`}</p>`}
    <ol class="events" tabindex="0" aria-label="Events, the newest first">${told.map((event) => html`<li key=${event.id} class=${event.kind}><${Time} at=${event.time} form="exact" /><span class="kind">${event.kind}</span><span class="text">${event.text}</span></li>`)}</ol>
    ${(!complete || told.length === 500) && html`<p class="pad small quiet">Not all of them: <code>carrack task events</code> lists every one.</p>`}</section>`;
}

/** @param {{task: Task}} props */
function Facts({ task }) {
  const { request } = task, pairs = request.pairs ?? [];
  const options = Object.entries(request.options ?? {}).filter(([, value]) => value != null && value !== false && !(Array.isArray(value) && !value.length));
  return html`<section class="sheet" aria-label="Facts"><div class="part-head"><h2>What was asked</h2></div><dl class="facts pad">
    <dt>Kind</dt><dd>${request.kind ?? "copy"}</dd>
    ${pairs.slice(0, 5).map((pair) => html`<dt>From</dt><dd class="mono"><${Name}>${pair.source}<//></dd>${pair.destination && html`<dt>To</dt><dd class="mono"><${Name}>${pair.destination}<//></dd>`}`)}
    ${pairs.length > 5 && html`<dt>Pairs</dt><dd>${count(pairs.length)} in all</dd>`}
    <dt>Identifier</dt><dd class="mono">${task.id}</dd><dt>Owner</dt><dd>${task.owner}</dd><dt>Submitted</dt><dd><${Time} at=${task.submitted} /></dd><dt>Started</dt><dd><${Time} at=${task.started} /></dd>
    <dt>Ended</dt><dd><${Time} at=${task.ended} /></dd>${request.deadline && html`<dt>Deadline</dt><dd><${Time} at=${request.deadline} /></dd>`}
    ${request.priority != null && html`<dt>Priority</dt><dd>${request.priority}</dd>`}${request.timer && html`<dt>Timer</dt><dd class="mono">${request.timer}</dd>`}
    ${options.map(([name, value]) => html`<dt>${name.replaceAll("_", " ")}</dt><dd>${name === "rate_limit" ? rate(Number(value)) : name === "block_bytes" ? bytes(Number(value)) : String(value)}</dd>`)}</dl></section>`;
}

/** @param {{task: Task, put: (task: Task) => void, go: (to: string) => void}} props */
function Actions({ task, put, go }) {
  const [asked, setAsked] = useState("");
  const act = useAction((verb) => call("POST", `/tasks/${task.id}/${verb}`), (now) => now.id === task.id ? put(now) : go(`/tasks/${now.id}`));
  const run = useAction(() => call("POST", `/tasks/${task.id}/clone`, { body: { run: true } }), (made) => go(`/tasks/${made.id}`));
  const ended = Boolean(task.ended), paused = task.state === "PAUSED" || task.pause_wanted;
  const button = (/** @type {string} */ verb, /** @type {string} */ text) => html`<button disabled=${act.busy} onClick=${() => act.go(verb)}>${text}</button>`;
  return html`<div class="stack"><div class="bar-of-buttons">
      ${!ended && !task.cancel_wanted && (paused || task.blocked?.cause === "confirm" ? button("resume", "Resume") : button("pause", "Pause"))}
      ${ended && task.request.preview && html`<button class="main" disabled=${run.busy} onClick=${() => run.go()}>Start it</button>`}
      ${["FAILED", "PARTIAL", "CANCELLED"].includes(task.state) && button("retry", "Retry")}
      ${!ended && html`<button onClick=${() => setAsked("edit")}>Edit</button>`}
      <button onClick=${() => setAsked("clone")}>Run again with changes</button>
      <${Copy} text=${task.id} label="Copy id" />
      ${!ended && html`<button class="danger" disabled=${task.cancel_wanted} onClick=${() => setAsked("cancel")}>Cancel task</button>`}</div>
    <${Trouble} problem=${act.problem ?? run.problem} />
    ${asked === "cancel" && html`<${Confirm} title="Cancel this task?" act="Cancel task" close=${() => setAsked("")}
      text="What is at the destination stays there. A retry later goes on where it stood." run=${async () => put(await call("POST", `/tasks/${task.id}/cancel`))} />`}
    ${asked === "clone" && html`<${Submit} endpoints=${[]} again=${task.request} close=${() => setAsked("")} done=${(/** @type {Task} */ made) => { setAsked(""); go(`/tasks/${made.id}`); }} />`}
    ${asked === "edit" && html`<${Edit} task=${task} put=${put} close=${() => setAsked("")} />`}</div>`;
}

/** @param {{task: Task, put: (task: Task) => void, close: () => void}} props */
function Edit({ task, put, close }) {
  // What was read when it was opened: only what is typed over is sent.
  const [{ label: named, priority: before }] = useState(task.request);
  const save = useAction(async (/** @type {FormData} */ form) => {
    const deadline = String(form.get("deadline") ?? ""), label = String(form.get("label") ?? "").trim(), priority = Number(form.get("priority"));
    const body = { ...(label && label !== named && { label }), ...(priority !== (before ?? 4) && { priority }), ...(deadline && { deadline: new Date(deadline).toISOString() }) };
    if (Object.keys(body).length > 0) put(await call("PATCH", `/tasks/${task.id}`, { body }));
  }, close);
  return html`<${Dialog} title="Edit task" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void save.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}>
    <h2>Edit task</h2><label class="field"><span>Label</span><input name="label" defaultValue=${named ?? ""} /></label>
    <div class="two"><label class="field"><span>Priority</span><input name="priority" type="number" min="0" max="9" defaultValue=${before ?? 4} /></label>
    <label class="field"><span>New deadline</span><input name="deadline" type="datetime-local" /></label></div>
    <${Trouble} problem=${save.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${save.busy}>Save</button></div></form><//>`;
}
