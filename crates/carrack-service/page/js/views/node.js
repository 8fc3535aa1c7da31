// The node beside the service: what it moves now, the storage of its endpoints, what the last test of each found, and what
// the path from one to another carries.
import { html, useMemo, useRef } from "../ui.js";
import { all, call } from "../api.js";
import { useEvery, useLive } from "../store.js";
import { Empty, Name, Progress, State, Time, Trouble, useAction } from "../parts.js";
import { Plot } from "../plot.js";
import { bytes, count, duration, now, percent, rate, shown, title } from "../format.js";
import { Found } from "./found.js";
import { Measured } from "./measured.js";
import { overTime } from "./overview.js";
import { Paths } from "./paths.js";
import { share, tone } from "../share.js";
import { limitOf } from "../verdict.js";

/** @typedef {import("../types.js").Task} Task */
/** @typedef {{endpoint: string, root: string, bytes_total: number|null, bytes_free: number|null, files_total: number|null, files_free: number|null, failure: string|null}} Storage */
/** @typedef {{endpoint: string, time: string, test: any}} Kept */
/** @typedef {{name: string, address: string|null, fingerprint: string|null, program: string, running: number, rate: number, storage: Storage[], tests: Kept[]}} Node */
/** Steps are whole minutes, and the hour touches one more. */
const HOUR = 3_600_000, STEPS = 61;
/** Storage and figures are read again after something ran, but no sooner than this, in milliseconds. */
const CALM = 5000;
/** How often they are read again for whoever is told of no events. */
const SECONDS = 10;
/** A file system that is fuller than this is marked, in percent. */
const TIGHT = 85, FULL = 95;

/** @param {string} kind */
const isTurn = (kind) => kind === "ended" || kind === "started" || kind === "endpoint-changed";

/** @param {{known: import("../types.js").Whoami, list: any, id: string|null, to: string|null, go: (to: string) => void}} props `list`: all endpoints; `id`: the only one to show; `to`: the other end of the path to show */
export function NodeView({ known, list, id, to, go }) {
  const read = useRef(0);
  const node = useLive(async (signal) => {
    read.current = performance.now();
    const from = new Date(now() - HOUR).toISOString();
    const [nodes, figures] = await Promise.all([call("GET", "/nodes", { signal }), call("GET", "/overview", { query: { from, steps: STEPS }, signal })]);
    return { node: /** @type {Node} */ (nodes.items[0]), figures };
  }, [], (event) => isTurn(event.kind) || (event.kind === "progress" && performance.now() - read.current > CALM));
  const active = useLive((signal) => all("/tasks", { state: "ACTIVE,CANCELLING" }, 1000, signal), [], (event, listed) => {
    if (event.kind !== "progress" || !listed) return event.task != null;
    return { ...listed, items: listed.items.map((/** @type {Task} */ task) => task.id === event.task && event.detail.progress ? { ...task, progress: event.detail.progress } : task) };
  });
  // A viewer is told figures of all tasks, and none of the tasks themselves: no event comes of them.
  const isViewer = known.role === "viewer";
  useEvery(isViewer ? SECONDS * 1000 : 0, node.again);
  const again = () => { node.again(); active.again(); list.again(); };
  const problem = node.problem ?? active.problem ?? list.problem;
  const head = html`<div class="view-head"><h1>Node</h1>${id && html`<a class="button" href="#/node">All endpoints of the node's service</a>`}</div>
    <${Trouble} problem=${problem} again=${again} />`;
  if (!node.value || !active.value || !list.value) return html`${head}${!problem && html`<div class="sheet loading"><p class="quiet">Loading…</p></div>`}`;
  const endpoints = /** @type {any[]} */ (list.value.items).filter((endpoint) => !id || endpoint.name === id);
  const local = endpoints.filter((endpoint) => endpoint.location.kind === "local");
  const { node: here, figures } = node.value;
  return html`${head}${!id && html`<${About} node=${here} active=${isViewer ? null : active.value.items} figures=${figures} />${!isViewer && html`<${Running} tasks=${active.value.items} />`}`}
    ${id && endpoints.length === 0 ? html`<div class="sheet"><${Empty} title="No such endpoint"><a href="#/endpoints">All endpoints</a><//></div>` : html`
    <${Space} storage=${here.storage.filter((one) => !id || one.endpoint === id)} />
    <section class="stack" aria-label="Findings"><h2>What the last test of each endpoint found</h2>
      ${endpoints.length === 0 ? html`<div class="sheet"><${Empty} title="No endpoints yet"><a href="#/endpoints">Endpoints</a> are added there.<//></div>`
      : html`<div class="cards">${endpoints.map((endpoint) => html`<${Tested} key=${endpoint.name} endpoint=${endpoint.name} known=${known} kept=${here.tests.find((one) => one.endpoint === endpoint.name)} again=${node.again} />`)}</div>`}</section>
    ${id && endpoints.map((endpoint) => html`<${Paths} key=${endpoint.name} endpoint=${endpoint} others=${list.value.items.filter((/** @type {any} */ one) => one.name !== id)} to=${to} known=${known} go=${go} />`)}
    ${local.length > 0 && html`<section class="stack" aria-label="Measurements"><h2>What the storage can do, as it was measured</h2>${local.map((endpoint) => html`<${Measured} key=${endpoint.name} endpoint=${endpoint} known=${known} />`)}</section>`}`}`;
}

/** @param {{node: Node, active: Task[]|null, figures: import("./overview.js").Figures}} props */
function About({ node, active, figures }) {
  const curve = useMemo(() => overTime(figures, { label: "Transfers", lines: [{ label: "Running", unit: "count", values: figures.running }] }), [figures]);
  return html`<dl class="sheet totals"><div><dt>Rate now</dt><dd>${rate(active ? active.reduce((sum, task) => sum + (task.progress.rates?.now ?? 0), 0) : node.rate)}</dd></div><div><dt>Running</dt><dd>${count(active ? active.length : node.running)}</dd></div>
      <div><dt>Moved in the last hour</dt><dd>${bytes(figures.moved.reduce((sum, one) => sum + one, 0))}</dd></div></dl>
    <section class="sheet pad" aria-label="This node"><dl class="facts small"><dt>Name</dt><dd>${shown(node.name)}</dd><dt>Listens at</dt><dd class="mono">${node.address ?? "no address: no node with a token runs beside the service"}</dd>
      ${node.fingerprint && html`<dt>Key</dt><dd><code class="clip" title=${node.fingerprint}>${node.fingerprint}</code></dd>`}<dt>Version</dt><dd>${node.program}</dd></dl></section>
    <${Plot} label="Throughput of the last hour" ...${curve} />`;
}

/** @param {{tasks: Task[]}} props */
function Running({ tasks }) {
  return html`<section class="sheet" aria-label="Running transfers"><div class="part-head"><h2>Running transfers</h2></div>
    ${tasks.length === 0 ? html`<p class="pad quiet">No transfer runs.</p>` : html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of running transfers"><table class="plain-table"><thead><tr><th scope="col">State</th><th scope="col">Task</th><th scope="col">Progress</th><th scope="col" class="num">Rate</th><th scope="col" class="num">Moved</th><th scope="col" class="num">Left</th><th scope="col">Limited by</th></tr></thead><tbody>
    ${tasks.map((task) => html`<tr key=${task.id}><td><${State} state=${task.state} /></td><td class="path"><a href=${`#/tasks/${task.id}`}><bdi>${title(task)}</bdi></a></td>
      <td class="meter"><${Progress} share=${share(task)} tone=${tone(task.state)} label=${`Progress of ${title(task)}`} /></td><td class="num">${rate(task.progress.rates?.now)}</td><td class="num">${bytes(task.progress.bytes_moved)}</td>
      <td class="num">${duration(task.progress.eta_seconds)}</td><td>${limitOf(task) || "–"}</td></tr>`)}</tbody></table></div>`}</section>`;
}

/** @param {{storage: Storage[]}} props */
function Space({ storage }) {
  const row = (/** @type {Storage} */ one) => {
    const at = html`<td><strong>@${one.endpoint}</strong></td><td class="path mono"><${Name}>${one.root}<//></td>`;
    if (one.bytes_total === null || one.bytes_free === null) return html`<tr key=${one.endpoint}>${at}<td class="bad" colspan="5">Not known: ${one.failure}</td></tr>`;
    const used = one.bytes_total - one.bytes_free, full = percent(used, one.bytes_total);
    return html`<tr key=${one.endpoint}>${at}<td class="meter"><${Progress} share=${full} tone=${full >= FULL ? "bad" : full >= TIGHT ? "warn" : ""} label=${`Space in use at @${one.endpoint}`} /></td><td class="num">${full} %</td>
      <td class="num">${bytes(one.bytes_free)}</td><td class="num">${bytes(one.bytes_total)}</td><td class="num">${one.files_total ? count(one.files_free) : "–"}</td></tr>`;
  };
  return html`<section class="sheet" aria-label="Storage"><div class="part-head"><h2>Storage</h2></div>
    ${storage.length === 0 ? html`<p class="pad quiet">No endpoint shown here is a directory of this host. Space at other hosts is among what a test finds.</p>`
    : html`<div class="scroll-x" tabindex="0" role="region" aria-label="Table of storage"><table class="plain-table"><thead><tr><th scope="col">Endpoint</th><th scope="col">Directory</th><th scope="col">In use</th><th scope="col" class="num"><span class="hidden-text">In use, in percent</span><span aria-hidden="true">%</span></th><th scope="col" class="num">Free</th><th scope="col" class="num">In all</th><th scope="col" class="num">Files that fit</th></tr></thead><tbody>${storage.map(row)}</tbody></table></div>`}</section>`;
}

/** @param {{endpoint: string, known: import("../types.js").Whoami, kept: Kept|undefined, again: () => void}} props */
function Tested({ endpoint, known, kept, again }) {
  const test = useAction(() => call("POST", `/endpoints/${encodeURIComponent(endpoint)}/test`), again);
  return html`<section class="sheet card" aria-label=${`Test of ${endpoint}`}><div class="card-head"><h3>@${endpoint}</h3>
      ${known.role !== "viewer" && html`<button disabled=${test.busy} aria-label=${`Test ${endpoint}`} onClick=${() => test.go()}>${test.busy ? "Testing…" : "Test"}</button>`}</div>
    <${Trouble} problem=${test.problem} />
    ${kept ? html`<p class="small quiet">Tested <${Time} at=${kept.time} /></p><${Found} found=${kept.test} />` : html`<p class="small quiet">Not tested yet.</p>`}</section>`;
}
