// The list of tasks, live.
import { html, useEffect, useMemo, useState } from "../ui.js";
import { call } from "../api.js";
import { onEvent, onGap } from "../live.js";
import { Table } from "../table.js";
import { useWindows } from "../windows.js";
import { Dialog, Empty, Progress, Search, Segments, State, Time, Trouble } from "../parts.js";
import { bytes, count, daysAgo, duration, percent, percentText, plural, rate, route, title } from "../format.js";
import { Submit } from "../submit.js";

/** @typedef {import("../types.js").Task} Task */
const ENDED = ["SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"];
/** @type {Record<string, string>} */
const STATES = { all: "", running: "ACTIVE,STAGING,CANCELLING", waiting: "QUEUED,PAUSED", trouble: "FAILED,PARTIAL", done: "SUCCEEDED", cancelled: "CANCELLED" };
const CHANGES = 300;

/** How much of a task is done, in percent, of what is listed so far; null: nothing is listed yet. 100 only where nothing is missing.
 * @param {Task} task @returns {number|null} */
export function share(task) {
  const { progress } = task, ended = ENDED.includes(task.state), total = progress.bytes_total ?? 0, items = progress.items_total ?? 0;
  if (task.state === "SUCCEEDED") return 100;
  if (!ended && total === 0 && !progress.scan_complete) return task.state === "ACTIVE" ? null : 0;
  const done = total > 0 ? percent((progress.bytes_moved ?? 0) + (progress.bytes_skipped ?? 0), total)
    : percent((progress.items_done ?? 0) + (progress.items_skipped ?? 0), items);
  // Bytes that nobody could count are not in the total: what failed, and what is not listed yet.
  return ended || (progress.items_failed ?? 0) > 0 || !progress.scan_complete ? Math.min(99, done) : done;
}
/** @param {string} state */
export const tone = (state) => state === "SUCCEEDED" ? "good" : state === "FAILED" ? "bad" : state === "PARTIAL" ? "warn" : "";

/** @param {{known: import("../types.js").Whoami, endpoints: string[], query: URLSearchParams, go: (to: string) => void}} props */
export function Tasks({ known, endpoints, query, go }) {
  const [state, q, endpoint, owner, days, timer, sort] = ["state", "q", "endpoint", "owner", "days", "timer", "sort"].map((name) => query.get(name) ?? "");
  const inputs = [state, q, endpoint, owner, days, timer, sort];
  const asked = useMemo(() => ({ state: STATES[state], q, endpoint, owner, timer, since: days && daysAgo(Number(days)), sort: sort || "-created" }), inputs);
  const [opened, setOpened] = useState(false);
  const list = useWindows((offset, limit, signal) => call("GET", "/tasks", { query: { ...asked, offset, limit }, signal }), (/** @type {Task} */ task) => task.id, inputs);
  const { again, change } = list;
  useEffect(() => {
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    let late;
    const soon = () => { late ??= setTimeout(() => { late = undefined; again(); }, CHANGES); };
    const off = [onGap(soon), onEvent((event) => {
      if (event.kind === "progress" && event.task && event.detail.progress) change(event.task, (task) => ({ ...task, progress: event.detail.progress }));
      else if (event.task) soon();
    })];
    return () => { clearTimeout(late); for (const end of off) end(); };
  }, inputs);
  const filter = (/** @type {Record<string, string>} */ change) => {
    const all = Object.entries({ state, q, endpoint, owner, days, timer, sort, ...change }).filter(([, value]) => value);
    go(`/tasks${all.length ? `?${new URLSearchParams(all)}` : ""}`);
  };
  const isFiltered = inputs.slice(0, -1).some(Boolean);
  return html`<div class="view-head"><h1>Tasks</h1>
      ${known.role !== "viewer" && html`<button class="main" onClick=${() => setOpened(true)}>New task</button>`}</div>
    <div class="filters"><${Segments} value=${state} set=${(/** @type {string} */ value) => filter({ state: value })} label="State"
        choices=${[["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["trouble", "Trouble"], ["done", "Done"], ["cancelled", "Cancelled"]]} />
      <${Search} label="Label, path or identifier" value=${q} set=${(/** @type {string} */ value) => filter({ q: value })} />
      <select aria-label="Submitted" value=${days} onChange=${(/** @type {Event} */ event) => filter({ days: /** @type {HTMLSelectElement} */ (event.currentTarget).value })}>
        <option value="">at any time</option>${[["1", "in the last day"], ["7", "in the last 7 days"], ["30", "in the last 30 days"]].map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select>
      ${[["endpoint", endpoint, `@${endpoint}`], ["owner", owner, `of ${owner}`], ["timer", timer, "of one timer"]].map(([name, value, text]) => value && html`<button key=${name} onClick=${() => filter({ [name]: "" })} aria-label=${`${text}: remove this filter`}>${text} ×</button>`)}
      ${isFiltered && !list.loading && html`<span class="quiet" role="status">${plural(list.total, "task")}</span>`}
      <${Saved} user=${known.user} now=${isFiltered ? String(query) : ""} go=${go} /></div>
    <${Trouble} problem=${list.problem} />
    <${Table} source=${list.source} columns=${known.role === "admin" ? WITH_OWNER : COLUMNS} label="Tasks" cls=${`tasks-grid fill ${known.role === "admin" ? "with-owner" : ""}`} busy=${list.loading} sort=${sort || "-created"} setSort=${(/** @type {string} */ by) => filter({ sort: by === "-created" ? "" : by })} open=${(/** @type {Task} */ task) => go(`/tasks/${task.id}`)}
      empty=${isFiltered ? html`<${Empty} title="No task fits"><button onClick=${() => go("/tasks")}>Show all tasks</button><//>`
        : known.role === "viewer" ? html`<${Empty} title="None of your own">Tasks are shown to whoever submitted them, and to admins. <a href="#/overview">Overview of all tasks</a><//>`
        : html`<${Empty} title="No tasks yet">A task is a transfer that the service looks after until it is done and verified.<//>`} />
    ${opened && html`<${Submit} endpoints=${endpoints} close=${() => setOpened(false)} done=${(/** @type {Task} */ task) => { setOpened(false); go(`/tasks/${task.id}`); }} />`}`;
}

/** Filters that this browser keeps for its user, by name. @param {{user: string, now: string, go: (to: string) => void}} props */
function Saved({ user, now, go }) {
  const place = `carrack-filters-${user}`;
  /** @returns {Record<string, string>} */
  const read = () => { try { return JSON.parse(localStorage.getItem(place) ?? "{}"); } catch { return {}; } };
  const [kept, setKept] = useState(read);
  const [naming, setNaming] = useState(false);
  const keep = (/** @type {Record<string, string>} */ all) => { localStorage.setItem(place, JSON.stringify(all)); setKept(all); };
  const [found] = Object.entries(kept).find(([, query]) => query === now) ?? [];
  return html`${Object.keys(kept).length > 0 && html`<select aria-label="Saved filters" value=${found ?? ""} onChange=${(/** @type {Event} */ event) => go(`/tasks?${kept[/** @type {HTMLSelectElement} */ (event.currentTarget).value] ?? ""}`)}>
      <option value="">saved filters</option>${Object.keys(kept).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`}
    ${found ? html`<button class="plain" onClick=${() => { const { [found]: _, ...rest } = kept; keep(rest); }}>Forget “${found}”</button>`
      : now && html`<button class="plain" onClick=${() => setNaming(true)}>Save this filter</button>`}
    ${naming && html`<${Dialog} title="Save this filter" close=${() => setNaming(false)}><form onSubmit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault(); keep({ ...kept, [String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("name")).trim()]: now }); setNaming(false); }}>
      <h2>Save this filter</h2><label class="field"><span>Name</span><input name="name" required maxlength="60" autofocus /><small class="help">Kept in this browser.</small></label>
      <div class="bar-of-buttons end"><button type="button" class="plain" onClick=${() => setNaming(false)}>Close</button><button class="main">Save</button></div></form><//>`}`;
}

/** @type {import("../table.js").Column<Task>[]} */
const COLUMNS = [
  { title: "State", sort: "state", cell: (task) => html`<${State} state=${task.state} />` },
  { title: "Task", cell: (task) => html`<a href=${`#/tasks/${task.id}`} tabindex="-1" title=${route(task)}><bdi>${title(task)}</bdi></a>` },
  { title: "Progress", cls: "progress-cell", cell: (task) => {
    const done = share(task);
    return html`<${Progress} share=${done} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} /><span>${done === null ? "…" : percentText(done)}</span>`; } },
  { title: "Rate", sort: "rate", cls: "num mid", cell: (task) => task.state === "ACTIVE" ? rate(task.progress.rates?.now) : html`<span class="quiet">–</span>` },
  { title: "Items done", cls: "num wide", cell: (task) => {
    const { items_done, items_skipped, items_total } = task.progress, done = (items_done ?? 0) + (items_skipped ?? 0);
    return html`${count(done)}<span class="quiet"> of ${count(items_total)}</span>`; } },
  { title: "Bytes", sort: "bytes", cls: "num wide", cell: (task) => bytes(task.progress.bytes_total) },
  { title: "Submitted", sort: "created", cls: "num widest", cell: (task) => html`<${Time} at=${task.submitted} />` },
  { title: "Ends", cls: "num wide", cell: (task) => task.ended ? html`<${Time} at=${task.ended} />` : task.state === "ACTIVE" && task.progress.eta_seconds != null
    ? `in ${duration(task.progress.eta_seconds)}` : html`<span class="quiet">${task.blocked ? task.blocked.cause : "–"}</span>` },
];
/** For administrators, who see the tasks of all. @type {import("../table.js").Column<Task>[]} */
const WITH_OWNER = [...COLUMNS.slice(0, 2), { title: "Owner", cls: "wide", cell: (task) => html`<a class="soft" href=${`#/tasks?owner=${encodeURIComponent(task.owner)}`} tabindex="-1">${task.owner}</a>` }, ...COLUMNS.slice(2)];
