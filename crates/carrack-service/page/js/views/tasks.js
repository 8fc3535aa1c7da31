// The list of tasks, live.
import { html, useEffect, useState } from "../ui.js";
import { call } from "../api.js";
import { onEvent, onGap } from "../live.js";
import { usePages, Table } from "../table.js";
import { Empty, Progress, Search, Segments, State, Time, Trouble } from "../parts.js";
import { bytes, count, duration, percent, rate, route, title } from "../format.js";
import { Submit } from "../submit.js";

/** @typedef {import("../types.js").Task} Task */
const ENDED = ["SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"];
/** @type {Record<string, string>} */
const STATES = { all: "", running: "ACTIVE,STAGING,CANCELLING", waiting: "QUEUED,PAUSED", trouble: "FAILED,PARTIAL", done: "SUCCEEDED", cancelled: "CANCELLED" };
const CHANGES = 300;

/** @param {Task} task @returns {number|null} */
export function share(task) {
  const { progress } = task;
  if (task.state === "SUCCEEDED") return 100;
  if (!progress.scan_complete && !ENDED.includes(task.state)) return task.state === "ACTIVE" ? null : 0;
  const total = progress.bytes_total ?? 0;
  if (total > 0) return percent((progress.bytes_moved ?? 0) + (progress.bytes_skipped ?? 0), total);
  return percent((progress.items_done ?? 0) + (progress.items_skipped ?? 0), progress.items_total ?? 0);
}
/** @param {string} state */
export const tone = (state) => state === "SUCCEEDED" ? "good" : state === "FAILED" ? "bad" : "";

/** @param {{known: import("../types.js").Whoami, endpoints: string[], query: URLSearchParams, go: (to: string) => void}} props */
export function Tasks({ known, endpoints, query, go }) {
  const state = query.get("state") ?? "all", label = query.get("label") ?? "", endpoint = query.get("endpoint") ?? "";
  const [opened, setOpened] = useState(false);
  const list = usePages(
    (cursor, signal) => call("GET", "/tasks", { query: { state: STATES[state], label, endpoint, cursor, limit: 200 }, signal }),
    (task) => task.id, [state, label, endpoint]);
  const { setState } = list;
  useEffect(() => {
    /** @type {Set<string>} */
    const changed = new Set();
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let timer;
    const control = new AbortController();
    /** @param {Task} task */
    const put = (task) => setState((old) => {
      const fits = !STATES[state] || STATES[state].split(",").includes(task.state);
      const has = old.rows.some((row) => row.id === task.id);
      if (!fits) return has ? { ...old, rows: old.rows.filter((row) => row.id !== task.id) } : old;
      if (has) return { ...old, rows: old.rows.map((row) => row.id === task.id ? task : row) };
      return label || endpoint ? old : { ...old, rows: [task, ...old.rows] };
    });
    const read = async () => {
      const ids = [...changed];
      changed.clear();
      for (const id of ids) {
        try { put(await call("GET", `/tasks/${id}`, { signal: control.signal })); } catch { /* It is gone; a new listing leaves it out. */ }
      }
    };
    const newest = async () => {
      try {
        const page = await call("GET", "/tasks", { query: { state: STATES[state], label, endpoint, limit: 200 }, signal: control.signal });
        setState((old) => {
          const fresh = new Map(page.items.map((/** @type {Task} */ task) => [task.id, task]));
          return { ...old, problem: null, rows: [...page.items, ...old.rows.slice(page.next ? 0 : old.rows.length).filter((row) => !fresh.has(row.id))] };
        });
      } catch { /* The list stays as it was; the state of the connection is shown beside it. */ }
    };
    const off = [onGap(newest), onEvent((event) => {
      if (!event.task) return;
      if (event.kind === "progress" && event.detail.progress) {
        setState((old) => ({ ...old, rows: old.rows.map((row) => row.id === event.task ? { ...row, progress: event.detail.progress } : row) }));
        return;
      }
      changed.add(event.task);
      clearTimeout(timer);
      timer = setTimeout(read, CHANGES);
    })];
    return () => { control.abort(); clearTimeout(timer); for (const end of off) end(); };
  }, [state, label, endpoint]);
  const filter = (/** @type {Record<string, string>} */ change) => {
    const all = Object.entries({ state, label, endpoint, ...change }).filter(([name, value]) => value && !(name === "state" && value === "all"));
    go(`/tasks${all.length ? `?${new URLSearchParams(all)}` : ""}`);
  };
  const isFiltered = state !== "all" || label || endpoint;
  return html`<div class="view-head"><h1>Tasks</h1>
      ${known.role !== "viewer" && html`<button class="main" onClick=${() => setOpened(true)}>New task</button>`}</div>
    <div class="filters"><${Segments} value=${state} set=${(/** @type {string} */ value) => filter({ state: value })} label="State"
        choices=${[["all", "All"], ["running", "Running"], ["waiting", "Waiting"], ["trouble", "Trouble"], ["done", "Done"], ["cancelled", "Cancelled"]]} />
      <${Search} label="Label contains" value=${label} set=${(/** @type {string} */ value) => filter({ label: value })} />
      ${endpoint && html`<button onClick=${() => filter({ endpoint: "" })} aria-label=${`Endpoint ${endpoint}: remove this filter`}>@${endpoint} ×</button>`}</div>
    <${Trouble} problem=${list.problem} />
    <${Table} source=${list.source} columns=${COLUMNS} label="Tasks" cls="tasks-grid fill" busy=${list.loading} open=${(/** @type {Task} */ task) => go(`/tasks/${task.id}`)}
      empty=${isFiltered ? html`<${Empty} title="No task fits"><button onClick=${() => go("/tasks")}>Show all tasks</button><//>`
        : html`<${Empty} title="No tasks yet">A task is a transfer that the service looks after until it is done and verified.<//>`} />
    ${opened && html`<${Submit} endpoints=${endpoints} close=${() => setOpened(false)} done=${(/** @type {Task} */ task) => { setOpened(false); go(`/tasks/${task.id}`); }} />`}`;
}

/** @type {import("../table.js").Column<Task>[]} */
const COLUMNS = [
  { title: "State", cell: (task) => html`<${State} state=${task.state} />` },
  { title: "Task", cell: (task) => html`<a href=${`#/tasks/${task.id}`} tabindex="-1" title=${route(task)}><bdi>${title(task)}</bdi></a>` },
  { title: "Progress", cls: "progress-cell", cell: (task) => {
    const done = share(task);
    return html`<${Progress} share=${done} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} /><span>${done === null ? "…" : `${done} %`}</span>`; } },
  { title: "Rate", cls: "num mid", cell: (task) => task.state === "ACTIVE" ? rate(task.progress.rates?.now) : html`<span class="quiet">–</span>` },
  { title: "Items", cls: "num wide", cell: (task) => count(task.progress.items_total) },
  { title: "Bytes", cls: "num wide", cell: (task) => bytes(task.progress.bytes_total) },
  { title: "Ends", cls: "num wide", cell: (task) => task.ended ? html`<${Time} at=${task.ended} />` : task.state === "ACTIVE" && task.progress.eta_seconds != null
    ? `in ${duration(task.progress.eta_seconds)}` : html`<span class="quiet">${task.blocked ? task.blocked.cause : "–"}</span>` },
];
