// Users, tokens and sessions. Sessions are rows: one that is ended opens nothing any more.
import { html, useState } from "../ui.js";
import { call, renew } from "../api.js";
import { useLive } from "../store.js";
import { Audit } from "./audit.js";
import { Confirm, Copy, Dialog, Mark, Time, Trouble, useAction } from "../parts.js";
import { daysAgo } from "../format.js";

/** @param {{known: import("../types.js").Whoami}} props */
export function Access({ known }) {
  const isAdmin = known.role === "admin" && !known.scope;
  const [whose, setWhose] = useState(known.user);
  const tokens = useLive((signal) => call("GET", "/tokens", { query: { user: isAdmin ? whose : null }, signal }), [whose]);
  const users = useLive((signal) => isAdmin ? call("GET", "/users", { signal }) : Promise.resolve(null), [isAdmin]);
  /** @typedef {{what: "token"|"session"|"sessions"|"edit"|"add user"|"add token"|"password"|"", row?: any}} Asked */
  const [asked, setAsked] = useState(/** @type {Asked} */ ({ what: "" }));
  const [made, setMade] = useState(/** @type {{title: string, text: string}|null} */ (null));
  const rows = /** @type {any[]} */ (tokens.value?.items ?? []), everybody = /** @type {any[]} */ (users.value?.items ?? []);
  const sessions = rows.filter((row) => row.is_session), others = rows.filter((row) => !row.is_session), mine = whose === known.user;
  const close = () => setAsked({ what: "" }), path = (/** @type {string} */ name) => `/users/${encodeURIComponent(name)}`;
  const link = useAction((name) => call("POST", `${path(name)}/links`), (told) => setMade({ title: `A link that logs ${told.user} in, once, within ten minutes:`, text: `${location.origin}/#${/login=.*$/.exec(told.link)?.[0]}` }));
  const { what, row } = asked;
  return html`<div class="view-head"><h1>Access</h1><div class="bar-of-buttons">
      ${everybody.length > 1 && html`<label class="inline"><span>Sessions and tokens of</span> <select value=${whose} onChange=${(/** @type {Event} */ event) => setWhose(/** @type {HTMLSelectElement} */ (event.currentTarget).value)}>${everybody.map((user) => html`<option key=${user.name} value=${user.name}>${user.name}</option>`)}</select></label>`}
      <button onClick=${() => setAsked({ what: "password" })}>Change password</button></div></div>
    <${Trouble} problem=${tokens.problem ?? users.problem ?? link.problem} />
    ${made && html`<div class="notice" role="status"><p><strong>${made.title}</strong></p><div class="command"><code>${made.text}</code><${Copy} text=${made.text} /></div></div>`}
    <section class="sheet" aria-label="Sessions"><div class="part-head"><h2>Sessions${mine ? "" : ` of ${whose}`}</h2><button class="danger" disabled=${sessions.length === 0} onClick=${() => setAsked({ what: "sessions", row: whose })}>${mine ? "Log out everywhere" : "End all"}</button></div>
      <${Rows} rows=${sessions} loading=${tokens.loading} label="Sessions" empty="No sessions" act="End" mine=${known.token} remove=${(/** @type {any} */ row) => setAsked({ what: "session", row })} /></section>
    <section class="sheet" aria-label="Tokens"><div class="part-head"><h2>Tokens${mine ? "" : ` of ${whose}`}</h2><button onClick=${() => setAsked({ what: "add token" })}>New token</button></div>
      <${Rows} rows=${others} loading=${tokens.loading} label="Tokens" empty="No tokens. Programs use them; one can do less than its user." act="Revoke" remove=${(/** @type {any} */ row) => setAsked({ what: "token", row })} /></section>
    ${users.value && html`<section class="sheet" aria-label="Users"><div class="part-head"><h2>Users</h2><button onClick=${() => setAsked({ what: "add user" })}>Add user</button></div>
      <div class="scroll-x" tabindex="0" role="region" aria-label="Table of users"><table class="plain-table"><thead><tr><th scope="col">User</th><th scope="col">Role</th><th scope="col">Account</th><th scope="col">Added</th><th scope="col">State</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
      ${everybody.map((user) => html`<tr key=${user.name}><td><strong>${user.name}</strong></td><td>${user.role}</td><td>${user.account ?? "–"}</td><td><${Time} at=${user.added} /></td><td>${user.enabled ? "enabled" : html`<span class="chip warn"><${Mark} of="pause" />Disabled</span>`}</td>
        <td class="acts"><div class="bar-of-buttons"><button disabled=${link.busy} aria-label=${`Login link for ${user.name}`} onClick=${() => link.go(user.name)}>Login link</button>
          ${user.name !== known.user && html`<button aria-label=${`Edit ${user.name}`} onClick=${() => setAsked({ what: "edit", row: user })}>Edit</button><button class="plain danger" aria-label=${`End sessions of ${user.name}`} onClick=${() => setAsked({ what: "sessions", row: user.name })}>End sessions</button>`}</div></td></tr>`)}</tbody></table></div></section>`}
    ${isAdmin && html`<${Audit} />`}
    ${(what === "token" || what === "session") && html`<${Confirm} title=${what === "session" ? "End this session?" : "Revoke this token?"} act=${what === "session" ? "End session" : "Revoke"} close=${close}
      text=${what === "session" ? `${row.user}: ${row.label}` : `${row.user}: ${row.label || row.id}. Tasks that it has submitted are cancelled.`} run=${async () => { await call("DELETE", `/tokens/${row.id}`); tokens.again(); }} />`}
    ${what === "sessions" && html`<${Confirm} title=${row === known.user ? "Log out everywhere?" : `End all sessions of ${row}?`} act="End sessions" close=${close}
      text=${`Every browser and every command that has logged in${row === known.user ? " as you, this page too" : ""}. Tokens stay.`} run=${async () => { await call("DELETE", `${path(row)}/sessions`); tokens.again(); }} />`}
    ${what === "add token" && html`<${NewToken} user=${whose} close=${close} done=${(/** @type {any} */ token) => { close(); setMade({ title: "The new token, shown this once:", text: token.token }); tokens.again(); }} />`}
    ${what === "add user" && html`<${UserForm} close=${close} done=${() => { close(); users.again(); }} />`}
    ${what === "edit" && html`<${UserForm} user=${row} close=${close} done=${() => { close(); users.again(); }} />`}
    ${what === "password" && html`<${Password} close=${close} />`}`;
}

/** @param {{rows: any[], loading: boolean, label: string, empty: string, act: string, mine?: string|null, remove: (row: any) => void}} props `mine`: the session of this page */
const Rows = ({ rows, loading, label, empty, act, mine, remove }) => rows.length === 0 ? html`<p class="pad quiet">${loading ? "Loading…" : empty}</p>`
  : html`<div class="scroll-x" tabindex="0" role="region" aria-label=${`Table of ${label.toLowerCase()}`}><table class="plain-table"><thead><tr><th scope="col">${label === "Sessions" ? "By" : "Label"}</th><th scope="col">${label === "Sessions" ? "Begun" : "Made"}</th><th scope="col">Last used</th><th scope="col">Ends</th><th scope="col">May</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
    ${rows.map((row) => html`<tr key=${row.id}><td><strong>${row.label || "no label"}</strong>${row.id === mine && html` <span class="chip live">this one</span>`}</td><td><${Time} at=${row.made} /></td><td><${Time} at=${row.used} /></td><td>${row.expires ? html`<${Time} at=${row.expires} />` : "never"}</td>
      <td>${row.scope ? [row.scope.verbs?.join(", "), ...(row.scope.endpoints ?? []).map((/** @type {string} */ name) => `@${name}:${row.scope.path ?? "/"}`)].filter(Boolean).join(" at ") : "all that its user may"}</td>
      <td class="acts"><button class="plain danger" aria-label=${`${act} ${row.label || row.id} of ${row.user}${row.id === mine ? ", this one" : ""}`} onClick=${() => remove(row)}>${act}</button></td></tr>`)}</tbody></table></div>`;

/** @param {{user: string, close: () => void, done: (made: any) => void}} props */
function NewToken({ user, close, done }) {
  const make = useAction((/** @type {FormData} */ form) => {
    const days = Number(form.get("days")), verbs = form.getAll("verb"), endpoint = String(form.get("endpoint") ?? "").trim();
    const body = { user, label: String(form.get("label")).trim(), scope: { verbs, ...(endpoint && { endpoints: [endpoint] }) }, expires: days ? daysAgo(-days) : null };
    return call("POST", "/tokens", { body });
  }, done);
  return html`<${Dialog} title="New token" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void make.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>New token</h2>
    <div class="two"><label class="field"><span>Label</span><input name="label" required /></label><label class="field"><span>Days until it ends</span><input name="days" type="number" min="0" defaultValue="90" /><small class="help">0: never</small></label></div>
    <fieldset class="bar-of-buttons"><legend>May</legend>${["read", "write", "delete", "ownership", "tasks", "view", "metrics", "admin"].map((verb) => html`<label class="check"><input type="checkbox" name="verb" value=${verb} defaultChecked=${verb === "view"} />${verb}</label>`)}</fieldset>
    <label class="field"><span>Only at endpoint</span><input name="endpoint" placeholder="any" spellcheck=${false} /></label>
    <${Trouble} problem=${make.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${make.busy}>Make token</button></div></form><//>`;
}

const ROLES = [["user", "user: submits tasks, adds endpoints"], ["viewer", "viewer: sees, changes nothing"], ["admin", "admin: everything"]];

/** Adds a user, or changes one. @param {{user?: any, close: () => void, done: () => void}} props */
function UserForm({ user, close, done }) {
  const save = useAction((/** @type {FormData} */ form) => {
    const role = form.get("role"), password = String(form.get("password") ?? "");
    return user ? call("PATCH", `/users/${encodeURIComponent(user.name)}`, { body: { role, enabled: Boolean(form.get("enabled")), ...(password && { password }) } })
      : call("POST", "/users", { body: { name: String(form.get("name")).trim(), role, ...(password && { password }) } });
  }, done);
  const title = user ? `Edit ${user.name}` : "Add user";
  return html`<${Dialog} title=${title} close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void save.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>${title}</h2>
    ${!user && html`<label class="field"><span>Name</span><input name="name" required autocomplete="off" autocapitalize="none" spellcheck=${false} /></label>`}
    <label class="field"><span>Role</span><select name="role">${ROLES.map(([role, text]) => html`<option value=${role} selected=${role === (user?.role ?? "user")}>${text}</option>`)}</select></label>
    <label class="field"><span>${user ? "New password" : "Password"}</span><input name="password" type="password" autocomplete="new-password" minlength="10" /><small class="help">${user ? "Left out: it stays." : "Left out: a login link lets them in."}</small></label>
    ${user && html`<label class="check"><input type="checkbox" name="enabled" defaultChecked=${user.enabled} />Enabled. Without it they are logged out, and their tasks are cancelled</label>`}
    <${Trouble} problem=${save.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${save.busy}>${user ? "Save" : "Add"}</button></div></form><//>`;
}

/** @param {{close: () => void}} props */
function Password({ close }) {
  const change = useAction(async (/** @type {FormData} */ form) => {
    const old = String(form.get("old") ?? "");
    // It is another session from now on.
    await renew(() => call("POST", "/password", { body: { new: form.get("new"), ...(old && { old }) } }));
  }, close);
  return html`<${Dialog} title="Change password" close=${close}><form onSubmit=${(/** @type {SubmitEvent} */ event) => { event.preventDefault(); void change.go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}><h2>Change password</h2>
    <label class="field"><span>Current password</span><input name="old" type="password" autocomplete="current-password" /><small class="help">Empty if there was none.</small></label>
    <label class="field"><span>New password</span><input name="new" type="password" autocomplete="new-password" minlength="10" maxlength="1024" required /><small class="help">10 characters or more. Your sessions elsewhere end.</small></label>
    <${Trouble} problem=${change.problem} /><div class="bar-of-buttons end"><button type="button" class="plain" onClick=${close}>Close</button><button class="main" disabled=${change.busy}>Change</button></div></form><//>`;
}
