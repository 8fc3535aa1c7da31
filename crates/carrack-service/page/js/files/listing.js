// A directory as the service lists it. The service sorts and filters the whole of it; here are the rows near the view.
import { call, stream } from "../api.js";

/**
 * @typedef {object} Entry
 * @property {string} name @property {"file"|"directory"|"symlink"|"special"} kind @property {number} size
 * @property {string|null} [modified] @property {number|null} [mode] @property {string|null} [link_target] @property {string|null} [error]
 */
/** @typedef {{sort: string, filter: string, hidden: boolean}} Query */
/** @typedef {import("./names.js").Place} Place */

/** Rows that are asked for beside those in view, rows of one answer, and rows that are kept. */
const MARGIN = 100, ANSWER_MOST = 1000, KEPT_MOST = 20_000;
/** How often a directory that is still read is asked for again, in milliseconds. */
const POLL = 400;
/** Names that a selection may bring along. */
export const NAMES_MOST = 10_000;

export class Listing {
  /** @param {Place} place @param {Query} query @param {() => void} changed */
  constructor(place, query, changed) {
    this.place = place; this.query = query; this.changed = changed;
    /** @type {string|null} */
    this.id = null;
    this.state = "opening"; this.count = 0; this.total = 0; this.bytes = 0; this.busy = true;
    /** @type {any} */
    this.problem = null;
    /** @type {Map<number, Entry>} */
    this.rows = new Map();
    /** Another number: rows may stand elsewhere than before. */
    this.order = 0;
    this.seen = { from: 0, to: 60 };
    this.control = new AbortController();
    this.flying = false;
    /** Another query, or another reading of the directory, has another number; answers to earlier ones are dropped. */
    this.epoch = 0;
    /** @type {ReturnType<typeof setTimeout>|undefined} */
    this.timer = undefined;
    this.source = this.sourceNow();
  }

  /** @returns {import("../table.js").Source<Entry>} */
  sourceNow() {
    const mine = this;
    return {
      get length() { return mine.total; }, get complete() { return mine.state === "complete"; },
      get order() { return mine.order; },
      row: (index) => mine.rows.get(index), key: (row) => row.name,
      need: (from, to) => { mine.seen = { from, to }; if (mine.gap()) void mine.pull(); },
    };
  }

  /** @param {Record<string, any>} wanted */
  async ask(wanted) {
    const { sort, filter, hidden } = this.query;
    const query = { sort, filter, hidden: hidden || null, ...wanted };
    this.id ??= await this.open();
    try {
      return await call("GET", `/listings/${this.id}`, { query, signal: this.control.signal });
    } catch (error) {
      // The service drops a listing that nobody has asked for during some minutes.
      if (/** @type {any} */ (error).status !== 404) throw error;
      this.id = await this.open();
      return call("GET", `/listings/${this.id}`, { query, signal: this.control.signal });
    }
  }

  /** @returns {Promise<string>} */
  async open() {
    const made = await call("POST", "/listings", { body: this.place, signal: this.control.signal });
    if (this.control.signal.aborted) drop(made.id);
    return made.id;
  }

  stop() {
    this.control.abort();
    clearTimeout(this.timer);
    if (this.id) drop(this.id);
  }

  /** The first rows in view that are not here. */
  gap() {
    const from = Math.max(0, this.seen.from - MARGIN), to = Math.min(this.total, this.seen.to + MARGIN);
    const isMissing = (/** @type {number} */ at) => at < this.total && !this.rows.has(at);
    for (let at = this.seen.from; at < Math.min(this.total, this.seen.to); at += 1) {
      if (isMissing(at)) return { offset: Math.max(from, at - MARGIN), limit: Math.min(ANSWER_MOST, to - Math.max(from, at - MARGIN)) };
    }
    return null;
  }

  /** Reads what is in view and not here; `fresh`: even if it is here. @param {boolean} [fresh] */
  async pull(fresh = false) {
    // The one that is under way looks at what is in view by then.
    if (this.flying) return;
    this.flying = true;
    clearTimeout(this.timer);
    try {
      let wanted = fresh ? { offset: Math.max(0, this.seen.from - MARGIN), limit: Math.min(ANSWER_MOST, this.seen.to - this.seen.from + 2 * MARGIN) } : this.gap();
      while (wanted && !this.control.signal.aborted) {
        const epoch = this.epoch;
        const answer = await this.ask(wanted);
        if (epoch === this.epoch) this.take(answer, fresh);
        fresh = false;
        const before = wanted.offset;
        wanted = this.gap();
        // A service that gives nothing where rows should be is not asked again and again.
        if (wanted && wanted.offset === before && epoch === this.epoch) break;
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.flying = false;
    }
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    if (this.state === "reading" && !this.control.signal.aborted) this.timer = setTimeout(() => void this.pull(true), POLL);
  }

  /** @param {any} error */
  fail(error) {
    if (this.control.signal.aborted) return;
    this.problem = error; this.busy = false;
    if (this.state === "opening") this.state = "failed";
    this.changed();
  }

  /** @param {any} answer @param {boolean} fresh what is here may stand elsewhere by now */
  take(answer, fresh) {
    if (fresh || this.state !== "complete" || answer.total !== this.total) {
      this.rows = new Map();
      this.order += 1;
    } else if (this.rows.size > KEPT_MOST) this.rows = new Map([...this.rows].filter(([at]) => Math.abs(at - this.seen.from) < KEPT_MOST / 8));
    Object.assign(this, { state: answer.state, count: answer.count, total: answer.total, bytes: answer.bytes, busy: answer.state === "reading" });
    this.problem = answer.failure ? { ...answer.failure, hints: answer.failure.hints ?? [] } : null;
    answer.entries.forEach((/** @type {Entry} */ entry, /** @type {number} */ at) => this.rows.set(answer.offset + at, entry));
    this.source = this.sourceNow();
    this.changed();
  }

  /**
   * Asks by another query, or reads the directory anew; the rows that are shown stay until the others are there.
   * @param {Query} query @param {string|null} around an entry that should be among the first rows that come
   * @param {boolean} [anew] @returns {Promise<number|null|undefined>} where that entry is; undefined: another query came
   */
  async search(query, around, anew = false) {
    this.query = query;
    this.epoch += 1;
    const epoch = this.epoch, { id: old } = this;
    this.busy = true;
    this.problem = null;
    clearTimeout(this.timer);
    this.changed();
    try {
      if (anew) this.id = await this.open();
      const answer = await this.ask({ limit: ANSWER_MOST / 2, ...(around === null ? { offset: 0 } : { around }) });
      if (anew && old) drop(old);
      if (epoch !== this.epoch || this.control.signal.aborted) return undefined;
      this.take(answer, true);
      this.later();
      return answer.found ?? null;
    } catch (error) {
      if (epoch === this.epoch) this.fail(error);
      return undefined;
    }
  }

  /** Where an entry is that has this name, or begins with it. @param {string} name @returns {Promise<{index: number, entry: Entry}|null>} */
  async find(name) {
    const answer = await this.ask({ around: name, limit: 100 });
    const index = answer.found ?? -1, entry = answer.entries[index - answer.offset];
    return index >= 0 && entry ? { index, entry } : null;
  }

  /** Rows from here to there, loaded where they are not. @param {number} from @param {number} to @returns {Promise<Entry[]>} */
  async range(from, to) {
    const rows = [], { epoch } = this;
    for (let at = from; at <= to; at += 1) {
      const here = this.rows.get(at);
      if (here) { rows.push(here); continue; }
      const answer = await this.ask({ offset: at, limit: Math.min(ANSWER_MOST, to - at + 1) });
      if (epoch !== this.epoch || answer.entries.length === 0) break;
      rows.push(...answer.entries);
      at += answer.entries.length - 1;
    }
    return rows;
  }

  /**
   * The names that a query shows, without some; null: there are more than a task is given.
   * @param {Query} query @param {Map<string, unknown>} but @returns {Promise<string[]|null>}
   */
  async names({ filter, hidden }, but) {
    /** @type {string[]} */
    const names = [];
    const enough = new AbortController();
    const read = () => stream("GET", `/listings/${this.id}/names`, { query: { filter, hidden: hidden || null }, signal: enough.signal }, (line) => {
      const name = String(line).replace(/\/$/, "");
      if (!but.has(name)) names.push(name);
      if (names.length > NAMES_MOST) enough.abort();
    });
    this.id ??= await this.open();
    try {
      await read().catch(async (error) => {
        // The service has dropped the listing meanwhile, as for `ask`.
        if (error.status !== 404) throw error;
        this.id = await this.open();
        names.length = 0;
        await read();
      });
    } catch (error) {
      if (!enough.signal.aborted) throw error;
    }
    return names.length > NAMES_MOST ? null : names;
  }
}

/** @param {string} id */
function drop(id) { void call("DELETE", `/listings/${id}`).catch(() => {}); }
