// The list of tasks, live.
import { html, useEffect, useMemo, useRef, useState } from "../ui.js";
import { call } from "../api.js";
import { onEvent, onGap } from "../live.js";
import { Table } from "../table.js";
import { useWindows } from "../windows.js";
import { Confirm, Dialog, Empty, Progress, Search, Segments, State, Time, Trouble, useAction } from "../parts.js";
import { bytes, count, daysAgo, duration, percentText, plural, rate, route, shown, title } from "../format.js";
import { actOn, actOnAll } from "../acts.js";
import { share, tone } from "../share.js";
import { Submit } from "../submit.js";

/** @typedef {import("../types.js").Task} Task */
/** @type {Record<string, string>} */
const STATES = { all: "", running: "ACTIVE,STAGING,CANCELLING", waiting: "QUEUED,PAUSED", trouble: "FAILED,PARTIAL", done: "SUCCEEDED", cancelled: "CANCELLED",
  open: "QUEUED,STAGING,ACTIVE,PAUSED,CANCELLING", paused: "PAUSED" };
const CHANGES = 300;

/** Filters that stand in the address, beside `state`. */
const FILTERS = ["q", "endpoint", "from", "to", "cause", "owner", "days", "timer"];
/** @type {[import("../acts.js").Act, string, (task: Task) => boolean][]} acts on many tasks, and the tasks that each fits */
const ACTS = [["retry", "Retry", (task) => ["FAILED", "PARTIAL", "CANCELLED"].includes(task.state)], ["pause", "Pause", (task) => !task.ended && task.state !== "PAUSED" && !task.pause_wanted],
  ["resume", "Resume", (task) => task.state === "PAUSED" || task.pause_wanted || (task.state === "QUEUED" && Boolean(task.blocked))], ["cancel", "Cancel", (task) => !task.ended && !task.cancel_wanted]];

/** Marks of tasks: some by name, or all that the filter shows. */
function useMarks(/** @type {import("../table.js").Source<Task>} */ source, /** @type {unknown[]} */ inputs) {
  const none = { named: /** @type {Map<string, Task>} */ (new Map()), all: false };
  const [marked, setMarked] = useState(none), before = useRef(none);
  useEffect(() => setMarked(none), inputs);
  /** @type {import("../table.js").Marks} */
  const marks = {
    has: (task) => marked.all || marked.named.has(task.id),
    toggle: (task) => setMarked((old) => {
      // All but one are known one by one, as far as they are loaded.
      const named = new Map(old.all ? loaded() : old.named);
      if (!named.delete(task.id)) named.set(task.id, task);
      return { named, all: false };
    }),
    range: (from, to, fresh) => {
      if (fresh) before.current = marked;
      const named = new Map(before.current.named);
      for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) { const task = source.row(place); if (task) named.set(task.id, task); }
      setMarked({ named, all: false });
    },
    all: () => setMarked({ named: new Map(), all: true }),
    clear: () => { if (!marked.all && marked.named.size === 0) return false; setMarked(none); return true; },
  };
  /** @returns {Map<string, Task>} */
  const loaded = () => { const all = new Map(); for (let place = 0; place < source.length; place += 1) { const task = source.row(place); if (task) all.set(task.id, task); } return all; };
  // As they are by now, as far as they are loaded.
  const current = marked.named.size > 0 ? loaded() : marked.named;
  const some = [...marked.named.values()].map((task) => current.get(task.id) ?? task);
  return { marks, marked, some, clear: () => setMarked(none) };
}

/** @param {{known: import("../types.js").Whoami, endpoints: string[], query: URLSearchParams, go: (to: string) => void}} props */
export function Tasks({ known, endpoints, query, go }) {
  const state = query.get("state") ?? "", sort = query.get("sort") ?? "";
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""])), { q, days } = filters;
  const inputs = [state, sort, ...FILTERS.map((name) => filters[name])];
  const asked = useMemo(() => { const { days: _, from: source, to: destination, ...rest } = filters; return { ...rest, source, destination, state: STATES[state], since: days && daysAgo(Number(days)), sort: sort || "-created" }; }, inputs);
  const [opened, setOpened] = useState(false);
  const list = useWindows((offset, limit, signal) => call("GET", "/tasks", { query: { ...asked, offset, limit }, signal }), (/** @type {Task} */ task) => task.id, inputs);
  const { again, change } = list;
  const { marks, marked, some: chosen, clear } = useMarks(list.source, inputs);
  const [doom, setDoom] = useState(/** @type {import("../acts.js").Act|""} */ (""));
  const [told, setTold] = useState("");
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
    const all = Object.entries({ state, ...filters, sort, ...change }).filter(([, value]) => value);
    go(`/tasks${all.length ? `?${new URLSearchParams(all)}` : ""}`);
  };
  const act = useAction((/** @type {import("../acts.js").Act} */ verb, /** @type {Task[]} */ some) => {
    if (!marked.all) return actOn(verb, some);
    const { sort: _, state: states, ...words } = asked, named = Object.fromEntries(Object.entries(words).filter(([, value]) => value));
    const filter = { ...named, ...(states && { state: states.split(",") }), ...(known.role === "admin" && !named.owner && { owner: "*" }) };
    return actOnAll(verb, Object.keys(filter).length ? filter : { all: true });
  }, (/** @type {import("../acts.js").Done} */ done) => { setTold(done.text); clear(); again(); });
  const number = marked.all ? list.total : marked.named.size;
  const acts = ACTS.map(([verb, word, fits]) => ({ verb, word, some: chosen.filter(fits) }));
  const isFiltered = inputs.some((value, at) => at !== 1 && Boolean(value)), may = known.role !== "viewer";
  return html`<div class="view-head"><h1>Tasks</h1>
      ${may && html`<button class="main" onClick=${() => setOpened(true)}>New task</button>`}</div>
    <div class="filters"><${Segments} value=${state} set=${(/** @type {string} */ value) => filter({ state: value })} label="State"
        choices=${[["", "All"], ["running", "Running"], ["waiting", "Waiting"], ["trouble", "Trouble"], ["done", "Done"], ["cancelled", "Cancelled"]]} />
      <${Search} label="Label, path or identifier" value=${q} set=${(/** @type {string} */ value) => filter({ q: value })} />
      <select aria-label="Submitted" value=${days} onChange=${(/** @type {Event} */ event) => filter({ days: /** @type {HTMLSelectElement} */ (event.currentTarget).value })}>
        <option value="">at any time</option>${[["1", "in the last day"], ["7", "in the last 7 days"], ["30", "in the last 30 days"]].map(([value, text]) => html`<option value=${value}>${text}</option>`)}</select>
      ${/** @type {[string, string][]} */ ([["endpoint", `@${filters.endpoint}`], ["from", `from @${filters.from}`], ["to", `to @${filters.to}`], ["cause", `because of ${filters.cause}`], ["owner", `of ${filters.owner}`], ["timer", "of one timer"]]).map(([name, text]) => filters[name] && html`<button key=${name} onClick=${() => filter({ [name]: "" })} aria-label=${`${text}: remove this filter`}>${text} ×</button>`)}
      ${["open", "paused"].includes(state) && html`<button onClick=${() => filter({ state: "" })} aria-label=${`${state}: remove this filter`}>${state} ×</button>`}
      ${isFiltered && !list.loading && html`<span class="quiet" role="status">${plural(list.total, "task")}</span>`}
      <${Saved} user=${known.user} now=${isFiltered ? String(query) : ""} go=${go} /></div>
    ${number > 0 && html`<div class="notice bar-of-buttons marked-bar" role="group" aria-label="Marked tasks"><strong>${marked.all ? `All ${plural(number, "task")}` : plural(number, "task")} marked</strong>
      ${acts.map(({ verb, word, some }) => html`<button key=${verb} class=${verb === "cancel" ? "danger" : ""} disabled=${act.busy || (!marked.all && some.length === 0)} onClick=${() => verb === "cancel" || marked.all ? setDoom(verb) : act.go(verb, some)}>${word}${!marked.all && some.length > 0 && some.length < number ? ` ${count(some.length)}` : ""}</button>`)}
      <button class="plain" onClick=${clear}>Clear marks</button></div>`}
    <p class=${told ? "quiet small" : "hidden-text"} role="status">${told}</p>
    <${Trouble} problem=${list.problem ?? act.problem} />
    <${Table} source=${list.source} columns=${columnsOf(known.role)} label="Tasks" cls=${`tasks-grid fill ${known.role === "admin" ? "with-owner" : ""} ${may ? "with-marks" : ""}`} busy=${list.loading} sort=${sort || "-created"} setSort=${(/** @type {string} */ by) => filter({ sort: by === "-created" ? "" : by })} open=${(/** @type {Task} */ task) => go(`/tasks/${task.id}`)} marks=${may ? marks : undefined} place=${`tasks?${query}`}
      empty=${isFiltered ? html`<${Empty} title="No task fits"><button onClick=${() => go("/tasks")}>Show all tasks</button><//>`
        : known.role === "viewer" ? html`<${Empty} title="None of your own">Tasks are shown to whoever submitted them, and to admins. <a href="#/overview">Overview of all tasks</a><//>`
        : html`<${Empty} title="No tasks yet">A task is a transfer that the service looks after until it is done and verified. <a href="#/files">Choose where your data is</a><//>`} />
    ${doom && html`<${Confirm} title=${`${ACTS.find(([verb]) => verb === doom)?.[1]} ${marked.all ? `all ${plural(number, "task")} that the filter shows` : plural(acts.find(({ verb }) => verb === doom)?.some.length ?? 0, "task")}?`} act=${doom === "cancel" ? "Cancel tasks" : ACTS.find(([verb]) => verb === doom)?.[1] ?? ""} keep="Close" close=${() => setDoom("")}
      text=${doom === "cancel" ? "What is at the destinations stays there. A retry later goes on where each stood." : "It is done to each of them that allows it."} run=${() => act.go(doom, acts.find(({ verb }) => verb === doom)?.some ?? [])} />`}
    ${opened && html`<${Submit} endpoints=${endpoints} close=${() => setOpened(false)} done=${(/** @type {Task} */ task) => { setOpened(false); go(`/tasks/${task.id}`); }} />`}`;
}

/** Filters that this browser keeps for its user, by name. @param {{user: string, now: string, go: (to: string) => void}} props */
function Saved({ user, now, go }) {
  const place = `carrack-filters-${user}`;
  /** @returns {Record<string, string>} */
  const read = () => { try { return JSON.parse(localStorage.getItem(place) ?? "{}"); } catch { return {}; } };
  const [kept, setKept] = useState(read);
  const [naming, setNaming] = useState(false);
  // Other tabs keep filters, too.
  useEffect(() => { const told = () => setKept(read()); addEventListener("storage", told); return () => removeEventListener("storage", told); }, [place]);
  const keep = (/** @type {(all: Record<string, string>) => Record<string, string>} */ change) => { const all = change(read()); localStorage.setItem(place, JSON.stringify(all)); setKept(all); };
  const [found] = Object.entries(kept).find(([, query]) => query === now) ?? [];
  return html`${Object.keys(kept).length > 0 && html`<select aria-label="Saved filters" value=${found ?? ""} onChange=${(/** @type {Event} */ event) => go(`/tasks?${kept[/** @type {HTMLSelectElement} */ (event.currentTarget).value] ?? ""}`)}>
      <option value="">saved filters</option>${Object.keys(kept).map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select>`}
    ${found ? html`<button class="plain" onClick=${() => keep(({ [found]: _, ...rest }) => rest)}>Forget “${found}”</button>`
      : now && html`<button onClick=${() => setNaming(true)}>Save this filter</button>`}
    ${naming && html`<${Dialog} title="Save this filter" close=${() => setNaming(false)}><form onSubmit=${(/** @type {SubmitEvent} */ event) => {
        event.preventDefault(); const name = String(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget)).get("name")).trim(); keep((all) => ({ ...all, [name]: now })); setNaming(false); }}>
      <h2>Save this filter</h2><label class="field"><span>Name</span><input name="name" required maxlength="60" autofocus /><small class="help">Kept in this browser.</small></label>
      <div class="bar-of-buttons end"><button type="button" class="plain" onClick=${() => setNaming(false)}>Close</button><button class="main">Save</button></div></form><//>`}`;
}

/** The place of a pair's end as a cell has it. @param {string|null|undefined} location */
const end = (location) => location ? html`<span title=${shown(location)}><bdi>${shown(location)}</bdi></span>` : html`<span class="quiet">–</span>`;

/** @type {import("../table.js").Column<Task>[]} */
const COLUMNS = [
  { title: "State", sort: "state", cell: (task) => html`<${State} state=${task.state} />` },
  { title: "Task", cell: (task) => html`<a href=${`#/tasks/${task.id}`} tabindex="-1" title=${route(task)}><bdi>${title(task)}</bdi></a>` },
  { title: "From", sort: "source", cls: "way", cell: (task) => end(task.request.pairs?.[0]?.source) },
  { title: "To", sort: "destination", cls: "way", cell: (task) => end(task.request.pairs?.[0]?.destination) },
  { title: "Progress", cls: "progress-cell", cell: (task) => {
    const done = share(task);
    return html`<${Progress} share=${done} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} /><span>${done === null ? "…" : percentText(done).replace("under ", "<")}</span>`; } },
  { title: "Rate", sort: "rate", cls: "num mid", cell: (task) => task.state === "ACTIVE" ? rate(task.progress.rates?.now) : task.progress.rates?.all ? html`<span class="quiet" title="mean rate">${rate(task.progress.rates.all)}</span>` : html`<span class="quiet">–</span>` },
  { title: "Items done", cls: "num widest", cell: (task) => {
    const { items_done, items_skipped, items_total } = task.progress, done = (items_done ?? 0) + (items_skipped ?? 0);
    return html`${count(done)}<span class="quiet"> of ${count(items_total)}</span>`; } },
  { title: "Bytes", sort: "bytes", cls: "num wide", cell: (task) => bytes(task.progress.bytes_total) },
  { title: "Submitted", sort: "created", cls: "num widest", cell: (task) => html`<${Time} at=${task.submitted} />` },
  { title: "Ends", sort: "ended", cls: "num wide", cell: (task) => task.ended ? html`<${Time} at=${task.ended} />` : task.state === "ACTIVE" && task.progress.eta_seconds != null
    ? `in ${duration(task.progress.eta_seconds)}` : html`<span class="quiet" title=${task.blocked?.why}>${task.blocked ? `waits: ${task.blocked.cause}` : "–"}</span>` },
];
/** @type {import("../table.js").Column<Task>} */
const MARK = { title: html`<span class="hidden-text">Marked</span>`, cls: "tick", cell: () => html`<i class="box"></i>` };
/** For administrators, who see the tasks of all. @type {import("../table.js").Column<Task>} */
const OWNER = { title: "Owner", cls: "wide", cell: (task) => html`<a class="soft" href=${`#/tasks?owner=${encodeURIComponent(task.owner)}`} tabindex="-1">${task.owner}</a>` };
// The same objects each time: rows that have not changed are not drawn again.
const ALL = { viewer: COLUMNS, user: [MARK, ...COLUMNS], admin: [MARK, ...COLUMNS.slice(0, 2), OWNER, ...COLUMNS.slice(2)] };
/** @param {string} role */
const columnsOf = (role) => ALL[/** @type {keyof typeof ALL} */ (role)] ?? ALL.user;
