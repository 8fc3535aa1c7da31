// What the page makes of what the service tells, without a browser.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { addressOf, nameFor } from "../../crates/carrack-service/page/js/address.js";
import { linkOf, outcome, wordsOf } from "../../crates/carrack-service/page/js/audit-words.js";
import { lastWay, linkTo, placeOf, typed } from "../../crates/carrack-service/page/js/files/names.js";
import { bounded, placeTyped, written } from "../../crates/carrack-service/page/js/files/typed.js";
import { NOTHING, OTHERS_MOST, PROGRESS_MOST, added, newest, thinned } from "../../crates/carrack-service/page/js/history.js";
import { hintFor, patienceFor } from "../../crates/carrack-service/page/js/patience.js";
import { locationWord } from "../../crates/carrack-service/page/js/command.js";
import { paced, paceOf, uploadWords } from "../../crates/carrack-service/page/js/files/pace.js";
import { copyWords } from "../../crates/carrack-service/page/js/files/copy-words.js";
import { NONE } from "../../crates/carrack-service/page/js/files/selection.js";
import { duration, when } from "../../crates/carrack-service/page/js/format.js";
import { halves, placed } from "../../crates/carrack-service/page/js/places.js";
import { meanRate, ordered, spaceOf, waits } from "../../crates/carrack-service/page/js/health.js";
import { linkToPath, pathText } from "../../crates/carrack-service/page/js/path-words.js";
import { limitOf, verdict } from "../../crates/carrack-service/page/js/verdict.js";

const MIB = 2 ** 20, PIN = "ab".repeat(32);

test("address is read from what carrack serve prints, from locations, and from nothing else", () => {
  const node = (host, port, path, fingerprint) => ({ kind: "node", host, port, path, fingerprint });
  for (const [text, at] of [
    [`carrack://box.example.org:7421/data#sha256:${PIN}`, node("box.example.org", 7421, "/data", PIN)],
    [`  carrack://box/#sha256:${PIN.toUpperCase()}\n`, node("box", 7420, "/", PIN)],
    ["carrack://[2001:db8::7]:7420/x%20y", node("2001:db8::7", 7420, "/x%20y", null)],
    [`to copy from here: carrack --token-file '/state/t' 'carrack://box:7420/PATH#sha256:${PIN}' .`, node("box", 7420, "/", PIN)],
    [`listening on 192.0.2.7:7420\nroot /data\nfingerprint #sha256:${PIN}\ntoken /x`, node("192.0.2.7", 7420, "/", PIN)],
    ["ssh://ada@host/data", { kind: "ssh", user: "ada", host: "host", path: "/data" }],
    ["ada@host:run 1".replace(" ", ""), { kind: "ssh", user: "ada", host: "host", path: "~/run1" }],
    ["host:", { kind: "ssh", user: null, host: "host", path: "~" }],
    ["/data/100% new", { kind: "local", root: "/data/100%25 new" }],
  ]) assert.deepEqual(addressOf(text), { at, why: "" }, text);
  for (const [text, why] of [
    ["", ""], ["data", /Paste the line/], ["https://box/", /carrack:\/\/HOST/], ["carrack://HOST/PATH", /in place of HOST/], ["carrack://[::]:7420/", /where the node listens/],
    ["listening on [::]:7420", /where the node listens/], ["carrack://box:99999/", /not a port/], ["carrack://box/#sha256:abc", /64 hexadecimal digits/], ["carrack:///x", /A node is written/],
  ]) {
    const found = addressOf(text);
    assert.equal(found.at, null, text);
    assert.match(found.why, why || /^$/, text);
  }
  assert.equal(nameFor(addressOf("carrack://Box-7.example.org/").at), "box-7");
  assert.equal(nameFor(addressOf("carrack://192.0.2.7/").at), "");
  assert.equal(nameFor(addressOf("/srv/Run Data/").at), "run-data");
});

const task = (more = {}, progress = {}) => ({ id: "t", state: "QUEUED", owner: "ada", submitted: "2026-11-01T10:00:00Z", started: null, ended: null, version: 1, fence: 0, pause_wanted: false, cancel_wanted: false,
  request: { pairs: [{ source: "@lab:/run/", destination: "@archive:/2026/" }] }, ...more, progress: { rates: {}, ...progress } });
const blocked = (why, more = {}) => ({ cause: "retry", why, since: "2026-11-01T10:00:00Z", ...more });

test("tasks that wait for the same are one line, with the endpoint that is to blame", () => {
  const groups = waits([
    task({ id: "1", blocked: blocked("destination: connect to 127.0.0.1:1: Connection refused", { since: "2026-11-01T11:00:00Z", next_try: "2026-11-01T13:00:00Z" }) }),
    task({ id: "2", blocked: blocked("destination: connect to 127.0.0.1:1: Connection refused", { next_try: "2026-11-01T12:00:00Z" }) }),
    task({ id: "3", blocked: blocked("source: the token is refused") }),
    task({ id: "4", blocked: blocked("the last 3 attempts from @lab to @archive got nowhere; one task at a time tries it") }),
    task({ id: "5", blocked: blocked("the last 12 attempts from @lab to @archive got nowhere; one task at a time tries it") }),
    task({ id: "6", state: "PAUSED" }),
  ], ["archive"]);
  const told = groups.map(({ cause, endpoint, tasks, since, next }) => [cause, endpoint, tasks.map(({ id }) => id).join(), since.slice(11, 13), next?.slice(11, 13)]);
  assert.deepEqual(told.sort(), [["paused", null, "6", "10", undefined], ["retry", "archive", "1,2", "10", "12"], ["retry", "archive", "4,5", "10", undefined], ["retry", "lab", "3", "10", undefined]].sort());
  // Of two that are named, and neither has trouble, none is blamed.
  assert.equal(waits([task({ blocked: blocked("the last 3 attempts from @lab to @archive got nowhere") })])[0].endpoint, null);
  assert.equal(groups[0].tasks.length, 2);
  assert.deepEqual(waits([]), []);
});

test("endpoints with trouble come first, and their rates are those of all their pairs", () => {
  const named = (name, state) => ({ name, health: { state } });
  assert.deepEqual(ordered([named("b", "ok"), named("d", "degraded"), named("a", "idle"), named("c", "down")]).map(({ name }) => name), ["c", "d", "a", "b"]);
  const pair = (source, destination, bytes, rate) => ({ source, destination, bytes, rate });
  const pairs = [pair("@lab", "@archive", 300, 100), pair("@archive", "@tape", 100, 50), pair("@other", "@tape", 9, null)];
  assert.equal(meanRate("archive", pairs), 400 / 5);
  assert.equal(meanRate("other", pairs), 0);
  const nodeOf = { storage: [{ endpoint: "here", bytes_free: 5, bytes_total: 10 }, { endpoint: "gone", bytes_free: null, bytes_total: null }], tests: [{ endpoint: "far", test: { checks: [{ name: "list", told: "9" }, { name: "space", told: "/data: 1.5 GiB free of 2.0 TiB; it is full soon" }] } }] };
  assert.deepEqual([spaceOf("here", nodeOf), spaceOf("far", nodeOf), spaceOf("gone", nodeOf), spaceOf("x", undefined)], [{ free: 5, total: 10 }, { free: 1.5 * 2 ** 30, total: 2 ** 41 }, null, null]);
});

test("verdict on a check says what was found, and never that something was moved", () => {
  const check = { same: 1200, different: 3, only_source: 1, only_destination: 0, bytes: 5 * MIB };
  const of = (state, progress, failure = null) => ({ state, failure, request: { kind: "check" }, submitted: "2026-11-23T08:00:00Z", started: "2026-11-23T08:00:00Z", ended: "2026-11-23T08:00:02Z", progress });
  for (const [task, text] of [
    [of("PARTIAL", { check }, { side: "command", code: "differences", why: "3 different" }), "Compared 1,204 items, 5.0 MiB in 2 s: 3 different, 1 only at the source."],
    [of("SUCCEEDED", { check: { ...check, different: 0, only_source: 0 } }), "Compared 1,200 items, 5.0 MiB in 2 s: no differences."],
    [of("PARTIAL", { check: { ...check, different: 0, only_source: 0 }, items_failed: 2 }), "Compared 1,200 items, 5.0 MiB in 2 s: no differences; 2 items could not be read."],
    [{ ...of("ACTIVE", { check }), ended: null }, "Compared 1,204 items, 5.0 MiB so far: 3 different, 1 only at the source."],
    [of("FAILED", {}, { side: "source", why: "gone" }), "Failed: source: gone."],
  ]) assert.equal(verdict(task), text);
});

test("verdict is one sentence on what became of a task, or what holds it", () => {
  const active = (options, progress) => task({ state: "ACTIVE", request: { pairs: [], options } }, { scan_complete: true, bytes_total: 100 * MIB, bytes_moved: 25 * MIB, ...progress });
  for (const [one, text] of [
    [task(), "Waits for its turn."],
    [task({ blocked: blocked("destination: refused") }), "Waits: destination: refused."],
    [active({ rate_limit: MIB }, { rates: { now: 0.97 * MIB }, limited_by: null, eta_seconds: 75 }), "25 %, 993.3 KiB/s; limited by the rate limit of 1.0 MiB/s that was set; 1 min 15 s left."],
    [active({ rate_limit: 100 * MIB }, { rates: { now: MIB }, limited_by: "the source's disk" }), "25 %, 1.0 MiB/s; limited by the source's disk."],
    [active({}, { scan_complete: false, bytes_moved: 0 }), "Lists its sources, and moves what it finds."],
    [task({ state: "SUCCEEDED", started: "2026-11-01T10:00:00Z", ended: "2026-11-01T10:00:00.300Z" }, { bytes_moved: MIB, items_done: 3, rates: { all: 3 * MIB } }), "1.0 MiB moved in 0.3 s at 3.0 MiB/s, all of it verified."],
    [task({ state: "SUCCEEDED", started: "2026-11-01T10:00:00Z", ended: "2026-11-01T11:00:00Z", request: { options: { verify: "none" } } }, { bytes_moved: MIB, items_done: 3 }), "1.0 MiB moved in 1 h 0 min."],
    [task({ state: "FAILED", failure: { side: "source", why: "no such file" } }), "Failed: source: no such file."],
    [task({ state: "FAILED", failure: { side: "source", why: "gone" } }, { items_failed: 4, items_total: 4 }), "Failed: nothing could be done."],
    [task({ state: "PAUSED", blocked: blocked("a guard keeps it from going on") }), "Paused: a guard keeps it from going on."],
  ]) assert.equal(verdict(one), text);
  assert.equal(limitOf(active({ rate_limit: MIB }, { rates: { now: 0.2 * MIB } })), "");
});

test("path is told in one sentence, and a task that the network holds leads to where it is measured", () => {
  const way = (more) => ({ bytes_per_second: null, streams: null, round_trip_us: null, round_trip_longest_us: null, retransmits: null, resent_share: null, hops: null, packet_bytes: null, labels: [], error: null, ...more });
  const result = (there, back) => ({ time: "2026-11-01T10:00:00Z", program: "1", elapsed_seconds: 14, rate_limit: null, notes: [], there: way(there), back: way(back) });
  for (const [of, text] of [
    [result({ bytes_per_second: 118 * MIB, round_trip_us: 20_140, resent_share: 0.000204 }, { bytes_per_second: 97 * MIB, round_trip_us: 20_100, resent_share: 0.000196 }), "There 118.0 MiB/s, back 97.0 MiB/s, round trip 20.1 ms, 0.02 % sent again."],
    [result({ bytes_per_second: MIB, round_trip_us: 140, resent_share: 0 }, { bytes_per_second: MIB, round_trip_us: 90, resent_share: 0 }), "There 1.0 MiB/s, back 1.0 MiB/s, round trip 0.09 ms, nothing sent again."],
    [result({ bytes_per_second: MIB, resent_share: 0.05 }, { bytes_per_second: MIB, resent_share: 0.00001 }), "There 1.0 MiB/s, back 1.0 MiB/s, 5 % sent again there, under 0.01 % back."],
    [result({ bytes_per_second: MIB, round_trip_us: 4 }, { round_trip_us: 8 }), "There 1.0 MiB/s, back not measured, round trip under 0.01 ms."],
    [result({ bytes_per_second: MIB, resent_share: 0.01 }, {}), "There 1.0 MiB/s, back not measured, 1 % sent again."],
  ]) assert.equal(pathText(of), text);
  const at = (source, destination, limited_by, state = "ACTIVE") => linkToPath({ ...task({ state }, { limited_by }), request: { pairs: [{ source, destination }], options: {} } });
  const network = "the network (93 % of the streams' time)";
  assert.equal(at("@lab:/a", "@archive:/b", network), "#/node/lab?to=archive");
  for (const none of [at("@lab:/a", "@archive:/b", "the source's disk"), at("@lab:/a", "@lab:/b", network), at("@lab:/a", "/data", network), at("random:1T", "@lab:/b", network), at("@lab:/a", "@archive:/b", network, "PAUSED"), at("@lab:/a", null, network)]) assert.equal(none, "");
});

test("button that copies says how much goes where", () => {
  const to = { endpoint: "archive", path: "/" }, file = (name, size) => ({ name, kind: "file", size }), folder = { name: "f", kind: "directory", size: 0 };
  const chosen = (...entries) => ({ named: new Map(entries.map((entry) => [entry.name, entry])), all: null });
  const words = (entries, selection) => copyWords({ entries, count: entries.length, all: false }, selection, to);
  assert.equal(copyWords(null, NONE, to), "Copy to @archive");
  assert.equal(copyWords(null, NONE, null), "Copy");
  assert.equal(words([file("a", 3 * MIB)], NONE), "Copy 1 item (3.0 MiB) to @archive");
  assert.equal(words([folder], NONE), "Copy 1 item to @archive");
  const three = [file("a", 600), file("b", 424), file("c", 0)];
  assert.equal(words(three, chosen(...three)), "Copy 3 items (1.0 KiB) to @archive");
  assert.equal(words([...three, folder], chosen(...three, folder)), "Copy 4 items to @archive");
  const all = { named: new Map(), all: { query: {}, total: 1200, bytes: 5 * MIB, whole: true } };
  assert.equal(copyWords({ entries: [], count: 1200, all: true }, all, to), "Copy 1,200 items to @archive");
});

test("last pair is that of the latest task between two endpoints", () => {
  const of = (source, destination) => ({ request: { pairs: [{ source, destination }] } });
  assert.deepEqual(lastWay([of("random:1G", "null:"), of("@lab:/run/42/a.dat", "@archive:/2026/"), of("@x:/", "@y:/")]), { left: { endpoint: "lab", path: "/run/42" }, right: { endpoint: "archive", path: "/2026" } });
  assert.equal(lastWay([{ request: { kind: "delete", pairs: [{ source: "@lab:/x" }] } }]), null);
});

/** Paths as the service writes them, that forms and addresses must not change. */
const ODD = ["/data ", "/data\u3000", "/data\u00a0", "/ data", "/ data /x", "/50%25.dat", "/a%252Fb", "/it's", "/%FF%0A", "/$(true) `x`", "/a\u202eb", "/tab%09", "/\\x41", "/'", "/"];

test("address of two folders and a form's text lead to the same places, white space and all", () => {
  for (const path of ODD) {
    const place = { endpoint: "lab", path }, [, query] = linkTo(place, place, "left").split("?");
    assert.deepEqual(placeOf(new URLSearchParams(query).get("left"), ""), place);
    assert.equal(decodeURIComponent(written(bounded(`@lab:${path}`)).replace("%FF", "%C3%BF")), decodeURIComponent(`@lab:${path}`.replace("%FF", "%C3%BF")), path);
  }
  for (const path of ODD.filter((path) => !path.includes("%FF"))) assert.deepEqual(placeTyped(bounded(typed(path)), "lab"), { endpoint: "lab", path }, path);
  assert.deepEqual([bounded("@lab:/data "), bounded("@lab:/a b\u3000"), bounded("/")], ["@lab:/data%20", "@lab:/a b%E3%80%80", "/"]);
  assert.equal(written("  @lab:/100% new\n"), "@lab:/100%25 new");
});

test("location that is copied as a word of a command line is taken where places are typed", () => {
  for (const path of ODD) assert.deepEqual(placeTyped(` ${locationWord(`@lab:${path}`)} `, ""), { endpoint: "lab", path }, path);
  assert.deepEqual(placeTyped("'@lab:/a'b'", "x"), { endpoint: "x", path: "/'@lab:/a'b'" });
  assert.deepEqual(placeTyped("/run%20x/../50%", "lab"), { endpoint: "lab", path: "/50%25" });
});

test("answers for which the service reaches a host are waited for longer than it tries, and a change is not promised again", () => {
  for (const path of ["/endpoints/lab/test", "/endpoints/lab/files/mkdir", "/endpoints/lab/uploads", "/listings", "/listings/7", "/uploads/7/publish", "/tasks/t/leftovers"]) assert.ok(patienceFor(path) > 90_000, path);
  for (const path of ["/endpoints/test", "/endpoints/listings", "/tasks", "/tasks/listings", "/whoami"]) assert.ok(patienceFor(path) <= 30_000, path);
  assert.match(hintFor("GET"), /tries again by itself/);
  for (const method of ["POST", "PATCH", "DELETE"]) assert.doesNotMatch(hintFor(method), /by itself/);
});

test("events of a task are kept to its newest, progress over its whole time, and no more than a page holds", () => {
  const event = (number, kind = "progress") => ({ id: number, kind, time: new Date(number * 5000).toISOString() });
  const times = ({ items }) => items.filter(({ kind }) => kind === "progress").map(({ time }) => Date.parse(time) / 1000);
  let kept = NOTHING;
  // Three days of progress each five seconds, with a fault each hour, as pages of a thousand.
  const last = 3 * 24 * 720;
  for (let from = 1; from <= last; from += 1000) kept = added(kept, Array.from({ length: Math.min(1000, last - from + 1) }, (_, at) => event(from + at, (from + at) % 720 === 7 ? "fault" : "progress")));
  const gaps = () => times(kept).slice(1).map((time, at) => time - times(kept)[at]);
  assert.ok(kept.items.length <= PROGRESS_MOST + 72 && kept.items.length > PROGRESS_MOST / 3, `${kept.items.length}`);
  assert.equal(kept.items.filter(({ kind }) => kind === "fault").length, 72);
  assert.deepEqual([times(kept)[0], newest(kept), kept.complete], [5, last, false]);
  // Each hour has its part.
  assert.ok(Math.max(...gaps()) < 900, `${Math.max(...gaps())}`);
  // Then one by one; the same event twice is one.
  for (let number = last + 1; number <= last + 3000; number += 1) kept = added(added(kept, [event(number)]), [event(number)]);
  assert.equal(newest(kept), last + 3000);
  assert.ok(kept.items.length <= PROGRESS_MOST + 72 && Math.max(...gaps()) < 900);
  // What comes late stands where it belongs.
  assert.deepEqual(added(added(NOTHING, [event(3)]), [event(1), event(2)]).items.map(({ id }) => id), [1, 2, 3]);
  const others = thinned({ items: Array.from({ length: OTHERS_MOST + 10 }, (_, at) => event(at + 1, "decision")), complete: true });
  assert.deepEqual([others.items.length, others.items[0].id, others.complete], [OTHERS_MOST, 11, false]);
  // A clock that stands still.
  const still = thinned({ items: Array.from({ length: 5 * PROGRESS_MOST }, (_, at) => ({ ...event(1), id: at })), complete: true });
  assert.ok(still.items.length <= PROGRESS_MOST && newest(still) === 5 * PROGRESS_MOST - 1);
});

test("upload has a rate and its time left, and says that it waits for the service", () => {
  let pace = paced(undefined, 0, 0);
  for (let second = 1; second <= 20; second += 1) pace = paced(pace, second * 1000, second * MIB);
  const going = { state: "sending", done: 20 * MIB, size: 120 * MIB, kept: 0, pace };
  assert.ok(pace.length < 10);
  assert.deepEqual(paceOf(going), { speed: MIB, left: 100 });
  assert.equal(uploadWords(going), "sending 20.0 MiB of 120.0 MiB, 1.0 MiB/s, 1 min 40 s left");
  assert.equal(uploadWords({ ...going, away: 3 }), "waiting for the service: 20.0 MiB of 120.0 MiB are there");
  assert.equal(paceOf({ ...going, pace: [[0, 0]] }), null);
  // Three blocks at a time come to their end together; what was there before is not counted.
  for (const [speed, every] of [[MIB, 12_000], [4 * MIB, 3000], [MIB / 4, 48_000]]) {
    let bursts = paced([], 500, 100 * MIB), done = 100 * MIB;
    for (let turn = 1; turn <= 12; turn += 1) {
      for (const late of [0, 40, 90]) { done += 4 * MIB; bursts = paced(bursts, 500 + turn * every + late, done); }
      const told = paceOf({ state: "sending", done, size: done + 60 * MIB, kept: 100 * MIB, pace: bursts });
      assert.ok(told && Math.abs(told.speed / speed - 1) < 0.1 && Math.abs(told.left * speed / (60 * MIB) - 1) < 0.1, `${turn}: ${told?.speed} of ${speed}`);
    }
    assert.ok(bursts.length < 20);
  }
});

test("audit has words for every change of the API, and for every refusal", () => {
  const { paths } = JSON.parse(fs.readFileSync(new URL("../../crates/carrack-service/openapi.json", import.meta.url), "utf8"));
  const changes = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).filter((method) => ["post", "put", "patch", "delete"].includes(method)).map((method) => `${method.toUpperCase()} ${path.replace(/^\/api\/v1/, "")}`));
  assert.ok(changes.length > 30);
  assert.deepEqual(changes.filter((change) => !wordsOf(change)), []);
  assert.equal(linkOf("PATCH /endpoints/{name}", "lab"), "#/endpoints/lab");
  assert.equal(linkOf("POST /login", "ada"), "");
  assert.deepEqual([200, 401, 418, 503].map(outcome), ["done", "refused: nobody was known by it", "refused", "failed at the service"]);
});

test("times have their day where it is another, and their seconds where they count", () => {
  const now = new Date(), year = now.getFullYear(), today = new Date(now.getTime() - 1000).toISOString(), older = new Date(year - 2, 4, 6, 7, 8, 9).toISOString();
  const day = now.getMonth() === 0 && now.getDate() < 3 ? null : new Date(year, 0, 1, 7, 8, 9).toISOString();
  assert.match(when(older), new RegExp(`6.*${year - 2}.* 07:08$`));
  assert.match(when(older, "exact"), /07:08:09$/);
  assert.doesNotMatch(when(older, "file"), /07:08/);
  if (day) { assert.match(when(day), /07:08$/); assert.doesNotMatch(when(day), new RegExp(String(year))); }
  if (new Date(today).toDateString() === now.toDateString()) { assert.match(when(today, "file"), /^today \d\d:\d\d$/); assert.match(when(today), /^\d\d:\d\d:\d\d$/); }
  assert.deepEqual([0, 0.01, 0.3, 9.4, 12.4, 61].map(duration), ["0 s", "under 0.1 s", "0.3 s", "9.4 s", "12 s", "1 min 1 s"]);
});

test("what somebody asked is not asked again in a session of somebody else", async () => {
  /** @type {(string|null)[]} */
  const proofs = [];
  let user = "ada", proof = "1", reloads = 0, ended = 0;
  const json = (/** @type {number} */ status, /** @type {any} */ body) => new Response(JSON.stringify(body), { status });
  const fetched = globalThis.fetch;
  Object.assign(globalThis, {
    sessionStorage: { getItem: () => null, setItem: () => {}, removeItem: () => {} }, location: { reload: () => { reloads += 1; } },
    fetch: async (/** @type {string} */ url, /** @type {any} */ { headers }) => {
      if (url.endsWith("/whoami")) return json(200, { user, csrf: proof });
      proofs.push(headers["x-carrack-csrf"] ?? null);
      return headers["x-carrack-csrf"] === proof ? json(200, {}) : json(403, { code: "csrf-missing" });
    },
  });
  Reflect.deleteProperty(globalThis, "BroadcastChannel");
  const api = await import("../../crates/carrack-service/page/js/api.js");
  await api.whoami();
  // Another tab has begun another session of hers.
  proof = "2";
  await api.call("POST", "/a");
  assert.deepEqual(proofs, ["1", "2"]);
  // Hers has ended here: what is left of her work is nobody's.
  api.forget();
  await assert.rejects(api.call("POST", "/b"), { code: "csrf-missing" });
  assert.deepEqual(proofs, ["1", "2", null]);
  await api.whoami();
  api.onEnd(() => { ended += 1; });
  [user, proof] = ["bob", "3"];
  for (const path of ["/c", "/d", "/e"]) await assert.rejects(api.call("POST", path), { code: "another-user" });
  assert.deepEqual([proofs.length, reloads, ended], [4, 1, 1]);
  globalThis.fetch = fetched;
});

test("file in flight keeps its place until it ends, and the next one takes an empty place", () => {
  const file = (path, bytes = 0, pair = 0) => ({ pair, path, size: 9, bytes }), a = file("a"), b = file("b"), c = file("c"), d = file("d");
  let places = placed([], [a, b, c]);
  assert.deepEqual(places, [a, b, c]);
  // Whatever order they come in.
  places = placed(places, [file("c", 3), file("a", 1)]);
  assert.deepEqual(places, [file("a", 1), null, file("c", 3)]);
  assert.deepEqual(placed(places, []), [null, null, null]);
  places = placed(places, [file("c", 4), d, a, b]);
  assert.deepEqual(places, [a, d, file("c", 4), b]);
  // Of another pair of the task, it is another file.
  assert.deepEqual(placed([a], [file("a", 0, 1)]), [file("a", 0, 1)]);
  assert.deepEqual(placed([a], [file("a", 0, 1), a]), [a, file("a", 0, 1)]);
});

test("name in flight loses its middle where there is no room, and no mark of it is cut in two", () => {
  for (const [name, tail] of [
    ["short.dat", ""], ["a/b/c/short.dat", ""], ["", ""],
    ["2026/11/run 42/detector/large.dat", "/large.dat"],
    [`${"x".repeat(200)}`, "x".repeat(12)], [`d/${"y".repeat(60)}.dat`, "yyyyyyyy.dat"], [`${"/".repeat(40)}`, "/"],
    [`${"😀".repeat(30)}`, "😀".repeat(12)],
  ]) {
    const [head, end] = halves(name);
    assert.equal(head + end, name);
    assert.equal(end, tail, name);
  }
});
