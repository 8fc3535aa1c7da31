// Events as they happen, for all tabs by one stream. One tab holds a lock and reads; the others listen to it, and the
// next takes over when it goes. The stream goes on behind the last event that was read. Where no stream can be held,
// pages of events are asked for instead.
import { call, headers, address, hasToken, Problem, problemOf, sessionNumber } from "./api.js";

/** @typedef {import("./types.js").CarrackEvent} CarrackEvent */
const POLL = 3000, RETRY_FIRST = 500, RETRY_MOST = 15_000;
/** A stream that is silent for so long is dead: the server gives a sign of life every 15 s. */
const SILENCE = 40_000;

/** @type {Set<(event: CarrackEvent) => void>} */
const listeners = new Set();
/** @type {Set<(state: string) => void>} */
const watchers = new Set();
/** @type {Set<() => void>} */
const gaps = new Set();
/** @type {{state: string, last: number|null, stop: AbortController|null, channel: BroadcastChannel|null, key: string}} */
const live = { state: "connecting", last: null, stop: null, channel: null, key: "" };

/** @param {(event: CarrackEvent) => void} listener */
export function onEvent(listener) { listeners.add(listener); return () => { listeners.delete(listener); }; }
/** Called when events may have been missed: read everything again. @param {() => void} gap */
export function onGap(gap) { gaps.add(gap); return () => { gaps.delete(gap); }; }
/** @param {(state: string) => void} watcher */
export function onState(watcher) { watchers.add(watcher); watcher(live.state); return () => { watchers.delete(watcher); }; }

/** Whether the server has been heard of late: what is asked for only to look is not asked of one that is gone. */
export const isHeard = () => live.state === "live" || live.state === "polling";

/** @param {string} state */
function become(state) {
  if (state === live.state) return;
  const before = live.state;
  live.state = state;
  for (const watcher of watchers) watcher(state);
  // What was asked for in vain meanwhile is asked for again.
  if (state === "live" && before !== "connecting") for (const gap of gaps) gap();
}

/** @param {CarrackEvent} event */
function hear(event) {
  if (live.last !== null && event.id <= live.last) return;
  live.last = event.id;
  for (const listener of listeners) listener(event);
}

/** @param {string} user */
export function start(user) {
  stop();
  const control = new AbortController();
  live.stop = control;
  live.last = null;
  live.key = `carrack-events-${user}`;
  document.addEventListener("visibilitychange", () => { if (!document.hidden) for (const gap of gaps) gap(); },
    { signal: control.signal });
  // A token belongs to one tab: what it may see is not told to others.
  if (hasToken() || !navigator.locks || !("BroadcastChannel" in globalThis)) { void lead(control.signal, null); return; }
  const channel = new BroadcastChannel(live.key);
  live.channel = channel;
  channel.onmessage = ({ data }) => {
    if (data.event) hear(data.event);
    if (data.state) become(data.state);
    if (data.gap) for (const gap of gaps) gap();
    if (data.ask && live.state === "live") channel.postMessage({ state: "live" });
  };
  channel.postMessage({ ask: true });
  navigator.locks.request(live.key, { signal: control.signal }, () => lead(control.signal, channel)).catch(() => {});
}

export function stop() {
  live.stop?.abort();
  live.channel?.close();
  live.stop = null; live.channel = null; live.state = "connecting";
}

/** Waits; no longer than until the network is back. @param {number} ms @param {AbortSignal} signal */
function pause(ms, signal) {
  return new Promise((resolve) => {
    const done = () => { clearTimeout(timer); removeEventListener("online", done); signal.removeEventListener("abort", done); resolve(null); };
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    signal.addEventListener("abort", done);
  });
}

/** The newest event's number: the server lists the oldest first, so it is searched for. @param {AbortSignal} signal */
async function newest(signal) {
  /** @param {number} since @returns {Promise<number|null>} */
  const behind = async (since) => {
    const page = await call("GET", "/events", { query: { since, limit: 1 }, signal });
    return page.items[0]?.id ?? null;
  };
  let low = live.last ?? Number(localStorage.getItem(live.key) ?? 0), step = 64;
  // A ledger from a backup counts from an earlier number: nothing is behind ours then, and the server sends what comes.
  let found = await behind(low);
  if (found === null) return low;
  while (found !== null) { low = found; found = await behind(low + step); if (found !== null) { low = found; step *= 4; } }
  let high = low + step;
  while (low + 1 < high) {
    const middle = Math.floor((low + high) / 2), next = await behind(middle);
    if (next === null) high = middle; else low = next;
    if (next !== null && next >= high) high = next + 1;
  }
  const rest = await call("GET", "/events", { query: { since: low, limit: 100 }, signal });
  return rest.items.at(-1)?.id ?? low;
}

/** Reads for all tabs. @param {AbortSignal} signal @param {BroadcastChannel|null} channel */
async function lead(signal, channel) {
  /** @param {CarrackEvent} event */
  const pass = (event) => { hear(event); channel?.postMessage({ event }); };
  /** @param {string} state */
  const tell = (state) => { become(state); channel?.postMessage({ state }); };
  let wait = RETRY_FIRST;
  while (!signal.aborted) {
    try {
      if (live.last === null) {
        live.last = await newest(signal);
        for (const gap of gaps) gap();
        channel?.postMessage({ gap: true });
      }
      const stands = () => { wait = RETRY_FIRST; tell("live"); };
      await stream(signal, pass, stands);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status === 429) {
        tell("polling");
        await poll(signal, pass).catch(() => {});
      }
    }
    if (signal.aborted) return;
    localStorage.setItem(live.key, String(live.last ?? 0));
    tell(navigator.onLine ? "reconnecting" : "offline");
    await pause(wait * (0.75 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, RETRY_MOST);
  }
}

/** @param {AbortSignal} signal @param {(event: CarrackEvent) => void} pass */
async function poll(signal, pass) {
  for (let turn = 0; turn < 20 && !signal.aborted; turn += 1) {
    const page = await call("GET", "/events", { query: { since: live.last, limit: 500 }, signal });
    for (const event of page.items) pass(event);
    if (!page.next) await pause(POLL, signal);
  }
}

/** One stream, until it ends. @param {AbortSignal} signal @param {(event: CarrackEvent) => void} pass @param {() => void} stands */
async function stream(signal, pass, stands) {
  const silent = new AbortController();
  let watch = setTimeout(() => silent.abort(), SILENCE);
  const cut = () => silent.abort();
  addEventListener("offline", cut);
  try {
    const number = sessionNumber(), answer = await fetch(address("/events", { since: live.last }), {
      headers: headers({ accept: "text/event-stream" }), signal: AbortSignal.any([signal, silent.signal]), cache: "no-store",
    });
    if (!answer.ok || !answer.body) throw await problemOf(answer, "/events", number);
    stands();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(watch);
      watch = setTimeout(() => silent.abort(), SILENCE);
      text += value;
      const frames = text.split("\n\n");
      text = frames.pop() ?? "";
      for (const frame of frames) {
        const data = frame.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
        if (data.length) pass(JSON.parse(data.join("\n")));
      }
      localStorage.setItem(live.key, String(live.last ?? 0));
    }
  } finally {
    clearTimeout(watch);
    removeEventListener("offline", cut);
  }
}
