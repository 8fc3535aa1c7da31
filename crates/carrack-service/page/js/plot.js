// A plot of series over time with a table beside it. The library draws when a plot is first shown.
import { html, useEffect, useRef, useState } from "./ui.js";
import { bytes, count, when } from "./format.js";

/** @type {Promise<any>|null} */
let library = null;
function load() {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = "/page/vendor/uPlot.iife.min.js";
    script.onload = () => resolve(/** @type {any} */ (globalThis).uPlot);
    script.onerror = () => { library = null; reject(new Error("the plot's library did not load")); };
    document.head.append(script);
  });
  return library;
}

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * @param {{label: string, times: number[], series: {label: string, values: (number|null)[], unit: "rate"|"count"}[],
 *   marks?: {time: number, text: string}[]}} props times in seconds since 1970; a null is a gap
 */
export function Plot({ label, times, series, marks = [] }) {
  /** @type {{current: HTMLDivElement|null}} */
  const box = useRef(null);
  /** @type {{current: any}} */
  const plot = useRef(null);
  const [asTable, setAsTable] = useState(false);
  const data = [times, ...series.map((one) => one.values)];
  const latest = useRef(data), marked = useRef(marks);
  latest.current = data; marked.current = marks;
  useEffect(() => {
    if (asTable) return undefined;
    let gone = false;
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const draw = (/** @type {any} */ Library) => {
      const element = box.current;
      if (gone || !element) return;
      plot.current?.destroy();
      const axis = { stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
      plot.current = new Library({
        width: element.clientWidth, height: 190, cursor: { points: { size: 6 } }, scales: { rate: { range: from0 }, count: { range: from0 } },
        series: [{ label: "Time", value: (/** @type {any} */ _, /** @type {number|null} */ t) => t == null ? "–" : when(new Date(t * 1000).toISOString()) },
          ...series.map((one, place) => ({ label: one.label, scale: one.unit, stroke: colour(`--series-${place + 1}`), width: 2, dash: place ? [5, 4] : undefined,
            points: { show: times.length < 3 },
            value: (/** @type {any} */ _, /** @type {number|null} */ v) => v == null ? "–" : written(one.unit, v) }))],
        axes: [{ ...axis, space: 76, size: 32, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((t) => when(new Date(t * 1000).toISOString()).split(" ").at(-1)) }, { ...axis, scale: "rate", size: 84, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((v) => written("rate", v)) },
          { ...axis, scale: "count", side: 1, size: 44, incrs: [1, 2, 5, 10, 20, 50], grid: { show: false } }],
        hooks: { drawAxes: [(/** @type {any} */ u) => mark(u, marked.current)] },
      }, latest.current, element);
    };
    const again = () => { load().then(draw).catch(() => setAsTable(true)); };
    again();
    scheme.addEventListener("change", again);
    const watch = new ResizeObserver(() => { if (box.current) plot.current?.setSize({ width: box.current.clientWidth, height: 190 }); });
    if (box.current) watch.observe(box.current);
    return () => { gone = true; watch.disconnect(); scheme.removeEventListener("change", again); plot.current?.destroy(); plot.current = null; };
  }, [asTable]);
  useEffect(() => { plot.current?.setData(data); }, [times.length, times.at(-1)]);
  return html`<section class="sheet" aria-label=${label}>
    <div class="part-head"><h2>${label}</h2><button aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>${asTable ? "As a plot" : "As a table"}</button></div>
    ${asTable ? html`<div class="events scroll-x" tabindex="0" role="region" aria-label=${`${label}, as a table`}><table class="plain-table"><thead><tr><th scope="col">Time</th>
      ${series.map((one) => html`<th scope="col" class="num">${one.label}</th>`)}</tr></thead><tbody>
      ${times.map((time, place) => html`<tr><td>${when(new Date(time * 1000).toISOString())}</td>
        ${series.map((one) => html`<td class="num">${one.values[place] == null ? "–" : written(one.unit, one.values[place] ?? 0)}</td>`)}</tr>`)}</tbody></table></div>`
    : html`<div class="plot" ref=${box} aria-hidden="true"></div>`}</section>`;
}

/** @param {any} _ @param {number} low @param {number} high */
function from0(_, low, high) { return [0, high > 0 ? high * 1.08 : 1]; }
/** @param {"rate"|"count"} unit @param {number} value */
const written = (unit, value) => unit === "rate" ? `${bytes(Math.round(value))}/s` : count(value);

/** Lines at what happened. @param {any} u @param {{time: number, text: string}[]} marks */
function mark(u, marks) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.strokeStyle = colour("--bad"); ctx.lineWidth = 1; ctx.setLineDash([2, 3]);
  for (const one of marks) {
    const x = Math.round(u.valToPos(one.time, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
  }
  ctx.restore();
}
