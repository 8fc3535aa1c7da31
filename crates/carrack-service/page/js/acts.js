// The same act on many tasks: marked ones one by one, or all that a filter means.
import { call } from "./api.js";
import { plural } from "./format.js";

/** @typedef {"retry"|"pause"|"resume"|"cancel"} Act */
/** @typedef {{done: number, of: number, why: string, text: string}} Done `why` the first that was refused; `text`: all of it in a sentence */
/** Requests at a time. */
const LANES = 4;

/** @type {Record<Act, string>} */
const DID = { retry: "Tried again", pause: "Paused", resume: "Resumed", cancel: "Cancelled" };
/** @param {Act} act @param {number} done @param {number} of @param {string} why @returns {Done} */
const sum = (act, done, of, why) => ({ done, of, why, text: `${DID[act]}: ${done === of ? plural(of, "task") : `${done} of ${plural(of, "task")}`}${why ? `. ${why}` : ""}` });

/** @param {Act} act @param {{id: string}[]} tasks @returns {Promise<Done>} */
export async function actOn(act, tasks) {
  const left = [...tasks];
  let done = 0, why = "";
  await Promise.all(Array.from({ length: LANES }, async () => {
    for (let task = left.shift(); task !== undefined; task = left.shift()) {
      try {
        await call("POST", `/tasks/${task.id}/${act}`);
        done += 1;
      } catch (error) {
        why ||= /** @type {Error} */ (error).message;
      }
    }
  }));
  return sum(act, done, tasks.length, why);
}

/** All tasks that a filter means, page by page. @param {Act} act @param {Record<string, any>} filter as `POST /tasks/acts` takes it @returns {Promise<Done>} */
export async function actOnAll(act, filter) {
  let done = 0, of = 0, why = "", cursor = null;
  do {
    const told = await call("POST", "/tasks/acts", { body: { act, filter, limit: 100, ...(cursor && { cursor }) } });
    [done, of, cursor] = [done + told.done, of + told.tasks, told.next ?? null];
    why ||= told.items.find((/** @type {any} */ one) => one.why)?.why.detail ?? "";
  } while (cursor);
  return sum(act, done, of, why);
}
