// Endpoints: the named places, and what a test of each finds.
import { html, useState } from "../ui.js";
import { all, call } from "../api.js";
import { useLive } from "../store.js";
import { Confirm, Copy, Dialog, Empty, Mark, Name, Search, Time, Trouble, useAction } from "../parts.js";
import { plural, rate } from "../format.js";

/** @param {any} at */
const address = (at) => at.kind === "local" ? at.root
  : at.kind === "node" ? `carrack://${at.host}:${at.port}${at.path}` : `ssh://${at.user ? `${at.user}@` : ""}${at.host}${at.path}`;
/** @type {Record<string, string>} */
const KINDS = { local: "directory of the service's host", node: "node", ssh: "host behind ssh" };

/** @typedef {{state: "ok"|"idle"|"degraded"|"down", last_contact: string|null, last_success: string|null, open_tasks: number, last_test: {time: string, ok: boolean}|null,
 *   last_fault: {time: string, code: string, why: string|null, task: string|null}|null}} Health */
/** @type {Record<Health["state"], ["good"|"warn"|"bad"|"", "good"|"wait"|"warn"|"bad", string]>} */
const HEALTH = { ok: ["good", "good", "OK"], idle: ["", "wait", "Idle"], degraded: ["warn", "warn", "Degraded"], down: ["bad", "bad", "Down"] };
/** Events after which an endpoint may do otherwise than before. */
const TURNS = ["endpoint-changed", "started", "fault", "ended", "submitted"];

/** @param {{known: import("../types.js").Whoami}} props */
export function Endpoints({ known }) {
  const list = useLive((signal) => all("/endpoints", {}, 5000, signal), [], (event) => TURNS.includes(event.kind));
  const [opened, setOpened] = useState(false);
  const [text, setText] = useState("");
  const items = /** @type {any[]} */ (list.value?.items ?? []);
  const fits = text ? items.filter((endpoint) => `@${endpoint.name} ${endpoint.description} ${address(endpoint.location)}`.toLowerCase().includes(text.toLowerCase())) : items;
  return html`<div class="view-head"><h1>Endpoints</h1>${known.role !== "viewer" && html`<button class="main" onClick=${() => setOpened(true)}>Add endpoint</button>`}</div>
    ${items.length > 6 && html`<div class="filters"><${Search} label="Find an endpoint" value=${text} set=${setText} /></div>`}
    <${Trouble} problem=${list.problem} again=${list.again} />
    ${list.loading && html`<p class="quiet">Loading…</p>`}
    ${list.value && fits.length === 0 && html`<div class="sheet">${items.length ? html`<${Empty} title="No endpoint fits"><button onClick=${() => setText("")}>Show all endpoints</button><//>`
      : html`<${Empty} title="No endpoints yet">An endpoint is a named place: a directory of this host, a node, or a host behind ssh.<//>`}</div>`}
    <div class="cards">${fits.map((endpoint) => html`<${Card} key=${endpoint.name} endpoint=${endpoint} known=${known} again=${list.again} />`)}</div>
    ${opened && html`<${Add} close=${() => setOpened(false)} done=${() => { setOpened(false); list.again(); }} />`}`;
}

/** From what it is known how an endpoint does. @param {{health: Health}} props */
function Doing({ health: { last_contact, last_fault, last_test, open_tasks } }) {
  return html`<dt>Reached</dt><dd>${last_contact ? html`<${Time} at=${last_contact} />` : "never so far"}</dd>
    ${last_fault && html`<dt>Last fault</dt><dd><${Time} at=${last_fault.time} />: <strong>${last_fault.code}</strong>${last_fault.why && html`, <${Name}>${last_fault.why}<//>`}${last_fault.task && html` <a href=${`#/tasks/${last_fault.task}`}>its task</a>`}</dd>`}
    ${last_test && html`<dt>Last test</dt><dd><${Time} at=${last_test.time} />: ${last_test.ok ? "passed" : "found faults"}</dd>`}
    <dt>Tasks</dt><dd>${open_tasks ? plural(open_tasks, "open task") : "none is open"}</dd>`;
}

/** @param {{endpoint: any, known: import("../types.js").Whoami, again: () => void}} props */
function Card({ endpoint, known, again }) {
  const [found, setFound] = useState(/** @type {any} */ (null));
  const [asked, setAsked] = useState("");
  const test = useAction(() => call("POST", `/endpoints/${encodeURIComponent(endpoint.name)}/test`), (/** @type {any} */ told) => { setFound(told); again(); });
  const { limits, defaults } = endpoint, mine = known.role === "admin" || endpoint.owner === known.user;
  const limited = [limits.transfers != null && `${plural(limits.transfers, "transfer")} at once`, limits.streams != null && plural(limits.streams, "stream"), limits.rate != null && rate(limits.rate)].filter(Boolean);
  const rules = [defaults?.verify && `verify ${defaults.verify}`, defaults?.encrypt && `encrypt ${defaults.encrypt}`].filter(Boolean);
  const health = /** @type {Health} */ (endpoint.health), [tone, mark, word] = HEALTH[health.state];
  return html`<section class="sheet card" aria-label=${`Endpoint ${endpoint.name}`}><div class="card-head"><h2>@${endpoint.name}</h2>
      <span class="bar-of-buttons">${endpoint.read_only && html`<span class="chip">read only</span>`}<span class=${`chip ${tone}`}><${Mark} of=${mark} />${word}</span></span></div>
    ${endpoint.description && html`<p>${endpoint.description}</p>`}
    <dl class="facts small"><dt>Is</dt><dd>${KINDS[endpoint.location.kind]}</dd><dt>At</dt><dd class="mono"><${Name}>${address(endpoint.location)}<//></dd>
      ${endpoint.location.fingerprint && html`<dt>Key</dt><dd><code class="clip" title=${endpoint.location.fingerprint}>${endpoint.location.fingerprint}</code></dd>`}
      <dt>Owner</dt><dd>${endpoint.owner}</dd>${endpoint.users.length > 0 && html`<dt>Used by</dt><dd>${endpoint.users.includes("*") ? "everybody" : endpoint.users.join(", ")}</dd>`}
      <dt>Limits</dt><dd>${limited.length ? limited.join(", ") : "none"}${(limits.timetable ?? []).map((/** @type {any} */ row) => html`<br />${row.from} to ${row.until}: ${row.rate ? rate(row.rate) : "nothing begins"}`)}</dd>
      ${rules.length > 0 && html`<dt>Rules</dt><dd>${rules.join(", ")}</dd>`}
      <${Doing} health=${health} /></dl>
    <div class="bar-of-buttons">${known.role !== "viewer" && html`<button disabled=${test.busy} aria-label=${`Test ${endpoint.name}`} onClick=${() => test.go()}>${test.busy ? "Testing…" : "Test"}</button>`}
      <a class="button" href=${`#/tasks?endpoint=${encodeURIComponent(endpoint.name)}`} aria-label=${`Tasks of ${endpoint.name}`}>Tasks</a>
      <a class="button" href=${`#/node/${encodeURIComponent(endpoint.name)}`} aria-label=${`Storage and findings of ${endpoint.name}`}>Storage and findings</a>
      ${mine && html`<button aria-label=${`Edit ${endpoint.name}`} onClick=${() => setAsked("edit")}>Edit</button><button class="plain danger" aria-label=${`Remove ${endpoint.name}`} onClick=${() => setAsked("remove")}>Remove</button>`}</div>
    <${Trouble} problem=${test.problem} />
    ${found && html`<${Found} found=${found} />`}
    ${asked === "edit" && html`<${Edit} endpoint=${endpoint} close=${() => setAsked("")} done=${() => { setAsked(""); again(); }} />`}
    ${asked === "remove" && html`<${Confirm} title=${`Remove @${endpoint.name}?`} act="Remove" text="Its files stay. Tasks that name it cannot start any more." close=${() => setAsked("")}
      run=${async () => { await call("DELETE", `/endpoints/${encodeURIComponent(endpoint.name)}`); again(); }} />`}</section>`;
}

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

/** Numbers that stand for no limit where they are left out. @param {{endpoint: any, close: () => void, done: () => void}} props */
function Edit({ endpoint, close, done }) {
  const { limits, defaults } = endpoint, MIB = 1 << 20;
  // What was read when it was opened: somebody else's change since then is not written over.
  const [version] = useState(endpoint.version);
  const save = useAction((/** @type {FormData} */ form) => {
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    const number = (/** @type {string} */ name, unit = 1) => text(name) ? Math.round(Number(text(name)) * unit) : null;
    const timetable = text("timetable").split("\n").map((line) => /^\s*(\d\d:\d\d)\s*-\s*(\d\d:\d\d)\s*=\s*([\d.]+)/.exec(line)).filter((row) => row !== null)
      .map(([, from, until, mib]) => ({ from, until, rate: Math.round(Number(mib) * MIB) }));
    return call("PATCH", `/endpoints/${encodeURIComponent(endpoint.name)}`, { headers: { "if-match": `"${version}"` }, body: {
      description: text("description"), read_only: Boolean(form.get("read_only")), uploads: Boolean(form.get("uploads")), ownership: Boolean(form.get("ownership")), users: text("users").split(/[\s,]+/).filter(Boolean),
      limits: { transfers: number("transfers"), streams: number("streams"), rate: number("rate", MIB), timetable },
      defaults: { verify: text("verify") || null, encrypt: text("encrypt") || null }, ...(text("token") && { token: text("token") }) } });
  }, done);
  const number = (/** @type {string} */ name, /** @type {string} */ label, /** @type {number|null} */ value) => html`<label class="field"><span>${label}</span><input name=${name} type="number" min="0" step="any" defaultValue=${value ?? ""} placeholder="no limit" /></label>`;
  const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string|null} */ value, /** @type {string[]} */ all) => html`<label class="field"><span>${label}</span><select name=${name}><option value="">as tasks say</option>${all.map((one) => html`<option value=${one} selected=${one === value}>${one}</option>`)}</select></label>`;
  return html`<${Dialog} title=${`Edit @${endpoint.name}`} close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void save.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>Edit @${endpoint.name}</h2>
    <label class="field"><span>Description</span><input name="description" defaultValue=${endpoint.description} /></label>
    <label class="field"><span>Used by</span><input name="users" defaultValue=${endpoint.users.join(", ")} spellcheck=${false} /><small class="help">Users beside its owner; * is everybody.</small></label>
    <div class="two">${number("transfers", "Transfers at once", limits.transfers)}${number("streams", "Streams of a transfer", limits.streams)}${number("rate", "MiB/s of a transfer", limits.rate == null ? null : limits.rate / MIB)}
      ${choice("verify", "Verify", defaults?.verify, ["wire", "disk", "source", "none"])}${choice("encrypt", "Encrypt", defaults?.encrypt, ["tls", "none"])}</div>
    <label class="field"><span>Hours with another rate</span><textarea name="timetable" rows="2" class="mono" placeholder="08:00-18:00 = 50" defaultValue=${(limits.timetable ?? []).map((/** @type {any} */ row) => `${row.from}-${row.until} = ${row.rate / MIB}`).join("\n")}></textarea><small class="help">One a line, in MiB/s; 0: no transfer begins.</small></label>
    ${endpoint.location.kind === "node" && html`<label class="field"><span>New token</span><input name="token" type="password" autocomplete="off" placeholder=${endpoint.has_token ? "the one that is kept stays" : "none is kept"} /></label>`}
    <label class="check"><input type="checkbox" name="read_only" defaultChecked=${endpoint.read_only} />Read only: tasks change nothing there</label>
    <label class="check"><input type="checkbox" name="ownership" defaultChecked=${endpoint.ownership} />Tasks may set owners, special bits and devices there (an admin allows it)</label>
    <label class="check"><input type="checkbox" name="uploads" defaultChecked=${endpoint.uploads} />Uploads: browsers may send files there</label>
    <${Trouble} problem=${save.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${save.busy}>Save</button></div></form><//>`;
}

/** @param {{close: () => void, done: () => void}} props */
function Add({ close, done }) {
  const [kind, setKind] = useState("node");
  const add = useAction((/** @type {FormData} */ form) => {
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    const location = kind === "local" ? { kind, root: text("root") }
      : kind === "ssh" ? { kind, host: text("host"), path: text("path") || "/", user: text("user") || null }
      : { kind, host: text("host"), port: Number(text("port")), path: text("path") || "/", fingerprint: text("fingerprint").replace(/^#?sha256:/, "") || null };
    return call("POST", "/endpoints", { body: { name: text("name"), description: text("description"), location, read_only: Boolean(form.get("read_only")), uploads: Boolean(form.get("uploads")), ...(text("token") && { token: text("token") }) } });
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
    <label class="check"><input type="checkbox" name="uploads" />Browsers may send files there</label>
    <${Trouble} problem=${add.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${add.busy}>Add</button></div></form><//>`;
}
