// Transfers between two nodes, from the form to the digest of what has arrived.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { spawnSync } from "node:child_process";
import { quote, submitLine, timerLine } from "../../crates/carrack-service/page/js/command.js";
import { percent, percentText } from "../../crates/carrack-service/page/js/format.js";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { b3sum, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => { world = await World.start(); world.addUser("ada"); world.addUser("bob"); });
after(async () => { await endBrowser(); world?.endNow(); });

const MIB = 1 << 20;
/** Controls, and marks that turn the direction of what follows. */
const HIDDEN_MARKS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/;
const state = (page, word) => page.locator(".task-title .chip", { hasText: word }).waitFor();
const button = (page, name) => page.getByRole("button", { name, exact: true });

/** Fills in the form for a new task, and sends it. */
async function submit(page, source, destination, label) {
  await button(page, "New task").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^From/).fill(source);
  await form.getByLabel("To", { exact: true }).fill(destination);
  await form.getByLabel("Label").fill(label);
  await button(form, "Submit").click();
  await page.getByRole("heading", { level: 1, name: label }).waitFor();
  return /tasks\/([^/?]+)$/.exec(page.url())?.[1] ?? "";
}

test("transfer between two nodes is started, watched to its end and has the digest of b3sum", () => visit(world, { user: "ada" }, async (page) => {
  const file = world.write("lab/run/large.dat", randomBytes(20 * MIB));
  const id = await submit(page, "@lab:/run/large.dat", "@archive:/2026/", "run 42");
  await state(page, "Succeeded");
  const row = page.getByRole("grid", { name: "Items" }).getByRole("row").filter({ hasText: b3sum(file) });
  await row.waitFor();
  assert.match(await row.innerText(), /Done[^]*20\.0 MiB/);
  assert.equal(b3sum(world.path("archive/2026/large.dat")), b3sum(file));
  assert.match(await page.getByRole("region", { name: "Progress" }).innerText(), /100 %[^]*20\.0 MiB[^]*nothing sent again/);
  await page.getByRole("link", { name: "Tasks", exact: true }).click();
  await page.getByRole("grid", { name: "Tasks" }).getByRole("row").filter({ hasText: "run 42" }).filter({ hasText: "Succeeded" }).waitFor();
  assert.equal((await world.api("GET", `/tasks/${id}`)).owner, "ada");
}));

test("preview says what would happen and submits nothing", () => visit(world, { user: "ada" }, async (page) => {
  const before = (await world.api("GET", "/tasks")).items.length;
  await button(page, "New task").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^From/).fill("@lab:/run/");
  await form.getByLabel("To", { exact: true }).fill("@archive:/a b/");
  await button(form, "Preview").click();
  await form.getByText("The service would take this task.").waitFor();
  assert.equal(await form.locator(".command code").innerText(), "carrack task submit @lab:/run/ '@archive:/a b/'");
  assert.equal((await world.api("GET", "/tasks")).items.length, before);
}));

test("task is paused, goes on, and is cancelled when somebody confirms it", () => visit(world, { user: "local" }, async (page) => {
  const { id } = await world.submit("random:1T", "null:", { label: "for hours", options: { rate_limit: MIB } });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await state(page, "Active");
  await button(page, "Pause").click();
  await state(page, "Paused");
  await button(page, "Resume").click();
  await state(page, "Active");
  await button(page, "Cancel task").click();
  await button(page.getByRole("dialog"), "Keep").click();
  await button(page, "Cancel task").click();
  assert.equal((await world.api("GET", `/tasks/${id}`)).cancel_wanted, false);
  await button(page.getByRole("dialog"), "Cancel task").click();
  await state(page, "Cancelled");
  assert.equal((await world.api("GET", `/tasks/${id}`)).state, "CANCELLED");
}));

test("files in flight are shown while they arrive, each at its place, and go with the end", () => visit(world, { user: "local" }, async (page) => {
  const long = `${"very long directory name ".repeat(6)}/the file that ends it.dat`;
  const names = ["a.dat", "line\nfeed.dat", `${long}`];
  for (const name of names) world.write(`lab/flight/${name}`, randomBytes(12 * MIB));
  for (let number = 0; number < 100; number += 1) world.write(`lab/flight/small/${number}`, "small");
  const { id } = await world.submit("@lab:/flight", "@archive:/", { label: "in flight", options: { rate_limit: 3 * MIB } });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const region = page.getByRole("region", { name: "In flight" }), lines = region.getByRole("listitem");
  await lines.first().waitFor();
  const seen = new Map(), places = new Map();
  /** What each line says by now. */
  const read = async () => {
    const told = await region.locator("li").evaluateAll((all) => all.map((line) => [".middle", ".num"].map((part) => line.querySelector(part)?.textContent ?? "")));
    for (const [place, [name, text]] of told.entries()) {
      if (!name) { assert.equal(text, "", "an empty place"); continue; }
      const moved = /^([\d.]+ (?:B|KiB|MiB)) of 12\.0 MiB$/.exec(text)?.[1];
      assert.ok(moved, text);
      places.set(name, places.get(name) ?? place);
      assert.equal(places.get(name), place, `${name} has moved to another line`);
      seen.set(name, [...(seen.get(name) ?? []), moved]);
    }
  };
  const bar = region.getByRole("progressbar").first();
  assert.match(await bar.getAttribute("aria-label") ?? "", /^Progress of flight\//);
  for (const [what, width, scheme] of /** @type {[string, number, "light"|"dark"][]} */ ([["light", 1280, "light"], ["dark", 1280, "dark"], ["narrow", 390, "light"], ["narrow and dark", 390, "dark"], ["400 %", 320, "light"]])) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme });
    await read();
    await accessible(page, `files in flight, ${what}`);
    await until(`nothing is wider than the page: ${what}`, () => page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth));
    const over = await region.locator("li").evaluateAll((all) => all.filter((line) => line.scrollWidth > line.clientWidth + 1 || line.scrollHeight > line.clientHeight + 1).length);
    assert.equal(over, 0, `${what}: each line has room for what it says`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await until("all files have been in flight", async () => { await read(); return seen.size === names.length || await region.count() === 0; });
  await state(page, "Succeeded");
  await region.waitFor({ state: "detached" });
  assert.deepEqual([...seen.keys()].sort(), names.map((name) => `flight/${name.replace("\n", "\\n")}`).sort());
  assert.ok([...seen.values()].some((moved) => new Set(moved).size > 1), `bytes grow: ${JSON.stringify([...seen])}`);
  assert.equal((await world.api("GET", `/tasks/${id}`)).in_flight, undefined);
}));

test("failed task says why and what to try, and succeeds by another try", () => visit(world, { user: "ada" }, async (page) => {
  const id = await submit(page, "@lab:/late.dat", "@archive:/late.dat", "too early");
  await state(page, "Failed");
  await page.getByRole("region", { name: "Failures" }).getByText(/late\.dat|No such file|not there/).first().waitFor();
  const file = world.write("lab/late.dat", randomBytes(MIB));
  await button(page, "Retry").click();
  await state(page, "Succeeded");
  assert.equal(b3sum(world.path("archive/late.dat")), b3sum(file));
  assert.ok(page.url().includes("#/tasks/"), id);
}));

test("label and deadline of a task are changed, and its clone is another task", () => visit(world, { user: "local" }, async (page) => {
  const { id } = await world.submit("random:1T", "null:", { label: "one name", options: { rate_limit: MIB } });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await button(page, "Edit").click();
  const label = page.getByRole("dialog").getByLabel("Label");
  await label.fill("another name");
  // What happens to the task meanwhile leaves what was typed as it is.
  const moved = (await world.api("GET", `/tasks/${id}`)).progress.bytes_moved;
  await until("the task goes on", async () => (await world.api("GET", `/tasks/${id}`)).progress.bytes_moved > moved + 3 * MIB);
  assert.equal(await label.inputValue(), "another name");
  // Somebody else changes what this form leaves as it is.
  await world.api("PATCH", `/tasks/${id}`, { priority: 7 });
  await button(page.getByRole("dialog"), "Save").click();
  await page.getByRole("heading", { level: 1, name: "another name" }).waitFor();
  assert.equal((await world.api("GET", `/tasks/${id}`)).request.priority, 7);
  await button(page, "Run again with changes").click();
  const again = page.getByRole("dialog");
  assert.equal(await again.getByRole("textbox", { name: /^From/ }).inputValue(), "random:1T");
  await until("the options are filled in", async () => await again.getByLabel("Label").inputValue() === "another name");
  await button(again, "Start copy").click();
  await page.waitForURL((url) => url.hash.startsWith("#/tasks/") && !url.hash.includes(id));
  await page.getByRole("heading", { level: 1, name: "another name" }).waitFor();
  await world.api("POST", "/tasks/cancel");
}));

test("clone of a delete shows what is there today and deletes nothing unasked", () => visit(world, { user: "local" }, async (page) => {
  world.write("archive/victim/old.dat", randomBytes(1000));
  const { id } = await world.api("POST", "/tasks", { kind: "delete", label: "clear", pairs: [{ source: "@archive:/victim/" }] });
  await world.reached(id, "SUCCEEDED");
  const kept = [1, 2, 3].map((number) => world.write(`archive/victim/new-${number}.dat`, randomBytes(1000)));
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await button(page, "Run again with changes").click();
  const again = page.getByRole("dialog", { name: "Delete again?" });
  await again.getByText("3 files").waitFor();
  await again.getByText("It cannot be taken back").waitFor();
  await accessible(page, "a delete that is cloned");
  await button(again, "Keep").click();
  await again.waitFor({ state: "detached" });
  assert.equal((await world.api("GET", "/tasks?label=clear")).items.length, 1);
  for (const file of kept) assert.ok(fs.existsSync(file));
  await button(page, "Run again with changes").click();
  await again.getByText("3 files").waitFor();
  await button(again, "Delete").click();
  await page.waitForURL((url) => url.hash.startsWith("#/tasks/") && !url.hash.includes(id));
  await world.reached(page.url().split("/").at(-1), "SUCCEEDED");
  for (const file of kept) assert.ok(!fs.existsSync(file));
}));

test("clone of a delete and a timer that is changed keep the white space at the end of a name", () => visit(world, { user: "local" }, async (page) => {
  const ends = [" ", "\u3000", "\u00a0"], named = (end) => world.path(`archive/ends/data${end}`);
  for (const end of ["", ...ends]) world.write(`archive/ends/data${end}`, randomBytes(1000));
  const pairs = ends.map((end) => ({ source: `@archive:/ends/data${end}` }));
  const { id } = await world.api("POST", "/tasks", { kind: "delete", label: "white space", pairs });
  await world.reached(id, "SUCCEEDED");
  for (const end of ends) world.write(`archive/ends/data${end}`, randomBytes(1000));
  await page.goto(`${world.origin}/#/tasks/${id}`);
  await button(page, "Run again with changes").click();
  const again = page.getByRole("dialog", { name: "Delete again?" });
  await again.getByText("3 files").waitFor();
  assert.equal(await again.getByRole("textbox", { name: /^Paths to delete/ }).inputValue(), "@archive:/ends/data%20\n@archive:/ends/data%E3%80%80\n@archive:/ends/data%C2%A0");
  await button(again, "Delete").click();
  await page.waitForURL((url) => url.hash.startsWith("#/tasks/") && !url.hash.includes(id));
  await world.reached(page.url().split("/").at(-1), "SUCCEEDED");
  assert.deepEqual(ends.filter((end) => fs.existsSync(named(end))), []);
  assert.ok(fs.existsSync(named("")), "a file of another name was deleted");
  const kept = [{ source: "@archive:/ends/data\u3000", destination: "@lab:/ends " }];
  const made = await world.api("POST", "/timers", { label: "of white space", schedule: { cron: "30 2 * * *" }, task: { pairs: kept } });
  await page.goto(`${world.origin}/#/timers`);
  await button(page, "Edit of white space").click();
  const form = page.getByRole("dialog");
  await until("the form is filled", async () => await form.getByLabel("Label").inputValue() === "of white space");
  await form.getByLabel("Label").fill("white space again");
  await button(form, "Save").click();
  await form.waitFor({ state: "detached" });
  const now = await world.api("GET", `/timers/${made.id}`);
  assert.equal(now.label, "white space again");
  assert.deepEqual(now.task.pairs.map(({ source, destination }) => [source, destination].map(decodeURIComponent)), [Object.values(kept[0])]);
  await world.api("DELETE", `/timers/${made.id}`);
}));

test("forms do not offer to replace older files alone, and a task that does stays so", () => visit(world, { user: "local" }, async (page) => {
  const { id } = await world.submit("random:4M", "null:", { label: "only older", options: { existing: "older" } });
  await world.reached(id, "SUCCEEDED");
  const words = (dialog) => dialog.locator("select[name='options.existing'] option").evaluateAll((all) => all.map((one) => one.value));
  await button(page, "New task").click();
  const form = page.getByRole("dialog");
  await until("the options are there", async () => (await words(form)).includes("keep"));
  assert.ok(!(await words(form)).includes("older"));
  await page.keyboard.press("Escape");
  await page.goto(`${world.origin}/#/tasks/${id}`);
  // Nothing was there before: all was sent.
  await page.locator(".figures > div").filter({ has: page.getByText("Moved", { exact: true }) }).getByText(/^4\.0 MiB/).waitFor();
  await button(page, "Run again with changes").click();
  await until("the options are filled in", async () => await form.getByLabel("Label").inputValue() === "only older");
  await until("it stays", async () => await form.locator("select[name='options.existing']").inputValue() === "older");
  await page.keyboard.press("Escape");
  await page.goto(`${world.origin}/#/tasks`);
  await page.getByRole("grid", { name: "Tasks" }).getByRole("row").filter({ hasText: "only older" }).getByText("1 of 1").waitFor({ state: "attached" });
}));

test("command line and items show marks of direction, controls and bytes that are no text", () => visit(world, { user: "local" }, async (page) => {
  const name = "rtl-\u202egpj.exe";
  world.write(`lab/odd/${name}`, randomBytes(10));
  world.write("lab/odd/back\\xff", randomBytes(10));
  world.write("lab/odd/line\nfeed", randomBytes(10));
  world.write(Buffer.from("lab/odd/bytes-\xff", "latin1"), randomBytes(10));
  const { id } = await world.submit(`@lab:/odd/${name}`, "@archive:/odd/");
  const whole = await world.submit("@lab:/odd/", "@archive:/odd-all/");
  await Promise.all([world.reached(id, "SUCCEEDED"), world.reached(whole.id, "SUCCEEDED")]);
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const line = await page.locator(".command code", { hasText: "task submit" }).innerText();
  assert.ok(line.includes("$'@lab:/odd/rtl-\\342\\200\\256gpj.exe'"), line);
  assert.equal((await page.locator("main").innerText()).search(HIDDEN_MARKS), -1);
  await page.goto(`${world.origin}/#/tasks/${whole.id}`);
  const items = page.getByRole("region", { name: "Items" });
  for (const mark of ["\\u{202e}", "\\n", "\\xFF"]) await items.locator(".esc", { hasText: mark }).first().waitFor();
  await items.getByText("back\\xff", { exact: true }).waitFor();
}));

test("shells read back the command line that the page shows", () => {
  for (const word of ["plain", "it's", "rtl-\u202egpj.exe", "a\tb\\'c\n", "\u200f1", "\ufeff"]) {
    const shown = quote(word);
    assert.equal(shown.search(HIDDEN_MARKS), -1, shown);
    assert.equal(spawnSync("bash", ["-c", `printf %s ${shown}`], { encoding: "utf8" }).stdout, word);
  }
  const pairs = [{ source: "@lab:/a\u202eb", destination: "@archive:/x" }, { source: "@lab:/it's", destination: "@archive:/y" }];
  const line = submitLine({ groups: [] }, { pairs });
  assert.equal(line.search(HIDDEN_MARKS), -1, line);
  const made = spawnSync("bash", ["-c", line.replace(/\| carrack.*/, "")], { encoding: "utf8" }).stdout;
  assert.equal(made, "'@lab:/a\u202eb' @archive:/x\n'@lab:/it'\\''s' @archive:/y\n");
});

test("each value of each option is typed as the page shows it", async () => {
  const table = await world.api("GET", "/options/task"), schedule = { start: "2099-01-01T00:00:00Z" };
  const values = ({ kind, choices, minimum, maximum, examples }) => kind === "flag" ? [true] : kind === "choice" ? choices.map((choice) => choice.value)
    : kind === "moment" ? [] : [...kind === "text" || kind === "lines" ? [] : [minimum, maximum], ...examples ?? []].filter((value) => value != null && !(value > Number.MAX_SAFE_INTEGER));
  const options = table.groups.flatMap((group) => group.options);
  assert.ok(options.length > 10, `${options.length}`);
  const typed = (task) => {
    const line = timerLine(table, schedule, task), env = { ...world.environment, PROGRAM: world.program };
    const ran = spawnSync("bash", ["-c", `carrack() { "$PROGRAM" "$@" --json; }; ${line}`], { cwd: world.directory, env, encoding: "utf8" });
    assert.equal(ran.status, 0, `${line}: ${ran.stdout}${ran.stderr}`);
    const made = JSON.parse(ran.stdout);
    world.run("timer", "rm", made.id);
    return { line, made };
  };
  for (const option of options) for (const value of values(option)) {
    const task = { pairs: [{ source: "@lab:/a", destination: "@archive:/b" }], ...(option.at === "task" ? { [option.name]: value } : { options: { [option.name]: value } }) };
    const { line, made } = typed(task), found = option.at === "task" ? made.task[option.name] ?? made[option.name] : made.task.options?.[option.name];
    assert.equal(String(found ?? option.default), String(value), line);
  }
  // A timer has no deadline.
  assert.match(submitLine(table, { pairs: [{ source: "/a" }], deadline: "2098-12-31T00:00:00Z" }), / --deadline 2098-12-31T00:00:00Z /);
  // A document's %XX stands for a byte, and is typed as that byte.
  for (const name of ["100%25", "a%23b%3Fc", "%FF%0A'", "it's", "\\n"]) {
    const pairs = [{ source: `@lab:/${name}`, destination: "@archive:/b" }], { line, made } = typed({ pairs });
    assert.deepEqual(made.task.pairs, pairs, line);
  }
});

test("percent tells small parts, and 100 only where nothing is missing", () => {
  const TIB = 2 ** 40;
  for (const [part, whole, text] of [[0, 5, "0 %"], [120 * MIB, 900 * TIB, "under 0.01 %"], [20e9, 2e12, "1 %"], [3.14, 1000, "0.31 %"], [25, 1000, "2.5 %"],
    [99.99, 100, "99 %"], [154.8, 512, "30 %"], [5, 5, "100 %"]]) assert.equal(percentText(percent(part, whole)), text);
});

test("partial and paused tasks say how much of them is done", () => visit(world, { user: "local" }, async (page) => {
  world.write("lab/half.dat", randomBytes(5000));
  const partial = await world.api("POST", "/tasks", { pairs: [{ source: "@lab:/half.dat", destination: "@archive:/half/" }, { source: "@lab:/absent", destination: "@archive:/half/" }] });
  await world.reached(partial.id, "PARTIAL");
  await page.goto(`${world.origin}/#/tasks/${partial.id}`);
  await page.getByRole("region", { name: "Progress" }).getByText("99 %", { exact: true }).waitFor();
  const { id } = await world.submit("random:1T", "null:", { options: { rate_limit: MIB } });
  await until("it moves", async () => (await world.api("GET", `/tasks/${id}`)).progress.bytes_moved > 2 * MIB);
  await world.api("POST", `/tasks/${id}/pause`);
  await world.reached(id, "PAUSED");
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const progress = page.getByRole("region", { name: "Progress" });
  await progress.getByText("under 0.01 %").waitFor();
  assert.match(await progress.innerText(), /Rate\s+–/);
  await world.api("POST", `/tasks/${id}/cancel`);
}));

test("failures and items of a task that runs are shown as they come", () => visit(world, { user: "local" }, async (page) => {
  const slow = (size) => ({ source: `random:${size}`, destination: "null:" }), absent = (name) => ({ source: `@lab:/absent/${name}`, destination: "@archive:/absent/" });
  const { id } = await world.api("POST", "/tasks", { pairs: [absent("a"), slow("1M"), absent("b"), slow("64M"), absent("c"), slow("24M"), absent("d"), slow("1T")], options: { rate_limit: 4 * MIB } });
  await page.goto(`${world.origin}/#/tasks/${id}`);
  const failures = page.getByRole("region", { name: "Failures" });
  await failures.getByText("2 failed items").waitFor();
  await failures.getByText("4 failed items").waitFor();
  await page.getByRole("grid", { name: "Items" }).getByText("absent/d").or(page.getByRole("region", { name: "Items" }).getByText("7 items")).first().waitFor();
  assert.equal((await world.api("GET", `/tasks/${id}`)).state, "ACTIVE");
  await world.api("POST", `/tasks/${id}/cancel`);
}));

test("viewer lands on figures of all tasks, without a refusal", async () => {
  world.addUser("wall", "viewer");
  const { id } = await world.submit("random:1T", "null:", { label: "of somebody else", options: { rate_limit: 1 << 20 } });
  await world.reached(id, "ACTIVE");
  await until("it moves", async () => (await world.api("GET", `/tasks/${id}`)).progress.rates.now > 0);
  await visit(world, {}, async (page) => {
    await page.goto(world.link("wall"));
    await page.getByRole("heading", { level: 1, name: "Overview of all tasks" }).waitFor();
    await page.getByText("Moved", { exact: true }).waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.equal(await page.getByText("No task is active.").count(), 0);
    // The figures beside those of all are of all, too.
    const { ended } = await world.api("GET", "/overview"), judged = ended.filter((one) => one.state !== "CANCELLED").reduce((sum, one) => sum + one.tasks, 0);
    const figure = (name) => page.locator(".totals > div").filter({ has: page.getByText(name, { exact: true }) }).locator("dd");
    assert.match(await figure("Rate now").innerText(), /^[1-9][\d.]* [KM]iB\/s$/);
    assert.equal(await figure("Running").innerText(), "1");
    assert.match(await figure("Succeeded").innerText(), judged ? new RegExp(`of ${judged} task`) : /no task has ended/);
    await accessible(page, "the first view of a viewer");
    await page.goto(`${world.origin}/#/node`);
    await figure("Rate now").getByText(/^[1-9][\d.]* [KM]iB\/s$/).waitFor();
    assert.equal(await figure("Running").innerText(), "1");
    assert.equal(await page.getByText("No transfer runs.").count(), 0);
  });
  await world.api("POST", `/tasks/${id}/cancel`);
});

test("timer submits its task by itself and another user sees neither", () => visit(world, { user: "ada", at: "#/timers" }, async (page, guard) => {
  const file = world.write("lab/nightly/a.dat", randomBytes(1000));
  await button(page, "New timer").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^When/).selectOption("every");
  await form.getByRole("spinbutton", { name: "Every" }).fill("6");
  await form.getByLabel(/^From/).fill("@lab:/nightly/");
  await form.getByLabel("To", { exact: true }).fill("@archive:/nightly/");
  await form.getByLabel("Label").fill("each night");
  await button(form, "Make timer").click();
  const row = page.getByRole("row").filter({ hasText: "each night" });
  await row.getByRole("link", { name: /^Last task of/ }).click();
  await state(page, "Succeeded");
  assert.equal(b3sum(world.path("archive/nightly/a.dat")), b3sum(file));
  const address = page.url();
  await visit(world, { user: "bob", at: "#/timers" }, async (other, theirs) => {
    await other.getByText("No timers yet").waitFor();
    await other.goto(`${world.origin}/#/tasks`);
    await other.getByText("No tasks yet").waitFor();
    theirs.expect(/^404 .*\/tasks\//);
    await other.goto(address);
    await other.getByRole("heading", { level: 1, name: "No such task" }).waitFor();
    // What begins while he looks is not shown to him either.
    await other.goto(`${world.origin}/#/tasks`);
    await other.getByText("No tasks yet").waitFor();
    await page.goto(`${world.origin}/#/tasks`);
    await submit(page, "@lab:/nightly/", "@archive:/again/", "while bob looks");
    await state(page, "Succeeded");
    await other.getByText("No tasks yet").waitFor();
    assert.equal(await other.getByText("while bob looks").count(), 0);
  });
  await page.goto(`${world.origin}/#/timers`);
  await button(row, "Pause each night").click();
  await row.getByText("Paused").waitFor();
  await button(row, "Remove each night").click();
  await button(page.getByRole("dialog"), "Remove").click();
  await page.getByText("No timers yet").waitFor();
}));

test("names of any kind are shown as text and arrive as they were", () => visit(world, { user: "ada" }, async (page) => {
  const odd = ["<img src=x onerror=alert(1)>", "two\nlines", "\u202egnp.exe", "&amp;", "50%", "tab\there", "\u05e9\u05dc\u05d5\u05dd", "𝄞 clef"];
  for (const name of odd) world.write(`lab/odd/${name}`, randomBytes(100));
  world.write(Buffer.concat([Buffer.from("lab/odd/raw-"), Buffer.from([0xff, 0xfe])]), randomBytes(100));
  page.on("dialog", () => assert.fail("a name has become a script"));
  const label = "<script>alert(2)</script> \u202e";
  await button(page, "New task").click();
  const form = page.getByRole("dialog");
  await form.getByLabel(/^From/).fill("@lab:/odd/");
  await form.getByLabel("To", { exact: true }).fill("@archive:/odd/");
  await form.getByLabel("Label").fill(label);
  await button(form, "Submit").click();
  await state(page, "Succeeded");
  const items = page.getByRole("grid", { name: "Items" });
  for (const shown of ["<img src=x onerror=alert(1)>", "&amp;", "\u05e9\u05dc\u05d5\u05dd", "𝄞 clef", "gnp.exe"]) {
    await items.getByText(shown, { exact: false }).waitFor();
  }
  const text = await items.innerText();
  assert.ok(!text.includes("\u202e") && !text.includes("two\nlines"), text);
  assert.ok(text.includes("raw-\\xFF\\xFE"), text);
  assert.equal(await page.locator("main img, main script").count(), 0);
  assert.ok((await page.getByRole("heading", { level: 1 }).innerText()).includes("<script>alert(2)</script>"));
  const below = (name) => fs.readdirSync(world.path(name, "odd"), { encoding: "buffer" }).map((one) => one.toString("latin1")).sort();
  assert.deepEqual(below("archive"), below("lab"));
  for (const [name, kind] of [["CSV", "csv"], ["NDJSON", "ndjson"]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), button(page, name).click()]);
    assert.ok(download.suggestedFilename().endsWith(`.${kind}`));
    const saved = fs.readFileSync(await download.path(), "utf8");
    assert.ok(/raw-\\+xff\\+xfe/.test(saved) && saved.includes("onerror=alert(1)"), saved);
  }
}));

test("task list follows what happens elsewhere, and is filtered by the server", () => visit(world, { user: "local" }, async (page) => {
  const grid = page.getByRole("grid", { name: "Tasks" });
  const { id } = await world.submit("random:1T", "null:", { label: "from elsewhere", options: { rate_limit: MIB } });
  await grid.getByRole("row").filter({ hasText: "from elsewhere" }).filter({ hasText: "Active" }).waitFor();
  await button(page, "Cancelled").click();
  await until("it is not listed", async () => await grid.getByText("from elsewhere").count() === 0);
  await world.api("POST", `/tasks/${id}/cancel`);
  await grid.getByRole("row").filter({ hasText: "from elsewhere" }).filter({ hasText: "Cancelled" }).waitFor();
  const search = page.getByRole("searchbox");
  await search.pressSequentially("no such label");
  await page.getByText("No task fits").waitFor();
  assert.equal(await search.inputValue(), "no such label");
  assert.ok(await search.evaluate((one) => one === document.activeElement));
  await button(page, "Show all tasks").click();
  await grid.getByText("from elsewhere").waitFor();
}));
