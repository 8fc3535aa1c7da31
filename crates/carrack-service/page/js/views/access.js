// Users, tokens and sessions. Sessions are rows: one that is ended opens nothing any more.
import { html, useState } from "../ui.js";
import { call } from "../api.js";
import { useLive } from "../store.js";
import { Confirm, Copy, Dialog, Time, Trouble, useAction } from "../parts.js";

/** @param {{known: import("../types.js").Whoami}} props */
export function Access({ known }) {
  const tokens = useLive((signal) => call("GET", "/tokens", { signal }), []);
  const isAdmin = known.role === "admin" && !known.scope;
  const users = useLive((signal) => isAdmin ? call("GET", "/users", { signal }) : Promise.resolve(null), [isAdmin]);
  const [doomed, setDoomed] = useState(/** @type {any} */ (null));
  const [opened, setOpened] = useState("");
  const [leaving, setLeaving] = useState("");
  const [made, setMade] = useState(/** @type {any} */ (null));
  const rows = /** @type {any[]} */ (tokens.value?.items ?? []);
  const sessions = rows.filter((row) => row.is_session), others = rows.filter((row) => !row.is_session);
  const endAll = (/** @type {string} */ name) => call("DELETE", `/users/${encodeURIComponent(name)}/sessions`);
  const change = useAction((name, body) => call("PATCH", `/users/${encodeURIComponent(name)}`, { body }), users.again);
  return html`<div class="view-head"><h1>Access</h1></div><${Trouble} problem=${tokens.problem ?? users.problem ?? change.problem} />
    ${made && html`<div class="notice" role="status"><p><strong>The new token, shown this once:</strong></p><div class="command"><code>${made.token}</code><${Copy} text=${made.token} /></div></div>`}
    <section class="sheet" aria-label="Sessions"><div class="part-head"><h2>Sessions</h2><button class="danger" disabled=${sessions.length === 0} onClick=${() => setLeaving(known.user)}>Log out everywhere</button></div>
      <${Rows} rows=${sessions} label="Sessions" empty="No sessions" act="End" remove=${setDoomed} /></section>
    <section class="sheet" aria-label="Tokens"><div class="part-head"><h2>Tokens</h2><button onClick=${() => setOpened("token")}>New token</button></div>
      <${Rows} rows=${others} label="Tokens" empty="No tokens. Programs use them; one can do less than its user." act="Revoke" remove=${setDoomed} /></section>
    ${users.value && html`<section class="sheet" aria-label="Users"><div class="part-head"><h2>Users</h2><button onClick=${() => setOpened("user")}>Add user</button></div>
      <div class="scroll-x" tabindex="0" role="region" aria-label="Table of users"><table class="plain-table"><thead><tr><th scope="col">User</th><th scope="col">Role</th><th scope="col">Account</th><th scope="col">Added</th><th scope="col">State</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
      ${/** @type {any[]} */ (users.value.items).map((user) => html`<tr key=${user.name}><td><strong>${user.name}</strong></td><td>${user.role}</td><td>${user.account ?? "–"}</td><td><${Time} at=${user.added} /></td><td>${user.enabled ? "enabled" : "disabled"}</td>
        <td class="acts"><div class="bar-of-buttons">${user.name !== known.user && html`<button class="plain danger" aria-label=${`End sessions of ${user.name}`} onClick=${() => setLeaving(user.name)}>End sessions</button><button disabled=${change.busy} aria-label=${`${user.enabled ? "Disable" : "Enable"} ${user.name}`} onClick=${() => change.go(user.name, { enabled: !user.enabled })}>${user.enabled ? "Disable" : "Enable"}</button>`}</div></td></tr>`)}</tbody></table></div></section>`}
    ${doomed && html`<${Confirm} title=${doomed.is_session ? "End this session?" : "Revoke this token?"} act=${doomed.is_session ? "End session" : "Revoke"} close=${() => setDoomed(null)}
      text=${doomed.is_session ? `${doomed.user}: ${doomed.label}` : `${doomed.user}: ${doomed.label || doomed.id}. Tasks that it has submitted are cancelled.`} run=${async () => { await call("DELETE", `/tokens/${doomed.id}`); tokens.again(); }} />`}
    ${leaving && html`<${Confirm} title=${leaving === known.user ? "Log out everywhere?" : `End all sessions of ${leaving}?`} act="End sessions" close=${() => setLeaving("")}
      text=${leaving === known.user ? "Every browser and every command that has logged in as you, this page too. Tokens stay." : "Every browser and every command that has logged in. Tokens stay."} run=${async () => { await endAll(leaving); tokens.again(); }} />`}
    ${opened === "token" && html`<${NewToken} close=${() => setOpened("")} done=${(/** @type {any} */ token) => { setOpened(""); setMade(token); tokens.again(); }} />`}
    ${opened === "user" && html`<${NewUser} close=${() => setOpened("")} done=${() => { setOpened(""); users.again(); }} />`}`;
}

/** @param {{rows: any[], label: string, empty: string, act: string, remove: (row: any) => void}} props */
const Rows = ({ rows, label, empty, act, remove }) => rows.length === 0 ? html`<p class="pad quiet">${empty}</p>`
  : html`<div class="scroll-x" tabindex="0" role="region" aria-label=${`Table of ${label.toLowerCase()}`}><table class="plain-table"><thead><tr><th scope="col">User</th><th scope="col">Label</th><th scope="col">Made</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">May</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
    ${rows.map((row) => html`<tr key=${row.id}><td><strong>${row.user}</strong></td><td>${row.label || html`<span class="quiet">none</span>`}</td><td><${Time} at=${row.made} /></td><td><${Time} at=${row.used} /></td><td>${row.expires ? html`<${Time} at=${row.expires} />` : "never"}</td>
      <td>${row.scope ? [row.scope.verbs?.join(", "), row.scope.endpoint && `@${row.scope.endpoint}:${row.scope.path ?? "/"}`].filter(Boolean).join(" at ") : "all that its user may"}</td>
      <td class="acts"><button class="plain danger" aria-label=${`${act} ${row.label || row.id} of ${row.user}`} onClick=${() => remove(row)}>${act}</button></td></tr>`)}</tbody></table></div>`;

/** @param {{close: () => void, done: (made: any) => void}} props */
function NewToken({ close, done }) {
  const make = useAction((/** @type {FormData} */ form) => {
    const days = Number(form.get("days")), verbs = form.getAll("verb"), endpoint = String(form.get("endpoint") ?? "").trim();
    const body = { label: String(form.get("label")).trim(), scope: { verbs, ...(endpoint && { endpoint }) }, expires: days ? new Date(Date.now() + days * 86_400_000).toISOString() : null };
    return call("POST", "/tokens", { body });
  }, done);
  return html`<${Dialog} title="New token" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void make.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>New token</h2>
    <div class="two"><label class="field"><span>Label</span><input name="label" required /></label><label class="field"><span>Days until it ends</span><input name="days" type="number" min="0" defaultValue="90" /><small class="help">0: never</small></label></div>
    <fieldset class="bar-of-buttons"><legend>May</legend>${["read", "write", "delete", "tasks", "view", "metrics", "admin"].map((verb) => html`<label class="check"><input type="checkbox" name="verb" value=${verb} defaultChecked=${verb === "view"} />${verb}</label>`)}</fieldset>
    <label class="field"><span>Only at endpoint</span><input name="endpoint" placeholder="any" spellcheck=${false} /></label>
    <${Trouble} problem=${make.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${make.busy}>Make token</button></div></form><//>`;
}

/** @param {{close: () => void, done: () => void}} props */
function NewUser({ close, done }) {
  const add = useAction((/** @type {FormData} */ form) => call("POST", "/users", { body: { name: String(form.get("name")).trim(), role: form.get("role"), password: form.get("password") } }), done);
  return html`<${Dialog} title="Add user" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void add.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>Add user</h2>
    <label class="field"><span>Name</span><input name="name" required autocomplete="off" autocapitalize="none" /></label>
    <label class="field"><span>Role</span><select name="role"><option value="user">user: submits tasks, adds endpoints</option><option value="viewer">viewer: sees, changes nothing</option><option value="admin">admin: everything</option></select></label>
    <label class="field"><span>Password</span><input name="password" type="password" autocomplete="new-password" required /></label>
    <${Trouble} problem=${add.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${add.busy}>Add</button></div></form><//>`;
}
