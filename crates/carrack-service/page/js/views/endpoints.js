// Endpoints: the named places, and what a test of each finds.
import { html, useState } from "../ui.js";
import { all, call } from "../api.js";
import { useLive } from "../store.js";
import { Confirm, Dialog, Empty, Mark, Name, Time, Trouble, useAction } from "../parts.js";
import { plural, rate } from "../format.js";

/** @param {any} at */
const address = (at) => at.kind === "local" ? at.root
  : at.kind === "node" ? `carrack://${at.host}:${at.port}${at.path}` : `ssh://${at.user ? `${at.user}@` : ""}${at.host}${at.path}`;
/** @type {Record<string, string>} */
const KINDS = { local: "directory of the service's host", node: "node", ssh: "host behind ssh" };

/** @param {{known: import("../types.js").Whoami}} props */
export function Endpoints({ known }) {
  const list = useLive((signal) => all("/endpoints", {}, 5000, signal), [], (event) => event.kind === "endpoint-changed");
  const [opened, setOpened] = useState(false);
  const items = /** @type {any[]} */ (list.value?.items ?? []);
  return html`<div class="view-head"><h1>Endpoints</h1>${known.role !== "viewer" && html`<button class="main" onClick=${() => setOpened(true)}>Add endpoint</button>`}</div>
    <${Trouble} problem=${list.problem} again=${list.again} />
    ${list.loading && html`<p class="quiet">Loading…</p>`}
    ${list.value && items.length === 0 && html`<div class="sheet"><${Empty} title="No endpoints yet">An endpoint is a named place: a directory of this host, a node, or a host behind ssh.<//></div>`}
    <div class="cards">${items.map((endpoint) => html`<${Card} key=${endpoint.name} endpoint=${endpoint} known=${known} again=${list.again} />`)}</div>
    ${opened && html`<${Add} close=${() => setOpened(false)} done=${() => { setOpened(false); list.again(); }} />`}`;
}

/** @param {{endpoint: any, known: import("../types.js").Whoami, again: () => void}} props */
function Card({ endpoint, known, again }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [asked, setAsked] = useState(false);
  const test = useAction(() => call("POST", `/endpoints/${encodeURIComponent(endpoint.name)}/test`), setFound);
  const { limits } = endpoint, mine = known.role === "admin" || endpoint.owner === known.user;
  const limited = [limits.transfers != null && plural(limits.transfers, "transfer"), limits.streams != null && plural(limits.streams, "stream"), limits.rate != null && rate(limits.rate)].filter(Boolean);
  return html`<section class="sheet card" aria-label=${`Endpoint ${endpoint.name}`}><div class="card-head"><h2>@${endpoint.name}</h2>${endpoint.read_only ? html`<span class="chip">read only</span>` : null}</div>
    ${endpoint.description && html`<p>${endpoint.description}</p>`}
    <dl class="facts small"><dt>Is</dt><dd>${KINDS[endpoint.location.kind]}</dd><dt>At</dt><dd class="mono"><${Name}>${address(endpoint.location)}<//></dd>
      ${endpoint.location.fingerprint && html`<dt>Key</dt><dd class="mono">${endpoint.location.fingerprint}</dd>`}
      <dt>Owner</dt><dd>${endpoint.owner}</dd>${endpoint.users.length > 0 && html`<dt>Used by</dt><dd>${endpoint.users.join(", ")}</dd>`}
      <dt>Limits</dt><dd>${limited.length ? limited.join(", ") : "none"}</dd><dt>Added</dt><dd><${Time} at=${endpoint.added} /></dd></dl>
    <div class="bar-of-buttons">${known.role !== "viewer" && html`<button disabled=${test.busy} aria-label=${`Test ${endpoint.name}`} onClick=${() => test.go()}>${test.busy ? "Testing…" : "Test"}</button>`}
      <a class="button" href=${`#/tasks?endpoint=${encodeURIComponent(endpoint.name)}`} aria-label=${`Tasks of ${endpoint.name}`}>Tasks</a>
      ${mine && html`<button class="plain danger" aria-label=${`Remove ${endpoint.name}`} onClick=${() => setAsked(true)}>Remove</button>`}</div>
    <${Trouble} problem=${test.problem} />
    ${found && html`<div role="status"><strong>${found.ok ? "The test passed" : "The test found faults"}</strong><ul class="checks small">${found.checks.map((/** @type {any} */ check) => html`<li>
      <span class=${check.ok === false ? "bad" : ""}><${Mark} of=${check.ok === false ? "bad" : check.ok ? "good" : "wait"} /></span>
      <span><span class="hidden-text">${check.ok === false ? "Fault: " : check.ok ? "Good: " : "Told: "}</span><strong>${check.name}</strong> ${check.told}${check.fix && html`<br />Try: <code>${check.fix}</code>`}</span></li>`)}</ul></div>`}
    ${asked && html`<${Confirm} title=${`Remove @${endpoint.name}?`} act="Remove" text="Its files stay. Tasks that name it cannot start any more." close=${() => setAsked(false)}
      run=${async () => { await call("DELETE", `/endpoints/${encodeURIComponent(endpoint.name)}`); again(); }} />`}</section>`;
}

/** @param {{close: () => void, done: () => void}} props */
function Add({ close, done }) {
  const [kind, setKind] = useState("node");
  const add = useAction((/** @type {FormData} */ form) => {
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    const location = kind === "local" ? { kind, root: text("root") }
      : kind === "ssh" ? { kind, host: text("host"), path: text("path") || "/", user: text("user") || null }
      : { kind, host: text("host"), port: Number(text("port")), path: text("path") || "/", fingerprint: text("fingerprint").replace(/^#?sha256:/, "") || null };
    return call("POST", "/endpoints", { body: { name: text("name"), description: text("description"), location, read_only: Boolean(form.get("read_only")), ...(text("token") && { token: text("token") }) } });
  }, done);
  return html`<${Dialog} title="Add endpoint" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void add.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>Add endpoint</h2>
    <div class="two"><label class="field"><span>Name</span><input name="name" required autocapitalize="none" spellcheck=${false} /></label>
    <label class="field"><span>Is a</span><select value=${kind} onChange=${(/** @type {Event} */ event) => setKind(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>
      <option value="node">node</option><option value="ssh">host behind ssh</option><option value="local">directory of the service's host</option></select></label></div>
    ${kind === "local" ? html`<label class="field"><span>Directory</span><input name="root" required placeholder="/data" /></label>` : html`
      <div class="two"><label class="field"><span>Host</span><input name="host" required /></label><label class="field"><span>Path</span><input name="path" placeholder="/" /></label>
      ${kind === "ssh" ? html`<label class="field"><span>Account</span><input name="user" /></label>` : html`<label class="field"><span>Port</span><input name="port" type="number" min="1" max="65535" defaultValue="7420" required /></label>
        <label class="field"><span>Fingerprint</span><input name="fingerprint" placeholder="sha256:…" spellcheck=${false} /></label>
        <label class="field"><span>Token</span><input name="token" type="password" autocomplete="off" /><small class="help">Kept sealed; shown to nobody.</small></label>`}</div>`}
    <label class="field"><span>Description</span><input name="description" /></label>
    <label class="check"><input type="checkbox" name="read_only" />Tasks may only read there</label>
    <${Trouble} problem=${add.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${add.busy}>Add</button></div></form><//>`;
}
