// Every view by axe-core, by keyboard alone, and as small as it has to be.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { until, World } from "./support/world.mjs";

/** @type {World} */
let world;
/** The views, each with its heading. */
const VIEWS = [["files", "Files"], ["overview", "Overview"], ["tasks", "Tasks"], ["endpoints", "Endpoints"], ["node", "Node"], ["timers", "Timers"], ["access", "Access"]];
/** @type {Record<string, string>} tasks by what became of them */
const tasks = {};
const MIB = 1 << 20;

before(async () => {
  world = await World.start();
  world.addUser("ada");
  // Somebody who has nothing at all.
  world.addUser("new");
  for (let number = 0; number < 40; number += 1) world.write(`lab/run/file-${number}.dat`, randomBytes(2000));
  const run = async (name, from, to, more) => { tasks[name] = (await world.submit(from, to, { label: name, ...more })).id; };
  await run("done", "@lab:/run/", "@archive:/done/");
  await run("failed", "@lab:/absent", "@archive:/absent");
  await run("long", "random:1T", "null:", { options: { rate_limit: MIB } });
  await run("a label that is far longer than any column of the list has room for, and goes on after that", "@lab:/run/file-1.dat", "@archive:/one");
  await world.api("POST", "/tasks", { label: "partial", pairs: [{ source: "@lab:/run/file-1.dat", destination: "@archive:/p/" }, { source: "@lab:/absent", destination: "@archive:/p/" }] }).then((task) => { tasks.partial = task.id; });
  await world.api("POST", "/timers", { label: "each night", schedule: { cron: "30 2 * * *", zone: "Europe/Berlin" }, task: { pairs: [{ source: "@lab:/run/", destination: "@archive:/night/" }] } });
  await Promise.all([world.reached(tasks.done, "SUCCEEDED"), world.reached(tasks.failed, "FAILED"), world.reached(tasks.long, "ACTIVE"), world.reached(tasks.partial, "PARTIAL")]);
});
after(async () => { await endBrowser(); world?.endNow(); });

const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
/** Nothing is being read any more. */
async function settled(page) {
  await until("everything is read", async () => await page.locator("main").getByText("Loading…").count() === 0 && await page.locator("[aria-busy=true]").count() === 0);
}

for (const [what, how] of /** @type {[string, object][]} */ ([["light", {}], ["dark", { dark: true }], ["narrow", { width: 390 }], ["narrow and dark", { width: 390, dark: true }]])) {
  test(`axe-core finds nothing in any view with rows, ${what}`, () => visit(world, { user: "local", ...how }, async (page) => {
    for (const [view, name] of VIEWS) {
      await page.goto(`${world.origin}/#/${view}`);
      await heading(page, name);
      await settled(page);
      await accessible(page, `${view}, ${what}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.equal(wide, 0, `${view} is wider than its window`);
    }
    for (const name of ["done", "failed", "partial", "long"]) {
      await page.goto(`${world.origin}/#/tasks/${tasks[name]}`);
      await heading(page, name);
      await page.getByRole("region", { name: "Items" }).waitFor();
      await settled(page);
      await accessible(page, `the task ${name}, ${what}`);
    }
    await page.getByRole("button", { name: "As a table" }).click();
    const over = page.getByRole("region", { name: "Over time, as a table" });
    for (const column of ["Rate", "Streams", "Processors at work: source", "Threads that wait for storage: destination", "What happened"]) {
      await over.getByRole("columnheader", { name: column, exact: true }).waitFor();
    }
    // A busy machine may tell the first figures a moment later.
    await until("a row has all figures", async () => (await over.getByRole("row").allInnerTexts()).some((row) => /\t[\d.]+ [KMG]?i?B\/s\s+\d+\s+\d+\.\d\s+\d+\.\d/.test(row)));
    await accessible(page, `a plot as a table, ${what}`);
  }));
}

test("axe-core finds nothing in views that are empty, filtered, scrolled, or of nothing", () => visit(world, { user: "new" }, async (page, guard) => {
  for (const [view, name] of VIEWS) {
    await page.goto(`${world.origin}/#/${view}`);
    await heading(page, name);
    await settled(page);
    await accessible(page, `${view}, empty`);
  }
  for (const [at, text] of [["#/tasks?state=trouble", "No task fits"], ["#/nowhere", "No such view"], ["#/tasks/none", "All tasks"]]) {
    guard.expect(/^404 .*\/tasks\/none/);
    await page.goto(`${world.origin}/${at}`);
    await page.getByText(text).first().waitFor();
    await accessible(page, at);
  }
  await visit(world, { user: "local", at: `#/tasks/${tasks.done}` }, async (other) => {
    const items = other.getByRole("grid", { name: "Items" });
    await items.getByText(/^file-\d+\.dat$/).first().waitFor();
    await items.evaluate((grid) => { grid.scrollTop = grid.scrollHeight; });
    await items.locator("[aria-rowindex='41']").waitFor();
    await accessible(other, "items, scrolled to the end");
    await other.getByRole("button", { name: "Failed" }).click();
    await other.getByText("No such items").waitFor();
    await accessible(other, "items, filtered");
  });
}));

test("axe-core finds nothing in views that are loading, and in views whose reading has failed", () => visit(world, { user: "local" }, async (page, guard, context) => {
  await heading(page, "Tasks");
  // The server takes the questions and answers none of them.
  world.freeze(true);
  try {
    for (const [view, name] of VIEWS) {
      await page.evaluate((to) => { location.hash = to; }, `#/${view}`);
      await heading(page, name);
      await accessible(page, `${view}, loading`);
    }
  } finally {
    world.freeze(false);
  }
  guard.expect(/^net::ERR_INTERNET_DISCONNECTED /);
  await context.setOffline(true);
  for (const [view, name] of VIEWS) {
    await page.evaluate((to) => { location.hash = to; }, `#/${view}?again`);
    // A pane without a folder reads nothing that could fail.
    await page.evaluate((to) => { location.hash = to; }, view === "files" ? "#/files?left=@lab:/run" : `#/${view}`);
    await heading(page, name);
    await page.getByRole("alert").first().waitFor();
    await accessible(page, `${view}, in error`);
  }
}));

test("axe-core finds nothing in the login and in any dialog", () => visit(world, { user: "local" }, async (page) => {
  /** @type {[string, string][]} */
  const opened = [["tasks", "New task"], ["endpoints", "Add endpoint"], ["endpoints/lab", "Remove lab"], ["timers", "New timer"], ["timers", "Remove each night"],
    ["access", "New token"], ["access", "Add user"], ["access", "Log out everywhere"], [`tasks/${tasks.long}`, "Edit"], [`tasks/${tasks.long}`, "Cancel task"]];
  for (const [view, name] of opened) {
    await page.goto(`${world.origin}/#/${view}`);
    const button = page.getByRole("button", { name, exact: true });
    await button.click();
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await accessible(page, `${view}: ${name}`);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.ok(await button.evaluate((one) => one === document.activeElement), `${name}: the focus is not back at its button`);
  }
  for (const dark of [false, true]) {
    await visit(world, { dark }, async (stranger) => {
      await stranger.goto(world.origin);
      await stranger.getByRole("button", { name: "Log in" }).waitFor();
      await accessible(stranger, "login");
      await stranger.getByRole("button", { name: "Token" }).click();
      await accessible(stranger, "login by token");
    });
  }
}));

/** Presses Tab until the focus is where it should be. */
async function tabTo(page, locator) {
  for (let presses = 0; presses < 80; presses += 1) {
    await page.keyboard.press("Tab");
    if (await locator.evaluate((one) => one === document.activeElement).catch(() => false)) {
      const outline = await locator.evaluate((one) => getComputedStyle(one).outlineStyle);
      assert.notEqual(outline, "none", `the focus is not seen at ${locator}`);
      return;
    }
  }
  assert.fail(`no Tab leads to ${locator}`);
}

test("all views and a whole transfer are reached by keyboard alone", () => visit(world, { user: "local" }, async (page) => {
  for (const [, name] of VIEWS) {
    await tabTo(page, page.getByRole("navigation").getByRole("link", { name, exact: true }));
    await page.keyboard.press("Enter");
    await heading(page, name);
    assert.ok(await page.locator("main").evaluate((main) => main.contains(document.activeElement)), `${name}: the focus is not in the view`);
  }
  await tabTo(page, page.getByRole("navigation").getByRole("link", { name: "Tasks" }));
  await page.keyboard.press("Enter");
  await tabTo(page, page.getByRole("button", { name: "New task" }));
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await tabTo(page, dialog.getByLabel(/^From/));
  await page.keyboard.type("@lab:/run/");
  await tabTo(page, dialog.getByLabel("To", { exact: true }));
  await page.keyboard.type("@archive:/by-keys/");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.locator(".task-title .chip", { hasText: "Succeeded" }).waitFor();
  const items = page.getByRole("grid", { name: "Items" });
  await tabTo(page, items);
  const active = () => items.evaluate((grid) => document.getElementById(grid.getAttribute("aria-activedescendant") ?? "")?.getAttribute("aria-rowindex"));
  await page.keyboard.press("End");
  await until("the last row is active", async () => await active() === "41");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowDown");
  await until("the second row is active", async () => await active() === "3");
  await page.goBack();
  const grid = page.getByRole("grid", { name: "Tasks" });
  await tabTo(page, grid);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/tasks\/[0-9a-f-]+$/);
}));

test("address that changes while the page begins is followed", () => visit(world, { user: "local" }, async (page) => {
  // Nothing is drawn for a while; the address changes as soon as there is something to see.
  await page.addInitScript(() => {
    globalThis.requestAnimationFrame = () => 0;
    new MutationObserver((_, watch) => {
      if (document.querySelector("nav")) { watch.disconnect(); location.hash = "#/timers"; }
    }).observe(document, { childList: true, subtree: true });
  });
  await page.reload();
  await heading(page, "Timers");
}));

test("whole page is small, and its first paint is soon", () => visit(world, { user: "local" }, async (page) => {
  const paths = new Set();
  page.on("requestfinished", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname === "/" || pathname.startsWith("/page/")) paths.add(pathname);
  });
  await page.reload();
  for (const [view, name] of VIEWS) {
    await page.goto(`${world.origin}/#/${view}`);
    await heading(page, name);
  }
  await page.goto(`${world.origin}/#/tasks/${tasks.long}`);
  await page.locator(".uplot").first().waitFor();
  // Asked for anew: of what the browser has, it is only told that nothing has changed.
  const files = await Promise.all([...paths].map((path) => page.request.get(`${world.origin}${path}`)));
  const whole = files.reduce((sum, file) => {
    assert.ok(file.status() === 200 && file.headers()["content-encoding"] === "gzip", `${file.url()}: ${file.status()}`);
    return sum + Number(file.headers()["content-length"]);
  }, 0);
  await page.goto("about:blank");
  await page.goto(`${world.origin}/#/tasks`);
  await page.getByRole("row").nth(1).waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  process.stdout.write(`whole page: ${files.length} files, ${whole} bytes sent; first paint after ${Math.round(paint)} ms\n`);
  assert.ok(files.length <= 5 && whole > 50_000 && whole < 150_000, `${files.length} files, ${whole} bytes: ${[...paths]}`);
  // Whoever has a name has its content; the document that has the names is asked for each time.
  for (const file of files) assert.equal(file.headers()["cache-control"], new URL(file.url()).pathname === "/" ? "no-cache" : "public, max-age=31536000, immutable", file.url());
}));
