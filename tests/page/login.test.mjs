// Getting in, and being out again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { endBrowser, visit } from "./support/browser.mjs";
import { PASSWORD, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => { world = await World.start(); world.addUser("ada"); });
after(async () => { await endBrowser(); world?.endNow(); });

/** Types a name and a password. */
async function type(page, user, password) {
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}
const inside = (page) => page.getByRole("button", { name: "Log out" }).waitFor();
const outside = (page) => page.getByRole("button", { name: "Log in" }).waitFor();

/** The status that a session's cookie is answered with, whoever shows it. */
const statusOf = (cookies) => world.status("/api/v1/whoami", { cookie: `${cookies[0].name}=${cookies[0].value}` });

test("printed link logs in once and stays in no history", () => visit(world, {}, async (page, guard) => {
  const link = world.link("ada");
  await page.goto(link);
  await inside(page);
  assert.match(await page.locator("header").innerText(), /ada\s+user/);
  assert.ok(!page.url().includes("login="), page.url());
  guard.expect(/^401 .*\/login$/);
  await visit(world, {}, async (other, theirs) => {
    theirs.expect(/^401 .*\/login$/);
    await other.goto(link);
    await other.getByRole("alert").filter({ hasText: "used up" }).waitFor();
    await outside(other);
  });
}));

test("wrong password is refused and the right one is taken after it", () => visit(world, {}, async (page, guard) => {
  guard.expect(/^401 .*\/login$/);
  await page.goto(world.origin);
  await type(page, "ada", "wrong horse battery");
  await page.getByRole("alert").filter({ hasText: "do not fit" }).waitFor();
  await type(page, "ada", PASSWORD);
  await inside(page);
  await page.reload();
  await inside(page);
}));

test("token logs in for its tab alone and no longer than it is not revoked", () => visit(world, {}, async (page, guard, context) => {
  const { token, row } = await world.api("POST", "/tokens", { label: "tab", user: "ada", scope: { verbs: ["read", "tasks", "view"] } });
  await page.goto(world.origin);
  await page.getByRole("button", { name: "Token" }).click();
  await page.getByLabel(/^Token/).and(page.locator("input")).fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await inside(page);
  assert.deepEqual(await context.cookies(), []);
  const other = await context.newPage();
  guard.watch(other);
  await other.goto(world.origin);
  await outside(other);
  guard.expect(/^401 /);
  await world.api("DELETE", `/tokens/${row.id}`);
  await outside(page);
}));

test("tab goes on where another tab of its browser has begun another session, as another user anew", () => visit(world, { user: "ada", at: "#/timers" }, async (page, guard, context) => {
  world.addUser("bob");
  guard.expect(/^403 /);
  const submitted = async () => await page.evaluate(() => document.querySelector("[role=alert]")?.textContent ?? "");
  const make = async (label) => {
    await page.getByRole("button", { name: "New timer" }).click();
    const form = page.getByRole("dialog");
    await form.getByRole("textbox", { name: /^Cron line/ }).fill("30 2 * * *");
    await form.getByLabel(/^From/).fill("@lab:/x");
    await form.getByLabel("To", { exact: true }).fill("@archive:/x");
    await form.getByLabel("Label").fill(label);
    await form.getByRole("button", { name: "Make timer" }).click();
  };
  // By no tab: nobody tells this one.
  const other = (user) => context.request.post(`${world.origin}/api/v1/login`, { data: { user, password: PASSWORD, cookie: true } });
  assert.equal((await other("ada")).status(), 200);
  await make("by ada");
  await page.getByRole("link", { name: "by ada", exact: true }).waitFor();
  assert.equal(await submitted(), "");
  assert.equal((await other("bob")).status(), 200);
  await make("as ada still");
  await until("the page is another's", async () => /bob\s+user/.test(await page.locator("header").innerText().catch(() => "")));
  await page.getByText("No timers yet").waitFor();
  // A tab that logs in tells the others.
  const tab = await context.newPage();
  guard.watch(tab);
  await tab.goto(world.link("ada"));
  await inside(tab);
  await until("the page is another's", async () => /ada\s+user/.test(await page.locator("header").innerText().catch(() => "")));
}));

test("logout ends the session and its cookie opens nothing", () => visit(world, { user: "ada" }, async (page, _, context) => {
  const cookies = await context.cookies();
  assert.equal(cookies.length, 1);
  assert.ok(cookies[0].httpOnly && cookies[0].secure && cookies[0].sameSite === "Strict", JSON.stringify(cookies));
  assert.equal(await statusOf(cookies), 200);
  await page.getByRole("button", { name: "Log out" }).click();
  await outside(page);
  assert.equal(await statusOf(cookies), 401);
}));

test("sessions that an administrator ends are dead at once and their pages say so", () => visit(world, { user: "ada" }, async (page, guard, context) => {
  const cookies = await context.cookies();
  guard.expect(/^401 /);
  await visit(world, { user: "local", at: "#/access" }, async (admin) => {
    await admin.getByRole("button", { name: "End sessions of ada" }).click();
    await admin.getByRole("dialog").getByRole("button", { name: "End sessions" }).click();
    await until("the cookie is dead", async () => await statusOf(cookies) === 401);
  });
  await page.getByText("Your session has ended").waitFor();
  await outside(page);
}));
