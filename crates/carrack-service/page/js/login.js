// Login: a name and a password, a token, or the link that the service has printed.
import { html, useEffect, useState } from "./ui.js";
import { login, loginByToken } from "./api.js";
import { Segments, Trouble, useAction } from "./parts.js";

/** The end of a login link, behind the service's fingerprint. */
export const LINK = /[#&]login=([A-Za-z0-9_-]+)$/;

/** @param {{enter: (known: import("./types.js").Whoami) => void, said?: string}} props */
export function Login({ enter, said }) {
  const [way, setWay] = useState("password");
  const { busy, problem, go } = useAction((form) => way === "token" ? loginByToken(form.get("token").trim())
    : login({ user: form.get("user"), password: form.get("password") }), enter);
  const link = useAction((secret) => login({ link: secret }), enter);
  useEffect(() => {
    const secret = LINK.exec(location.hash)?.[1];
    if (!secret) return;
    // It works once, and history must not keep it.
    history.replaceState(null, "", "#/");
    void link.go(secret);
  }, []);
  return html`<main class="login" id="main"><form class="sheet" onSubmit=${(/** @type {SubmitEvent} */ event) => {
      event.preventDefault(); void go(new FormData(/** @type {HTMLFormElement} */ (event.currentTarget))); }}>
    <h1><img src="/page/icon.svg" alt="" />Carrack</h1>
    ${said && html`<p class="notice">${said}</p>`}
    <${Segments} value=${way} set=${setWay} label="How to log in" choices=${[["password", "Password"], ["token", "Token"]]} />
    ${way === "password" ? html`
      <label class="field"><span>User</span><input name="user" autocomplete="username" autocapitalize="none" spellcheck=${false} required autofocus /></label>
      <label class="field"><span>Password</span><input name="password" type="password" autocomplete="current-password" required /></label>`
    : html`<label class="field"><span>Token</span><input name="token" type="password" autocomplete="off" spellcheck=${false} required placeholder="carrack_…" />
      <small class="help">Kept until this tab is closed. <code>carrack service token create</code> makes one.</small></label>`}
    <${Trouble} problem=${problem ?? link.problem} />
    <button class="main" disabled=${busy || link.busy}>${busy || link.busy ? "Logging in…" : "Log in"}</button>
    <p class="help">No password yet, or forgotten? Whoever runs this service sends you a link that logs you in; you set a password under Access.</p>
    <details class="help"><summary>You run this service</summary><p>On its host: <code>carrack service user add NAME --password</code> for a password, <code>carrack service user link NAME</code> for a link.</p></details></form></main>`;
}
