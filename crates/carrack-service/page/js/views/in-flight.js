// The files in flight of a task that runs: which arrive now, and how far each is.
import { html, useMemo, useRef } from "../ui.js";
import { call } from "../api.js";
import { isHeard } from "../live.js";
import { useEvery, useLive } from "../store.js";
import { Progress } from "../parts.js";
import { halves, keyOf, placed } from "../places.js";
import { bytes, percent, shown } from "../format.js";

/** @typedef {import("../types.js").InFlight} InFlight */

/** A name of which the middle is left out where there is no room; the pointer shows all of it. @param {{name: string}} props */
function Middle({ name }) {
  const [head, tail] = halves(name);
  return html`<span class="middle mono" title=${name}><bdi class="name">${head}</bdi>${tail && html`<bdi class="name">${tail}</bdi>`}</span>`;
}

/** @param {{file: InFlight}} props */
function File({ file }) {
  const name = shown(file.path);
  const text = file.size == null ? `${bytes(file.bytes)} so far` : `${bytes(file.bytes)} of ${bytes(file.size)}`;
  return html`<li><${Middle} name=${name} /><${Progress} share=${file.size == null ? null : percent(file.bytes, file.size)} label=${`Progress of ${name}`} /><span class="num small quiet">${text}</span></li>`;
}

/** How often the files are asked for while the task runs, in milliseconds: the service has news once a second. */
const EVERY = 2000;
/** @type {InFlight[]} */
const NO_FILES = [];

/**
 * Nothing before the first file; from then on as many lines as there have been at once.
 * @param {{id: string}} props
 */
export function InFlight({ id }) {
  const read = useLive((signal) => /** @type {Promise<{files: InFlight[]}>} */ (call("GET", `/tasks/${id}/in-flight`, { signal })), [id], () => false);
  useEvery(EVERY, () => { if (isHeard()) read.again(); });
  const files = read.value?.files ?? NO_FILES;
  const places = useRef(/** @type {(InFlight|null)[]} */ ([]));
  const now = useMemo(() => { places.current = placed(places.current, files); return places.current; }, [files]);
  if (now.length === 0) return null;
  const isEmpty = now.every((file) => !file);
  return html`<section class="sheet pad in-flight" aria-label="In flight"><div class="in-flight-head"><h2>In flight</h2><p class="small quiet">${isEmpty ? "No large file at present" : "Large files that arrive now"}</p></div>
    <ul>${now.map((file, place) => file ? html`<${File} key=${`${place} ${keyOf(file)}`} file=${file} />` : html`<li key=${place} class="empty" aria-hidden="true"></li>`)}</ul></section>`;
}
