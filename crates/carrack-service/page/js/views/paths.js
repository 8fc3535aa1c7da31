// What the path from an endpoint to another one carries, as the service measures it.
import { html, useEffect, useRef, useState } from "../ui.js";
import { call } from "../api.js";
import { useLive } from "../store.js";
import { Progress, Time, Trouble, useAction } from "../parts.js";
import { count, duration, rate } from "../format.js";
import { milliseconds, pathText, shareText } from "../path-words.js";

/** @typedef {import("../path-words.js").Way} Way */
/** @typedef {{from: string, to: string, state: string, started: string|null, failure: {why: string, hints?: string[]}|null, result: import("../path-words.js").PathResult|null}} Status */
/** How often it is asked how far measuring is, in milliseconds. */
const PERIOD = 1000;
/** What a label means for whoever asks whether it is the network. @type {Record<string, string>} */
const LABELS = {
  "processor-busy": "A processor had no rest: the path itself may carry more.", incomplete: "It ended early: the numbers are of the time up to there.",
  tunnel: "No data connection could be made: all went through the control connection.",
};

/** @param {{endpoint: any, others: any[], to: string|null, known: import("../types.js").Whoami, go: (to: string) => void}} props `to`: the endpoint that is chosen; null: nobody has asked for a path */
export function Paths({ endpoint, others, to, known, go }) {
  const { name } = endpoint, other = others.find((one) => one.name === to);
  const path = other ? `/endpoints/${encodeURIComponent(name)}/paths/${encodeURIComponent(other.name)}` : "";
  const read = useLive((signal) => /** @type {Promise<Status|null>} */ (path ? call("GET", path, { signal }) : Promise.resolve(null)), [path], (event) => event.kind === "endpoint-changed" && (event.subject === name || event.subject === to));
  const begin = useAction((/** @type {string} */ at) => call("POST", at), read.put);
  // Why one path was not measured says nothing of another one.
  const [asked, setAsked] = useState("");
  const now = path ? read.value : null, runs = now?.state === "running";
  useEffect(() => {
    if (!runs) return undefined;
    const timer = setInterval(read.again, PERIOD);
    return () => clearInterval(timer);
  }, [runs, path]);
  // Whoever came for a path finds it, and the keyboard stands at what is chosen next.
  const box = useRef(/** @type {HTMLSelectElement|null} */ (null));
  useEffect(() => { if (to !== null) { box.current?.scrollIntoView({ block: "center" }); box.current?.focus({ preventScroll: true }); } }, []);
  const isMine = (/** @type {any} */ one) => known.role === "admin" || (known.role !== "viewer" && one.owner === known.user);
  const between = other ? `@${name} and @${other.name}` : "";
  return html`<section class="sheet card" aria-label=${`Paths of ${name}`}><div class="card-head"><h2>Path to another endpoint</h2></div>
    <div class="filters"><label class="field"><span>From @${name} to</span><select ref=${box} value=${other?.name ?? ""} onChange=${(/** @type {Event} */ event) => go(`/node/${encodeURIComponent(name)}?to=${encodeURIComponent(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}`)}>
        <option value="">choose an endpoint</option>${others.map((one) => html`<option key=${one.name} value=${one.name}>@${one.name}</option>`)}</select></label>
      ${other && isMine(endpoint) && isMine(other) && html`<button disabled=${begin.busy || runs} onClick=${() => { setAsked(path); begin.go(path); }}>${runs ? "Measuring…" : "Measure the path"}</button>`}</div>
    ${to && !other && html`<p class="notice warn">No endpoint is called @${to}. It may have been removed.</p>`}
    ${other && html`<${Trouble} problem=${asked === path ? begin.problem : null} /><${Trouble} problem=${read.problem} again=${read.again} />
      ${read.loading && html`<p class="small quiet">Loading…</p>`}`}
    ${now && html`<div role="status">${runs && html`<div class="stack"><p class="small">Measuring the path between ${between}: some seconds each way.</p><${Progress} share=${null} label=${`Measuring the path between ${between}`} /></div>`}${!runs && now.result && html`<span class="hidden-text">The path between ${between} is measured.</span>`}</div>
      ${now.failure && html`<${Trouble} problem=${{ message: `Not measured: ${now.failure.why}`, hints: now.failure.hints }} />`}
      ${!now.result && !runs && !now.failure && html`<p class="small quiet">The path between ${between} was not measured so far.${isMine(endpoint) && isMine(other) ? "" : " Whoever owns both endpoints may measure it."}</p>`}
      ${now.result && html`<${Result} status=${now} result=${now.result} />`}`}</section>`;
}

/** @param {{status: Status, result: import("../path-words.js").PathResult}} props */
function Result({ status: { from, to }, result }) {
  const { there, back, rate_limit: limit } = result;
  const labels = [...new Set([...there.labels, ...back.labels])];
  const row = (/** @type {string} */ one, /** @type {string} */ other, /** @type {Way} */ way) => html`<tr><th scope="row">@${one} → @${other}</th><td class="num">${way.bytes_per_second == null ? "not measured" : rate(way.bytes_per_second)}</td>
    <td class="num">${milliseconds(way.round_trip_us)}</td><td class="num">${milliseconds(way.round_trip_longest_us)}</td><td class="num">${shareText(way.resent_share)}</td><td class="num">${way.streams == null ? "–" : count(way.streams)}</td><td class="num">${way.hops == null ? "–" : count(way.hops)}</td><td class="num">${way.packet_bytes == null ? "–" : `${count(way.packet_bytes)} B`}</td></tr>`;
  return html`<div class="stack"><p><strong>${pathText(result)}</strong></p>
    <p class="small quiet">Measured <${Time} at=${result.time} /> by version ${result.program}, in ${duration(result.elapsed_seconds)}, from memory to memory, encrypted and verified as a copy is</p>
    <div class="scroll-x" tabindex="0" role="region" aria-label=${`Path between ${from} and ${to}`}><table class="plain-table"><thead><tr><th scope="col">Direction</th><th scope="col" class="num">Rate</th><th scope="col" class="num">Round trip</th><th scope="col" class="num">Under load</th><th scope="col" class="num">Sent again</th><th scope="col" class="num">Connections</th><th scope="col" class="num">Hops</th><th scope="col" class="num">Largest packet</th></tr></thead>
      <tbody>${row(from, to, there)}${row(to, from, back)}</tbody></table></div>
    ${(limit != null || labels.length > 0 || result.notes.length > 0 || there.error || back.error) && html`<ul class="small">${limit != null && html`<li>The limits of the endpoints allow ${rate(limit)}: the path may carry more.</li>`}${labels.map((label) => html`<li>${LABELS[label] ?? label}</li>`)}
      ${there.error && html`<li>There: ${there.error}</li>`}${back.error && html`<li>Back: ${back.error}</li>`}${result.notes.map((note) => html`<li class="quiet">${note}</li>`)}</ul>`}</div>`;
}
