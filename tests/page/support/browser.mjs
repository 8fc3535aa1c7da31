// Browsers of the tests. Whatever a page must never do fails the test that it does it in: ask another host, break the
// content security policy, throw, or write an error to the console.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import { spawnSync } from "node:child_process";
import { chromium } from "playwright-core";
import { PATIENCE } from "./world.mjs";

const AXE = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const FAILED = new URL("../../../target/page-tests/", import.meta.url);

/** @type {import("playwright-core").Browser|null} */
let browser = null;
async function launched() {
  if (!browser) {
    const found = process.env.CARRACK_TEST_CHROMIUM ?? spawnSync("sh", ["-c", "command -v chromium chromium-browser google-chrome | head -n 1"], { encoding: "utf8" }).stdout.trim();
    assert.ok(found, "no chromium: bash tests/install-needs.sh installs it");
    browser = await chromium.launch({ executablePath: found, args: ["--no-sandbox", "--disable-dev-shm-usage", ...(process.env.CARRACK_TEST_CHROMIUM_FLAGS ?? "").split(" ").filter(Boolean)], timeout: PATIENCE });
  }
  return browser;
}
/** Ends the browser. */
export async function endBrowser() { await browser?.close(); browser = null; }

/** What a page has done that it must not do. */
class Guard {
  constructor(origin) {
    this.origin = origin;
    /** @type {string[]} */
    this.faults = [];
    /** @type {RegExp[]} */
    this.expected = [/^401 .*\/api\/v1\/whoami$/]; // Whoever is not logged in is asked to.
  }
  /** Answers that the browser writes to its console as errors, and that this test is about: `STATUS ADDRESS`. */
  expect(...patterns) { this.expected.push(...patterns); }
  watch(page) {
    page.on("request", (request) => {
      const address = request.url();
      if (!address.startsWith(`${this.origin}/`) && !/^(blob|data):/.test(address)) this.faults.push(`it asked for ${address}`);
    });
    page.on("pageerror", (error) => this.faults.push(`it threw ${error.stack ?? error}`));
    page.on("console", (message) => {
      if (!["error", "warning"].includes(message.type())) return;
      const text = message.text();
      const status = /^Failed to load resource: (?:.*status of (\d+)|(net::\w+))/.exec(text);
      const told = status ? `${status[1] ?? status[2]} ${message.location().url.split("?")[0]}` : text;
      if (!this.expected.some((pattern) => pattern.test(told))) this.faults.push(`its console says ${told}`);
    });
  }
}

/** The page's files as they lie in the working tree, which need no new program. */
const TREE = new URL("../../../crates/carrack-service/page/", import.meta.url);
const KINDS = { html: "text/html; charset=utf-8", css: "text/css", js: "text/javascript", mjs: "text/javascript", svg: "image/svg+xml" };
/** Answers with files of the working tree in place of the program's. */
export async function fromTree(context, origin) {
  await context.route((url) => url.origin === origin && (url.pathname === "/" || url.pathname.startsWith("/page/")), async (route) => {
    const name = new URL(route.request().url()).pathname.replace(/^\/page\//, "").replace(/^\/$/, "index.html"), file = new URL(name, TREE);
    if (fs.existsSync(file)) await route.fulfill({ body: fs.readFileSync(file), contentType: KINDS[name.split(".").at(-1)] });
    else await route.continue();
  });
}

/**
 * Opens a page in a browser of its own, does something with it, and looks whether it did what it must not.
 * @param {import("./world.mjs").World} world
 * @param {{user?: string, at?: string, dark?: boolean, width?: number, height?: number, name?: string, expect?: RegExp[]}} how `expect`: what it may say from its login on
 * @param {(page: import("playwright-core").Page, guard: Guard, context: import("playwright-core").BrowserContext) => Promise<void>} run
 */
export async function visit(world, how, run) {
  const context = await (await launched()).newContext({
    ignoreHTTPSErrors: true, colorScheme: how.dark ? "dark" : "light", viewport: { width: how.width ?? 1280, height: how.height ?? 800 },
    locale: "en-GB", timezoneId: "Europe/Berlin", reducedMotion: "reduce",
  });
  context.setDefaultTimeout(PATIENCE);
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`the policy forbids ${event.violatedDirective} ${event.blockedURI}`));
  });
  if (process.env.CARRACK_TEST_PAGE) await fromTree(context, world.origin);
  const guard = new Guard(world.origin), page = await context.newPage();
  guard.watch(page);
  guard.expect(...how.expect ?? []);
  try {
    if (how.user) {
      await page.goto(world.link(how.user));
      await page.getByRole("button", { name: "Log out" }).waitFor();
      // A view that names its entry of the history just then takes an address away that comes from outside the page.
      await page.locator("#main .loading").first().waitFor({ state: "detached" });
      await page.goto(`${world.origin}/${how.at ?? "#/tasks"}`);
    }
    await run(page, guard, context);
    assert.deepEqual(guard.faults, []);
  } catch (error) {
    fs.mkdirSync(FAILED, { recursive: true });
    const shot = new URL(`${(how.name ?? "failed").replaceAll(/\W+/g, "-")}-${Date.now()}.png`, FAILED);
    await page.screenshot({ path: shot.pathname }).catch(() => {});
    error.message += `\nthe page: ${shot.pathname}\n${guard.faults.join("\n")}`;
    throw error;
  } finally {
    await context.close();
  }
}

/** Asserts that the page as it is now has no fault that axe-core finds. */
export async function accessible(page, what) {
  await page.evaluate(AXE);
  const found = await page.evaluate((rules) => /** @type {any} */ (globalThis).axe.run(document, { runOnly: rules, resultTypes: ["violations"] }), RULES);
  const told = found.violations.map((rule) => `${rule.id}: ${rule.help}\n  ${rule.nodes.map((node) => `${node.html}\n    ${node.failureSummary.replaceAll("\n", " ")}`).join("\n  ")}`);
  assert.deepEqual(told, [], `${what}: ${found.violations.length} faults\n${told.join("\n")}`);
}
