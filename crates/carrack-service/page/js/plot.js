// Plots over one axis of time, with a table of the same numbers. The library draws when a plot is first shown.
import { html, useEffect, useMemo, useRef, useState } from "./ui.js";
import { bytes, count, when } from "./format.js";

/** @typedef {"rate"|"size"|"count"|"share"} Unit bytes a second; bytes; whole numbers; numbers with a fraction */
/** @typedef {{label: string, values: (number|null)[], unit: Unit}} Line */
/** @typedef {{label: string, lines: Line[], bars?: boolean}} Panel `bars`: sums of a stretch of time, not a course */
/** @typedef {{time: number, text: string, fault?: boolean, number?: number}} Mark `number`: by which it is found below the plots */
/** What happened is numbered up to here; the events tell the rest. */
const NUMBERED = 20;
/** What happened so shortly before the first figures belongs to them, in seconds: it stands at the edge. */
const BEFORE = 30;

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

const HEIGHT = 190, HEIGHT_BELOW = 130;
/** Steps of the axes: whole seconds, and sizes that read well in powers of two. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000];
const SIZES = Array.from({ length: 55 }, (_, power) => 2 ** power);
const COUNTS = [1, 2, 5].flatMap((step) => Array.from({ length: 9 }, (_, power) => step * 10 ** power)).sort((one, other) => one - other);
const SHARES = [0.1, 0.2, 0.5, ...COUNTS];
/** @type {Record<Unit, {incrs: number[], least: number}>} */
const UNITS = { rate: { incrs: SIZES, least: 1024 }, size: { incrs: SIZES, least: 1024 }, count: { incrs: COUNTS, least: 1 }, share: { incrs: SHARES, least: 0.2 } };

/** @param {Unit} unit @param {number|null|undefined} value */
function written(unit, value) {
  if (value == null) return "–";
  return unit === "rate" ? `${bytes(Math.round(value))}/s` : unit === "size" ? bytes(value) : unit === "count" ? count(Math.round(value)) : value.toFixed(value < 9.95 ? 1 : 0);
}
/** @param {number} time @param {number} span seconds that are shown */
function clock(time, span) {
  const date = new Date(time * 1000);
  const [hour, minute, second] = date.toTimeString().split(/[: ]/);
  if (span > 86400 * 2) return `${date.getDate()} ${date.toLocaleString("en-GB", { month: "short" })}${hour === "00" && minute === "00" ? "" : ` ${hour}:${minute}`}`;
  return span > 900 ? `${hour}:${minute}` : `${hour}:${minute}:${second}`;
}

/** @param {string} name */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {any} Library @param {HTMLElement} element @param {Panel} panel @param {boolean} top @param {boolean} wide some panel of the plot has bars @param {number[]} times @param {{current: Mark[]}} marks @param {string} group */
function draw(Library, element, panel, top, wide, times, marks, group) {
  const axis = { stroke: colour("--ink-2"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  const units = [...new Set(panel.lines.map((line) => line.unit))];
  const span = () => (times.at(-1) ?? 0) - (times[0] ?? 0);
  // A bar stands around its time: the first and the last one need half a step beside them.
  const beside = (/** @type {any} */ u) => { const [shown] = u.data, steps = shown.length - 1; return steps > 0 ? (shown[steps] - shown[0]) / steps / 2 : 0; };
  return new Library({
    width: element.clientWidth, height: top ? HEIGHT : HEIGHT_BELOW, cursor: { points: { size: 6 }, sync: { key: group } },
    legend: { live: true }, scales: { ...(wide && { x: { range: (/** @type {any} */ u, /** @type {number} */ low, /** @type {number} */ high) => [low - beside(u), high + beside(u)] } }), ...Object.fromEntries(units.map((unit) => [unit, { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ high) => [0, Math.max(high * 1.08, UNITS[unit].least)] }])) },
    series: [{ label: "Time", value: (/** @type {any} */ _, /** @type {number|null} */ t) => t == null ? "latest" : when(new Date(t * 1000).toISOString()) },
      ...panel.lines.map((line, place) => ({ label: line.label, scale: line.unit, stroke: colour(`--series-${place + 1}`),
        ...(panel.bars ? { width: 0, fill: colour(`--series-${place + 1}`), paths: Library.paths.bars({ size: [0.7, 60] }) } : { width: 2, dash: place ? [5, 4] : undefined }),
        points: { show: !panel.bars && times.length < 3 }, value: (/** @type {any} */ u, /** @type {number|null} */ v, /** @type {number} */ series, /** @type {number|null} */ at) => written(line.unit, at == null ? u.data[series]?.findLast((/** @type {number|null} */ one) => one !== null) : v) }))],
    axes: [{ ...axis, space: 76, size: 30, incrs: SECONDS, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((t) => clock(t, span())) },
      { ...axis, scale: units[0], size: 84, space: 28, incrs: UNITS[units[0]].incrs, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((v) => written(units[0], v).replace(".0 ", " ")) },
      // Panels have the same room on both sides, so that one time stands above the other.
      { ...axis, scale: units[1] ?? units[0], side: 1, size: 44, space: 28, incrs: UNITS[units[1] ?? "count"].incrs, grid: { show: false },
        values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map((v) => units[1] ? written(units[1], v).replace(".0 ", " ") : "") }],
    hooks: { drawAxes: [(/** @type {any} */ u) => mark(u, marks.current)] },
  }, [times, ...panel.lines.map((line) => line.values)], element);
}

/**
 * @param {{label: string, times: number[], panels: Panel[], marks?: Mark[], isEmpty?: boolean}} props times in seconds since 1970; a null is a gap;
 *   `isEmpty`: there is nothing to draw
 */
export function Plot({ label, times, panels, marks: told = [], isEmpty = false }) {
  const first = times[0] ?? 0;
  const marks = useMemo(() => told.filter(({ time }) => time >= first - BEFORE).map((one, place) => place < NUMBERED ? { ...one, number: place + 1 } : one), [told, first]);
  /** @type {{current: HTMLDivElement|null}} */
  const box = useRef(null);
  /** @type {{current: any[]}} */
  const plots = useRef([]);
  const [asTable, setAsTable] = useState(false);
  const latest = useRef({ times, panels }), marked = useRef(marks);
  latest.current = { times, panels }; marked.current = marks;
  const shape = panels.map((panel) => `${panel.label}:${panel.lines.map((line) => line.label)}`).join(";");
  const data = (/** @type {Panel} */ panel) => [times, ...panel.lines.map((line) => line.values)];
  useEffect(() => {
    if (asTable || isEmpty) return undefined;
    let gone = false;
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const clear = () => { for (const plot of plots.current) plot.destroy(); plots.current = []; };
    const drawAll = (/** @type {any} */ Library) => {
      if (gone || !box.current) return;
      clear();
      const boxes = /** @type {HTMLElement[]} */ ([...box.current.querySelectorAll(".plot")]);
      plots.current = boxes.map((element, place) => draw(Library, element, latest.current.panels[place], place === 0, latest.current.panels.some((panel) => panel.bars), latest.current.times, marked, label));
    };
    const again = () => { load().then(drawAll).catch(() => setAsTable(true)); };
    again();
    scheme.addEventListener("change", again);
    const watch = new ResizeObserver(() => { for (const plot of plots.current) plot.setSize({ width: plot.root.parentElement.clientWidth, height: plot.height }); });
    if (box.current) watch.observe(box.current);
    return () => { gone = true; watch.disconnect(); scheme.removeEventListener("change", again); clear(); };
  }, [asTable, shape, isEmpty]);
  useEffect(() => { plots.current.forEach((plot, place) => plot.setData(data(panels[place]))); }, [times, panels, marks.length]);
  return html`<section class="sheet" aria-label=${label}>
    <div class="part-head"><h2>${label}</h2>${!isEmpty && html`<button aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>${asTable ? "As a plot" : "As a table"}</button>`}</div>
    ${isEmpty ? html`<p class="pad quiet">Nothing was moved, and nothing waited, in this time.</p>` : asTable ? html`<${Numbers} label=${label} times=${times} panels=${panels} marks=${marks} />`
    : html`<div class="plots" ref=${box}>${panels.map((panel, place) => html`<div key=${panel.label}>
        ${panels.length > 1 && html`<h3 class="plot-name">${panel.label}</h3>`}
        <div class=${`plot ${place ? "below" : ""}`} aria-hidden="true"></div></div>`)}</div>
      ${marks.some(({ number }) => number) && html`<details class="pad small"><summary>${marks.length === 1 ? "One event" : `${count(marks.length)} events`} on the plot</summary><ol class="marks">${marks.filter(({ number }) => number).map((one) => html`<li key=${one.number}><span class=${`mark-number ${one.fault ? "bad" : ""}`}>${one.number}</span><span class="nowrap quiet">${when(new Date(one.time * 1000).toISOString(), "exact")}</span><span>${one.text}</span></li>`)}</ol></details>`}`}</section>`;
}

/** The same as a table, the newest first; what happened stands beside the first time behind it. @param {{label: string, times: number[], panels: Panel[], marks: Mark[]}} props */
function Numbers({ label, times, panels, marks }) {
  const lines = useMemo(() => {
    const labels = panels.flatMap((panel) => panel.lines.map((line) => line.label));
    const isOne = (/** @type {string} */ label) => labels.filter((one) => one === label).length === 1;
    return panels.flatMap((panel) => panel.lines.map((line) => ({ ...line, label: isOne(line.label) ? line.label : `${panel.label}: ${line.label.toLowerCase()}` })));
  }, [panels]);
  const happened = times.map((time, place) => marks.filter((one) => one.time <= time && (place === 0 || one.time > times[place - 1])).map((one) => one.text).join("; "));
  const places = times.map((_, place) => place).reverse().slice(0, 500);
  return html`<div class="events scroll-x" tabindex="0" role="region" aria-label=${`${label}, as a table`}><table class="plain-table"><thead><tr><th scope="col">Time</th>
    ${lines.map((line) => html`<th scope="col" class="num">${line.label}</th>`)}${marks.length > 0 && html`<th scope="col">What happened</th>`}</tr></thead><tbody>
    ${places.map((place) => html`<tr key=${times[place]}><td class="nowrap">${when(new Date(times[place] * 1000).toISOString())}</td>
      ${lines.map((line) => html`<td class="num">${written(line.unit, line.values[place])}</td>`)}${marks.length > 0 && html`<td>${happened[place]}</td>`}</tr>`)}</tbody></table></div>`;
}

/** Lines at what happened. @param {any} u @param {Mark[]} marks */
function mark(u, marks) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = 1; ctx.setLineDash([2, 3]);
  for (const one of marks) {
    const x = Math.max(bbox.left, Math.round(u.valToPos(one.time, "x", true)));
    if (x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = colour(one.fault ? "--bad" : "--ink-3");
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    if (!one.number) continue;
    ctx.fillStyle = ctx.strokeStyle;
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillText(String(one.number), x + 3 * devicePixelRatio, bbox.top + 10 * devicePixelRatio);
  }
  ctx.restore();
}
