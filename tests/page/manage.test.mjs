// What a service is looked after with: its endpoints, users, tokens, timers, and what was moved.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { PASSWORD, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => { world = await World.start(); world.addUser("ada"); world.addUser("vera", "viewer"); });
after(async () => { await endBrowser(); world?.endNow(); });

const MIB = 1 << 20;
const button = (page, name) => page.getByRole("button", { name, exact: true });

test("endpoint is tested, its limits and rules are changed, and tasks keep to them", () => visit(world, { user: "local", at: "#/endpoints" }, async (page, guard) => {
  const card = page.getByRole("region", { name: "Endpoint lab" });
  await button(page, "Test lab").click();
  await card.getByText("The test passed").waitFor();
  await card.getByText(/\d+ checks passed/).click();
  await card.getByText("its root is a directory").waitFor();
  await accessible(page, "endpoints, tested");
  await button(page, "Edit lab").click();
  const form = page.getByRole("dialog");
  await form.getByLabel("MiB/s of a transfer").fill("2.5");
  await form.getByLabel("Transfers at once").fill("3");
  // A line that is not understood is named, and nothing is saved.
  const hours = form.getByLabel(/^Hours with another rate/);
  for (const line of ["9-17 = 50", "08:00-18:00 = 0,5", "8:00-18:00 = 50 MB/s"]) {
    await hours.fill(`22:00-06:00 = 0\n${line}`);
    await button(form, "Save").click();
    await form.getByRole("alert").filter({ hasText: line }).waitFor();
  }
  await hours.fill("22:00-06:00 = 0\n\n 8:00 - 9:30 = 1.5 MiB/s ");
  await form.getByLabel("Verify").selectOption("disk");
  await form.getByLabel(/^Used by/).fill("ada");
  await accessible(page, "an endpoint is edited");
  await button(form, "Save").click();
  await card.getByText("3 transfers at once, 2.5 MiB/s").waitFor();
  await card.getByText("22:00 to 06:00: nothing begins").waitFor();
  const { limits, defaults, users, description, version } = await world.api("GET", "/endpoints/lab");
  assert.deepEqual({ limits, verify: defaults.verify, users, description }, { limits: { transfers: 3, streams: null, rate: 2.5 * MIB, timetable: [{ from: "22:00", until: "06:00", rate: 0 }, { from: "08:00", until: "09:30", rate: 1.5 * MIB }] }, verify: "disk", users: ["ada"], description: "The lab of the tests" });
  // Whoever has an older version before them is told, and changes nothing.
  await button(page, "Edit lab").click();
  await world.api("PATCH", "/endpoints/lab", { description: "changed meanwhile", limits: {} });
  await page.getByText("changed meanwhile").waitFor();
  guard.expect(/^412 /);
  await button(form, "Save").click();
  await form.getByRole("alert").waitFor();
  const now = await world.api("GET", "/endpoints/lab");
  assert.deepEqual([now.description, now.version], ["changed meanwhile", version + 1]);
}));

test("endpoint is drained with a reason, which whoever waits is told, and takes tasks again", () => visit(world, { user: "local", at: "#/endpoints" }, async (page) => {
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "@archive", exact: true }) });
  await page.getByRole("link", { name: "@archive", exact: true }).click();
  await button(page, "Edit archive").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^Drained, because/).fill("new disks until Thursday");
  await button(form, "Save").click();
  await row.getByText("new disks until Thursday").waitFor();
  await accessible(page, "an endpoint that is drained");
  world.write("lab/drained/a", "a");
  const { id } = await world.submit("@lab:/drained/", "@archive:/drained/", { label: "waits for disks" });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await page.getByText(/takes no new transfers: new disks until Thursday/).first().waitFor();
  await page.goto(`${world.origin}/#/endpoints/archive`);
  // Another change leaves it drained.
  await button(page, "Edit archive").click();
  await form.getByLabel("Description").fill("far away");
  await button(form, "Save").click();
  await row.getByText("far away").waitFor();
  await row.getByText("new disks until Thursday").waitFor();
  await button(page, "Edit archive").click();
  await form.getByLabel(/^Drained, because/).fill("");
  await button(form, "Save").click();
  await world.reached(id, "SUCCEEDED");
  await row.getByText("new disks until Thursday").waitFor({ state: "detached" });
}));

test("endpoint that cannot be used says what is wrong and what to try", () => visit(world, { user: "local", at: "#/endpoints" }, async (page) => {
  await button(page, "Add endpoint").click();
  const form = page.getByRole("dialog"), at = page.getByRole("textbox", { name: /^Where it is/ });
  // What was pasted is told in words before anything is added; what cannot be called is refused there.
  await at.fill("listening on [::]:7420");
  await form.getByText("where the node listens").waitFor();
  assert.ok(await button(form, "Add and test").isDisabled());
  const pin = "ab".repeat(32);
  await at.fill(`to copy from here: carrack --token-file /t 'carrack://box-7.example.org:7421/PATH#sha256:${pin}' .`);
  await form.getByText("The node box-7.example.org, port 7421, its whole root, key sha256:abababababab…").waitFor();
  assert.equal(await form.getByLabel("Name", { exact: true }).inputValue(), "box-7");
  await accessible(page, "an endpoint is added");
  await at.fill(`carrack://${world.nodes.get("lab")}/`);
  await form.getByLabel("Name", { exact: true }).fill("closed");
  await button(form, "Add and test").click();
  await form.getByText(/The test found \d+ fault/).waitFor();
  await form.getByText("carrack endpoint edit closed --token-file").first().waitFor();
  await accessible(page, "an endpoint that was added and does not work");
  await button(form, "Remove it again").click();
  await form.waitFor({ state: "detached" });
  await until("it is removed", async () => !(await world.api("GET", "/endpoints")).items.some(({ name }) => name === "closed"));
  // The same line with the node's token works: it is tested, and open in the list.
  await button(page, "Add endpoint").click();
  await at.fill(`carrack://${world.nodes.get("lab")}/`);
  await form.getByLabel("Name", { exact: true }).fill("pasted");
  await form.getByLabel(/^Token/).fill(fs.readFileSync(world.path("lab.token"), "utf8"));
  await button(form, "Add and test").click();
  await form.getByText("The test passed").waitFor();
  await button(form, "Done").click();
  await page.getByRole("region", { name: "Endpoint pasted" }).waitFor();
  await button(page, "Remove pasted").click();
  await button(form, "Remove").click();
  await page.getByRole("region", { name: "Endpoint pasted" }).waitFor({ state: "detached" });
}));

test("user is added, let in by a link, made a viewer and shut out", () => visit(world, { user: "local", at: "#/access" }, async (page) => {
  await button(page, "Add user").click();
  await page.getByRole("dialog").getByLabel("Name").fill("eve");
  await button(page.getByRole("dialog"), "Add").click();
  await button(page, "Login link for eve").click();
  const link = await page.getByRole("status").locator("code").innerText();
  assert.ok(link.startsWith(`${world.origin}/#login=`), link);
  await visit(world, {}, async (eve, guard) => {
    await eve.goto(link);
    await button(eve, "Log out").waitFor();
    // Whoever may do less from now on logs in again; what was being listed ends.
    guard.expect(/^401 /, /^(403|502) .*\/listings/);
    await button(page, "Edit eve").click();
    await page.getByRole("dialog").getByLabel("Role").selectOption("viewer");
    await button(page.getByRole("dialog"), "Save").click();
    await page.getByRole("row").filter({ hasText: "eve" }).filter({ hasText: "viewer" }).waitFor();
    await eve.getByText("Your session has ended").waitFor();
    await eve.goto(world.link("eve"));
    await eve.reload();
    await button(eve, "Log out").waitFor();
    await eve.goto(`${world.origin}/#/tasks`);
    await eve.getByText("None of your own").waitFor();
    assert.equal(await button(eve, "New task").count(), 0);
    await button(page, "Edit eve").click();
    await page.getByRole("dialog").getByRole("checkbox").uncheck();
    await button(page.getByRole("dialog"), "Save").click();
    await page.getByRole("row").filter({ hasText: "eve" }).getByText("Disabled").waitFor();
    await eve.getByText("Your session has ended").waitFor();
  });
}));

test("session that is renewed while something is read goes on", () => visit(world, {}, async (page, guard) => {
  world.addUser("nell");
  await page.goto(`${world.origin}/#/access`);
  await page.getByLabel("User").fill("nell");
  await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
  await button(page, "Log in").click();
  await button(page, "Change password").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^Current password/).fill(PASSWORD);
  await form.getByLabel(/^New password/).fill("another horse battery");
  guard.expect(/^401 /);
  // The answer comes late: meanwhile the old session is known no more, and the page asks in it.
  const refusal = { status: 401, code: "unauthenticated", detail: "nobody is known by it", hints: [] };
  await page.getByText("Live", { exact: true }).waitFor();
  await page.route("**/api/v1/password", async (route) => {
    const answer = await route.fetch(), refused = page.waitForResponse((other) => other.status() === 401);
    await page.route(/\/api\/v1\/endpoints\?/, (asked) => asked.fulfill({ status: 401, contentType: "application/problem+json", body: JSON.stringify(refusal) }), { times: 1 });
    await world.api("PATCH", "/endpoints/lab", { description: "changed meanwhile" });
    await refused;
    await route.fulfill({ response: answer });
  });
  await button(form, "Change").click();
  await form.waitFor({ state: "detached" });
  await button(page, "New token").click();
  await form.getByLabel("Label").fill("for a script");
  await button(form, "Make token").click();
  await page.getByText("shown this once").waitFor();
}));

test("password is changed in the page and the old one is dead", () => visit(world, {}, async (page, guard) => {
  const type = async (password) => {
    await page.getByLabel("User").fill("ada");
    await page.getByLabel("Password", { exact: true }).fill(password);
    await button(page, "Log in").click();
  };
  await page.goto(`${world.origin}/#/access`);
  await type(PASSWORD);
  await button(page, "Log out").waitFor();
  await page.goto(`${world.origin}/#/access`);
  await button(page, "Change password").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^Current password/).fill(PASSWORD);
  await form.getByLabel(/^New password/).fill("another horse battery");
  await button(form, "Change").click();
  await form.waitFor({ state: "detached" });
  // This session goes on, and may still change things.
  await button(page, "New token").click();
  await form.getByLabel("Label").fill("for a script");
  await button(form, "Make token").click();
  await page.getByText("shown this once").waitFor();
  const token = await page.getByRole("status").locator("code").innerText();
  assert.equal(await world.status("/api/v1/tasks", { authorization: `Bearer ${token}` }), 200);
  await button(page, "Revoke for a script of ada").click();
  await button(form, "Revoke").click();
  await page.getByText("No tokens.").waitFor();
  assert.equal(await world.status("/api/v1/tasks", { authorization: `Bearer ${token}` }), 401);
  await button(page, "Log out").click();
  guard.expect(/^401 .*\/login$/);
  await type(PASSWORD);
  await page.getByRole("alert").filter({ hasText: "do not fit" }).waitFor();
  await type("another horse battery");
  await button(page, "Log out").waitFor();
}));

test("timer has a page with its runs and the command that makes it", () => visit(world, { user: "local", at: "#/timers" }, async (page) => {
  world.write("lab/t/a.dat", randomBytes(10));
  await button(page, "New timer").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^When/).selectOption("every");
  await form.getByRole("spinbutton", { name: "Every" }).fill("6");
  await form.getByText("End, and overlapping runs").click();
  await form.getByLabel("Runs in all").fill("9");
  await form.getByLabel("If the task before still runs").selectOption("wait");
  await form.getByLabel(/^From/).fill("@lab:/t/");
  await form.getByLabel("To", { exact: true }).fill("@archive:/t/");
  await form.getByLabel("Label").fill("six hours");
  const line = "carrack timer create --every 21600s --runs 9 --overlap wait --label 'six hours' @lab:/t/ @archive:/t/";
  assert.equal(await form.locator(".command code").innerText(), line);
  await button(form, "Make timer").click();
  await page.getByRole("link", { name: "six hours", exact: true }).click();
  const runs = page.getByRole("region", { name: "Table of runs" });
  await runs.getByText("Succeeded").waitFor();
  await page.getByText("every 6 h", { exact: true }).waitFor();
  assert.ok((await page.getByRole("region", { name: "At the command line" }).locator("code").innerText()).startsWith("carrack timer create --every 21600s --runs 9 --overlap wait"));
  await accessible(page, "a timer");
  // The command makes the same timer.
  const words = (await page.getByRole("region", { name: "At the command line" }).locator("code").innerText()).match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
  const id = world.run(...words.slice(1));
  const [one, other] = await Promise.all([world.api("GET", `/timers/${id}`), page.url().split("/").at(-1)].map(async (what) => await what));
  const same = await world.api("GET", `/timers/${other}`);
  assert.deepEqual([one.schedule.every_seconds, one.schedule.runs, one.schedule.overlap, one.task.pairs], [same.schedule.every_seconds, same.schedule.runs, same.schedule.overlap, same.task.pairs]);
  await page.getByRole("link", { name: "All in the list of tasks" }).click();
  await page.getByRole("grid", { name: "Tasks" }).getByText("six hours").waitFor();
}));

test("filter of tasks is saved, found again after a reload, and forgotten", () => visit(world, { user: "local" }, async (page, guard, context) => {
  const other = await context.newPage();
  guard.watch(other);
  await other.goto(`${world.origin}/#/tasks?state=done`);
  await button(other, "Save this filter").waitFor();
  await button(page, "Trouble").click();
  await page.getByLabel("Submitted").selectOption("7");
  await button(page, "Save this filter").click();
  await page.getByRole("dialog").getByLabel("Name").fill("what to look at");
  await button(page.getByRole("dialog"), "Save").click();
  await button(page, "All").click();
  await page.reload();
  await page.getByLabel("Saved filters").selectOption("what to look at");
  await until("the filter holds", () => page.url().includes("state=trouble") && page.url().includes("days=7"));
  assert.equal(await button(page, "Trouble").getAttribute("aria-pressed"), "true");
  await accessible(page, "tasks, by a saved filter");
  // Another tab, which was there before, adds its own.
  await button(other, "Save this filter").click();
  await other.getByRole("dialog").getByLabel("Name").fill("what is done");
  await button(other.getByRole("dialog"), "Save").click();
  await page.getByLabel("Saved filters").getByRole("option", { name: "what is done" }).waitFor({ state: "attached" });
  await button(page, "Forget “what to look at”").click();
  await other.getByLabel("Saved filters").getByRole("option", { name: "what to look at" }).waitFor({ state: "detached" });
  await button(other, "Forget “what is done”").click();
  await page.getByLabel("Saved filters").waitFor({ state: "detached" });
}));

test("audit tells who did what and who was refused, and is searched", () => visit(world, { user: "local", at: "#/access" }, async (page, guard, context) => {
  await visit(world, {}, async (stranger, theirs) => {
    theirs.expect(/^401 .*\/login$/);
    await stranger.goto(world.origin);
    await stranger.getByLabel("User").fill("mallory");
    await stranger.getByLabel("Password", { exact: true }).fill("wrong horse battery");
    await button(stranger, "Log in").click();
    await stranger.getByRole("alert").waitFor();
  });
  await world.api("PATCH", "/endpoints/archive", { description: "noted by the audit" });
  await page.reload();
  const audit = page.getByRole("grid", { name: "Audit" });
  await audit.getByRole("row").filter({ hasText: "changed an endpoint" }).filter({ hasText: "archive" }).filter({ hasText: "done" }).first().waitFor();
  await page.getByRole("searchbox", { name: "Search the audit" }).fill("mallory");
  await until("one line is left", async () => await audit.getByRole("row").count() === 2);
  assert.match(await audit.getByRole("row").nth(1).innerText(), /mallory[^]*logged in[^]*refused: nobody was known by it/);
  await accessible(page, "the audit");
  // What could not be read while the network was away is read when it is back.
  const search = page.getByRole("searchbox", { name: "Search the audit" }), trouble = page.getByRole("region", { name: "Audit" }).getByRole("alert");
  guard.expect(/^net::ERR_INTERNET_DISCONNECTED /);
  await context.setOffline(true);
  const lost = () => page.waitForEvent("requestfailed", (request) => request.url().includes("/audit?"));
  let failed = lost();
  await search.fill("endpoints");
  await failed;
  failed = lost();
  await trouble.getByRole("button", { name: "Try again" }).click();
  await failed;
  await context.setOffline(false);
  await audit.getByRole("row").filter({ hasText: "changed an endpoint" }).first().waitFor();
  await trouble.waitFor({ state: "detached" });
  guard.expect(/^403 /);
  await visit(world, { user: "ada", at: "#/access" }, async (ada) => {
    await ada.getByRole("heading", { level: 1, name: "Access" }).waitFor();
    assert.equal(await ada.getByRole("grid", { name: "Audit" }).count(), 0);
  });
}));

test("tasks are found by a path, sorted by the server, and the far end of a long list stands at once", () => visit(world, { user: "local" }, async (page) => {
  // They would run for hours: all but the first few wait.
  for (let number = 0; number < 450; number += 1) await world.submit("random:1T", "null:", { label: `many ${String(number).padStart(3, "0")}`, options: { rate_limit: 1024 } });
  const search = page.getByRole("searchbox"), grid = page.getByRole("grid", { name: "Tasks" });
  await search.fill("many ");
  await page.getByText("450 tasks").waitFor();
  assert.equal(await grid.getAttribute("aria-rowcount"), "451");
  await grid.focus();
  await page.keyboard.press("End");
  await grid.getByRole("row").filter({ hasText: "many 000" }).waitFor();
  // However wide the window is, each head stands above its column, on one line.
  for (const width of [1600, 1280, 800, 390]) {
    await page.setViewportSize({ width, height: 800 });
    const heads = await grid.getByRole("columnheader").evaluateAll((all) => all.filter((one) => one.getClientRects().length > 0).map((one) => Math.round(one.getBoundingClientRect().bottom)));
    const cells = await grid.getByRole("row").nth(5).getByRole("gridcell").evaluateAll((all) => all.filter((one) => one.getClientRects().length > 0).length);
    assert.equal(heads.length, cells, `${width} pixels`);
    assert.ok(Math.max(...heads) - Math.min(...heads) < 12, `${width} pixels: ${heads}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("columnheader", { name: "State" }).click();
  await until("it is sorted", async () => await page.getByRole("columnheader", { name: "State" }).getAttribute("aria-sort") === "ascending");
  await world.submit("@lab:/by-path/", "@archive:/x/", { label: "one of its own" });
  await search.fill("/BY-PATH/");
  await grid.getByRole("row").filter({ hasText: "one of its own" }).waitFor();
  await page.getByText("1 task", { exact: true }).waitFor();
  await accessible(page, "tasks, found by a path");
  await world.api("POST", "/tasks/cancel");
}));

test("overview counts what was moved, what failed and why, and each pair of endpoints", () => visit(world, { user: "local", at: "#/overview" }, async (page) => {
  world.write("lab/o/a.dat", randomBytes(MIB));
  const { id } = await world.submit("@lab:/o/", "@archive:/o/", { label: "for the overview" });
  const failed = await world.submit("@lab:/absent", "@archive:/absent", { label: "cannot be" });
  await world.reached(id, "SUCCEEDED");
  await world.reached(failed.id, "FAILED");
  const { items } = await world.api("GET", "/tasks?endpoint=lab&state=SUCCEEDED,PARTIAL,FAILED&limit=1000");
  const good = items.filter((task) => task.state === "SUCCEEDED").length;
  await page.reload();
  const cell = page.getByRole("region", { name: "Table of pairs" }).getByRole("row").filter({ hasText: "@lab" });
  await cell.getByText(`${Math.floor((good / items.length) * 100)} %`).waitFor();
  await cell.getByText(`${items.length} tasks, 1.0 MiB`).waitFor();
  await page.getByRole("region", { name: "Table of causes" }).getByRole("row").filter({ hasText: "not-found" }).filter({ hasText: "source" }).waitFor();
  await page.getByRole("region", { name: "Throughput and queue" }).getByRole("button", { name: "As a table" }).click();
  await page.getByRole("region", { name: "Throughput and queue, as a table" }).getByRole("row").nth(24).waitFor();
  await accessible(page, "the overview, as tables");
  for (const span of ["7 days", "30 days"]) {
    await button(page, span).click();
    await cell.getByText(`${items.length} tasks, 1.0 MiB`).waitFor();
  }
}));

test("overview names where faults come in bursts, and says so where no place stands out", () => visit(world, { user: "local", at: "#/overview" }, async (page) => {
  const sheet = page.getByRole("region", { name: "Bursts of faults" });
  await sheet.getByText("No place stands out").waitFor();
  const from = "2026-11-27T01:10:00Z", to = "2026-11-27T09:42:00Z";
  const burst = { place: { kind: "disk", host: "nas2", disk: "3fa9c1d000112233", path: "/data/raw\u202e" }, alike: [{ kind: "host", host: "nas2" }], endpoints: ["lab"], from, to,
    tasks: 40, faulty: 31, tasks_elsewhere: 9960, faulty_elsewhere: 12, codes: [{ code: "digest-mismatch", tasks: 31 }], chance: 1e-40, examples: ["0193-abc123"] };
  await page.route(/\/api\/v1\/faults/, (route) => route.fulfill({ json: { from, to, tasks: 10000, faulty: 43, complete: true, comparisons: 9, codes: [], bursts: [burst], places: [] } }));
  await page.reload();
  await sheet.getByText("file system 3fa9c1d0 of host nas2").waitFor();
  await sheet.getByText("31 of 40 tasks").waitFor();
  await sheet.getByText("elsewhere 12 of 9,960 tasks had a fault").waitFor();
  await sheet.getByText("The same tasks were at: host nas2").waitFor();
  await accessible(page, "the overview, with a burst of faults");
  await sheet.getByRole("link", { name: "@lab" }).click();
  await page.waitForURL(/#\/endpoints\/lab/);
}));

test("overview's curves end where its figures stand, and its last bar is drawn whole", () => visit(world, { user: "local" }, async (page) => {
  const endless = (label) => world.submit("random:1T", "null:", { label, options: { rate_limit: 64 * MIB } });
  const [moves, pauses] = [await endless("moves on"), await endless("is paused")];
  await world.reached(moves.id, "ACTIVE");
  await world.reached(pauses.id, "ACTIVE");
  await world.api("POST", `/tasks/${pauses.id}/pause`);
  await world.reached(pauses.id, "PAUSED");
  await page.goto(`${world.origin}/#/overview`);
  const figure = async (name) => Number(await page.locator(".totals > div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd").innerText());
  const plot = page.getByRole("region", { name: "Throughput and queue", exact: true });
  await until("the task that runs moves something", async () => (await world.api("GET", `/tasks/${moves.id}`)).progress.bytes_moved > 0);
  await page.reload();
  await plot.locator("canvas").nth(1).waitFor();
  // All was moved in the last hour: there is one bar, at the edge.
  const wide = () => plot.locator("canvas").first().evaluate((canvas) => {
    const { width, height } = canvas, ink = getComputedStyle(document.documentElement).getPropertyValue("--series-1").trim();
    const paper = document.createElement("canvas").getContext("2d");
    paper.fillStyle = ink; paper.fillRect(0, 0, 1, 1);
    const [red, green, blue] = paper.getImageData(0, 0, 1, 1).data, { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const columns = new Set();
    for (let at = 0; at < data.length; at += 4) if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) columns.add((at / 4) % width);
    return { columns: columns.size, step: (width - (84 + 44) * devicePixelRatio) / 24 };
  });
  const { columns, step } = await until("the bar is there", async () => { const found = await wide(); return found.columns > 0 && found; });
  assert.ok(columns > 0.6 * step, `${columns} pixels of a step of ${step}`);
  await plot.getByRole("button", { name: "As a table" }).click();
  const newest = plot.getByRole("table").getByRole("row").nth(1).getByRole("cell");
  await until("the curves end at the figures", async () => Number(await newest.nth(2).innerText()) === await figure("Running") && Number(await newest.nth(3).innerText()) === await figure("Waiting"));
  assert.deepEqual([await figure("Running"), await figure("Waiting")], [1, 1]);
  for (const { id } of [moves, pauses]) await world.api("POST", `/tasks/${id}/cancel`);
}));

test("endpoint that nothing reaches is down, and the other end of its tasks is not, also after a restart", () => visit(world, { user: "local", at: "#/endpoints" }, async (page, guard) => {
  // Nothing listens there.
  await world.api("POST", "/endpoints", { name: "dead", location: { kind: "node", host: "127.0.0.1", port: 1, path: "/", fingerprint: null } });
  const row = (name) => page.getByRole("row").filter({ has: page.getByRole("link", { name: `@${name}`, exact: true }) }), chip = (name, word) => row(name).locator(".chip", { hasText: word }).waitFor();
  const card = (name) => page.getByRole("region", { name: `Endpoint ${name}` });
  await chip("dead", "Idle");
  await row("dead").getByRole("link", { name: "@dead" }).click();
  await card("dead").getByText("never so far").waitFor();
  world.write("lab/h/a.dat", "a");
  const waits = await world.submit("@lab:/h/", "@dead:/h/", { label: "for a dead node" });
  await chip("dead", "Down");
  await row("dead").getByText("connect-failed").waitFor();
  await page.getByText(/^1 of \d+ with trouble$/).waitFor();
  // Those with trouble stand first, and in every view the navigation says that there are such.
  assert.match(await page.getByRole("table").getByRole("row").nth(1).innerText(), /^@dead/);
  assert.match(await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: /^Endpoints/ }).innerText(), /1/);
  assert.equal(await row("dead").getByRole("link", { name: "1 open task of dead" }).getAttribute("href"), "#/tasks?state=open&endpoint=dead");
  assert.equal(await card("dead").getByRole("link", { name: "its task" }).getAttribute("href"), `#/tasks/${waits.id}`);
  // A source that is not there is the task's mistake, and shows that the endpoint answers.
  const absent = await world.submit("@lab:/absent", "@archive:/absent", { label: "is not there" });
  await world.reached(absent.id, "FAILED");
  const { health } = await world.api("GET", "/endpoints/lab");
  assert.deepEqual([health.state, health.last_fault], ["ok", null], JSON.stringify(health));
  await chip("lab", "OK");
  const listed = world.run("endpoint", "list");
  assert.match(listed, /^dead +down /m);
  assert.match(listed, /^lab +ok /m);
  assert.match(world.run("endpoint", "show", "dead"), /health: down\n +last reached: never\n(.*\n)* +last fault: .*, connect-failed: .*\n/);
  await accessible(page, "endpoints, one of them down");
  await button(page, "Test archive").click();
  await row("archive").getByText("passed").waitFor();
  guard.expect(/./);
  await world.kill();
  await world.serve();
  await page.reload();
  await row("archive").getByText("passed").waitFor();
  await chip("dead", "Down");
  await page.goto(`${world.origin}/#/node/archive`);
  await page.getByRole("region", { name: "Test of archive" }).getByText("The test passed").waitFor();
  await world.api("POST", `/tasks/${waits.id}/cancel`);
  await world.reached(waits.id, "CANCELLED");
  await world.api("DELETE", "/endpoints/dead");
}));

test("node shows what runs, how full its storage is, and what the tests of its endpoints find", () => visit(world, { user: "local", at: "#/endpoints" }, async (page) => {
  fs.mkdirSync(world.path("kept"));
  await world.api("POST", "/endpoints", { name: "kept", location: { kind: "local", root: world.path("kept") } });
  await world.api("POST", "/endpoints", { name: "gone", location: { kind: "local", root: world.path("gone") } });
  const { id } = await world.submit("random:1T", "null:", { label: "moves now", options: { rate_limit: MIB } });
  await world.reached(id, "ACTIVE");
  await page.getByRole("link", { name: "Node", exact: true }).click();
  const running = page.getByRole("region", { name: "Table of running transfers" }), row = running.getByRole("row").filter({ hasText: "moves now" });
  await row.getByText(/^[1-9][\d.]* [KM]iB\/s$/).waitFor();
  // Beside the bar stand the numbers of the file system.
  const { bsize, blocks, bavail } = fs.statfsSync(world.path("kept"));
  const storage = page.getByRole("region", { name: "Table of storage" }), kept = storage.getByRole("row").filter({ hasText: "@kept" });
  const used = Number(await kept.getByRole("progressbar").getAttribute("aria-valuenow"));
  assert.ok(Math.abs(used - (1 - bavail / blocks) * 100) < 2, `${used}: ${bavail} of ${blocks} blocks are free`);
  await kept.getByText(`${used} %`).waitFor();
  assert.match(await kept.innerText(), new RegExp(`\\t${(bsize * blocks / 2 ** 30).toFixed(1)} GiB\\t`));
  await storage.getByRole("row").filter({ hasText: "@gone" }).getByText(/^Not known: No such file/).waitFor();
  assert.equal(await storage.getByRole("row").filter({ hasText: "@lab" }).count(), 0, "a node of its own is no storage of this host");
  // A test that is made here is kept: whoever comes later sees it, with its time and the line that mends the fault.
  await button(page, "Test gone").click();
  const card = page.getByRole("region", { name: "Test of gone" });
  await card.getByText(`mkdir -p ${world.path("gone")}`).waitFor();
  await accessible(page, "the node, with a transfer and a fault");
  await page.getByRole("region", { name: "Throughput of the last hour" }).getByRole("button", { name: "As a table" }).click();
  await page.getByRole("region", { name: "Throughput of the last hour, as a table" }).getByRole("row").nth(60).waitFor();
  await page.goto(`${world.origin}/#/endpoints/gone`);
  await page.getByRole("link", { name: "Storage and findings of gone" }).click();
  await card.getByText(/The test found 1 fault/).waitFor();
  await card.getByText(/^Tested /).waitFor();
  assert.equal(await page.getByRole("region", { name: /^Test of / }).count(), 1);
  await page.goto(`${world.origin}/#/node`);
  await row.getByRole("link").click();
  await page.getByRole("heading", { level: 1, name: "moves now" }).waitFor();
  await world.api("POST", `/tasks/${id}/cancel`);
  for (const name of ["kept", "gone"]) await world.api("DELETE", `/endpoints/${name}`);
}));

test("storage of an endpoint is measured by a button, shown as a heat map, and kept", () => visit(world, { user: "local", at: "#/node" }, async (page, guard) => {
  const names = ["measured", "shut"];
  for (const name of names) {
    fs.mkdirSync(world.path(name));
    await world.api("POST", "/endpoints", { name, location: { kind: "local", root: world.path(name) }, read_only: name === "shut", users: ["ada"] });
  }
  const card = page.getByRole("region", { name: "Measurements of measured" }), shut = page.getByRole("region", { name: "Measurements of shut" });
  await card.getByText("No measurements are kept.").waitFor();
  // What may not be written is not measured, and it says what to try.
  guard.expect(/^403 .*\/bench/);
  await button(page, "Measure shut").click();
  await shut.getByRole("alert").getByText("the endpoint is read-only: its owner can change that").waitFor();
  // Whoever looks at it meanwhile sees that it began.
  await visit(world, { user: "local", at: "#/node/measured" }, async (other) => {
    const theirs = other.getByRole("region", { name: "Measurements of measured" });
    await theirs.getByText("No measurements are kept.").waitFor();
    await button(page, "Measure measured").click();
    await theirs.getByRole("progressbar", { name: "Measuring of measured" }).waitFor();
  });
  await card.getByRole("progressbar", { name: "Measuring of measured" }).waitFor();
  assert.ok(await card.getByRole("button", { name: "Measure measured" }).isDisabled());
  await until("it is measured", async () => (await world.api("GET", "/endpoints/measured/bench")).state === "finished", 120_000);
  const ladder = page.getByRole("region", { name: "Ladder of measured" });
  await ladder.waitFor();
  await card.getByRole("progressbar", { name: "Measuring of measured" }).waitFor({ state: "detached" });
  const { results } = await world.api("GET", "/endpoints/measured/bench");
  const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }, disk = results.find((result) => result.kind === "disk");
  const check = async () => {
    for (const name of ["write", "read"]) {
      const rows = page.getByRole("region", { name: `Heat map of measured: ${name}` }).getByRole("row");
      assert.deepEqual(await rows.first().getByRole("columnheader").allInnerTexts(), ["Block", "Depth 1", "Depth 4", "Depth 16"]);
      const mine = disk.rows.filter((row) => row.name === name), top = Math.max(...mine.map((row) => row.values.bytes_per_second));
      for (const [at, [size, label]] of [[65536, "64.0 KiB"], [262144, "256.0 KiB"], [1048576, "1.0 MiB"], [4194304, "4.0 MiB"]].entries()) {
        assert.equal(await rows.nth(at + 1).getByRole("rowheader").innerText(), label);
        for (const [column, depth] of [1, 4, 16].entries()) {
          const cell = rows.nth(at + 1).getByRole("cell").nth(column), value = mine.find(({ conditions }) => Number(conditions.record_bytes) === size && Number(conditions.depth) === depth).values.bytes_per_second;
          const [, number, unit] = /^([\d.]+) (\w+)\/s/.exec(await cell.innerText());
          assert.ok(Math.abs(Number(number) * UNITS[unit] / value - 1) < 0.06, `${name} ${label} ${depth}: ${number} ${unit} is not ${value}`);
          assert.match(await cell.getAttribute("class"), new RegExp(`heat-${Math.min(6, Math.floor(value / top * 7))}$`));
        }
      }
    }
    const copies = results.find((result) => result.kind === "ladder").rows;
    assert.equal(await ladder.getByRole("progressbar").count(), copies.length);
    const fastest = copies.reduce((one, other) => one.values.bytes_per_second > other.values.bytes_per_second ? one : other);
    assert.equal(await ladder.getByRole("progressbar", { name: `${fastest.name} of measured`, exact: true }).getAttribute("aria-valuenow"), "100");
    assert.equal(await card.getByText(`by version ${disk.program}`).count(), 3);
    await page.getByRole("region", { name: "Processors of measured" }).getByRole("row").filter({ hasText: "blake3" }).getByText(/B\/s$/).first().waitFor();
  };
  await check();
  await accessible(page, "the node, with measurements");
  await page.reload();
  await ladder.waitFor();
  await check();
  await page.setViewportSize({ width: 390, height: 800 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, "measurements are wider than the window");
  // Whoever may only use it sees the numbers and has no button; so it is by night.
  await visit(world, { user: "ada", at: "#/node/measured", dark: true }, async (ada) => {
    await ada.getByRole("region", { name: "Ladder of measured" }).waitFor();
    assert.equal(await button(ada, "Measure measured").count(), 0);
    await accessible(ada, "measurements, dark");
  });
  for (const name of names) await world.api("DELETE", `/endpoints/${name}`);
}));

test("part that cannot be measured is named with what to try, and a viewer sees all of it without a button", () => visit(world, { user: "local", at: "#/node" }, async (page) => {
  fs.mkdirSync(world.path("lost"));
  await world.api("POST", "/endpoints", { name: "lost", location: { kind: "local", root: world.path("lost") }, users: ["*"] });
  fs.rmdirSync(world.path("lost"));
  await button(page, "Measure lost").click();
  await until("it is measured", async () => (await world.api("GET", "/endpoints/lost/bench")).state === "failed", 120_000);
  const { failures } = await world.api("GET", "/endpoints/lost/bench");
  assert.deepEqual(failures.map(({ kind }) => kind), ["disk", "ladder"]);
  const told = async (of) => {
    const card = of.getByRole("region", { name: "Measurements of lost" });
    await card.getByRole("alert").filter({ hasText: /^Not measured: storage: .*No such file or directory/ }).waitFor();
    await card.getByRole("alert").filter({ hasText: /^Not measured: copies from memory to storage: / }).waitFor();
    await of.getByRole("region", { name: "Processors of lost" }).waitFor();
    await of.getByRole("region", { name: "Table of storage" }).getByRole("row").filter({ hasText: "@lost" }).getByText(/^Not known: No such file/).waitFor();
  };
  await told(page);
  await accessible(page, "measurements of which a part failed");
  await visit(world, { user: "vera", at: "#/node", expect: [/^403 .*\/listings$/] }, async (vera) => {
    await told(vera);
    assert.equal(await vera.getByRole("button", { name: /^(Measure|Test) / }).count(), 0);
    await accessible(vera, "the node as a viewer sees it");
  });
  await world.api("DELETE", "/endpoints/lost");
}));
