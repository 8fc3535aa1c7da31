// What the storage of an endpoint and the processors of its host can do, as the service measures it.
import { html, useEffect } from "../ui.js";
import { call } from "../api.js";
import { useLive } from "../store.js";
import { Progress, Time, Trouble, useAction } from "../parts.js";
import { bytes, duration, percent, plural, rate } from "../format.js";

/** @typedef {"disk"|"cpu"|"ladder"} Kind */
/** @typedef {{name: string, conditions: Record<string, string>, values: Record<string, number>, labels: string[], error: string|null}} Row */
/** @typedef {{kind: Kind, time: string, program: string, elapsed_seconds: number, verdict: string|null, notes: string[], rows: Row[]}} Result */
/** @typedef {{state: string, measuring: Kind|null, started: string|null, failures: {kind: Kind, why: string, hint: string|null}[], results: Result[]}} Bench */
/** In the order in which they are measured. @type {Record<Kind, string>} */
const KINDS = { disk: "storage", cpu: "processors", ladder: "copies from memory to storage" };
/** How often it is asked how far measuring is, in milliseconds. */
const PERIOD = 1000;
/** What a label means, where it does not say so itself. @type {Record<string, string>} */
const LABELS = { short: "too short to tell whether the rate had settled" };
/** Steps of colour in a heat map; styles have one class for each. */
const HEATS = 7;

/** @param {Row} row */
const speed = (row) => row.values.bytes_per_second;
/** @param {Row[]} rows */
const best = (rows) => Math.max(0, ...rows.map((row) => speed(row) ?? 0));
/** Labels that every row has: one line says them. @param {Row[]} rows */
const common = (rows) => rows[0]?.labels.filter((label) => rows.every((row) => row.labels.includes(label))) ?? [];
/** @param {string[]} values */
const numbers = (values) => [...new Set(values)].sort((one, other) => Number(one) - Number(other));

/** @param {{endpoint: any, known: import("../types.js").Whoami}} props */
export function Measured({ endpoint, known }) {
  const path = `/endpoints/${encodeURIComponent(endpoint.name)}/bench`;
  const bench = useLive((signal) => /** @type {Promise<Bench>} */ (call("GET", path, { signal })), [path], (event) => event.kind === "endpoint-changed" && event.subject === endpoint.name);
  const begin = useAction(() => call("POST", path), bench.put);
  const now = bench.value, runs = now?.state === "running";
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(bench.again, PERIOD);
    return () => clearInterval(timer);
  }, [runs, path]);
  const may = known.role === "admin" || (known.role !== "viewer" && endpoint.owner === known.user);
  return html`<section class="sheet card" aria-label=${`Measurements of ${endpoint.name}`}><div class="card-head"><h3>@${endpoint.name}</h3>
      ${may && html`<button disabled=${begin.busy || runs} aria-label=${`Measure ${endpoint.name}`} onClick=${() => begin.go()}>${runs ? "Measuring…" : "Measure"}</button>`}</div>
    <${Trouble} problem=${begin.problem} /><${Trouble} problem=${bench.problem} again=${bench.again} />
    ${bench.loading && html`<p class="small quiet">Loading…</p>`}
    ${now && html`<div role="status">${runs && html`<${Running} kind=${now.measuring} endpoint=${endpoint.name} />`}</div>
      ${now.failures.map(({ kind, why, hint }) => html`<${Trouble} key=${kind} problem=${{ message: `Not measured: ${KINDS[kind] ?? kind}: ${why}`, hints: hint ? [hint] : [] }} />`)}
      ${now.results.length === 0 && !runs && html`<p class="small quiet">No measurements are kept.</p>`}
      ${now.results.map((result) => html`<${Shown} key=${result.kind} result=${result} endpoint=${endpoint.name} />`)}`}</section>`;
}

/** @param {{kind: Kind|null, endpoint: string}} props */
function Running({ kind, endpoint }) {
  const all = Object.keys(KINDS), before = kind ? all.indexOf(kind) : 0;
  return html`<div class="stack"><p class="small">${kind ? `Measuring ${KINDS[kind] ?? kind}: part ${before + 1} of ${all.length}` : "Measuring"}</p>
    <${Progress} share=${percent(before, all.length)} label=${`Measuring of ${endpoint}`} /></div>`;
}

/** @param {{result: Result, endpoint: string}} props */
function Shown({ result, endpoint }) {
  const { kind, rows } = result, shared = common(rows), failed = rows.filter((row) => row.error);
  return html`<div class="stack"><h4>${kind === "disk" ? "Storage" : kind === "cpu" ? "Processors" : "Ladder of copies"}</h4>
    <p class="small quiet">Measured <${Time} at=${result.time} /> by version ${result.program}, in ${duration(result.elapsed_seconds)}${shared.length > 0 && `; all rows: ${shared.map((label) => LABELS[label] ?? label).join(", ")}`}</p>
    ${result.verdict && html`<p><strong>${result.verdict}</strong></p>`}
    ${kind === "disk" ? html`<${Heats} rows=${rows} shared=${shared} endpoint=${endpoint} />` : kind === "cpu" ? html`<${Processors} rows=${rows} endpoint=${endpoint} />` : html`<${Ladder} rows=${rows} shared=${shared} endpoint=${endpoint} />`}
    ${failed.length > 0 && html`<details><summary>${plural(failed.length, "row")} with an error</summary><ul class="small">${failed.map((row) => html`<li>${row.name}${Object.entries(row.conditions).map(([name, value]) => `, ${name} ${value}`)}: ${row.error}</li>`)}</ul></details>`}
    ${result.notes.length > 0 && html`<ul class="small quiet">${result.notes.map((note) => html`<li>${note}</li>`)}</ul>`}</div>`;
}

/** One heat map for writes and one for reads. @param {{rows: Row[], shared: string[], endpoint: string}} props */
function Heats({ rows, shared, endpoint }) {
  const names = [...new Set(rows.map((row) => row.name))];
  return html`<div class="heats">${names.map((name) => html`<${Heat} key=${name} name=${name} rows=${rows.filter((row) => row.name === name)} shared=${shared} endpoint=${endpoint} />`)}</div>
    <p class="small legend"><span>Colour: share of the best in its table, from</span>${Array.from({ length: HEATS }, (_, step) => html`<span key=${step} class=${`heat-${step}`}>${Math.round((step / HEATS) * 100)} %</span>`)}</p>`;
}

/** @param {{name: string, rows: Row[], shared: string[], endpoint: string}} props */
function Heat({ name, rows, shared, endpoint }) {
  // Operations at once are the depth of each thread; where threads differ, they are what is compared.
  const by = new Set(rows.map((row) => row.conditions.threads)).size > 1 ? "threads" : "depth";
  const across = numbers(rows.map((row) => row.conditions[by] ?? "1")), down = numbers(rows.map((row) => row.conditions.record_bytes ?? "0")), top = best(rows);
  const cell = (/** @type {string} */ size, /** @type {string} */ depth) => {
    const row = rows.find(({ conditions }) => (conditions.record_bytes ?? "0") === size && (conditions[by] ?? "1") === depth), value = row && speed(row);
    if (row == null || value == null) return html`<td key=${depth} class="num quiet">${row ? "not measured" : "–"}</td>`;
    const labels = row.labels.filter((label) => !shared.includes(label));
    return html`<td key=${depth} class=${`num heat-${top > 0 ? Math.min(HEATS - 1, Math.floor((value / top) * HEATS)) : 0}`}>${rate(value)}${labels.length > 0 && html` <small>${labels.join(", ")}</small>`}</td>`;
  };
  const mode = rows[0]?.conditions.mode;
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${`Heat map of ${endpoint}: ${name}`}><table class="plain-table heat"><caption>${name}${mode && ` (${mode})`}</caption>
    <thead><tr><th scope="col">Block</th>${across.map((one) => html`<th key=${one} scope="col" class="num">${by === "depth" ? `Depth ${one}` : plural(Number(one), "stream")}</th>`)}</tr></thead>
    <tbody>${down.map((size) => html`<tr key=${size}><th scope="row">${bytes(Number(size))}</th>${across.map((one) => cell(size, one))}</tr>`)}</tbody></table></div>`;
}

/** @param {{rows: Row[], endpoint: string}} props */
function Processors({ rows, endpoint }) {
  const cores = [...new Set(rows.map((row) => row.conditions.processors ?? ""))];
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${`Processors of ${endpoint}`}><table class="plain-table"><thead><tr><th scope="col">Work</th>${cores.map((one) => html`<th key=${one} scope="col" class="num">${one === "one" ? "One processor" : one === "all" ? "All processors" : one}</th>`)}</tr></thead>
    <tbody>${[...new Set(rows.map((row) => row.name))].map((name) => html`<tr key=${name}><th scope="row">${name}</th>${cores.map((one) => {
      const row = rows.find((some) => some.name === name && (some.conditions.processors ?? "") === one), value = row && speed(row);
      return html`<td key=${one} class="num">${value == null ? "–" : rate(value)}</td>`;
    })}</tr>`)}</tbody></table></div>`;
}

/** @param {{rows: Row[], shared: string[], endpoint: string}} props */
function Ladder({ rows, shared, endpoint }) {
  const top = best(rows);
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label=${`Ladder of ${endpoint}`}><table class="plain-table"><thead><tr><th scope="col">Copy</th><th scope="col">Share of the fastest</th><th scope="col" class="num">Rate</th><th scope="col" class="num">Lost here</th><th scope="col">Labels</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.name}><th scope="row" class="nowrap">${row.name.replace("->", " → ")}</th><td class="meter"><${Progress} share=${percent(speed(row) ?? 0, top)} label=${`${row.name} of ${endpoint}`} /></td>
      <td class="num">${speed(row) == null ? "not measured" : rate(speed(row))}</td><td class="num">${row.values.loss == null ? "–" : `${Math.round(row.values.loss * 100)} %`}</td><td>${row.labels.filter((label) => !shared.includes(label)).join(", ") || "–"}</td></tr>`)}</tbody></table></div>`;
}
