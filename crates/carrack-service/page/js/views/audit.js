// The audit, for administrators: who changed what, from where, and what the service answered.
import { html, useState } from "../ui.js";
import { call } from "../api.js";
import { Empty, Search, Time, Trouble } from "../parts.js";
import { daysAgo } from "../format.js";
import { linkOf, outcome, wordsOf } from "../audit-words.js";
import { Table, usePages } from "../table.js";

/** @typedef {{id: number, time: string, user: string, via: string, token: string|null, from: string|null, action: string, object: string|null, status: number}} Line */
/** @type {[string, string][]} */
const SPANS = [["", "at any time"], ["1", "in the last day"], ["7", "in the last 7 days"], ["30", "in the last 30 days"]];

export function Audit() {
  const [text, setText] = useState("");
  const [days, setDays] = useState("");
  const list = usePages((cursor, signal) => call("GET", "/audit", { query: { q: text, from: days && daysAgo(Number(days)), cursor, limit: 200 }, signal }),
    (/** @type {Line} */ line) => String(line.id), [text, days]);
  return html`<section class="stack" aria-label="Audit"><div class="view-head"><h2>Audit</h2><div class="filters"><${Search} label="Search the audit" value=${text} set=${setText} />
      <select aria-label="When" value=${days} onChange=${(/** @type {Event} */ event) => setDays(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>${SPANS.map(([value, words]) => html`<option value=${value}>${words}</option>`)}</select></div></div>
    <${Trouble} problem=${list.problem} again=${list.again} />
    <${Table} source=${list.source} columns=${COLUMNS} label="Audit" cls="audit-grid" fitted=${true} busy=${list.loading} empty=${html`<${Empty} title=${text || days ? "No line fits" : "Nothing has been changed yet"} />`} /></section>`;
}

/** @type {import("../table.js").Column<Line>[]} */
const COLUMNS = [
  { title: "When", cell: (line) => html`<${Time} at=${line.time} form="exact" />` },
  { title: "Who", cell: (line) => html`<strong>${line.user || "nobody known"}</strong>` },
  { title: "What", cell: (line) => html`<span title=${line.action}>${wordsOf(line.action) || html`<code>${line.action}</code>`}</span>` },
  { title: "About", cls: "mid", cell: (line) => line.object ? linkOf(line.action, line.object) && line.status < 400 ? html`<a class="soft" tabindex="-1" href=${linkOf(line.action, line.object)} title=${line.object}><bdi>${line.object}</bdi></a>` : html`<bdi title=${line.object}>${line.object}</bdi>` : html`<span class="quiet">–</span>` },
  { title: "From", cls: "wide", cell: (line) => line.from ?? html`<span class="quiet">this host</span>` },
  { title: "Outcome", cell: (line) => html`<span class=${`chip ${line.status < 400 ? "good" : "bad"}`} title=${`${line.action}: ${line.status}`}>${outcome(line.status)}</span>` },
];
