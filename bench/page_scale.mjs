// What the page does with much: 10,000 tasks, one task with a million items, and a directory of a million entries.
//   cargo build --release -p carrack && CARRACK_TEST_PROGRAM=target/release/carrack node bench/page_scale.mjs
// Prints, for each list: when its first rows stand, and how long the server took of that; how many frames a second are
// drawn while it is scrolled, and the processor time of the page's main thread for each (both by the browser's own
// trace); the same of a plain table, which holds copies of the same rows and does nothing: what this machine can do;
// how soon the far end stands; what the page's scripts hold, and what its process has in memory. Then whether the focus
// is lost anywhere in the directory. Needs `bash tests/install-needs.sh`, and room for a million empty files in TMPDIR.
// Smaller: --tasks 1000 --items 10000.
import fs from "node:fs";
import os from "node:os";
import { endBrowser, visit } from "../tests/page/support/browser.mjs";
import { until, World } from "../tests/page/support/world.mjs";

const given = (name, value) => Number(process.argv[process.argv.indexOf(name) + 1 || process.argv.length] ?? value);
const TASKS = given("--tasks", 10_000), ITEMS = given("--items", 1_000_000), HOURS = 3_600_000;
const FRAMES = "disabled-by-default-devtools.timeline,devtools.timeline.frame,disabled-by-default-devtools.timeline.frame";
/** Turns of the wheel, and rows of the plain table, which are enough for them. */
const TURNS = 120, STEP = 400, PLAIN_ROWS = 1700;
const say = (what) => process.stdout.write(`${what}\n`);

const world = await World.start();
try {
  await fill();
  await visit(world, { user: "local", at: "#/access" }, async (page) => {
    await list(page, `${TASKS} tasks`, "#/tasks", "Tasks");
    const { items } = await world.api("GET", "/tasks?label=a%20million");
    await list(page, `${ITEMS} items of a task`, `#/tasks/${items[0].id}`, "Items");
    if (await page.getByRole("link", { name: "Files", exact: true }).count()) {
      await list(page, `${ITEMS} entries of a directory`, "#/files?left=%40lab%3A%2Fmany", /lab/);
      await focus(page, page.getByRole("grid", { name: /^Left pane/ }));
    }
  });
} finally {
  await endBrowser();
  world.endNow();
}

/** A directory of empty files, its copy as one task, and tasks that wait. */
async function fill() {
  const at = Date.now();
  for (let number = 0; number < ITEMS; number += 1) {
    if (number % 10_000 === 0) fs.mkdirSync(world.path("lab", "many"), { recursive: true });
    fs.closeSync(fs.openSync(world.path("lab", "many", `entry-${String(number).padStart(7, "0")}.dat`), "w"));
  }
  say(`${ITEMS} files made in ${Date.now() - at} ms`);
  const began = Date.now();
  const { id } = await world.submit("@lab:/many/", "@archive:/many/", { label: "a million", options: { durable: "none" } });
  await until("the copy has ended", async () => (await world.api("GET", `/tasks/${id}`)).ended, HOURS);
  say(`copied by one task in ${Date.now() - began} ms`);
  const submitting = Date.now();
  let next = 0;
  // They would run for hours: all but the first few stay in the queue.
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (next < TASKS) { next += 1; await world.submit("random:1T", "null:", { label: `task ${next}`, options: { rate_limit: 1024 } }); }
  }));
  say(`${TASKS} tasks submitted in ${Date.now() - submitting} ms`);
}

/** @param {import("playwright-core").Page} page @param {string} what @param {string} at @param {string|RegExp} grid*/
async function list(page, what, at, grid) {
  const cdp = await page.context().newCDPSession(page);
  const table = page.getByRole("grid", { name: grid }).first();
  await page.evaluate(() => performance.clearResourceTimings());
  const first = await page.evaluate(({ at, named }) => new Promise((resolve) => {
    const began = performance.now();
    const look = () => { if (new RegExp(named).test(document.querySelector("[role=grid]:has([aria-rowindex='2'] [role=gridcell]:not(:empty))")?.ariaLabel ?? "")) resolve(performance.now() - began); else requestAnimationFrame(look); };
    location.hash = at;
    requestAnimationFrame(look);
  }), { at, named: grid instanceof RegExp ? grid.source : grid });
  const asked = await page.evaluate(() => performance.getEntriesByType("resource").filter((entry) => entry.name.includes("/api/")).map((entry) => entry.responseEnd - entry.startTime));
  const moved = await scrolled(page, table);
  // Its rows are the same, and nobody brings others.
  await table.evaluate((element, rows) => {
    const body = document.createElement("div"), plain = /** @type {HTMLElement} */ (element.cloneNode(false));
    plain.id = "plain";
    plain.append(body);
    const some = [...element.querySelectorAll(".grid-body [role=row]")].slice(0, 40);
    for (let at = 0; at < rows; at += 1) {
      const row = /** @type {HTMLElement} */ (some[at % some.length].cloneNode(true));
      Object.assign(row.style, { position: "static" });
      body.append(row);
    }
    const { x, y, width, height } = element.getBoundingClientRect();
    Object.assign(plain.style, { position: "fixed", left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px`, zIndex: "9" });
    body.className = "grid-body";
    document.body.append(plain);
  }, PLAIN_ROWS);
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const plain = await scrolled(page, page.locator("#plain"));
  await page.evaluate(() => document.querySelector("#plain")?.remove());
  const far = Date.now();
  await table.evaluate((element) => { element.scrollTop = element.scrollHeight; });
  await until("rows stand at the far end", () => table.evaluate((element) => {
    const rows = [...element.querySelectorAll("[role=row]")];
    return element.getAttribute("aria-busy") !== "true" && Number(rows.at(-1)?.getAttribute("aria-rowindex")) > 2 && rows.at(-1)?.textContent !== "";
  }), 60_000);
  const end = Date.now() - far;
  await cdp.send("HeapProfiler.collectGarbage");
  const { metrics } = await cdp.send("Performance.enable").then(() => cdp.send("Performance.getMetrics"));
  const heap = metrics.find((metric) => metric.name === "JSHeapUsedSize")?.value ?? 0;
  const told = ({ frames, work }) => `${frames.toFixed(0)} frames/s of ${work.toFixed(1)} ms`;
  say(`${what}: first rows after ${Math.round(first)} ms, server ${Math.round(Math.max(0, ...asked))} ms; scrolled ${told(moved)}; plain table ${told(plain)}; far end after ${end} ms; ${(heap / 2 ** 20).toFixed(1)} MiB held by scripts, tab ${await tab(/** @type {import("playwright-core").Browser} */ (page.context().browser()))} MiB; load ${os.loadavg()[0].toFixed(1)}`);
  await cdp.detach();
}

/** Turns the wheel over a list: frames drawn in a second, and what the main thread works for each, in milliseconds.
 * @param {import("playwright-core").Page} page @param {import("playwright-core").Locator} table */
async function scrolled(page, table) {
  await table.scrollIntoViewIfNeeded();
  const box = await table.boundingBox();
  if (!box) throw new Error("no grid");
  await page.mouse.move(box.x + box.width / 2, box.y + Math.min(box.height, 500) / 2);
  await page.context().browser()?.startTracing(page, { categories: FRAMES.split(",") });
  const began = Date.now();
  for (let turn = 0; turn < TURNS; turn += 1) { await page.mouse.wheel(0, STEP); await page.evaluate(() => new Promise(requestAnimationFrame)); }
  const seconds = (Date.now() - began) / 1000;
  const { traceEvents } = JSON.parse((await page.context().browser()?.stopTracing())?.toString() ?? "{}");
  const draws = traceEvents.filter((event) => event.name === "DrawFrame").length;
  const threads = traceEvents.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain").map(({ pid, tid }) => `${pid} ${tid}`);
  const work = traceEvents.filter((event) => event.name === "RunTask" && threads.includes(`${event.pid} ${event.tid}`)).reduce((sum, event) => sum + (event.tdur ?? 0) / 1000, 0);
  return { frames: draws / seconds, work: work / draws };
}

/** The focus stands on a row, far from the view, out of the list and in, and when its row is filtered away.
 * @param {import("playwright-core").Page} page @param {import("playwright-core").Locator} table */
async function focus(page, table) {
  const stands = () => table.evaluate((element) => {
    const row = document.getElementById(element.getAttribute("aria-activedescendant") ?? "");
    return element === document.activeElement && row ? Number(row.getAttribute("aria-rowindex")) - 1 : 0;
  });
  const expect = (row, what) => until(`${what}, the focus is on row ${row}`, async () => await stands() === row);
  await table.focus();
  await page.keyboard.press("Home");
  for (let presses = 1; presses < 10; presses += 1) await page.keyboard.press("ArrowDown");
  await expect(10, "after nine presses");
  await table.evaluate((element) => { element.scrollTop = element.scrollHeight / 2; });
  // The first row in view is this one or a few further: a pixel of so long a list stands for several.
  const name = `entry-${String(Math.floor(ITEMS / 2) + 15).padStart(7, "0")}.dat`;
  await table.getByText(name, { exact: true }).waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Shift+Tab");
  await expect(10, "far from the view");
  await page.keyboard.press("/");
  await page.keyboard.type(name);
  await until("one row is left", async () => await table.getAttribute("aria-rowcount") === "2");
  await page.keyboard.press("Enter");
  await expect(1, "its row filtered away");
  say(`${ITEMS} entries: focus on row 10, row ${Math.floor(ITEMS / 2)} in view, out and in, its row filtered away: never lost`);
}

/** What the page's process has in memory of its own, in MiB. @param {import("playwright-core").Browser} browser */
async function tab(browser) {
  const cdp = await browser.newBrowserCDPSession();
  const { processInfo } = await cdp.send("SystemInfo.getProcessInfo");
  await cdp.detach();
  const own = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => {
    try { return Number(/^Private_Dirty:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${id}/smaps_rollup`, "utf8"))?.[1] ?? 0); } catch { return 0; }
  });
  return Math.round(Math.max(...own) / 1024);
}
