// Endpoints: the named places, one a row: how each does, how full it is, how fast, and what a test of it finds.
import { html, useEffect, useRef, useState } from "../ui.js";
import { all, call } from "../api.js";
import { useLive } from "../store.js";
import { Confirm, Empty, Mark, Name, Progress, Search, Time, Trouble, useAction } from "../parts.js";
import { bytes, count, now, percent, plural, rate } from "../format.js";
import { Add, Edit } from "./endpoint-forms.js";
import { Found } from "./found.js";
import { meanRate, ordered, spaceOf } from "../health.js";

/** @param {any} at */
const address = (at) => at.kind === "local" ? at.root
  : at.kind === "node" ? `carrack://${at.host}:${at.port}${at.path}` : `ssh://${at.user ? `${at.user}@` : ""}${at.host}${at.path}`;
/** @type {Record<string, string>} */
const KINDS = { local: "directory of the service's host", node: "node", ssh: "host behind ssh" };

/** @typedef {import("../health.js").Health} Health */
/** @type {Record<Health["state"], ["good"|"warn"|"bad"|"", "good"|"wait"|"warn"|"bad", string]>} */
const HEALTH = { ok: ["good", "good", "OK"], idle: ["", "wait", "Idle"], degraded: ["warn", "warn", "Degraded"], down: ["bad", "bad", "Down"] };
/** Events after which an endpoint may do otherwise than before. */
const TURNS = ["endpoint-changed", "started", "fault", "ended", "submitted"];
/** Over how long rates are told, in milliseconds; and how many endpoints are tested at a time. */
const DAY = 86_400_000, TESTS_AT_ONCE = 4;
/** Figures are read again after an end, but no sooner than this, in milliseconds. */
const CALM = 5000;
/** From here on a file system is marked as full, in percent. */
const TIGHT = 85, FULL = 95;

/** @param {{known: import("../types.js").Whoami, id: string|null, query: URLSearchParams, go: (to: string) => void}} props `id`: the endpoint that is open */
export function Endpoints({ known, id, query, go }) {
  const listed = useLive((signal) => all("/endpoints", {}, 5000, signal), [], (event) => TURNS.includes(event.kind)), read = useRef(0);
  // Space and rates change slowly, and take longer to find out.
  const figures = useLive(async (signal) => {
    read.current = performance.now();
    const [nodes, told] = await Promise.all([call("GET", "/nodes", { signal }), call("GET", "/overview", { query: { from: new Date(now() - DAY).toISOString(), steps: 1 }, signal })]);
    return { node: nodes.items[0], pairs: /** @type {any[]} */ (told.pairs) };
  }, [], (event) => event.kind === "endpoint-changed" || (event.kind === "ended" && performance.now() - read.current > CALM));
  const list = { value: listed.value && { items: /** @type {any[]} */ (listed.value.items), node: figures.value?.node, pairs: figures.value?.pairs ?? [] },
    problem: listed.problem ?? figures.problem, loading: listed.loading, again: () => { listed.again(); figures.again(); } };
  const [opened, setOpened] = useState(query.has("add") && known.role !== "viewer");
  const [text, setText] = useState("");
  const [tested, setTested] = useState(/** @type {{done: number, of: number}|null} */ (null));
  const items = list.value?.items ?? [];
  const fits = ordered(text ? items.filter((endpoint) => `@${endpoint.name} ${endpoint.description} ${address(endpoint.location)}`.toLowerCase().includes(text.toLowerCase())) : items);
  const testAll = useAction(async () => {
    const names = fits.map(({ name }) => name), left = [...names];
    setTested({ done: 0, of: names.length });
    await Promise.all(Array.from({ length: TESTS_AT_ONCE }, async () => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) {
        // What cannot be tested keeps no other from it; its row tells.
        await call("POST", `/endpoints/${encodeURIComponent(name)}/test`).catch(() => null);
        setTested((before) => before && { ...before, done: before.done + 1 });
      }
    }));
    list.again();
  }, () => setTested(null));
  const sick = fits.filter((endpoint) => ["down", "degraded"].includes(endpoint.health?.state)).length;
  return html`<div class="view-head"><div class="task-title"><h1>Endpoints</h1>${sick > 0 && html`<span class="chip bad"><${Mark} of="bad" />${count(sick)} of ${count(items.length)} with trouble</span>`}</div>${known.role !== "viewer" && html`<div class="bar-of-buttons">
      ${items.length > 0 && html`<button disabled=${testAll.busy} onClick=${() => testAll.go()}>${tested ? `Testing: ${tested.done} of ${tested.of}` : "Test all"}</button>`}<button class="main" onClick=${() => setOpened(true)}>Add endpoint</button></div>`}</div>
    ${items.length > 6 && html`<div class="filters"><${Search} label="Find an endpoint" value=${text} set=${setText} /></div>`}
    <${Trouble} problem=${list.problem} again=${list.again} />
    ${list.loading && html`<div class="sheet loading"><p class="quiet">Loading…</p></div>`}
    ${list.value && fits.length === 0 && html`<div class="sheet">${items.length ? html`<${Empty} title="No endpoint fits"><button onClick=${() => setText("")}>Show all endpoints</button><//>`
      : html`<${Empty} title="No endpoints yet">An endpoint is a named place: a directory of this host, a node, or a host behind ssh.${known.role !== "viewer" && html`<button class="main" onClick=${() => setOpened(true)}>Add the first one</button>`}<//>`}</div>`}
    ${list.value && id && !items.some(({ name }) => name === id) && html`<p class="notice warn">No endpoint is called @${id}. It may have been removed.</p>`}
    ${list.value && fits.length > 0 && html`<div class="sheet scroll-x" tabindex="0" role="region" aria-label="Table of endpoints"><table class="plain-table lined endpoints-table"><thead><tr><th scope="col">Endpoint</th><th scope="col">State</th><th scope="col" class="num">Free</th><th scope="col" class="num">Mean rate, 24 h</th><th scope="col">Last contact</th><th scope="col">Last test</th><th scope="col" class="num">Open tasks</th><th scope="col"><span class="hidden-text">Actions</span></th></tr></thead><tbody>
      ${fits.map((endpoint) => html`<${Row} key=${endpoint.name} endpoint=${endpoint} known=${known} value=${list.value} again=${list.again} isOpen=${endpoint.name === id} go=${go} />`)}</tbody></table></div>`}
    ${opened && html`<${Add} close=${() => setOpened(false)} again=${list.again} done=${(/** @type {string} */ name) => { setOpened(false); go(`/endpoints/${encodeURIComponent(name)}`); }} />`}`;
}

/** @param {{endpoint: any, known: import("../types.js").Whoami, value: any, again: () => void, isOpen: boolean, go: (to: string) => void}} props */
function Row({ endpoint, known, value, again, isOpen, go }) {
  const { name } = endpoint, health = /** @type {Health} */ (endpoint.health), [tone, mark, word] = HEALTH[health.state];
  const [found, setFound] = useState(/** @type {any} */ (null));
  const test = useAction(() => call("POST", `/endpoints/${encodeURIComponent(name)}/test`), (/** @type {any} */ told) => { setFound(told); again(); if (!isOpen) go(`/endpoints/${encodeURIComponent(name)}`); });
  const row = useRef(/** @type {HTMLTableRowElement|null} */ (null));
  useEffect(() => { if (isOpen) row.current?.scrollIntoView({ block: "nearest" }); }, [isOpen]);
  const space = spaceOf(name, value.node), full = space?.total ? percent(space.total - space.free, space.total) : null;
  const speed = meanRate(name, value.pairs), { last_fault: fault } = health, isSick = health.state === "down" || health.state === "degraded";
  return html`<tr ref=${row} class=${isOpen ? "open" : ""}><th scope="row"><a href=${isOpen ? "#/endpoints" : `#/endpoints/${encodeURIComponent(name)}`} aria-expanded=${isOpen}>@${name}</a>${endpoint.read_only && html` <span class="chip">read only</span>`}${endpoint.limits.drained && html` <span class="chip warn">drained</span><div class="small why">${endpoint.limits.drained}</div>`}
      ${endpoint.description && html`<div class="quiet small">${endpoint.description}</div>`}</th>
    <td><span class=${`chip ${tone}`}><${Mark} of=${mark} />${word}</span>${isSick && fault && html`<div class="small why"><strong>${fault.code}</strong>${fault.why && html`, <${Name}>${fault.why}<//>`}</div>`}</td>
    <td class="num">${space ? html`${bytes(space.free)}${full !== null && html`<${Progress} share=${full} tone=${full >= FULL ? "bad" : full >= TIGHT ? "warn" : ""} label=${`Space in use at @${name}`} />`}` : html`<span class="quiet">not known</span>`}</td>
    <td class="num">${speed ? rate(speed) : html`<span class="quiet">–</span>`}</td><td><${Time} at=${health.last_contact} /></td>
    <td>${health.last_test ? html`<span class=${health.last_test.ok ? "" : "bad"}>${health.last_test.ok ? "passed" : "found faults"}</span> <span class="quiet"><${Time} at=${health.last_test.time} /></span>` : html`<span class="quiet">not tested</span>`}</td>
    <td class="num">${health.open_tasks ? html`<a href=${`#/tasks?state=open&endpoint=${encodeURIComponent(name)}`} aria-label=${`${plural(health.open_tasks, "open task")} of ${name}`}>${count(health.open_tasks)}</a>` : html`<span class="quiet">0</span>`}</td>
    <td class="acts">${known.role !== "viewer" && html`<button disabled=${test.busy} aria-label=${`Test ${name}`} onClick=${() => test.go()}>${test.busy ? "Testing…" : "Test"}</button>`}</td></tr>
    ${isOpen && html`<tr class="detail"><td colspan="8"><${Card} endpoint=${endpoint} known=${known} kept=${value.node?.tests?.find((/** @type {any} */ one) => one.endpoint === name)} found=${found} problem=${test.problem} again=${again} /></td></tr>`}`;
}

/** From what it is known how an endpoint does. @param {{health: Health}} props */
function Doing({ health: { last_contact, last_fault, last_test } }) {
  return html`<dt>Reached</dt><dd>${last_contact ? html`<${Time} at=${last_contact} />` : "never so far"}</dd>
    ${last_fault && html`<dt>Last fault</dt><dd><${Time} at=${last_fault.time} />: <strong>${last_fault.code}</strong>${last_fault.why && html`, <${Name}>${last_fault.why}<//>`}${last_fault.task && html` <a href=${`#/tasks/${last_fault.task}`}>its task</a>`}</dd>`}
    ${last_test && html`<dt>Last test</dt><dd><${Time} at=${last_test.time} />: ${last_test.ok ? "passed" : "found faults"}</dd>`}`;
}

/** @param {{endpoint: any, known: import("../types.js").Whoami, kept: any, found: any, problem: any, again: () => void}} props `kept`: the last test that the service keeps; `found`: one that was made just now */
function Card({ endpoint, known, kept, found, problem, again }) {
  const [asked, setAsked] = useState("");
  const { limits, defaults } = endpoint, mine = known.role === "admin" || endpoint.owner === known.user;
  const limited = [limits.transfers != null && `${plural(limits.transfers, "transfer")} at once`, limits.streams != null && plural(limits.streams, "stream"), limits.rate != null && rate(limits.rate)].filter(Boolean);
  const rules = [defaults?.verify && `verify ${defaults.verify}`, defaults?.encrypt && `encrypt ${defaults.encrypt}`].filter(Boolean);
  const test = found ?? kept?.test;
  return html`<section class="card" aria-label=${`Endpoint ${endpoint.name}`}><div class="columns"><dl class="facts small"><dt>Kind</dt><dd>${KINDS[endpoint.location.kind]}</dd><dt>At</dt><dd class="mono"><${Name}>${address(endpoint.location)}<//></dd>
      ${endpoint.location.fingerprint && html`<dt>Key</dt><dd><code class="clip" title=${endpoint.location.fingerprint}>${endpoint.location.fingerprint}</code></dd>`}
      <dt>Owner</dt><dd>${endpoint.owner}</dd>${endpoint.users.length > 0 && html`<dt>Used by</dt><dd>${endpoint.users.includes("*") ? "everybody" : endpoint.users.join(", ")}</dd>`}
      <dt>Limits</dt><dd>${limited.length ? limited.join(", ") : "none"}${(limits.timetable ?? []).map((/** @type {any} */ row) => html`<br />${row.from} to ${row.until}: ${row.rate ? rate(row.rate) : "nothing begins"}`)}</dd>
      ${rules.length > 0 && html`<dt>Rules</dt><dd>${rules.join(", ")}</dd>`}
      <${Doing} health=${endpoint.health} /></dl>
      <div>${test ? html`<${Found} found=${test} />` : html`<p class="quiet small">It was not tested so far.</p>`}</div></div>
    <${Trouble} problem=${problem} />
    <div class="bar-of-buttons"><a class="button" href=${`#/tasks?endpoint=${encodeURIComponent(endpoint.name)}`} aria-label=${`Tasks of ${endpoint.name}`}>Tasks</a>
      <a class="button" href=${`#/node/${encodeURIComponent(endpoint.name)}`} aria-label=${`Storage and findings of ${endpoint.name}`}>Storage and findings</a>
      <a class="button" href=${`#/node/${encodeURIComponent(endpoint.name)}?to=`} aria-label=${`Paths of ${endpoint.name}`}>Paths</a>
      ${known.role !== "viewer" && html`<a class="button" href=${`#/files?left=@${encodeURIComponent(endpoint.name)}:/`} aria-label=${`Files of ${endpoint.name}`}>Files</a>`}
      ${mine && html`<button aria-label=${`Edit ${endpoint.name}`} onClick=${() => setAsked("edit")}>Edit</button><button class="plain danger" aria-label=${`Remove ${endpoint.name}`} onClick=${() => setAsked("remove")}>Remove</button>`}</div>
    ${asked === "edit" && html`<${Edit} endpoint=${endpoint} close=${() => setAsked("")} done=${() => { setAsked(""); again(); }} />`}
    ${asked === "remove" && html`<${Confirm} title=${`Remove @${endpoint.name}?`} act="Remove" text="Its files stay. Tasks that name it cannot start any more." close=${() => setAsked("")}
      run=${async () => { await call("DELETE", `/endpoints/${encodeURIComponent(endpoint.name)}`); again(); location.hash = "#/endpoints"; }} />`}</section>`;
}
