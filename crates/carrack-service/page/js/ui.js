// The one place that knows which library renders.
import * as preact from "../vendor/preact.mjs";
import * as hooks from "../vendor/hooks.mjs";
import htm from "../vendor/htm.mjs";

/** Markup as a tagged template. Text is always text: nothing that a server sends becomes markup.
 * @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = /** @type {any} */ (htm).bind(preact.h);
/** @type {(tree: any, parent: Element) => void} */
export const render = /** @type {any} */ (preact.render);

const untyped = /** @type {any} */ (hooks);
/** @typedef {(run: () => void | (() => void), inputs?: unknown[]) => void} Effect */
/** @type {Effect} */
export const useEffect = untyped.useEffect;
/** @type {Effect} */
export const useLayoutEffect = untyped.useLayoutEffect;
/** @type {<T>(make: () => T, inputs: unknown[]) => T} */
export const useMemo = untyped.useMemo;
/** @type {<T>(first: T) => {current: T}} */
export const useRef = untyped.useRef;
/** @type {<T>(first: T | (() => T)) => [T, (next: T | ((before: T) => T)) => void]} */
export const useState = untyped.useState;
/** @type {() => [any, () => void]} */
export const useErrorBoundary = untyped.useErrorBoundary;
