// What the page does with much: 10,000 tasks, one task with a million items, and a directory of a million entries.
//   cargo build --release -p carrack && CARRACK_TEST_PROGRAM=target/release/carrack node bench/page_scale.mjs
// Prints, for each list: when its first rows stand, how many frames a second are drawn while it is scrolled (by the
// browser's own trace), how soon its far end stands, and what the page's scripts hold in memory. Needs `bash
// tests/install-needs.sh`, and room for a million empty files in TMPDIR. Smaller: --tasks 1000 --items 10000.
import fs from "node:fs";
import { endBrowser, visit } from "../tests/page/support/browser.mjs";
import { until, World } from "../tests/page/support/world.mjs";

const given = (name, value) => Number(process.argv[process.argv.indexOf(name) + 1 || process.argv.length] ?? value);
const TASKS = given("--tasks", 10_000), ITEMS = given("--items", 1_000_000), HOURS = 3_600_000;
const FRAMES = "disabled-by-default-devtools.timeline,devtools.timeline.frame,disabled-by-default-devtools.timeline.frame";
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
  const first = await page.evaluate(({ at }) => new Promise((resolve) => {
    const began = performance.now();
    const look = () => { if (document.querySelector("[role=grid] [role=row][aria-rowindex='2'] [role=gridcell]:not(:empty)")) resolve(performance.now() - began); else requestAnimationFrame(look); };
    location.hash = at;
    requestAnimationFrame(look);
  }), { at });
  await table.scrollIntoViewIfNeeded();
  const box = await table.boundingBox();
  if (!box) throw new Error(`${what}: no grid`);
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.context().browser()?.startTracing(page, { categories: FRAMES.split(",") });
  const scrolling = Date.now();
  for (let turn = 0; turn < 120; turn += 1) { await page.mouse.wheel(0, 400); await page.evaluate(() => new Promise(requestAnimationFrame)); }
  const seconds = (Date.now() - scrolling) / 1000;
  const trace = JSON.parse((await page.context().browser()?.stopTracing())?.toString() ?? "{}");
  const named = (name) => trace.traceEvents.filter((event) => event.name === name).length;
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
  say(`${what}: first rows after ${Math.round(first)} ms; ${(named("DrawFrame") / seconds).toFixed(0)} frames/s drawn while scrolled, ${named("DroppedFrame")} dropped; far end after ${end} ms; ${(heap / 2 ** 20).toFixed(1)} MiB held by scripts`);
  await cdp.detach();
}
