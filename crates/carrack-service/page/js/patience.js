// How long the page waits for an answer, and what to do where none came.

/** In milliseconds. A service that has to reach a host gives it 60 seconds before it says that it cannot. */
const USUAL = 30_000, AT_A_HOST = 100_000;
/** What the service asks another host before it answers. */
const AT_HOSTS = /^\/(endpoints\/[^/]+\/(test|files|uploads)|listings|uploads|tasks\/[^/]+\/leftovers)(\/|$)/;

/** How long an answer is waited for, in milliseconds. @param {string} path */
export const patienceFor = (path) => AT_HOSTS.test(path) ? AT_A_HOST : USUAL;

/** What to try where no answer came. @param {string} method */
export const hintFor = (method) => method === "GET"
  ? "Check the network. The page tries again by itself; transfers go on without it."
  : "Check the network. The service may have done it all the same: look before you do it again.";
