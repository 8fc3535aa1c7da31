// Requests to the API of the server that the page came from, and who the caller is.
import { setClock } from "./format.js";
import { hintFor, patienceFor } from "./patience.js";

const BASE = "/api/v1";
const KEPT_TOKEN = "carrack-token";

/** A problem that the server told, or that no server was reached. */
export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail @param {string[]} hints */
  constructor(status, code, detail, hints) {
    super(detail);
    this.status = status; this.code = code; this.hints = hints;
  }
}

/** @type {{csrf: string|null, token: string|null, user: string|null, lost: () => void, number: number, renewing: Promise<void>|null, ends: (() => void)[], gone: boolean}} `user`: whom this page shows; `ends`: called when that is over; `gone`: the browser is somebody else's by now; `number`: which session of this page it is; `renewing`: another takes its place just now */
const session = { csrf: null, token: sessionStorage.getItem(KEPT_TOKEN), user: null, lost: () => {}, number: 0, renewing: null, ends: [], gone: false };
/** All tabs of a browser have one cookie: one that begins another session tells the others. */
const tabs = "BroadcastChannel" in globalThis ? new BroadcastChannel("carrack-session") : null;
if (tabs) tabs.onmessage = () => { if (!session.token && session.user !== null) void whoami().catch(() => {}); };

/** Called when the server knows the caller no more. @param {() => void} lost */
export function onLost(lost) { session.lost = lost; }
/** Called when nothing is to be done any more for whom this page has shown. @param {() => void} end */
export function onEnd(end) { session.ends.push(end); }
const anotherUser = () => new Problem(0, "another-user", "Somebody else has logged in with this browser.", ["The page loads anew."]);
/** Which session requests are sent in from now on. */
export const sessionNumber = () => session.number;

/** Does what gives the caller another session in the place of this one. @param {() => Promise<unknown>} work */
export async function renew(work) {
  session.renewing = (async () => { await work(); await whoami(); session.number += 1; tabs?.postMessage("another"); })();
  try { await session.renewing; } finally { session.renewing = null; }
}

/** Whether another session has taken the place of the one in which something was asked: that the old one is known no more says nothing. @param {number} number @param {string} path */
async function isRenewed(number, path) {
  // These are what renews it.
  if (path === "/whoami" || path === "/password") return false;
  await session.renewing?.catch(() => {});
  return session.number !== number;
}

/** Whether the caller is known by a token that this tab alone has. */
export const hasToken = () => session.token !== null;

/** @param {Record<string, string>} [more] */
export function headers(more = {}) {
  /** @type {Record<string, string>} */
  const all = { accept: "application/json", ...more };
  if (session.token) all.authorization = `Bearer ${session.token}`;
  else if (session.csrf) all["x-carrack-csrf"] = session.csrf;
  return all;
}

/** @param {string} path @param {Record<string, string|number|null|undefined>} [query] */
export function address(path, query = {}) {
  const set = Object.entries(query).filter(([, value]) => value != null && value !== "");
  const text = new URLSearchParams(set.map(([key, value]) => [key, String(value)])).toString();
  return BASE + path + (text ? `?${text}` : "");
}

/**
 * One request with an answer in JSON; null where the answer is empty.
 * @param {string} method @param {string} path
 * @param {{query?: Record<string, any>, body?: unknown, signal?: AbortSignal, headers?: Record<string, string>}} [more]
 * @returns {Promise<any>}
 */
export async function call(method, path, more = {}) {
  const { number } = session, body = more.body === undefined ? undefined : JSON.stringify(more.body);
  const kind = body === undefined ? undefined : { "content-type": "application/json" };
  let answer;
  try {
    answer = await proved(() => {
      const late = AbortSignal.timeout(patienceFor(path));
      return fetch(address(path, more.query), {
        method, headers: headers({ ...more.headers, ...kind }), body, credentials: "same-origin", cache: "no-store",
        signal: more.signal ? AbortSignal.any([more.signal, late]) : late,
      });
    });
  } catch (error) {
    if (more.signal?.aborted || error instanceof Problem) throw error;
    throw new Problem(0, "unreachable", "The server does not answer.", [hintFor(method)]);
  }
  setClock(answer.headers.get("date"));
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  if (answer.status === 401 && method === "GET" && await isRenewed(number, path)) return call(method, path, more);
  throw await problemOf(answer, path, number);
}

/**
 * The answer to a request; it is made once more where another tab has begun another session of the same user meanwhile:
 * this one has its cookie, and not yet its second proof. What was asked by a token, or for somebody whose session is
 * over, is not asked in a session of anybody else. @param {() => Promise<Response>} ask
 */
export async function proved(ask) {
  const { user } = session;
  if (session.gone) throw anotherUser();
  const answer = await ask(), isTheirs = () => !session.token && user !== null && session.user === user;
  if (answer.status !== 403 || !isTheirs()) return answer;
  const told = await answer.clone().json().catch(() => ({}));
  if (told.code !== "csrf-missing") return answer;
  await whoami();
  return isTheirs() ? ask() : answer;
}

/**
 * One request whose answer comes line by line, each a value of JSON; it may take as long as it takes.
 * @param {string} method @param {string} path
 * @param {{query?: Record<string, any>, body?: unknown, signal?: AbortSignal}} more @param {(value: any) => void} hear
 */
export async function stream(method, path, more, hear) {
  const { number } = session, body = more.body === undefined ? undefined : JSON.stringify(more.body);
  const kind = { accept: "application/x-ndjson", ...(body !== undefined && { "content-type": "application/json" }) };
  const answer = await proved(() => fetch(address(path, more.query), { method, headers: headers(kind), body, signal: more.signal, cache: "no-store" }));
  if (!answer.ok || !answer.body) throw await problemOf(answer, path, number);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    text += value ?? "";
    const lines = text.split("\n");
    text = done ? "" : lines.pop() ?? "";
    for (const line of lines) if (line.trim()) hear(JSON.parse(line));
    if (done) return;
  }
}

/** @param {Response} answer @param {string} path @param {number} number the session in which it was asked */
export async function problemOf(answer, path, number) {
  let told;
  try { told = await answer.json(); } catch { told = {}; }
  const problem = new Problem(answer.status, told.code ?? "unknown",
    told.detail ?? `the server answered ${answer.status}`, told.hints ?? []);
  if (problem.code === "unauthenticated" && path !== "/login" && !await isRenewed(number, path)) session.lost();
  return problem;
}

/** @returns {Promise<import("./types.js").Whoami>} */
export async function whoami() {
  const known = await call("GET", "/whoami");
  if (session.user !== null && session.user !== known.user) {
    // Nothing of what is shown is theirs, and nothing more is asked for. Uploads would have the browser ask whether to stay.
    if (!session.gone) { session.gone = true; session.ends.forEach((end) => end()); location.reload(); }
    throw anotherUser();
  }
  session.csrf = known.csrf ?? null; session.user = known.user;
  return known;
}

/** @param {{user: string, password: string} | {link: string}} proof */
export async function login(proof) {
  forget();
  await call("POST", "/login", { body: { ...proof, cookie: true } });
  const known = await whoami();
  tabs?.postMessage("another");
  return known;
}

/** @param {string} token */
export async function loginByToken(token) {
  session.token = token; session.csrf = null; session.user = null;
  try {
    const known = await whoami();
    sessionStorage.setItem(KEPT_TOKEN, token);
    return known;
  } catch (error) {
    forget();
    throw error;
  }
}

/** Ends the session; a token is only forgotten here. */
export async function logout() {
  if (!session.token) await call("POST", "/logout");
  forget();
}

export function forget() {
  session.ends.forEach((end) => end());
  session.token = null; session.csrf = null; session.user = null;
  sessionStorage.removeItem(KEPT_TOKEN);
}

/**
 * All rows of a list, up to a bound. @template T
 * @param {string} path @param {Record<string, any>} [query] @param {number} [most] @param {AbortSignal} [signal]
 * @returns {Promise<{items: T[], complete: boolean}>}
 */
export async function all(path, query = {}, most = 5000, signal) {
  /** @type {T[]} */
  const items = [];
  let cursor = null;
  do {
    const page = await call("GET", path, { query: { ...query, limit: 1000, cursor }, signal });
    items.push(...page.items);
    cursor = page.next ?? null;
  } while (cursor && items.length < most);
  return { items, complete: !cursor };
}
