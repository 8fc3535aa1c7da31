// The tests themselves: what a page must not do is seen, and fails the test that it happens in.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => { world = await World.start(); });
after(async () => { await endBrowser(); world?.endNow(); });

const outside = (page) => page.getByRole("button", { name: "Log in" }).waitFor();
/** What a visit says has gone wrong when this happens in its page. */
async function fault(happens) {
  let told = "";
  await visit(world, { name: "meant to fail" }, async (page, guard) => {
    await page.goto(world.origin);
    await outside(page);
    await page.evaluate(happens);
    await until("it is seen", () => guard.faults.length > 0);
  }).catch((error) => { told = error.message; });
  return told;
}

test("guard sees a request to another host, and the policy that stops it", async () => {
  const told = await fault(() => { void fetch("https://elsewhere.invalid/").catch(() => {}); });
  assert.match(told, /the policy forbids connect-src https:\/\/elsewhere\.invalid/);
});

test("guard sees scripts that were written into the page, errors and what is thrown", async () => {
  assert.match(await fault(() => { document.body.append(Object.assign(document.createElement("script"), { textContent: "1" })); }), /the policy forbids script-src/);
  assert.match(await fault(() => { document.body.innerHTML = "<p style='color: red'>red</p>"; }), /the policy forbids style-src/);
  assert.match(await fault(() => { console.error("something is wrong"); }), /its console says something is wrong/);
  assert.match(await fault(() => { setTimeout(() => { throw new Error("thrown late"); }); }), /it threw .*thrown late/);
  assert.match(await fault(() => { void fetch("/api/v1/tasks"); }), /its console says 401 .*\/api\/v1\/tasks/);
});

test("guard leaves a page alone that does nothing of the kind", () => visit(world, {}, async (page) => {
  await page.goto(world.origin);
  await outside(page);
}));

test("axe-core sees a picture without a text, and text that is too faint", () => visit(world, {}, async (page) => {
  await page.goto(world.origin);
  await outside(page);
  await accessible(page, "as it is");
  await page.evaluate(() => {
    const faint = document.createElement("p"), picture = document.createElement("img");
    faint.textContent = "too faint to be read";
    faint.style.color = "#bbb";
    picture.src = /** @type {HTMLLinkElement} */ (document.querySelector("link[rel=icon]")).href;
    document.querySelector("main")?.append(faint, picture);
  });
  await assert.rejects(accessible(page, "made worse"), /color-contrast[^]*image-alt|image-alt[^]*color-contrast/);
}));
