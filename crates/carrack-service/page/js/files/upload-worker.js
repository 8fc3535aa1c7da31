// Hashes a file block by block, away from the page: SHA-256 of each block, in order.
/** @typedef {{file: File, block: number}} Order */

const scope = /** @type {any} */ (globalThis);
scope.onmessage = async (/** @type {MessageEvent<Order>} */ { data: { file, block } }) => {
  /** @type {string[]} */
  const digests = [];
  try {
    for (let at = 0; at < file.size; at += block) {
      const bytes = await file.slice(at, at + block).arrayBuffer();
      const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
      digests.push(Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join(""));
      scope.postMessage({ hashed: Math.min(file.size, at + block) });
    }
    scope.postMessage({ digests });
  } catch (error) {
    scope.postMessage({ failed: String(/** @type {any} */ (error).message ?? error) });
  }
};
