// Shapes of the API's documents that the page reads; the description at /api/v1/openapi.json is what holds.
/** @typedef {{code: string, side: string, why: string, retryable: "yes"|"no", hints?: string[]}} Failure */
/** @typedef {{now?: number, five_minutes?: number, all?: number}} Rates bytes a second */
/**
 * @typedef {object} Progress
 * @property {number} [bytes_moved] @property {number} [bytes_resent] @property {number} [bytes_skipped]
 * @property {number} [bytes_total] @property {number} [bytes_verified] @property {number|null} [eta_seconds]
 * @property {number} [faults] @property {number} [items_done] @property {number} [items_failed]
 * @property {number} [items_deleted] @property {number} [items_skipped] @property {number} [items_total] @property {string|null} [limited_by] @property {any} [check]
 * @property {Rates} [rates] @property {boolean} [scan_complete] @property {Record<string, number>} [unkept]
 * @property {Plan|null} [plan]
 */
/** @typedef {{items: number, bytes: number}} Planned */
/** @typedef {{new: Planned, changed: Planned, same: Planned, left: Planned, to_delete: Planned, held_by?: string|null}} Plan */
/** @typedef {{source: string, destination?: string|null}} Pair */
/** @typedef {Record<string, string|number|boolean|string[]|null|undefined>} Options */
/**
 * @typedef {object} Option
 * @property {string} name @property {"options"|"task"} at @property {string} [flag] @property {string} label @property {string} help
 * @property {string} kind @property {{value: string, meaning: string, flag?: string}[]} [choices] @property {number} [minimum]
 * @property {number} [maximum] @property {any} [default] @property {string[]} [kinds] @property {string[]} [examples]
 */
/** @typedef {{groups: {title: string, options: Option[]}[]}} OptionTable */
/**
 * @typedef {object} NewTask
 * @property {Pair[]} [pairs] @property {string} [kind] @property {boolean} [receipt] @property {string|null} [label] @property {string|null} [deadline]
 * @property {number|null} [priority] @property {Options} [options] @property {boolean} [skip_source_errors]
 * @property {boolean} [fail_on_quota_errors] @property {string[]} [notify] @property {string|null} [timer] @property {boolean} [preview]
 */
/** @typedef {{cause: string, why: string, since: string, next_try?: string|null, hint?: string|null}} Blocked */
/** @typedef {{pair: number, path: string, size?: number|null, bytes: number}} InFlight a file that has begun to arrive */
/** @typedef {{made: string, earliest_start?: string|null, latest_start?: string|null, seconds_least?: number|null,
 *   seconds_most?: number|null, why: string, took_seconds?: number|null}} Estimate */
/**
 * @typedef {object} Task
 * @property {string} id @property {string} state @property {string} owner @property {NewTask} request
 * @property {Progress} progress @property {string} submitted @property {string|null} [started]
 * @property {string|null} [ended] @property {Blocked|null} [blocked] @property {Failure|null} [failure]
 * @property {number} version @property {number} fence @property {number|null} [position]
 * @property {Estimate|null} [estimate] @property {InFlight[]} [in_flight]
 * @property {boolean} pause_wanted @property {boolean} cancel_wanted
 */
/** @typedef {{id: number, time: string, kind: string, owner: string, task?: string|null, subject?: string|null,
 *   text: string, detail: any}} CarrackEvent */
/** @typedef {{pair: number, path: string, kind: string, size: number, state: string, digest?: string|null, differs?: string[],
 *   failure?: Failure|null}} Item */
/** @typedef {{user: string, role: string, via: string, csrf?: string|null, service: string, expires?: string|null, scope?: any, token?: string|null}} Whoami `token`: the session or the token */
/** @template T @typedef {{items: T[], next?: string|null}} Listed */
export {};
