// The server dies and comes back, the network goes and comes back: the page says so, and goes on by itself.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { b3sum, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => { world = await World.start(); world.addUser("ada"); });
after(async () => { await endBrowser(); world?.endNow(); });

const MIB = 1 << 20;
/** What the browser writes to its console when the server has gone. */
const GONE = /^net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|CONNECTION_CLOSED|SOCKET_NOT_CONNECTED|HTTP2_PROTOCOL_ERROR) /;
const state = (page, word) => page.locator(".task-title .chip", { hasText: word }).waitFor();
/** What the shell says of the connection. */
const link = (page, word) => page.getByRole("status").filter({ hasText: word }).waitFor();
/** A task of some seconds between the nodes, once bytes move. */
async function begun(label) {
  const file = world.write(`lab/${label}.dat`, randomBytes(12 * MIB));
  const { id } = await world.submit(`@lab:/${label}.dat`, `@archive:/${label}.dat`, { label, options: { rate_limit: 3 * MIB } });
  await until("bytes move", async () => (await world.api("GET", `/tasks/${id}`)).progress.bytes_moved > 0);
  return { id, file };
}

test("page goes on by itself when the server was killed in the midst of a transfer", () => visit(world, { user: "local" }, async (page, guard) => {
  const { id, file } = await begun("killed");
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await state(page, "Active");
  await link(page, "Live");
  guard.expect(GONE);
  await world.kill();
  await link(page, "Connection lost");
  await state(page, "Active");
  await world.serve();
  await link(page, "Live");
  await state(page, "Succeeded");
  await page.getByRole("grid", { name: "Items" }).getByText(b3sum(file)).waitFor();
  assert.equal(b3sum(world.path("archive/killed.dat")), b3sum(file));
  assert.match(await page.getByRole("region", { name: "Progress" }).innerText(), /1 attempt/);
}));

test("task says which node it has lost, and goes on when that is back", () => visit(world, { user: "local" }, async (page) => {
  const { id, file } = await begun("gone");
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await state(page, "Active");
  await world.kill("archive");
  await page.getByRole("list", { name: /^Events/ }).getByText("@archive: ").first().waitFor();
  assert.ok(!(await page.locator("main").innerText()).includes(world.nodes.get("archive") ?? ""), "by its endpoint, not by where its host is");
  await world.serveNode("archive");
  await state(page, "Succeeded");
  assert.equal(b3sum(world.path("archive/gone.dat")), b3sum(file));
}));

test("browser that is offline says so, and shows what happened meanwhile when it is back", () => visit(world, { user: "local" }, async (page, guard, context) => {
  await link(page, "Live");
  guard.expect(/^net::ERR_INTERNET_DISCONNECTED /);
  await context.setOffline(true);
  await link(page, "Offline");
  const { id } = await world.submit("random:1M", "null:", { label: "while offline" });
  await world.reached(id, "SUCCEEDED");
  assert.equal(await page.getByText("while offline").count(), 0);
  await page.getByRole("link", { name: "Endpoints" }).click();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  await page.getByRole("link", { name: "Tasks", exact: true }).click();
  await context.setOffline(false);
  await link(page, "Live");
  await page.getByRole("grid", { name: "Tasks" }).getByRole("row").filter({ hasText: "while offline" }).filter({ hasText: "Succeeded" }).waitFor();
  // A folder that could not be read is read by itself.
  world.write("lab/offline/seen.dat", "a");
  await page.goto(`${world.origin}/#/files`);
  await page.getByRole("combobox", { name: "Endpoint of the left pane" }).selectOption("lab");
  const pane = page.getByRole("grid", { name: /^Left pane/ });
  await pane.getByText("offline", { exact: true }).waitFor();
  await context.setOffline(true);
  await link(page, "Offline");
  await pane.getByText("offline", { exact: true }).dblclick();
  await pane.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  await context.setOffline(false);
  await pane.getByText("seen.dat").waitFor();
}));

test("twenty tabs are live by one stream, and the next tab reads when the first is closed", () => visit(world, { user: "ada" }, async (page, guard, context) => {
  await link(page, "Live");
  const streams = [];
  const tabs = await Promise.all(Array.from({ length: 19 }, async () => {
    const tab = await context.newPage();
    guard.watch(tab);
    tab.on("request", (request) => { if (request.headers().accept === "text/event-stream") streams.push(tab); });
    await tab.goto(`${world.origin}/#/tasks`);
    await link(tab, "Live");
    return tab;
  }));
  assert.equal(streams.length, 0, "the first tab's stream is enough");
  await page.close();
  await until("another tab reads", () => streams.length === 1);
  world.write("lab/tabs.dat", "a");
  const body = { pairs: [{ source: "@lab:/tabs.dat", destination: "@archive:/tabs.dat" }], label: "for all tabs" };
  await tabs[0].evaluate(async (task) => {
    const { csrf } = await (await fetch("/api/v1/whoami")).json();
    await fetch("/api/v1/tasks", { method: "POST", headers: { "content-type": "application/json", "x-carrack-csrf": csrf }, body: JSON.stringify(task) });
  }, body);
  await Promise.all(tabs.map((tab) => tab.getByRole("row").filter({ hasText: "for all tabs" }).filter({ hasText: "Succeeded" }).waitFor()));
}));

/** The row of a task in the list. */
const listed = (page, label) => page.getByRole("grid", { name: "Tasks" }).getByRole("row").filter({ hasText: label });

test("tab that slept for a day, while the server was restarted, shows what happened meanwhile", () => visit(world, { user: "local" }, async (page, guard, context) => {
  await page.clock.install();
  await page.reload();
  await link(page, "Live");
  const before = await world.submit("random:1M", "null:", { label: "before the night" });
  await listed(page, "before the night").filter({ hasText: "Succeeded" }).waitFor();
  guard.expect(GONE);
  const browser = await context.newCDPSession(page);
  await browser.send("Page.setWebLifecycleState", { state: "frozen" });
  await world.kill();
  await world.serve();
  const { id } = await world.submit("random:1M", "null:", { label: "in the night" });
  await Promise.all([before.id, id].map((one) => world.reached(one, "SUCCEEDED")));
  await browser.send("Page.setWebLifecycleState", { state: "active" });
  await page.clock.fastForward("24:00:00");
  await listed(page, "in the night").filter({ hasText: "Succeeded" }).waitFor();
  await link(page, "Live");
  // And it follows what comes.
  await world.submit("random:1M", "null:", { label: "in the morning" });
  await listed(page, "in the morning").filter({ hasText: "Succeeded" }).waitFor();
}));

for (const [what, days, word] of /** @type {[string, number, RegExp]} */ ([["ahead", 400, /clock is (399|400) d \d+ h ahead/], ["behind", -400, /clock is (399|400) d \d+ h behind/]])) {
  test(`clock that is ${what} changes nothing but is told`, () => visit(world, { user: "local" }, async (page) => {
    const { id } = await world.submit("random:1M", "null:", { label: `while ${what}` });
    const task = await world.reached(id, "SUCCEEDED");
    await page.clock.install({ time: new Date(Date.now() + days * 86_400_000) });
    await page.reload();
    await page.getByText(word).waitFor();
    await page.getByLabel("Submitted").selectOption("1");
    await listed(page, `while ${what}`).filter({ hasText: "Succeeded" }).waitFor();
    // A task of today is of today.
    const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", hourCycle: "h23", timeZone: "Europe/Berlin" }).format(new Date(task.ended));
    assert.equal((await listed(page, `while ${what}`).getByRole("gridcell").last().innerText()).trim(), clock);
    await page.goto(`${world.origin}/#/overview`);
    await page.getByText(/^of [1-9]\d* tasks?$/).waitFor();
    await page.goto(`${world.origin}/#/node`);
    await page.locator("div", { has: page.getByText("Moved in the last hour", { exact: true }) }).last().getByText(/^[1-9].* MiB$/).waitFor();
    await link(page, "Live");
  }));
}

test("page tells that the service was upgraded under it, and is the newer one when it was loaded again", () => visit(world, { user: "local", at: "#/timers" }, async (page, guard) => {
  await link(page, "Live");
  // Another build, with another page: one word of one of its views is another one.
  const built = fs.readFileSync(world.program), old = world.program, at = built.indexOf('"No such timer" : "Timers"');
  assert.ok(at > 0, "the page stands in the program");
  built.write('"No such timer" : "Repeat"', at);
  // Another content has another name, wherever it is named.
  const [name] = /app-[0-9a-f]{32}\.js/.exec(built.latin1Slice()) ?? [], other = name.replace(/.\.js$/, (end) => `${end[0] === "0" ? "1" : "0"}.js`);
  for (let place = built.indexOf(name); place >= 0; place = built.indexOf(name)) built.write(other, place);
  guard.expect(GONE);
  await world.kill();
  world.program = world.path("newer");
  fs.writeFileSync(world.program, built, { mode: 0o755 });
  await world.serve();
  const notice = page.getByText("The service has a newer page than this one.");
  await notice.waitFor();
  await accessible(page, "a page that is older than its service");
  await page.getByRole("heading", { level: 1, name: "Timers" }).waitFor();
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("heading", { level: 1, name: "Repeat" }).waitFor();
  await link(page, "Live");
  assert.equal(await notice.count(), 0);
  world.program = old;
}));
