// What became of each item of a task, and the failed ones grouped by cause.
import { html, useEffect, useState } from "../ui.js";
import { call } from "../api.js";
import { onEvent, onGap } from "../live.js";
import { changesOf } from "../store.js";
import { save } from "../save.js";
import { Table } from "../table.js";
import { useWindows } from "../windows.js";
import { Copy, Empty, Search, Segments, State, Trouble, useAction } from "../parts.js";
import { bytes, plural } from "../format.js";
import { Spelled, itemPath, spelled } from "../files/names.js";

/** @typedef {import("../types.js").Item} Item */

/** @param {{id: string, revision: string}} props */
export function Items({ id, revision }) {
  const [state, setState] = useState("");
  const [filter, setFilter] = useState("");
  const list = useWindows((offset, limit, signal) => call("GET", `/tasks/${id}/items`, { query: { state, filter, offset, limit }, signal }),
    (/** @type {Item} */ item) => `${item.pair}/${item.path}`, [id, state, filter, revision]);
  const { again } = list;
  useEffect(() => {
    const ends = changesOf(id, ["items_done", "items_skipped", "items_failed", "items_deleted"]);
    const off = [onGap(again), onEvent((event) => { if (ends(event)) again(); })];
    return () => { for (const end of off) end(); };
  }, [id, state, filter, revision]);
  const saving = useAction((kind, end) => save(`/tasks/${id}/items`, { state }, kind, `items-${id}.${end}`));
  return html`<section class="stack" aria-label="Items"><div class="view-head"><h2>Items</h2><div class="filters">${(list.total > 0 || filter) && html`<span class="quiet" role="status">${plural(list.total, "item")}${list.source.complete || list.loading ? "" : " so far"}</span>`}
      <${Search} label="Path contains, or is like *.dat" value=${filter} set=${setFilter} />
      <${Segments} value=${state} set=${setState} label="State of items" choices=${[["", "All"], ["failed", "Failed"], ["skipped", "Skipped"], ["done", "Done"], ["deleted", "Deleted"], ["planned", "Planned"], ["to-delete", "To delete"], ["different,only-source,only-destination", "Differences"]]} />
      <button disabled=${saving.busy} onClick=${() => saving.go("text/csv", "csv")}>CSV</button>
      <button disabled=${saving.busy} onClick=${() => saving.go("application/x-ndjson", "ndjson")}>NDJSON</button></div></div>
    <${Trouble} problem=${list.problem ?? saving.problem} />
    <${Table} source=${list.source} columns=${COLUMNS} label="Items" cls="items-columns" fitted=${true} busy=${list.loading}
      empty=${html`<${Empty} title=${state || filter ? "No such items" : "No items yet"}>${state || filter ? "" : "An item appears when it is done, skipped, failed, deleted, planned or different."}<//>`} /></section>`;
}

/** @type {import("../table.js").Column<Item>[]} */
const COLUMNS = [
  { title: "State", cell: (item) => html`<${State} state=${item.state} />` },
  { title: "Path", cell: (item) => item.path ? html`<span title=${spelled(itemPath(item.path))}><${Spelled} of=${itemPath(item.path)} /></span>`
    : html`<span class="quiet">the source itself</span>` },
  { title: "Size", cls: "num", cell: (item) => item.kind === "directory" ? html`<span class="quiet">directory</span>` : bytes(item.size) },
  { title: "Digest or cause", cls: "wide", cell: (item) => item.differs?.length ? html`<span class="bad">${item.differs.join(", ")}</span>` : item.failure ? html`<span class="bad" title=${item.failure.why}>${item.failure.why}</span>`
    : item.digest ? html`<code title=${item.digest}>${item.digest}</code>` : html`<span class="quiet">–</span>` },
];

/** @param {{items: Item[], complete: boolean}} props */
export function Failures({ items, complete }) {
  /** @type {Map<string, Item[]>} */
  const causes = new Map();
  for (const item of items) {
    const { code, side } = item.failure ?? { code: "unknown", side: "" };
    const cause = `${side}\u0000${code}`;
    causes.set(cause, [...(causes.get(cause) ?? []), item]);
  }
  const groups = [...causes.values()].sort((one, other) => other.length - one.length);
  return html`<section class="sheet" aria-label="Failures"><div class="part-head"><h2>Failures by cause</h2>
      <span class="quiet">${complete ? plural(items.length, "failed item") : `the first ${plural(items.length, "failed item")}`}</span></div>
    <ul class="causes">${groups.map((group) => {
      const [first] = group, failure = first.failure;
      const paths = group.map((item) => item.path);
      return html`<li><strong>${plural(group.length, "item")}: ${failure?.why ?? "no cause was told"}</strong>
        <span class="quiet">${failure?.side ? `${failure.side}, ` : ""}${failure?.code}; ${failure?.retryable === "yes" ? "worth another try" : "another try alone does not help"}</span>
        ${(failure?.hints ?? []).map((hint) => html`<span>Try: ${hint}</span>`)}
        <details><summary>Paths</summary><ul>${paths.slice(0, 50).map((path) => html`<li class="mono">${path ? html`<${Spelled} of=${itemPath(path)} />` : "the source itself"}</li>`)}
          ${paths.length > 50 && html`<li class="quiet">and ${plural(paths.length - 50, "more path")}</li>`}</ul>
          <${Copy} text=${paths.join("\n")} label="Copy paths" /></details></li>`;
    })}</ul></section>`;
}
