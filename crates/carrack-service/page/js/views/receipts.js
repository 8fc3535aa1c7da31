// The signed receipts of a task, one for each pair.
import { html } from "../ui.js";
import { call } from "../api.js";
import { save } from "../save.js";
import { useLive } from "../store.js";
import { Command, Name, Trouble, useAction } from "../parts.js";
import { plural } from "../format.js";

const PAIRS_MOST = 50;

/** @param {{task: import("../types.js").Task}} props */
export function Receipts({ task }) {
  const key = useLive((signal) => call("GET", "/receipts/key", { signal }), [], () => false);
  const pairs = task.request.pairs ?? [], only = pairs.length === 1;
  const name = (/** @type {number} */ pair) => `${task.id}${only ? "" : `-${pair}`}.receipt`;
  const saving = useAction((/** @type {number} */ pair) => save(`/tasks/${task.id}/receipt`, { pair }, "application/x-ndjson", name(pair)));
  const button = (/** @type {number} */ pair, /** @type {string} */ of) => html`<button disabled=${saving.busy} aria-label=${`Save receipt${of}`} onClick=${() => saving.go(pair)}>Save receipt</button>`;
  return html`<section class="sheet" aria-label="Receipts"><div class="part-head"><h2>${only ? "Receipt" : "Receipts"}</h2>${only && button(0, "")}</div>
    <div class="pad stack"><p>Every item with its digest and attributes, both hosts, and what was not done${key.value ? html`, signed by this service's key <code>${key.value.fingerprint}</code>` : ""}. It proves in years what was copied.</p>
      <${Trouble} problem=${saving.problem ?? key.problem} />
      ${!only && html`<ul class="causes">${pairs.slice(0, PAIRS_MOST).map((pair, number) => html`<li class="bar-of-buttons">${button(number, ` of pair ${number}`)}<span class="mono"><${Name}>${pair.destination ?? pair.source}<//></span></li>`)}</ul>`}
      ${pairs.length > PAIRS_MOST && html`<p class="small quiet">and ${plural(pairs.length - PAIRS_MOST, "more pair")}: <code>carrack task receipt</code> gives each</p>`}
      <p class="small quiet">Once, where it is verified: believe this service's key. Then verify the copy wherever it is.</p>
      <${Command} line="carrack receipt trust NAME --of-service" /><${Command} line=${`carrack verify ${name(0)} LOCATION`} /></div></section>`;
}
