// What a test of an endpoint has found.
import { html } from "../ui.js";
import { Copy, Mark } from "../parts.js";
import { plural } from "../format.js";

/** What a test has found: what is wrong first, what is good behind one line. @param {{found: any}} props */
export function Found({ found }) {
  const checks = /** @type {any[]} */ (found.checks), bad = checks.filter((check) => check.ok === false);
  const told = checks.filter((check) => check.ok == null), good = checks.filter((check) => check.ok);
  const rows = (/** @type {any[]} */ some) => html`<ul class="checks small">${some.map((check) => html`<li><span class=${check.ok === false ? "bad" : check.ok ? "good" : "warn"}><${Mark} of=${check.ok === false ? "bad" : check.ok ? "good" : "warn"} /></span>
    <span><span class="hidden-text">${check.ok === false ? "Fault: " : check.ok ? "Good: " : "Advice: "}</span><strong>${check.name}</strong> ${check.told}${check.fix && html`<span class="fix">Try: <code>${check.fix}</code> <${Copy} text=${check.fix} /></span>`}</span></li>`)}</ul>`;
  return html`<div role="status" class="stack"><strong class=${found.ok ? "good" : "bad"}>${found.ok ? "The test passed" : `The test found ${plural(bad.length, "fault")}`}</strong>
    ${rows(bad)}${told.length > 0 && html`<details><summary>${plural(told.length, "piece")} of advice</summary>${rows(told)}</details>`}
    ${good.length > 0 && html`<details><summary>${plural(good.length, "check")} passed</summary>${rows(good)}</details>`}</div>`;
}
