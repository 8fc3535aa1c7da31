// What an operator does each day: who waits and why, the same act on many tasks, timers that change, sessions.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { TOKEN, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
const MIB = 1 << 20;
/** Tasks that wait for an endpoint that is down. @type {string[]} */
const ids = [];
before(async () => {
  world = await World.start();
  world.addUser("ada");
  for (const name of ["a", "b", "c"]) world.write(`lab/run/${name}.dat`, randomBytes(1000));
  // Nothing listens there. Until it has been tried often enough the other tests run.
  await world.api("POST", "/endpoints", { name: "dead", location: { kind: "node", host: "127.0.0.1", port: 1, path: "/", fingerprint: null } });
  for (const name of ["one", "two", "three"]) ids.push((await world.submit("@lab:/run/", `@dead:/${name}/`, { label: `waits ${name}` })).id);
});
after(async () => { await endBrowser(); world?.endNow(); });

const button = (page, name) => page.getByRole("button", { name, exact: true });
const tasksGrid = (page) => page.getByRole("grid", { name: "Tasks" });
const rowOf = (page, label) => tasksGrid(page).getByRole("row").filter({ hasText: label });

test("all endpoints are tested by one button, and their rows say what was found", () => visit(world, { user: "local", at: "#/endpoints" }, async (page) => {
  const row = (name) => page.getByRole("row").filter({ has: page.getByRole("link", { name: `@${name}`, exact: true }) });
  await row("lab").getByText("not tested").waitFor();
  await button(page, "Test all").click();
  for (const name of ["lab", "archive"]) await row(name).getByText("passed").waitFor();
  // What the test has found of the far host's storage stands in the row.
  await row("lab").getByRole("progressbar", { name: "Space in use at @lab" }).waitFor();
  assert.match(await row("lab").innerText(), /[\d.]+ [GT]iB/);
  await button(page, "Test all").waitFor();
  await accessible(page, "endpoints as a table");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
}));

test("marked tasks are retried, paused and cancelled together, and all that a filter shows", () => visit(world, { user: "local", at: "#/tasks?q=bulk" }, async (page) => {
  const failed = [];
  for (const name of ["x", "y", "z"]) failed.push((await world.submit(`@lab:/late/${name}.dat`, "@archive:/late/", { label: `bulk ${name}` })).id);
  for (const id of failed) await world.reached(id, "FAILED");
  const long = (await world.submit("random:1T", "null:", { label: "bulk long", options: { rate_limit: MIB } })).id;
  await world.reached(long, "ACTIVE");
  for (const name of ["x", "y", "z"]) world.write(`lab/late/${name}.dat`, name);
  const bar = page.getByRole("group", { name: "Marked tasks" });
  // The newest stands on top: once it is there, no row moves away from under the pointer.
  await rowOf(page, "bulk long").waitFor();
  for (const label of ["bulk x", "bulk y", "bulk long"]) {
    await rowOf(page, label).locator(".tick").click();
    await page.getByRole("row", { selected: true }).filter({ hasText: label }).waitFor();
  }
  await bar.getByText("3 tasks marked").waitFor();
  await accessible(page, "tasks, some of them marked");
  // The button says how many it fits.
  await button(bar, "Retry 2").click();
  await page.getByRole("status").filter({ hasText: "Tried again: 2 tasks" }).waitFor();
  await Promise.all(failed.slice(0, 2).map((id) => world.reached(id, "SUCCEEDED")));
  assert.equal((await world.api("GET", `/tasks/${failed[2]}`)).state, "FAILED", "what was not marked stays as it was");
  // By keyboard: the whole filter, and a question before it.
  await tasksGrid(page).focus();
  await page.keyboard.press("Control+a");
  await bar.getByText("All 4 tasks marked").waitFor();
  await button(bar, "Cancel").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Cancel all 4 tasks that the filter shows?").waitFor();
  await accessible(page, "a question before many tasks are cancelled");
  assert.equal((await world.api("GET", `/tasks/${long}`)).state, "ACTIVE");
  await button(dialog, "Cancel tasks").click();
  await world.reached(long, "CANCELLED");
  await page.getByRole("status").filter({ hasText: /^Cancelled: / }).waitFor();
}));

test("range of marks begins at the task that was chosen, whatever is submitted meanwhile", () => visit(world, { user: "local", at: "#/tasks?q=range" }, async (page) => {
  for (const name of ["d", "c", "b", "a"]) await world.reached((await world.submit("random:1", "null:", { label: `range ${name}` })).id, "SUCCEEDED");
  const marked = async () => (await page.getByRole("row", { selected: true }).allInnerTexts()).map((text) => /range (\w+)/.exec(text)?.[1]);
  await rowOf(page, "range a").waitFor();
  await rowOf(page, "range b").locator(".tick").click();
  const bar = page.getByRole("group", { name: "Marked tasks" });
  await bar.getByText("1 task marked").waitFor();
  for (const name of ["new1", "new2"]) await world.submit("random:1", "null:", { label: `range ${name}` });
  await rowOf(page, "range new2").waitFor();
  await rowOf(page, "range new1").waitFor();
  await rowOf(page, "range c").click({ modifiers: ["Shift"] });
  await bar.getByText("2 tasks marked").waitFor();
  assert.deepEqual(await marked(), ["b", "c"]);
  // By keyboard from the same row.
  await page.keyboard.press("Shift+ArrowDown");
  await bar.getByText("3 tasks marked").waitFor();
  assert.deepEqual(await marked(), ["b", "c", "d"]);
}));

test("tasks have columns of where from and where to, by which the service sorts and finds them", () => visit(world, { user: "local", at: "#/overview" }, async (page) => {
  const there = await world.submit("@lab:/run/", "@archive:/way/", { label: "way there" });
  const back = await world.submit("@archive:/way/", "@lab:/back/", { label: "way back" });
  await world.reached(there.id, "SUCCEEDED");
  await world.reached(back.id, "SUCCEEDED", "FAILED");
  await page.reload();
  const cell = page.getByRole("region", { name: "Table of pairs" }).getByRole("row").filter({ has: page.getByRole("rowheader", { name: "@archive" }) }).getByRole("link");
  await cell.first().click();
  await page.waitForURL(/from=archive&to=lab/);
  await rowOf(page, "way back").waitFor();
  assert.equal(await rowOf(page, "way there").count(), 0);
  await button(page, "from @archive: remove this filter").or(page.getByRole("button", { name: /^from @archive/ })).first().click();
  await page.goto(`${world.origin}/#/tasks?q=way`);
  await rowOf(page, "way there").waitFor();
  await page.getByRole("columnheader", { name: "From" }).click();
  const first = async () => await tasksGrid(page).getByRole("row").nth(1).innerText();
  await until("they are sorted by where they come from", async () => (await first()).includes("way back"));
  await page.getByRole("columnheader", { name: "From" }).click();
  await until("and the other way round", async () => (await first()).includes("way there"));
  assert.match(await first(), /@lab:\/run\/[^]*@archive:\/way\//);
}));

test("timer is changed in place, and what somebody else changed meanwhile is not written over", () => visit(world, { user: "local", at: "#/timers" }, async (page, guard) => {
  const made = await world.api("POST", "/timers", { label: "each night", schedule: { cron: "30 2 * * *", zone: "Europe/Berlin" }, task: { pairs: [{ source: "@lab:/run/", destination: "@archive:/night/" }], options: { verify: "disk" } } });
  await page.reload();
  await button(page, "Edit each night").click();
  const form = page.getByRole("dialog");
  await until("the form is filled", async () => await form.getByLabel("Label").inputValue() === "each night");
  assert.equal(await form.getByRole("textbox", { name: /^Cron line/ }).inputValue(), "30 2 * * *");
  await accessible(page, "a timer is edited");
  await form.getByRole("textbox", { name: /^Cron line/ }).fill("15 4 * * 1");
  await form.getByLabel("To", { exact: true }).fill("@archive:/weekly/");
  await form.getByLabel("Label").fill("each week");
  await button(form, "Save").click();
  await form.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "each week", exact: true }).waitFor();
  const now = await world.api("GET", `/timers/${made.id}`);
  assert.deepEqual([now.label, now.schedule.cron, now.schedule.zone, now.task.pairs[0].destination, now.task.options.verify, now.version], ["each week", "15 4 * * 1", "Europe/Berlin", "@archive:/weekly/", "disk", 2]);
  assert.equal(new Date(now.next_run).toLocaleString("en-GB", { timeZone: "Europe/Berlin", weekday: "long", hour: "2-digit", minute: "2-digit" }), "Monday 04:15");
  await button(page, "Edit each week").click();
  await until("the form is filled", async () => await form.getByLabel("Label").inputValue() === "each week");
  await world.api("PATCH", `/timers/${made.id}`, { label: "theirs" });
  guard.expect(/^412 /);
  await button(form, "Save").click();
  await form.getByRole("alert").waitFor();
  assert.equal((await world.api("GET", `/timers/${made.id}`)).label, "theirs");
  await world.api("DELETE", `/timers/${made.id}`);
}));

test("sessions say by which browser and from where, and which of them is this one", () => visit(world, { user: "ada", at: "#/access" }, async (page) => {
  await visit(world, { user: "ada", at: "#/access" }, async (other) => {
    const rows = (of) => of.getByRole("region", { name: "Table of sessions" }).getByRole("row").filter({ hasText: "from 127.0.0.1" });
    await until("both are listed", async () => await rows(other).count() === 2);
    assert.match(await rows(other).first().innerText(), /Chrome on Linux, from 127\.0\.0\.1/);
    assert.equal(await other.getByText("this one").count(), 1);
    // It is this one: once it is ended, this page is out, and the other is not.
    await other.getByRole("button", { name: /, this one$/ }).click();
    await button(other.getByRole("dialog"), "End session").click();
    await button(other, "Log in").waitFor();
  }).catch((error) => { if (!/401/.test(error.message)) throw error; });
  await page.reload();
  await page.getByText("this one").waitFor();
  await button(page, "Log out").waitFor();
}));

test("task says in one sentence what holds it, tells a failure once, and has what happened on its plot", () => visit(world, { user: "local" }, async (page) => {
  const { id } = await world.submit("random:1T", "null:", { label: "held by its limit", options: { rate_limit: 4 * MIB } });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const verdict = page.getByRole("region", { name: "Verdict" });
  await verdict.getByText(/limited by the rate limit of 4\.0 MiB\/s that was set/).waitFor();
  const plot = page.getByRole("region", { name: "Over time", exact: true });
  await plot.getByText(/events? on the plot$/).click();
  await plot.getByRole("listitem").filter({ hasText: /attempt 1 begins/ }).first().waitFor();
  await accessible(page, "a task that is held by its limit");
  await world.api("POST", `/tasks/${id}/cancel`);
  const failed = await world.submit("@lab:/absent", "@archive:/absent", { label: "told once" });
  await world.reached(failed.id, "FAILED");
  await page.goto(`${world.origin}/#/tasks/${failed.id}`);
  await verdict.getByText(/^Failed/).waitFor();
  await page.getByRole("region", { name: "Failures" }).waitFor();
  // Zeros say nothing: there are no figures. Of what to try there is one line.
  assert.equal(await page.getByRole("region", { name: "Progress" }).count(), 0);
  const hints = await page.locator("main").getByText(/^Try: /).allInnerTexts();
  assert.equal(new Set(hints).size, hints.length, hints.join("\n"));
  // The route leads to the folders.
  await page.getByRole("heading", { level: 1, name: "told once" }).waitFor();
  assert.match(await page.locator(".task-route a").first().getAttribute("href") ?? "", /^#\/files\?left=@lab:\/&right=@archive:\/&name=absent$/);
}));

test("task that runs for a day shows its newest events, and reads only further ones after a gap", () => visit(world, { user: "local" }, async (page) => {
  const { id } = await world.submit("random:1", "null:", { label: "for a day" }), all = 17_280, base = 1_000_000, begun = Date.now() - all * 5000;
  await world.reached(id, "SUCCEEDED");
  const event = (number) => ({ id: base + number, task: id, owner: "local", kind: "progress", time: new Date(begun + number * 5000).toISOString(), text: `step ${number}`, detail: { progress: { rates: { now: number } } } });
  const asked = [];
  await page.route(/\/tasks\/[^/]+\/events\?/, async (route) => {
    const query = new URL(route.request().url()).searchParams, since = Math.max(0, Number(query.get("since") ?? query.get("cursor") ?? 0) - base), end = Math.min(all, since + 1000);
    asked.push(since);
    await route.fulfill({ json: { items: Array.from({ length: end - since }, (_, at) => event(since + at + 1)), next: end < all ? String(base + end) : null } });
  });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const events = page.getByRole("region", { name: "Events", exact: true });
  await button(events, "Progress").click();
  await until("the newest stands on top", async () => (await events.locator("li").first().innerText()).includes(`step ${all}`));
  await events.getByText("Not all of them").waitFor();
  const before = asked.length;
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await until("further ones are asked for", () => asked.length > before);
  assert.deepEqual(asked.slice(before), [all]);
}));

test("task with receipts has them saved, and says whose signature they have", () => visit(world, { user: "local" }, async (page) => {
  const { id } = await world.submit("@lab:/run/", "@archive:/signed/", { label: "signed", receipt: true });
  await world.reached(id, "SUCCEEDED");
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const part = page.getByRole("region", { name: "Receipts" });
  const { fingerprint } = await world.api("GET", "/receipts/key");
  await part.getByText(fingerprint).waitFor();
  const [saved] = await Promise.all([page.waitForEvent("download"), button(part, "Save receipt").click()]);
  assert.equal(saved.suggestedFilename(), `${id}.receipt`);
  const text = readFileSync(await saved.path(), "utf8"), lines = text.split("\n");
  assert.deepEqual(lines.slice(1, 4).map((line) => JSON.parse(line).path), ["a.dat", "b.dat", "c.dat"]);
  assert.match(text, /-----END SSH SIGNATURE-----\n$/);
  await accessible(page, "a task with a receipt");
  // Of two pairs each has its own; one that none was made of says why.
  const two = await world.api("POST", "/tasks", { pairs: [{ source: "@lab:/run/a.dat", destination: "@archive:/two/a" }, { source: "@lab:/absent", destination: "@archive:/two/b" }], label: "two pairs", receipt: true });
  await world.reached(two.id, "PARTIAL", "FAILED");
  await page.goto(`${world.origin}/#/tasks/${two.id}`);
  const [first] = await Promise.all([page.waitForEvent("download"), button(part, "Save receipt of pair 0").click()]);
  assert.equal(first.suggestedFilename(), `${two.id}-0.receipt`);
}));

test("sick endpoint is named first, what waits for it is one line with one button, and its number leads to the tasks", () => visit(world, { user: "local", at: "#/overview" }, async (page) => {
  await until("all of them wait", async () => (await world.api("GET", "/tasks?state=QUEUED")).items.filter((task) => task.blocked?.cause === "retry").length === 3);
  // Opened anew: a change of place that is still under way does not survive a reload.
  await page.goto("about:blank");
  await page.goto(`${world.origin}/#/overview`);
  const sick = page.getByRole("region", { name: "Endpoints with trouble" });
  await sick.getByRole("link", { name: "@dead" }).waitFor();
  await sick.getByText("Down").waitFor();
  const waiting = page.getByRole("region", { name: "Waiting", exact: true });
  const lines = async () => (await waiting.getByRole("listitem").allInnerTexts()).filter((text) => text.includes("@dead"));
  await until("what waits for it stands together", async () => { const found = await lines(); return found.length > 0 && found.length <= 2; });
  await accessible(page, "the overview, with an endpoint that is down");
  const { top } = await sick.boundingBox().then((box) => ({ top: box?.y ?? 9999 }));
  assert.ok(top < 400, `the sick endpoint stands ${top} pixels down`);
  await sick.getByRole("link", { name: "3 open tasks" }).click();
  await page.waitForURL(/state=open&endpoint=dead/);
  for (const name of ["one", "two", "three"]) await rowOf(page, `waits ${name}`).waitFor();
  await page.goBack();
  // What somebody has paused goes on by one button.
  const long = [];
  for (const name of ["p", "q"]) long.push((await world.submit("random:1T", "null:", { label: `long ${name}`, options: { rate_limit: MIB } })).id);
  for (const id of long) { await world.reached(id, "ACTIVE"); await world.api("POST", `/tasks/${id}/pause`); await world.reached(id, "PAUSED"); }
  await waiting.getByRole("button", { name: "Resume: 2 tasks" }).click();
  await button(page.getByRole("dialog"), "Resume").click();
  for (const id of long) { await world.reached(id, "ACTIVE"); await world.api("POST", `/tasks/${id}/cancel`); }
  for (const id of ids) await world.api("POST", `/tasks/${id}/cancel`);
  await Promise.all(ids.map((id) => world.reached(id, "CANCELLED")));
  await world.api("DELETE", "/endpoints/dead");
}));

test("path between two endpoints is measured by a button, told in a sentence, and kept", () => visit(world, { user: "local", at: "#/endpoints/lab" }, async (page, guard) => {
  // The node of @archive by another name of its host: between two endpoints of one host there is no path.
  const { location } = await world.api("GET", "/endpoints/archive"), limits = { rate: 8 * MIB };
  await world.api("POST", "/endpoints", { name: "far", location: { ...location, host: "localhost" }, token: TOKEN, limits, users: ["*"] });
  await world.api("POST", "/endpoints", { name: "mute", location: { kind: "node", host: "localhost", port: 1, path: "/", fingerprint: null }, token: TOKEN });
  await page.getByRole("link", { name: "Paths of lab" }).click();
  const card = page.getByRole("region", { name: "Paths of lab" }), choice = card.getByLabel("From @lab to");
  await choice.getByRole("option", { name: "@mute" }).waitFor({ state: "attached" });
  // The keyboard stands where the other end is chosen.
  await until("the choice has the focus", () => choice.evaluate((one) => one === document.activeElement));
  assert.equal(await card.getByRole("button").count(), 0);
  const offered = await choice.getByRole("option").allInnerTexts();
  assert.ok(["choose an endpoint", "@archive", "@far", "@mute"].every((name) => offered.includes(name)) && !offered.includes("@lab"), offered.join());
  await choice.selectOption("archive");
  guard.expect(/^409 .*\/paths\//);
  await button(card, "Measure the path").click();
  await card.getByRole("alert").getByText("choose an endpoint at another host").waitFor();
  await choice.selectOption("far");
  await card.getByText("The path between @lab and @far was not measured so far.").waitFor();
  await button(card, "Measure the path").press("Enter");
  await card.getByRole("progressbar", { name: "Measuring the path between @lab and @far" }).waitFor();
  assert.ok(await button(card, "Measuring…").isDisabled());
  await accessible(page, "a path that is measured");
  await until("it is measured", async () => (await world.api("GET", "/endpoints/lab/paths/far")).state === "finished", 120_000);
  const told = async (of, from, to, name) => {
    const { result } = await world.api("GET", `/endpoints/${from}/paths/${to}`), region = of.getByRole("region", { name: `Paths of ${name}` });
    await region.getByText(/^There [\d.]+ [KM]iB\/s, back [\d.]+ [KM]iB\/s, round trip (under )?[\d.]+ ms, .*sent again.*\.$/).waitFor();
    await region.getByText(`by version ${result.program}`).waitFor();
    await region.getByText("The limits of the endpoints allow 8.0 MiB/s: the path may carry more.").waitFor();
    const rows = region.getByRole("region", { name: `Path between ${from} and ${to}` }).getByRole("row");
    assert.deepEqual(await rows.getByRole("rowheader").allInnerTexts(), [`@${from} → @${to}`, `@${to} → @${from}`]);
    for (const [at, way] of [[1, result.there], [2, result.back]]) {
      const [rate, trip] = await rows.nth(at).getByRole("cell").allInnerTexts();
      assert.ok(way.bytes_per_second > 0 && /^[\d.]+ [KM]iB\/s$/.test(rate) && /^(under )?[\d.]+ ms$/.test(trip), `${rate} ${trip}`);
    }
  };
  await told(page, "lab", "far", "lab");
  await accessible(page, "a path that was measured");
  // A link to it is an address, and says the same after the page was read again.
  assert.match(page.url(), /#\/node\/lab\?to=far$/);
  await page.reload();
  await told(page, "lab", "far", "lab");
  await page.setViewportSize({ width: 390, height: 800 });
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, "a path is wider than the window");
  await accessible(page, "a path that was measured, narrow");
  await visit(world, { user: "ada", at: "#/node/far?to=lab", dark: true }, async (ada) => {
    await told(ada, "far", "lab", "far");
    assert.equal(await button(ada, "Measure the path").count(), 0);
    await accessible(ada, "a path that was measured, dark");
  });
  // A path that cannot be measured says why, and what to try.
  await choice.selectOption("mute");
  await button(card, "Measure the path").click();
  await card.getByRole("alert").filter({ hasText: /^Not measured: @mute/ }).getByText("test both endpoints: the test names what is in the way").waitFor({ timeout: 60_000 });
  await accessible(page, "a path that was not measured");
  // A task that the network holds leads there, with both ends chosen.
  const { id } = await world.submit("@lab:/run/", "@far:/never/", { label: "held by the network", options: { rate_limit: 1 } });
  await world.api("POST", `/tasks/${id}/pause`);
  const paused = await world.reached(id, "PAUSED");
  const progress = { ...paused.progress, scan_complete: true, bytes_moved: 1, bytes_total: 3000, limited_by: "the network (93 % of the streams' time)" };
  await page.route(new RegExp(`/tasks/${id}$`), (route) => route.fulfill({ json: { ...paused, state: "ACTIVE", blocked: null, request: { ...paused.request, options: {} }, progress } }));
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await page.getByRole("region", { name: "Verdict" }).getByText(/limited by the network/).waitFor();
  await page.getByRole("link", { name: "Measure this path" }).press("Enter");
  await told(page, "lab", "far", "lab");
  assert.equal(await choice.inputValue(), "far");
  await world.api("POST", `/tasks/${id}/cancel`);
  await world.reached(id, "CANCELLED");
  for (const name of ["far", "mute"]) await world.api("DELETE", `/endpoints/${name}`);
}));

test("check is submitted from the page, names what differs, and its receipt says so", () => visit(world, { user: "local", at: "#/tasks" }, async (page) => {
  for (const side of ["lab", "archive"]) for (const name of ["same", "other"]) world.write(`${side}/compared/${name}`, name === "same" ? name : side);
  world.write("lab/compared/only here", "x");
  await button(page, "New task").click();
  const form = page.getByRole("dialog");
  await form.locator("select[name=kind]").selectOption("check");
  await form.getByLabel(/^From/).fill("@lab:/compared/");
  await form.getByLabel("To", { exact: true }).fill("@archive:/compared/");
  await form.getByText("What is compared", { exact: true }).click();
  await form.getByLabel(/^Compared by/).selectOption("checksum");
  await form.getByText("Signed receipt").click();
  await form.getByLabel("Label").fill("are they alike");
  await accessible(page, "a check is submitted");
  await button(form, "Submit").click();
  await form.waitFor({ state: "detached" });
  const { items: [{ id }] } = await world.api("GET", "/tasks?q=alike");
  const done = await world.reached(id, "PARTIAL");
  assert.deepEqual([done.request.kind, done.failure.code, done.progress.check.different, done.progress.check.only_source], ["check", "differences", 1, 1]);
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await page.getByText("1 different").first().waitFor();
  const items = page.getByRole("grid", { name: /Items/ });
  await items.getByText("other", { exact: true }).waitFor();
  await items.getByText("only here", { exact: true }).waitFor();
  assert.equal(await items.getByText("same", { exact: true }).count(), 0);
  await accessible(page, "a check that has found differences");
  const [saved] = await Promise.all([page.waitForEvent("download"), button(page, "Save receipt").click()]);
  const said = readFileSync(await saved.path(), "utf8").split("\n").slice(1, 4).map((line) => JSON.parse(line));
  assert.deepEqual(said.map(({ path, outcome }) => [path, outcome]), [["only here", "missing"], ["other", "differs"], ["same", "same"]]);
}));
