// The forms of endpoints: adding one by what somebody pastes, which is tested at once, and changing one.
import { html, useState } from "../ui.js";
import { call } from "../api.js";
import { Dialog, Trouble, useAction } from "../parts.js";
import { addressOf, nameFor } from "../address.js";
import { Found } from "./found.js";

const MIB = 1 << 20;
/** A timetable as it is typed: hours and their rate a line. A line that is not understood is an error. @param {string} text */
function timetableOf(text) {
  return text.split("\n").filter((line) => line.trim()).map((line) => {
    const [, from, until, mib] = /^\s*(\d{1,2}:\d\d)\s*-\s*(\d{1,2}:\d\d)\s*=\s*(\d+(?:\.\d+)?)\s*(?:MiB\/s)?\s*$/.exec(line) ?? [];
    if (!from) throw Object.assign(new Error(`This line of the hours is not understood: ${line.trim()}`), { hints: ["Write it as 08:00-18:00 = 2.5: from, until, and MiB/s with a decimal point."] });
    return { from: from.padStart(5, "0"), until: until.padStart(5, "0"), rate: Math.round(Number(mib) * MIB) };
  });
}

/** Numbers that stand for no limit where they are left out. @param {{endpoint: any, close: () => void, done: () => void}} props */
export function Edit({ endpoint, close, done }) {
  const { limits, defaults } = endpoint;
  // What was read when it was opened: somebody else's change since then is not written over.
  const [version] = useState(endpoint.version);
  const save = useAction(async (/** @type {FormData} */ form) => {
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    const number = (/** @type {string} */ name, unit = 1) => text(name) ? Math.round(Number(text(name)) * unit) : null;
    const timetable = timetableOf(text("timetable"));
    return call("PATCH", `/endpoints/${encodeURIComponent(endpoint.name)}`, { headers: { "if-match": `"${version}"` }, body: {
      description: text("description"), read_only: Boolean(form.get("read_only")), uploads: Boolean(form.get("uploads")), ownership: Boolean(form.get("ownership")), users: text("users").split(/[\s,]+/).filter(Boolean),
      limits: { transfers: number("transfers"), streams: number("streams"), rate: number("rate", MIB), timetable, ...(text("drained") && { drained: text("drained") }) },
      defaults: { verify: text("verify") || null, encrypt: text("encrypt") || null }, ...(text("token") && { token: text("token") }) } });
  }, done);
  const number = (/** @type {string} */ name, /** @type {string} */ label, /** @type {number|null} */ value) => html`<label class="field"><span>${label}</span><input name=${name} type="number" min="0" step="any" defaultValue=${value ?? ""} placeholder="no limit" /></label>`;
  const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string|null} */ value, /** @type {string[]} */ all) => html`<label class="field"><span>${label}</span><select name=${name}><option value="">as tasks say</option>${all.map((one) => html`<option value=${one} selected=${one === value}>${one}</option>`)}</select></label>`;
  return html`<${Dialog} title=${`Edit @${endpoint.name}`} close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void save.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>Edit @${endpoint.name}</h2>
    <label class="field"><span>Description</span><input name="description" defaultValue=${endpoint.description} /></label>
    <label class="field"><span>Used by</span><input name="users" defaultValue=${endpoint.users.join(", ")} spellcheck=${false} /><small class="help">Users beside its owner; * is everybody.</small></label>
    <label class="field"><span>Drained, because</span><input name="drained" maxlength="1000" defaultValue=${limits.drained ?? ""} placeholder="new disks until Thursday" /><small class="help">With a reason no transfer begins there; attempts that run go on to their end. Whoever waits is told the reason.</small></label>
    <div class="two">${number("transfers", "Transfers at once", limits.transfers)}${number("streams", "Streams of a transfer", limits.streams)}${number("rate", "MiB/s of a transfer", limits.rate == null ? null : limits.rate / MIB)}
      ${choice("verify", "Verify", defaults?.verify, ["wire", "disk", "source", "none"])}${choice("encrypt", "Encrypt", defaults?.encrypt, ["tls", "none"])}</div>
    <label class="field"><span>Hours with another rate</span><textarea name="timetable" rows="2" class="mono" placeholder="08:00-18:00 = 50" defaultValue=${(limits.timetable ?? []).map((/** @type {any} */ row) => `${row.from}-${row.until} = ${row.rate / MIB}`).join("\n")}></textarea><small class="help">One a line, in MiB/s; 0: no transfer begins.</small></label>
    ${endpoint.location.kind === "node" && html`<label class="field"><span>New token</span><input name="token" type="password" autocomplete="off" placeholder=${endpoint.has_token ? "the one that is kept stays" : "none is kept"} /></label>`}
    <label class="check"><input type="checkbox" name="read_only" defaultChecked=${endpoint.read_only} />Read only: tasks change nothing there</label>
    <label class="check"><input type="checkbox" name="ownership" defaultChecked=${endpoint.ownership} />Tasks may set owners, special bits and devices there (an admin allows it)</label>
    <label class="check"><input type="checkbox" name="uploads" defaultChecked=${endpoint.uploads} />Uploads: browsers may send files there</label>
    <${Trouble} problem=${save.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${save.busy}>Save</button></div></form><//>`;
}

/** @typedef {import("../address.js").At} At */
/** What was understood of an address, in words. @param {At} at */
const inWords = (at) => at.kind === "local" ? `The directory ${at.root} of the service's host`
  : at.kind === "ssh" ? `${at.path} at ${at.host}, by ssh of the service's account${at.user ? `, as ${at.user}` : ""}`
  : `The node ${at.host}, port ${at.port}, ${at.path === "/" ? "its whole root" : at.path}${at.fingerprint ? `, key sha256:${at.fingerprint.slice(0, 12)}…` : "; its key is learnt at the first connection"}`;

/** Adds an endpoint, and tests it. @param {{close: () => void, again: () => void, done: (name: string) => void}} props `again`: something is new; `done`: it was added and looked at */
export function Add({ close, again, done }) {
  const [text, setText] = useState("");
  const [named, setNamed] = useState(/** @type {string|null} */ (null));
  const [added, setAdded] = useState("");
  const { at, why } = addressOf(text), name = named ?? (at ? nameFor(at) : "");
  const test = useAction((/** @type {string} */ of) => call("POST", `/endpoints/${encodeURIComponent(of)}/test`), (told) => { setFound(told); again(); });
  const [found, setFound] = useState(/** @type {any} */ (null));
  const add = useAction(async (/** @type {FormData} */ form) => {
    const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
    await call("POST", "/endpoints", { body: { name, description: text("description"), location: at, read_only: Boolean(form.get("read_only")), uploads: Boolean(form.get("uploads")), ...(at?.kind === "node" && text("token") && { token: text("token") }) } });
    return name;
  }, (name) => { setAdded(name); again(); void test.go(name); });
  const remove = useAction(() => call("DELETE", `/endpoints/${encodeURIComponent(added)}`), () => { again(); close(); });
  if (added) {
    return html`<${Dialog} title=${`@${added} is added`} close=${() => done(added)}><div class="inside"><h2>@${added} is added</h2>
      ${test.busy && html`<p role="status">Testing it: it is reached, a file is written, read back and removed…</p>`}
      ${found && html`<${Found} found=${found} />`}<${Trouble} problem=${test.problem ?? remove.problem} />
      <div class="bar-of-buttons end">${(found && !found.ok || test.problem) && html`<button class="plain danger" disabled=${remove.busy} onClick=${() => remove.go()}>Remove it again</button><button disabled=${test.busy} onClick=${() => { setFound(null); void test.go(added); }}>Test again</button>`}
        <button class="main" onClick=${() => done(added)}>${found?.ok ? "Done" : "Keep it"}</button></div></div><//>`;
  }
  return html`<${Dialog} title="Add endpoint" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); if (at) void add.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>Add endpoint</h2>
    <label class="field"><span>Where it is</span><textarea name="location" class="mono" rows="2" required autofocus spellcheck=${false} autocapitalize="none" placeholder="carrack://host:7420/#sha256:…" onInput=${(/** @type {Event} */ event) => setText(/** @type {HTMLTextAreaElement} */ (event.currentTarget).value)}></textarea>
      <small class="help">Paste a line that <code>carrack serve</code> prints on the other host. Or type host:/path for a host behind ssh, or /path for a directory of the service's host.</small></label>
    <p class=${`notice ${why ? "warn" : ""}`} role="status" hidden=${!text.trim()}>${at ? inWords(at) : why}</p>
    ${at?.kind === "node" && html`<label class="field"><span>Token</span><input name="token" type="password" autocomplete="off" /><small class="help">What the file holds that <code>carrack serve</code> names. It is kept sealed and shown to nobody.</small></label>`}
    <div class="two"><label class="field"><span>Name</span><input name="name" required autocapitalize="none" spellcheck=${false} pattern="[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}" title="Letters, digits, dots, dashes and underscores; first a letter or a digit" value=${name} onInput=${(/** @type {Event} */ event) => setNamed(/** @type {HTMLInputElement} */ (event.currentTarget).value)} /></label>
      <label class="field"><span>Description</span><input name="description" /></label></div>
    <label class="check"><input type="checkbox" name="read_only" />Tasks may only read there</label>
    <label class="check"><input type="checkbox" name="uploads" />Browsers may send files there</label>
    <${Trouble} problem=${add.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Cancel</button><button class="main" disabled=${add.busy || !at || !name}>Add and test</button></div></form><//>`;
}
