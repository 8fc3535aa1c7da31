// The shell: who is logged in, which view is shown, and whether events arrive.
import { html, render, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "./ui.js";
import { all, forget, logout, onLost, whoami } from "./api.js";
import * as live from "./live.js";
import { canNotify, isOn, turn, watch } from "./notice.js";
import { Mark, Trouble, useAction } from "./parts.js";
import { clock, duration, plural } from "./format.js";
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
/** Leads the keyboard to what a view is about: its list, where it has one. */
function skip() {
  const main = document.getElementById("main");
  (/** @type {HTMLElement|null|undefined} */ (main?.querySelector("[role=grid]")) ?? main)?.focus();
}
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
  const [told, setTold] = useState(() => isOn(known.user));
  useEffect(() => watch(known.user, go), [known.user]);
  const out = useAction(logout, leave);
  const endpoints = useLive((signal) => all("/endpoints", {}, 5000, signal), [], (event) => ["endpoint-changed", "fault", "ended"].includes(event.kind));
  const sick = /** @type {any[]} */ (endpoints.value?.items ?? []).filter(({ health }) => health?.state === "down" || health?.state === "degraded").length;
  const names = /** @type {any[]} */ (endpoints.value?.items ?? []).map((endpoint) => endpoint.name);
  // At once: an address that changes before the first picture is drawn must not be missed.
  useLayoutEffect(() => {
    const moved = () => setAt(whereabouts(known.role));
    addEventListener("hashchange", moved);
    const off = live.onState(setLink);
    return () => { removeEventListener("hashchange", moved); off(); };
  }, []);
  // Another view begins at its top; another filter of the same view leaves the reader where they are.
  // An endpoint opens within its list.
  const place = at.view === "endpoints" ? at.view : `${at.view}/${at.id ?? ""}`, shown = useRef(place);
  useLayoutEffect(() => {
    if (shown.current === place) return;
    shown.current = place;
    document.getElementById("main")?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [place]);
  // Where the views stand in a line that is longer than the window, the current one is seen.
  useEffect(() => {
    const nav = document.querySelector(".nav"), one = nav?.querySelector("[aria-current]");
    if (nav && one && nav.scrollWidth > nav.clientWidth) nav.scrollLeft += one.getBoundingClientRect().left - nav.getBoundingClientRect().left - 40;
  }, [at.view]);
  const name = VIEWS.find(([view]) => view === at.view)?.[1] ?? "Not found";
  useEffect(() => { document.title = `${name} · Carrack`; }, [name]);
  const [mark, word] = LINKS[link], isWall = at.view === "overview" && at.query.has("wall");
  const tall = at.view === "files" || (at.view === "tasks" && !at.id);
  return html`<a class="skip" href="#main" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); skip(); }}>Skip to the content</a><div class=${`shell ${isWall ? "wall" : ""}`}>${isWall && html`<div class="wall-head"><img src="/page/icon.svg" alt="" /><strong>Carrack</strong><span class=${`link-state ${link === "live" ? "" : "off"}`}><${Mark} of=${mark} />${word}</span><a href="#/overview">Leave the wall</a></div>`}<header class="side" hidden=${isWall}><a class="brand" href=${`#/${home(known.role)}`}><img src="/page/icon.svg" alt="" />Carrack</a>
      <nav class="nav" aria-label="Views">${VIEWS.filter(([view]) => view !== "files" || known.role !== "viewer").map(([view, text]) => html`<a href=${`#/${view}`} aria-current=${at.view === view ? "page" : undefined}>${text}${view === "endpoints" && sick > 0 && html`<span class="count bad" title=${`${plural(sick, "endpoint")} with trouble`}>${sick}<span class="hidden-text"> with trouble</span></span>`}</a>`)}</nav>
      <div class="foot"><span class=${`link-state ${link === "live" ? "" : "off"}`} role="status"><${Mark} of=${mark} />${word}</span>
        <span><strong>${known.user}</strong> <span class="quiet">${known.role}</span></span>
        ${canNotify() && known.role !== "viewer" && html`<label class="check notify"><input type="checkbox" checked=${told} onChange=${(/** @type {Event} */ event) => { const box = /** @type {HTMLInputElement} */ (event.currentTarget); void turn(known.user, box.checked).then((on) => { box.checked = on; setTold(on); }); }} />Tell me when a task ends</label>`}
        <button disabled=${out.busy} onClick=${() => out.go()}>Log out</button><span class="quiet version">version ${known.service}</span>
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
    case "overview": return html`<${Overview} known=${known} list=${list} isWall=${at.query.has("wall")} />`;
    case "tasks": return at.id ? html`<${TaskView} id=${at.id} known=${known} go=${go} />` : html`<${Tasks} known=${known} endpoints=${endpoints} query=${at.query} go=${go} />`;
    case "endpoints": return html`<${Endpoints} known=${known} id=${at.id} query=${at.query} go=${go} />`;
    case "node": return html`<${NodeView} known=${known} list=${list} id=${at.id} to=${at.query.get("to")} go=${go} />`;
    case "timers": return html`<${Timers} known=${known} endpoints=${endpoints} id=${at.id} />`;
    case "access": return html`<${Access} known=${known} />`;
    default: return html`<h1>Not found</h1><p>No such view. <a href="#/tasks">All tasks</a></p>`;
  }
}

const root = document.getElementById("app");
if (root) render(html`<${App} />`, root);
