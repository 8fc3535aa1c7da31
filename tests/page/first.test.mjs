// The first minute: what somebody meets who has not been here before, and what they find again when they come back.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => {
  world = await World.start();
  for (const name of ["ada", "bob", "cy"]) world.addUser(name);
  for (let number = 0; number < 90; number += 1) world.write(`lab/run/file-${String(number).padStart(2, "0")}.dat`, randomBytes(1 << 10));
  world.write("lab/run/deep/inner.dat", "x");
  world.write("archive/2026/old.dat", "x");
});
after(async () => { await endBrowser(); world?.endNow(); });

const button = (page, name) => page.getByRole("button", { name, exact: true });
const grid = (page, side) => page.getByRole("grid", { name: new RegExp(`^${side} pane`) });
const row = (page, side, name) => grid(page, side).getByRole("row").filter({ has: page.locator("bdi", { hasText: new RegExp(`^${name}$`) }) });
const tools = (page) => page.getByRole("group", { name: "Actions on the active pane" });
/** The name of the active row of a grid. */
const active = (locator) => locator.evaluate((one) => document.getElementById(one.getAttribute("aria-activedescendant") ?? "")?.querySelector("bdi")?.textContent ?? "");

test("panes without a folder ask where the data is, and one filled button says what would go where", () => visit(world, { user: "ada", at: "#/files" }, async (page) => {
  await page.getByRole("heading", { name: "Choose where your data is" }).waitFor();
  await page.getByRole("heading", { name: "Choose where your data should go" }).waitFor();
  await accessible(page, "panes without a folder");
  const copy = tools(page).locator("button.main");
  assert.equal(await copy.count(), 1, "one button is filled");
  assert.ok(await copy.isDisabled());
  await page.locator(".pane-grid.left").getByRole("button", { name: /^@lab/ }).click();
  await row(page, "Left", "run").dblclick();
  await row(page, "Left", "file-00.dat").waitFor();
  await page.locator(".pane-grid.right").getByRole("button", { name: /^@archive/ }).click();
  await row(page, "Right", "2026").waitFor();
  await row(page, "Left", "file-01.dat").click();
  await until("the button names one item and its size", async () => await copy.innerText() === "Copy 1 item (1.0 KiB) to @archive");
  await row(page, "Left", "file-01.dat").locator(".tick").click();
  await row(page, "Left", "file-02.dat").locator(".tick").click();
  await until("it names both", async () => await copy.innerText() === "Copy 2 items (2.0 KiB) to @archive");
  // What is rare stands behind one button, which has the focus again after Escape.
  await button(tools(page), "More▾").or(tools(page).getByRole("button", { name: "More" })).first().click();
  await tools(page).getByRole("button", { name: "Copy location" }).waitFor();
  await accessible(page, "an open menu");
  await page.keyboard.press("Escape");
  assert.equal(await tools(page).getByRole("button", { name: "Copy location" }).count(), 0);
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-expanded")), "false");
  await copy.click();
  await page.getByRole("dialog").getByText("2 files").waitFor();
}));

test("browser that knows nothing of a user lands at the folders of their last copy", async () => {
  await visit(world, { user: "bob", at: "#/files?left=@lab:/run&right=@archive:/2026" }, async (page) => {
    await row(page, "Left", "file-03.dat").click();
    await page.keyboard.press("c");
    await page.getByRole("dialog").getByText("1 file").waitFor();
    await button(page.getByRole("dialog"), "Start copy").click();
    await page.getByRole("region", { name: "Tasks started here" }).getByText("Succeeded").waitFor();
  });
  await visit(world, { user: "bob", at: "#/files" }, async (page) => {
    await row(page, "Left", "file-03.dat").waitFor();
    await row(page, "Right", "file-03.dat").waitFor();
    assert.match(await grid(page, "Left").getAttribute("aria-label") ?? "", /@lab:\/run$/);
  });
});

test("Back finds a list where it was left, and stands on the folder one comes from", () => visit(world, { user: "ada", at: "#/files?left=@lab:/run&right=@archive:/" }, async (page) => {
  const left = grid(page, "Left");
  await row(page, "Left", "deep").waitFor();
  await row(page, "Left", "deep").dblclick();
  await row(page, "Left", "inner.dat").waitFor();
  await page.goBack();
  await until("the folder is active", async () => await active(left) === "deep");
  await page.keyboard.type("file-70");
  await until("it is active", async () => await active(left) === "file-70.dat");
  // Another view, and Back.
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Tasks" }).click();
  await page.getByRole("heading", { level: 1, name: "Tasks" }).waitFor();
  await page.goBack();
  await until("the row is active again", async () => await active(left) === "file-70.dat");
  await row(page, "Left", "file-70.dat").waitFor();
}));

test("link that is used up, a login and a task that is not there say what to do", async () => {
  const link = world.link("cy");
  await visit(world, {}, async (page) => { await page.goto(link); await button(page, "Log out").waitFor(); });
  await visit(world, { expect: [/^401 .*\/login$/] }, async (page) => {
    await page.goto(link);
    await page.getByRole("alert").filter({ hasText: "The login link is used up, or older than ten minutes" }).getByText(/ask an admin/).waitFor();
    await page.getByText("Whoever runs this service sends you a link").waitFor();
    await accessible(page, "a link that is used up");
  });
  await visit(world, { user: "cy", at: "#/tasks/01900000-0000-7000-8000-000000000000", expect: [/^404 .*\/tasks\//] }, async (page) => {
    await page.getByRole("heading", { level: 1, name: "No such task" }).waitFor();
    assert.equal(await button(page, "Try again").count(), 0);
    await accessible(page, "a task that is not there");
    await page.getByRole("link", { name: "All tasks" }).click();
    await page.getByText("No tasks yet").waitFor();
  });
});

test("first press of Tab leads past the navigation", () => visit(world, { user: "ada", at: "#/tasks" }, async (page) => {
  await page.reload();
  const grid = page.getByRole("grid", { name: "Tasks" });
  await grid.waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the content");
  const { y } = await page.getByText("Skip to the content").boundingBox() ?? { y: -1 };
  assert.ok(y >= 0, "it is seen once it has the focus");
  await accessible(page, "the skip link");
  await page.keyboard.press("Enter");
  assert.ok(await grid.evaluate((one) => one === document.activeElement));
  assert.ok(page.url().endsWith("#/tasks"), "the address stays");
}));

// 1280 by 800 at 400 %.
test("at 400 % no button of a sheet covers the field that has the focus", () => visit(world, { user: "ada", at: "#/files?left=@lab:/run&right=@archive:/", width: 320, height: 200 }, async (page) => {
  await row(page, "Left", "file-01.dat").waitFor();
  await grid(page, "Left").focus();
  await page.keyboard.press("c");
  const sheet = page.getByRole("dialog");
  await sheet.getByLabel("To", { exact: true }).waitFor();
  await sheet.getByLabel("Label").waitFor({ state: "attached" });
  for (const field of await sheet.locator("input:visible, select:visible, summary:visible").all()) {
    await field.focus();
    const seen = await field.evaluate((one) => {
      const { left, top, width, height } = one.getBoundingClientRect(), at = document.elementFromPoint(left + width / 2, top + Math.min(height / 2, 12));
      return at === one || one.contains(at) || Boolean(at?.contains(one));
    });
    assert.ok(seen, `covered: ${await field.evaluate((one) => one.outerHTML.slice(0, 120))}`);
  }
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
}));

test("browser tells of a task that ends while nobody looks, and nothing where it was not asked to", () => visit(world, { user: "ada", at: "#/tasks" }, async (page, _, context) => {
  await context.grantPermissions(["notifications"]);
  await page.addInitScript(() => {
    const told = /** @type {any} */ (globalThis).told = [];
    const Recorded = class { static permission = "granted"; constructor(title, more) { told.push([title, more.body, more.tag]); } close() {} };
    Object.defineProperty(globalThis, "Notification", { value: Recorded });
    Object.defineProperty(document, "hidden", { get: () => /** @type {any} */ (globalThis).away === true });
  });
  await page.reload();
  const box = page.getByLabel("Tell me when a task ends");
  await box.check();
  const away = (is) => page.evaluate((is) => { /** @type {any} */ (globalThis).away = is; document.dispatchEvent(new Event("visibilitychange")); }, is);
  const copy = async (label) => {
    const { csrf } = await page.evaluate(async () => (await fetch("/api/v1/whoami")).json());
    return page.evaluate(async ([label, csrf]) => (await (await fetch("/api/v1/tasks", { method: "POST", headers: { "content-type": "application/json", "x-carrack-csrf": csrf },
      body: JSON.stringify({ label, pairs: [{ source: "@lab:/run/file-05.dat", destination: "@archive:/told/" }] }) })).json()).id, [label, csrf]);
  };
  await page.getByRole("status").getByText("Live").waitFor();
  await away(true);
  const id = await copy("told of");
  await until("the browser tells", async () => (await page.evaluate(() => /** @type {any} */ (globalThis).told.length)) === 1);
  assert.deepEqual(await page.evaluate(() => /** @type {any} */ (globalThis).told), [["Succeeded", "told of", id]]);
  assert.equal(await page.title(), "Succeeded: told of");
  await away(false);
  assert.equal(await page.title(), "Tasks · Carrack");
  await box.uncheck();
  await away(true);
  await copy("not told of");
  await until("its end is in the title", async () => await page.title() === "Succeeded: not told of");
  assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis).told.length), 1);
}));
