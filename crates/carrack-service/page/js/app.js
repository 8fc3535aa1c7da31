// The shell: who is logged in, which view is shown, and whether events arrive.
import { html, render, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "./ui.js";
import { all, forget, logout, onLost, whoami } from "./api.js";
import * as live from "./live.js";
import { Mark, Trouble, useAction } from "./parts.js";
import { clock, duration } from "./format.js";
import { useLive } from "./store.js";
import { LINK, Login } from "./login.js";
import { Files } from "./views/files.js";
import { Overview } from "./views/overview.js";
import { Tasks } from "./views/tasks.js";
import { TaskView } from "./views/task.js";
import { Endpoints } from "./views/endpoints.js";
import { NodeView } from "./views/node.js";
import { Timers } from "./views/timers.js";
import { Access } from "./views/access.js";

const VIEWS = [["files", "Files"], ["overview", "Overview"], ["tasks", "Tasks"], ["endpoints", "Endpoints"], ["node", "Node"], ["timers", "Timers"], ["access", "Access"]];
/** @type {Record<string, [keyof typeof MARKS, string]>} */
const LINKS = { live: ["good", "Live"], connecting: ["wait", "Connecting…"], polling: ["wait", "Reading every 3 s"], reconnecting: ["warn", "Connection lost, trying again"], offline: ["warn", "Offline"] };
/** From here on the page says that this computer's clock is wrong, in milliseconds. */
const CLOCK_WRONG = 60_000;
const MARKS = { good: 1, wait: 1, warn: 1 };

/** @param {string} to */
const go = (to) => { location.hash = `#${to}`; };
/** Whoever may only look lands where figures are. @param {string} [role] */
const home = (role) => role === "viewer" ? "overview" : "files";
/** @param {string} [role] */
function whereabouts(role) {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, id] = path.split("/");
  return { view: view || home(role), id: id ? decodeURIComponent(id) : null, query: new URLSearchParams(query) };
}

function App() {
  const [known, setKnown] = useState(/** @type {import("./types.js").Whoami|null} */ (null));
  const [phase, setPhase] = useState("asking");
  const [said, setSaid] = useState("");
  const ask = useAction(whoami, (who) => { setKnown(who); setPhase("in"); });
  useEffect(() => {
    onLost(() => { live.stop(); forget(); setKnown((before) => { if (before) setSaid("Your session has ended. Log in again."); return null; }); setPhase("out"); });
    if (LINK.test(location.hash)) setPhase("out"); else void ask.go();
  }, []);
  useEffect(() => { if (known) { live.start(`${known.user}-${known.role}`); return live.stop; } return undefined; }, [known]);
  if (phase === "out") return html`<${Login} said=${said} enter=${(/** @type {import("./types.js").Whoami} */ who) => { setSaid(""); setKnown(who); setPhase("in"); }} />`;
  if (!known) return ask.problem ? html`<main class="login" id="main"><div><h1>Carrack</h1><${Trouble} problem=${ask.problem} again=${ask.go} /></div></main>` : null;
  const leave = () => { live.stop(); setKnown(null); setPhase("out"); };
  return html`<${Shell} known=${known} leave=${leave} />`;
}

/** @param {{known: import("./types.js").Whoami, leave: () => void}} props */
function Shell({ known, leave }) {
  const [at, setAt] = useState(() => whereabouts(known.role));
  const [link, setLink] = useState("connecting");
  const newer = useNewer(known.service);
  const out = useAction(logout, leave);
  const endpoints = useLive((signal) => all("/endpoints", {}, 5000, signal), [], (event) => event.kind === "endpoint-changed");
  const names = /** @type {any[]} */ (endpoints.value?.items ?? []).map((endpoint) => endpoint.name);
  // At once: an address that changes before the first picture is drawn must not be missed.
  useLayoutEffect(() => {
    const moved = () => setAt(whereabouts(known.role));
    addEventListener("hashchange", moved);
    const off = live.onState(setLink);
    return () => { removeEventListener("hashchange", moved); off(); };
  }, []);
  // Another view begins at its top; another filter of the same view leaves the reader where they are.
  const place = `${at.view}/${at.id ?? ""}`, shown = useRef(place);
  useLayoutEffect(() => {
    if (shown.current === place) return;
    shown.current = place;
    document.getElementById("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [place]);
  const name = VIEWS.find(([view]) => view === at.view)?.[1] ?? "Not found";
  useEffect(() => { document.title = `${name} · Carrack`; }, [name]);
  const [mark, word] = LINKS[link];
  const tall = at.view === "files" || (at.view === "tasks" && !at.id);
  return html`<div class="shell"><header class="side"><a class="brand" href=${`#/${home(known.role)}`}><img src="/page/icon.svg" alt="" />Carrack</a>
      <nav class="nav" aria-label="Views">${VIEWS.filter(([view]) => view !== "files" || known.role !== "viewer").map(([view, text]) => html`<a href=${`#/${view}`} aria-current=${at.view === view ? "page" : undefined}>${text}</a>`)}</nav>
      <div class="foot"><span class=${`link-state ${link === "live" ? "" : "off"}`} role="status"><${Mark} of=${mark} />${word}</span>
        <span><strong>${known.user}</strong> <span class="quiet">${known.role}</span></span>
        <button disabled=${out.busy} onClick=${() => out.go()}>Log out</button><span class="quiet">version ${known.service}</span>
        ${Math.abs(clock.behind) > CLOCK_WRONG && html`<span class="quiet">This computer's clock is ${duration(Math.abs(clock.behind) / 1000)} ${clock.behind > 0 ? "behind" : "ahead of"} the server's.</span>`}</div></header>
    <main id="main" tabindex="-1" class=${tall ? "tall" : ""} key=${place}>${newer && html`<div class="notice bar-of-buttons" role="status"><span>${newer}</span><button onClick=${() => location.reload()}>Reload the page</button></div>`}<${Guard}><${View} at=${at} known=${known} endpoints=${names} list=${endpoints} /><//></main></div>`;
}

/** What to tell when the service has become another one than that which the page came from. @param {string} own its version */
function useNewer(own) {
  const [newer, setNewer] = useState("");
  useEffect(() => {
    /** @type {string|null|undefined} */
    let mine;
    let lost = false;
    const look = async () => {
      const tag = (await fetch("/", { method: "HEAD", cache: "no-store" })).headers.get("etag");
      if (mine === undefined) { mine = tag; return; }
      const { service } = await whoami();
      setNewer(service !== own ? `The service is now version ${service}, and this page is of version ${own}.`
        : tag !== mine ? "The service has a newer page than this one." : "");
    };
    // A service that was upgraded was away for a moment.
    return live.onState((state) => {
      if (state === "live" && (lost || mine === undefined)) look().catch(() => {});
      lost = state === "reconnecting" || state === "offline" || (lost && state !== "live");
    });
  }, [own]);
  return newer;
}

/** A fault of one view leaves the others. @param {{children?: any}} props */
function Guard({ children }) {
  const [error, reset] = useErrorBoundary();
  return error ? html`<${Trouble} problem=${{ message: `This view has failed: ${error.message}`, hints: ["Reload the page."] }} again=${reset} />` : children;
}

/** @param {{at: ReturnType<typeof whereabouts>, known: import("./types.js").Whoami, endpoints: string[], list: any}} props */
function View({ at, known, endpoints, list }) {
  switch (at.view) {
    case "files": return html`<${Files} known=${known} list=${list} query=${at.query} go=${go} />`;
    case "overview": return html`<${Overview} known=${known} />`;
    case "tasks": return at.id ? html`<${TaskView} id=${at.id} known=${known} go=${go} />` : html`<${Tasks} known=${known} endpoints=${endpoints} query=${at.query} go=${go} />`;
    case "endpoints": return html`<${Endpoints} known=${known} />`;
    case "node": return html`<${NodeView} known=${known} list=${list} id=${at.id} />`;
    case "timers": return html`<${Timers} known=${known} endpoints=${endpoints} id=${at.id} />`;
    case "access": return html`<${Access} known=${known} />`;
    default: return html`<h1>Not found</h1><p>No such view. <a href="#/tasks">All tasks</a></p>`;
  }
}

const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);
