// Files that the browser keeps, from what the API gives.
import { address, headers, problemOf, sessionNumber } from "./api.js";

/**
 * Has the browser keep an answer as a file of this name.
 * @param {string} path @param {Record<string, string|number|null|undefined>} query @param {string} accept its media type @param {string} name
 */
export async function save(path, query, accept, name) {
  const number = sessionNumber(), answer = await fetch(address(path, query), { headers: headers({ accept }) });
  if (!answer.ok) throw await problemOf(answer, path, number);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
