// What somebody did, in words, from the method and the route that the audit keeps.

/** @type {Record<string, [string, string]>} what was done, and the view that shows what it was done to */
const ACTS = {
  "POST /endpoints": ["added an endpoint", "endpoints"], "DELETE /endpoints/{name}": ["removed an endpoint", ""], "PATCH /endpoints/{name}": ["changed an endpoint", "endpoints"],
  "POST /endpoints/{name}/bench": ["measured an endpoint", "node"], "POST /endpoints/{name}/paths/{other}": ["measured a path", "node"], "POST /endpoints/{name}/files/du": ["counted files", "endpoints"], "POST /endpoints/{name}/files/mkdir": ["made a folder", "endpoints"],
  "POST /endpoints/{name}/files/rename": ["renamed something", "endpoints"], "POST /endpoints/{name}/files/sum": ["digested a file", "endpoints"], "POST /endpoints/{name}/grants": ["made a grant", "endpoints"],
  "POST /endpoints/{name}/test": ["tested an endpoint", "endpoints"], "POST /endpoints/{name}/uploads": ["began an upload", "endpoints"], "POST /listings": ["listed a folder", ""], "DELETE /listings/{id}": ["closed a listing", ""],
  "POST /login": ["logged in", ""], "POST /logout": ["logged out", ""], "POST /password": ["changed their password", ""],
  "POST /tasks": ["submitted a task", "tasks"], "POST /tasks/acts": ["acted on many tasks", ""], "POST /tasks/cancel": ["cancelled all their tasks", ""], "PATCH /tasks/{id}": ["changed a task", "tasks"],
  "POST /tasks/{id}/cancel": ["cancelled a task", "tasks"], "POST /tasks/{id}/clone": ["ran a task again", "tasks"], "DELETE /tasks/{id}/leftovers": ["removed unfinished files", "tasks"],
  "POST /tasks/{id}/pause": ["paused a task", "tasks"], "POST /tasks/{id}/resume": ["resumed a task", "tasks"], "POST /tasks/{id}/retry": ["retried a task", "tasks"],
  "POST /timers": ["made a timer", "timers"], "PATCH /timers/{id}": ["changed a timer", "timers"], "DELETE /timers/{id}": ["removed a timer", ""], "POST /timers/{id}/pause": ["paused a timer", "timers"], "POST /timers/{id}/resume": ["resumed a timer", "timers"], "POST /timers/{id}/run": ["ran a timer", "timers"],
  "POST /tokens": ["made a token", ""], "DELETE /tokens/{id}": ["ended a session or token", ""], "DELETE /uploads/{id}": ["removed an upload", ""], "PUT /uploads/{id}/blocks/{n}": ["sent a block of an upload", ""],
  "POST /uploads/{id}/publish": ["put an upload in place", ""], "POST /users": ["added a user", ""], "PATCH /users/{name}": ["changed a user", ""], "POST /users/{name}/links": ["made a login link", ""], "DELETE /users/{name}/sessions": ["ended all sessions of a user", ""],
};
/** @type {Record<number, string>} */
const REFUSALS = { 400: "refused: it was malformed", 401: "refused: nobody was known by it", 403: "refused: no right to it", 404: "refused: there was no such thing", 408: "refused: it took too long", 409: "refused: it did not fit the state", 412: "refused: it had changed meanwhile", 413: "refused: it was too large", 429: "refused: too many at once" };

/** The words of an action; empty: there are none. @param {string} action */
export const wordsOf = (action) => ACTS[action]?.[0] ?? "";
/** Where what it was about is shown; empty: nowhere. @param {string} action @param {string|null} object */
export const linkOf = (action, object) => object && ACTS[action]?.[1] ? `#/${ACTS[action][1]}/${encodeURIComponent(object)}` : "";
/** @param {number} status */
export const outcome = (status) => status < 400 ? "done" : REFUSALS[status] ?? (status < 500 ? "refused" : "failed at the service");
