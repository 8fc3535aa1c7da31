// From a login to data that has arrived, as somebody does it who has only the page.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { endBrowser, visit } from "./support/browser.mjs";
import { b3sum, PASSWORD, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => {
  world = await World.start();
  world.addUser("ada");
  world.write("lab/2026/run42/raw/deep.bin", randomBytes(3 << 20));
  world.write("lab/2026/run42/notes.txt", "notes");
  world.write("lab/2026/run41/old.bin", randomBytes(1000));
});
after(async () => { await endBrowser(); world?.endNow(); });

const button = (page, name) => page.getByRole("button", { name, exact: true });
const pane = (page, side) => page.getByRole("grid", { name: new RegExp(`^${side} pane`) });
const row = (page, side, name) => pane(page, side).getByRole("row").filter({ has: page.locator("bdi", { hasText: new RegExp(`^${name}$`) }) });

test("person logs in, browses a tree, sends a folder by the arrow and watches it to the end", () => visit(world, {}, async (page) => {
  await page.goto(world.origin);
  await page.getByLabel("User").fill("ada");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await button(page, "Log in").click();
  await page.getByRole("combobox", { name: "Endpoint of the left pane" }).selectOption("lab");
  await page.getByRole("combobox", { name: "Endpoint of the right pane" }).selectOption("archive");
  await row(page, "Left", "2026").dblclick();
  await row(page, "Left", "run42").click();
  await page.getByRole("button", { name: "Copy from the left pane to the right pane" }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByText(/2 files, \d+ folders?, 3\.0 MiB/).waitFor();
  await sheet.getByLabel("Label").fill("by the arrow");
  await button(sheet, "Start copy").click();
  const started = page.getByRole("region", { name: "Tasks started here" });
  await started.getByText("Succeeded").waitFor();
  await row(page, "Right", "run42").waitFor();
  assert.equal(b3sum(world.path("archive/run42/raw/deep.bin")), b3sum(world.path("lab/2026/run42/raw/deep.bin")));
  await started.getByRole("link").first().click();
  await page.getByRole("heading", { level: 1, name: "by the arrow" }).waitFor();
  await page.getByRole("grid", { name: "Items" }).getByText(b3sum(world.path("lab/2026/run42/raw/deep.bin"))).waitFor();
  // The page leads back to the folders that were open.
  await page.goBack();
  await row(page, "Left", "run41").waitFor();
}));

test("person schedules a folder from its sheet, and its timer sends it", () => visit(world, { user: "ada", at: `#/files?${new URLSearchParams({ left: "@lab:/2026", right: "@archive:/" })}` }, async (page) => {
  await row(page, "Left", "run41").click();
  await page.getByRole("button", { name: "Copy from the left pane to the right pane" }).click();
  const sheet = page.getByRole("dialog");
  await sheet.getByLabel("Label").fill("every six hours");
  await sheet.getByText("When", { exact: true }).click();
  await sheet.getByLabel(/^Run/).selectOption("every");
  await sheet.getByRole("spinbutton", { name: "Hours" }).fill("6");
  await button(sheet, "Make timer").click();
  await sheet.waitFor({ state: "detached" });
  await page.goto(`${world.origin}/#/timers`);
  await page.getByRole("link", { name: "every six hours", exact: true }).click();
  await page.getByRole("region", { name: "Table of runs" }).getByText("Succeeded").waitFor();
  assert.equal(b3sum(world.path("archive/run41/old.bin")), b3sum(world.path("lab/2026/run41/old.bin")));
}));
