// Words outside of the page: the browser's notice when a task of the user has ended, and the title of a tab that is hidden.
import { onEvent } from "./live.js";
import { call } from "./api.js";
import { title } from "./format.js";

/** @param {string} user */
const place = (user) => `carrack-notices-${user}`;
/** @type {Record<string, string>} */
const WORDS = { SUCCEEDED: "Succeeded", PARTIAL: "Ended, and something of it failed", FAILED: "Failed", CANCELLED: "Cancelled" };

/** Whether this browser has notices. Plain HTTP has none but on the host itself. */
export const canNotify = () => "Notification" in globalThis && isSecureContext;
/** Whether the user is told. @param {string} user */
export function isOn(user) { return canNotify() && Notification.permission === "granted" && localStorage.getItem(place(user)) === "on"; }

/** Turns notices on or off; the browser asks the user where it has not. @param {string} user @param {boolean} on @returns {Promise<boolean>} whether they are on now */
export async function turn(user, on) {
  if (on && canNotify() && Notification.permission === "default") await Notification.requestPermission();
  localStorage.setItem(place(user), on ? "on" : "off");
  return isOn(user);
}

/** Tells of tasks that end while nobody looks at the page. @param {string} user @param {(to: string) => void} go */
export function watch(user, go) {
  let waits = "";
  const seen = () => { if (!document.hidden && waits) { document.title = waits; waits = ""; } };
  document.addEventListener("visibilitychange", seen);
  const off = onEvent((event) => {
    if (event.kind !== "ended" || event.owner !== user || !event.task || !document.hidden) return;
    const id = event.task;
    void call("GET", `/tasks/${id}`).then((task) => {
      const word = task.failure?.code === "differences" ? "Compared, and something differs" : WORDS[task.state] ?? "Ended", name = title(task);
      waits ||= document.title;
      document.title = `${word}: ${name}`;
      if (!isOn(user)) return;
      // One notice, however many tabs are open.
      const notice = new Notification(word, { body: name, tag: id });
      notice.onclick = () => { focus(); go(`/tasks/${id}`); notice.close(); };
    }, () => {});
  });
  return () => { off(); document.removeEventListener("visibilitychange", seen); };
}
