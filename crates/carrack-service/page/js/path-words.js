// The path between two endpoints, in words: what was measured of it, and which one holds a task.
import { percentText, rate } from "./format.js";
import { limitOf } from "./verdict.js";

/** @typedef {{bytes_per_second: number|null, streams: number|null, round_trip_us: number|null, round_trip_longest_us: number|null, retransmits: number|null, resent_share: number|null, hops: number|null, packet_bytes: number|null, labels: string[], error: string|null}} Way */
/** @typedef {{time: string, program: string, elapsed_seconds: number, rate_limit: number|null, there: Way, back: Way, notes: string[]}} PathResult */

/** What a worker says of a task that the path holds begins so. */
const NETWORK = "the network";

/** @param {number|null|undefined} us */
export const milliseconds = (us) => us == null ? "–" : us < 10 ? "under 0.01 ms" : us < 1000 ? `${(us / 1000).toFixed(2)} ms` : `${(us / 1000).toFixed(1)} ms`;
/** A share of segments, from 0 to 1. @param {number|null|undefined} share */
export const shareText = (share) => share == null ? "–" : percentText(Number((share * 100).toPrecision(2)));

/** @param {Way} there @param {Way} back */
function resent({ resent_share: there }, { resent_share: back }) {
  if (there == null && back == null) return "";
  if (!there && !back) return "nothing sent again";
  const same = shareText(there) === shareText(back) || there == null || back == null;
  return same ? `${shareText(there ?? back)} sent again` : `${shareText(there)} sent again there, ${shareText(back)} back`;
}

/** One sentence on a path: rates, round trip, what was sent again. @param {PathResult} result */
export function pathText({ there, back }) {
  const speed = (/** @type {Way} */ way) => way.bytes_per_second == null ? "not measured" : rate(way.bytes_per_second);
  const trips = [there.round_trip_us, back.round_trip_us].filter((trip) => trip != null);
  return `${[`There ${speed(there)}`, `back ${speed(back)}`, trips.length > 0 && `round trip ${milliseconds(Math.min(...trips))}`, resent(there, back)].filter(Boolean).join(", ")}.`;
}

/** Where the path of a task that the network holds is measured; empty: it is held by something else, or not between two endpoints. @param {import("./types.js").Task} task */
export function linkToPath(task) {
  const [pair] = task.request.pairs ?? [], name = (/** @type {string|null|undefined} */ location) => /^@([^:]+):/.exec(location ?? "")?.[1];
  const from = name(pair?.source), to = name(pair?.destination);
  const isHeld = task.state === "ACTIVE" && limitOf(task).startsWith(NETWORK);
  return isHeld && from && to && from !== to ? `#/node/${encodeURIComponent(from)}?to=${encodeURIComponent(to)}` : "";
}
