// The Files view: two panes of endpoints, by mouse and by keyboard, and tasks from one to the other.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { accessible, endBrowser, visit } from "./support/browser.mjs";
import { b3sum, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
/** Entries of a directory that no page holds as a whole. */
const MANY = 100_000;
before(async () => {
  world = await World.start();
  world.addUser("ada");
  world.addUser("eve", "viewer");
  for (let number = 0; number < 12; number += 1) world.write(`lab/run/file-${number}.dat`, randomBytes(1000 + number));
  world.write("lab/run/raw/deep.bin", randomBytes(300_000));
  world.write("lab/run/.hidden", "h");
  fs.mkdirSync(world.path("lab/many"));
  for (let number = 0; number < MANY; number += 1) fs.writeFileSync(world.path(`lab/many/img-${number}.tif`), "");
  fs.mkdirSync(world.path("lab/empty"));
});
after(async () => { await endBrowser(); world?.endNow(); });

const link = (left, right, more = "") => `#/files?left=@lab:${encodeURIComponent(left)}&right=@archive:${encodeURIComponent(right)}${more}`;
const grid = (page, side) => page.getByRole("grid", { name: new RegExp(`^${side} pane`) });
const row = (page, side, name) => grid(page, side).getByRole("row").filter({ has: page.locator("bdi", { hasText: new RegExp(`^${name}$`) }) });
const button = (page, name) => page.getByRole("button", { name, exact: true });
/** The row that has a grid's focus: its name and its number. */
const active = (page, side) => grid(page, side).evaluate((one) => {
  const row = document.getElementById(one.getAttribute("aria-activedescendant") ?? "");
  return { name: row?.querySelector("bdi")?.textContent, row: Number(row?.getAttribute("aria-rowindex")) };
});
const stands = (page, side, name) => until(`${name} is the active row`, async () => (await active(page, side)).name === name);
const hasFocus = (locator) => locator.evaluate((one) => one === document.activeElement);
const foot = (page, side) => page.locator(`.pane-foot.${side.toLowerCase()}`);
const dialog = (page) => page.getByRole("dialog");

test("files are chosen by keys and copied to the other pane by a task", () => visit(world, { user: "ada", at: link("/run", "/") }, async (page) => {
  const left = grid(page, "Left");
  await row(page, "Left", "raw").waitFor();
  assert.ok(await hasFocus(left), "the view begins in its list");
  await page.keyboard.type("file-3");
  await stands(page, "Left", "file-3.dat");
  await page.keyboard.press("Space");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Shift+ArrowDown");
  await foot(page, "Left").getByText("3 selected").waitFor();
  assert.equal(await left.locator("[aria-selected=true]").count(), 3);
  await page.keyboard.press("c");
  await dialog(page).getByText("3 files").waitFor();
  await accessible(page, "the sheet of a copy");
  await dialog(page).getByLabel("Label").fill("by keys");
  await dialog(page).getByText("What is copied", { exact: true }).click();
  // A field that is wrong keeps both buttons from acting.
  const limit = dialog(page).locator("input[name='options.rate_limit']");
  await limit.evaluate((one) => { one.closest("details")?.setAttribute("open", ""); });
  await limit.fill("much");
  await button(dialog(page), "What would change").click();
  assert.ok(await limit.evaluate((one) => one === document.activeElement && !one.validity.valid));
  await button(dialog(page), "Start copy").click();
  assert.equal((await world.api("GET", "/tasks?label=by%20keys")).items.length, 0);
  await limit.fill("");
  await dialog(page).getByLabel("Verify").selectOption("disk");
  await button(dialog(page), "Start copy").click();
  await page.getByRole("region", { name: "Tasks started here" }).getByText("Succeeded").waitFor();
  for (const name of ["file-3.dat", "file-4.dat", "file-5.dat"]) await row(page, "Right", name).waitFor();
  const [task] = (await world.api("GET", "/tasks?label=by%20keys")).items;
  assert.deepEqual(task.request.pairs, [3, 4, 5].map((number) => ({ source: `@lab:/run/file-${number}.dat`, destination: "@archive:/" })));
  assert.equal(task.request.options.verify, "disk");
}));

test("focus is never lost: far from the view, out of the list and in, and when its row is filtered away", () => visit(world, { user: "ada", at: link("/many", "/") }, async (page) => {
  const left = grid(page, "Left"), right = grid(page, "Right");
  await foot(page, "Left").getByText(`${MANY.toLocaleString("en-US")} entries`).waitFor();
  assert.equal(await left.getAttribute("aria-rowcount"), String(MANY + 1));
  for (let presses = 0; presses < 9; presses += 1) await page.keyboard.press("ArrowDown");
  assert.deepEqual(await active(page, "Left"), { name: "img-9.tif", row: 11 });
  await left.evaluate((one) => { one.scrollTop = one.scrollHeight / 2; });
  await left.getByText("img-50000.tif").waitFor();
  assert.ok(await left.locator("[role=row]").count() < 120, "rows exist only near the view");
  const numbers = await left.locator("[role=row]").evaluateAll((rows) => rows.map((one) => Number(one.getAttribute("aria-rowindex"))));
  assert.deepEqual(numbers, [...numbers].sort((one, other) => one - other), "the numbers of rows rise");
  await page.keyboard.press("Tab");
  assert.ok(await hasFocus(right), "Tab changes the pane");
  await page.keyboard.press("Shift+Tab");
  assert.ok(await hasFocus(left));
  assert.deepEqual(await active(page, "Left"), { name: "img-9.tif", row: 11 });
  await accessible(page, "a list that is scrolled away from its focus");
  await page.keyboard.press("ArrowDown");
  await left.getByText("img-10.tif", { exact: true }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("*99.tif");
  await foot(page, "Left").getByText("1,000 of 100,000 entries").waitFor();
  await page.keyboard.press("Enter");
  assert.ok(await hasFocus(left), "Enter leads from the filter to the list");
  assert.match((await active(page, "Left")).name ?? "", /99\.tif$/);
  await page.keyboard.press("End");
  await stands(page, "Left", "img-99999.tif");
}));

test("all means the whole directory under its filter, and all but some are exactly these", () => visit(world, { user: "ada", at: link("/many", "/") }, async (page, guard) => {
  await grid(page, "Left").getByText("img-0.tif", { exact: true }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("*999.tif");
  await foot(page, "Left").getByText("100 of 100,000").waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Home");
  await page.keyboard.press("Control+a");
  await foot(page, "Left").getByText("100 selected").waitFor();
  await page.keyboard.press("Space");
  await foot(page, "Left").getByText("99 selected").waitFor();
  // The service drops a listing that nobody has asked for during some minutes.
  const opened = page.waitForResponse((answer) => answer.request().method() === "POST" && answer.url().endsWith("/listings"));
  await button(page, "Read the folder again").first().click();
  const { id } = await (await opened).json(), dropped = () => page.evaluate(async (id) => (await fetch(`/api/v1/listings/${id}`)).status, id);
  await foot(page, "Left").getByText("99 selected").waitFor();
  guard.expect(/^404 .*\/listings\//);
  await page.evaluate(async (id) => {
    const { csrf } = await (await fetch("/api/v1/whoami")).json();
    await fetch(`/api/v1/listings/${id}`, { method: "DELETE", headers: { "x-carrack-csrf": csrf } });
  }, id);
  assert.equal(await dropped(), 404);
  await grid(page, "Left").focus();
  await page.keyboard.press("c");
  await dialog(page).getByText("99 files").waitFor();
  await dialog(page).getByLabel("Label").fill("all but one");
  await button(dialog(page), "Start copy").click();
  await dialog(page).waitFor({ state: "detached" });
  const [task] = (await world.api("GET", "/tasks?label=all%20but")).items;
  const names = task.request.pairs.map(({ source }) => source.replace("@lab:/many/", "")).sort();
  assert.equal(names.length, 99);
  assert.ok(names.every((name) => name.endsWith("999.tif")) && !names.includes("img-999.tif"));
  // Without a filter the folder's contents are one pair, however many they are.
  await page.keyboard.press("Escape");
  await page.getByLabel("Filter of the left pane").fill("");
  await foot(page, "Left").getByText(/^100,000 entries/).waitFor();
  await button(page, "Select all").first().click();
  await button(page, "Copy from the left pane to the right pane").click();
  await dialog(page).getByText("100,000 files").waitFor();
  await dialog(page).getByText("The same at the command line").click();
  assert.equal(await dialog(page).locator(".command code").innerText(), "carrack task submit @lab:/many/ @archive:/");
  await page.keyboard.press("Escape");
  // By name they are too many for a task, and the page says so before it asks the service.
  await grid(page, "Left").focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("c");
  await dialog(page).getByText("at most 10,000 items").waitFor();
  assert.ok(await button(dialog(page), "Start copy").isDisabled());
  await button(dialog(page), "Copy the whole folder, hidden entries too").click();
  await dialog(page).getByText("100,000 files").waitFor();
}));

test("folders are made, renamed and deleted, and nothing goes before it was shown", () => visit(world, { user: "ada", at: link("/run", "/") }, async (page, guard) => {
  await row(page, "Left", "raw").waitFor();
  await page.keyboard.press("n");
  await dialog(page).getByLabel("Name").fill("100% new");
  await accessible(page, "the name of a new folder");
  await page.keyboard.press("Enter");
  await stands(page, "Left", "100% new");
  assert.ok(fs.statSync(world.path("lab/run/100% new")).isDirectory());
  assert.ok(await hasFocus(grid(page, "Left")));
  await page.keyboard.press("F2");
  assert.equal(await dialog(page).getByLabel("New name").inputValue(), "100% new");
  guard.expect(/^409 /);
  await dialog(page).getByLabel("New name").fill("raw");
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("alert").waitFor();
  assert.ok(fs.existsSync(world.path("lab/run/raw/deep.bin")), "what exists is not replaced unasked");
  await dialog(page).getByLabel("New name").fill("newer");
  await page.keyboard.press("Enter");
  await stands(page, "Left", "newer");
  assert.ok(fs.existsSync(world.path("lab/run/newer")) && !fs.existsSync(world.path("lab/run/100% new")));
  fs.writeFileSync(world.path("lab/run/newer/inside"), "12345");
  await page.keyboard.press("Delete");
  await dialog(page).getByText("1 file, 1 folder, 5 B").waitFor();
  await accessible(page, "what a deletion would delete");
  await button(dialog(page), "Keep").click();
  assert.ok(fs.existsSync(world.path("lab/run/newer/inside")));
  await page.keyboard.press("Delete");
  await button(dialog(page), "Delete").click();
  await until("it is gone", () => !fs.existsSync(world.path("lab/run/newer")));
  await row(page, "Left", "newer").waitFor({ state: "detached" });
  assert.ok(fs.existsSync(world.path("lab/run/raw/deep.bin")));
}));

test("a dialog gives the focus back as it closes, and never takes it from where the reader went since", () => visit(world, { user: "ada", at: link("/run", "/") }, async (page) => {
  const left = grid(page, "Left"), opener = page.getByRole("button", { name: /^New folder/ });
  await row(page, "Left", "raw").waitFor();
  for (const how of ["Escape", "Enter", "elsewhere"]) {
    await opener.focus();
    await page.keyboard.press("Enter");
    await dialog(page).getByLabel("Name").waitFor();
    if (how === "Enter") await button(dialog(page), "Close").press("Enter");
    else if (how === "Escape") await page.keyboard.press("Escape");
    // In one step of the browser, as by a fast hand on a slow machine: the view hears of the end later.
    else await left.evaluate((one) => { document.querySelector("dialog")?.close(); one.focus(); });
    await dialog(page).waitFor({ state: "detached" });
    const at = how === "elsewhere" ? left : opener;
    assert.ok(await hasFocus(at), `${how}: the focus is at ${await page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200))}`);
  }
}));

test("properties show the exact size, what a folder holds, and the digest of b3sum", () => visit(world, { user: "ada", at: link("/run", "/") }, async (page) => {
  await row(page, "Left", "file-7.dat").dblclick();
  await dialog(page).getByText("(1,007 bytes)").waitFor();
  await button(dialog(page), "Compute BLAKE3").click();
  await dialog(page).getByText(b3sum(world.path("lab/run/file-7.dat"))).waitFor();
  await accessible(page, "properties of a file");
  await page.keyboard.press("Escape");
  await row(page, "Left", "raw").click();
  await button(page, "Properties").click();
  await dialog(page).getByText("1 file, 1 folder, 293.0 KiB").waitFor();
}));

test("address leads to two folders, and back leads to the row that was opened", () => visit(world, { user: "ada", at: link("/run", "/", "&name=file-9.dat") }, async (page, guard) => {
  await stands(page, "Left", "file-9.dat");
  await page.keyboard.type("raw");
  await stands(page, "Left", "raw");
  await page.keyboard.press("Enter");
  await row(page, "Left", "deep.bin").waitFor();
  assert.ok(page.url().endsWith("#/files?left=@lab:/run/raw&right=@archive:/"));
  await page.keyboard.press("Backspace");
  await stands(page, "Left", "raw");
  await page.goBack();
  await row(page, "Left", "deep.bin").waitFor();
  guard.expect(/^404 /);
  await page.getByRole("button", { name: "Type a path for the left pane" }).click();
  await page.keyboard.type("@lab:/run/../nowhere/");
  await page.keyboard.press("Enter");
  await grid(page, "Left").getByRole("alert").waitFor();
  await accessible(page, "a folder that is not there");
  await page.getByRole("button", { name: "Go to the folder above" }).click();
  await row(page, "Left", "run").waitFor();
  assert.ok(page.url().includes("right=@archive:/"), "the other pane stays where it is");
}));

/** The word that is in the clipboard, as a shell reads it. */
const copied = async (page) => spawnSync("bash", ["-c", `printf %s ${await page.evaluate(() => navigator.clipboard.readText())}`]).stdout;

test("copied location is one word that names the file, and leads there where a path is typed", () => visit(world, { user: "ada", at: link("/shell", "/") }, async (page, _, context) => {
  const names = ["50%.dat", "old data", "a%2Fb", "it's", `$(touch ${world.path("ran")})`.replaceAll("/", "\u2215"), "$HOME;`id`", "ends "];
  for (const name of names) fs.mkdirSync(world.path("lab/shell", name), { recursive: true });
  await button(page, "Read the folder again").first().click();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  for (const name of names) {
    await grid(page, "Left").getByRole("row").filter({ has: page.locator("bdi", { hasText: name.replace(/ $/, "␣") }) }).click();
    await page.keyboard.press("Control+c");
    await until(`${name} is copied`, async () => String(await copied(page)) === `@lab:/shell/${name}`);
    await button(page, "Properties").click();
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await button(dialog(page), "Copy location").click();
    await until(`${name} is copied from its properties`, async () => String(await copied(page)) === `@lab:/shell/${name}`);
    await page.keyboard.press("Escape");
  }
  // White space at its end is part of a name, in the address too.
  await page.getByRole("button", { name: "Type a path for the right pane" }).click();
  const word = await page.evaluate(() => navigator.clipboard.readText());
  await page.getByLabel("Path of the right pane").fill(word);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.hash.includes("right=@lab:/shell/ends%20"));
  fs.writeFileSync(world.path("lab/shell/ends ", "inside"), "1");
  await page.reload();
  await row(page, "Right", "inside").waitFor();
  await page.getByRole("button", { name: "Type a path for the right pane" }).click();
  assert.equal(await page.getByLabel("Path of the right pane").inputValue(), "/shell/ends%20");
}));

test("names of any bytes are shown as text, found, and copied exactly", () => visit(world, { user: "ada", at: link("/odd", "/") }, async (page, _, context) => {
  world.write("lab/odd/<img src=x onerror=alert(1)>", "1");
  world.write(Buffer.from("lab/odd/\xff\n50% \u0001", "latin1"), "2");
  world.write("lab/odd/left\u202eexe.txt", "3");
  await button(page, "Read the folder again").first().click();
  await row(page, "Left", "<img src=x onerror=alert\\(1\\)>").waitFor();
  await grid(page, "Left").getByText("left\\u{202e}exe.txt").waitFor();
  const odd = grid(page, "Left").getByRole("row").filter({ hasText: "\\xFF\\n50% \\x01" });
  await odd.click();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.keyboard.press("Control+c");
  await until("the location is copied", async () => (await copied(page)).equals(Buffer.from("@lab:/odd/\xff\n50% \u0001", "latin1")));
  await page.keyboard.press("c");
  await dialog(page).getByText("1 file").waitFor();
  await button(dialog(page), "Start copy").click();
  await until("it has arrived", () => fs.existsSync(Buffer.concat([Buffer.from(`${world.path("archive")}/`), Buffer.from("\xff\n50% \u0001", "latin1")])));
  await accessible(page, "names of any bytes");
  // Text that looks like an escape is a name like any other: a selection with them is copied.
  const names = ["a%2Fb", "%2E%2E", "c%00"];
  for (const name of names) world.write(`lab/odd/${name}`, name);
  await button(page, "Read the folder again").first().click();
  for (const name of names) await row(page, "Left", name).locator(".tick").click();
  await page.keyboard.press("c");
  await dialog(page).getByText("3 files").waitFor();
  await button(dialog(page), "Start copy").click();
  await until("all three have arrived", () => names.every((name) => fs.existsSync(world.path("archive", name)) && fs.readFileSync(world.path("archive", name), "utf8") === name));
}));

test("rows are dragged to the other pane, and with Shift they move", () => visit(world, { user: "ada", at: link("/drag", "/dragged") }, async (page) => {
  for (const name of ["one", "two", "three"]) world.write(`lab/drag/${name}`, name);
  fs.mkdirSync(world.path("archive/dragged/inner"), { recursive: true });
  await button(page, "Read the folder again").first().click();
  await button(page, "Read the folder again").last().click();
  await row(page, "Left", "one").locator(".tick").click();
  await row(page, "Left", "two").locator(".tick").click();
  await row(page, "Left", "one").dragTo(row(page, "Right", "inner"));
  await dialog(page).getByText("2 files").waitFor();
  assert.equal(await dialog(page).getByLabel("To", { exact: true }).inputValue(), "@archive:/dragged/inner");
  await button(dialog(page), "Start copy").click();
  await until("both are there", () => ["one", "two"].every((name) => fs.existsSync(world.path("archive/dragged/inner", name))));
  await row(page, "Left", "three").click();
  await page.keyboard.press("m");
  await dialog(page).getByText("Each source is deleted").waitFor();
  await button(dialog(page), "Start move").click();
  await row(page, "Right", "three").waitFor();
  await until("its source is gone", () => !fs.existsSync(world.path("lab/drag/three")));
}));

test("a file and a folder are downloaded whole, whatever they are called", () => visit(world, { user: "ada", at: link("/down", "/") }, async (page) => {
  const content = randomBytes(3_000_000), name = "100% \"odd\" é.bin";
  world.write(`lab/down/${name}`, content);
  world.write("lab/down/folder/inner/deep", "deep");
  world.write("lab/down/folder/flat", "flat");
  await button(page, "Read the folder again").first().click();
  const saved = async (what) => {
    await grid(page, "Left").getByText(what, { exact: true }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), button(page, "Download").click()]);
    assert.equal(await download.failure(), null);
    return { path: await download.path(), name: download.suggestedFilename() };
  };
  const file = await saved(name);
  assert.match(file.name, /odd/);
  assert.ok(content.equals(fs.readFileSync(file.path)));
  const archive = await saved("folder");
  assert.equal(archive.name, "folder.tar");
  const list = spawnSync("tar", ["-tf", archive.path], { encoding: "utf8" });
  assert.equal(list.status, 0, list.stderr);
  assert.deepEqual(list.stdout.trim().split("\n").map((one) => one.replace(/^\.\/|\/$/g, "")).sort(), ["folder", "folder/flat", "folder/inner", "folder/inner/deep"]);
  assert.equal(spawnSync("tar", ["-xOf", archive.path, "folder/inner/deep"], { encoding: "utf8" }).stdout, "deep");
}));

test("download by a token gives the same archive, and a failure of it is told", () => visit(world, {}, async (page, guard) => {
  const { token } = await world.api("POST", "/tokens", { label: "reads", user: "ada", scope: { verbs: ["read", "view"] } });
  world.write("lab/taken/inner/deep", "deep");
  await page.goto(world.origin);
  await page.getByRole("button", { name: "Token" }).click();
  await page.getByLabel(/^Token/).and(page.locator("input")).fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("button", { name: "Log out" }).waitFor();
  await page.goto(`${world.origin}/${link("/taken", "/")}`);
  await row(page, "Left", "inner").click();
  const [download] = await Promise.all([page.waitForEvent("download"), button(page, "Download").click()]);
  assert.equal(spawnSync("tar", ["-xOf", await download.path(), "inner/deep"], { encoding: "utf8" }).stdout, "deep");
  guard.expect(/^net::ERR_FAILED /, /^507 /);
  await page.route(/\/files\/archive/, (route) => route.abort());
  await button(page, "Download").click();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).waitFor();
  await page.unroute(/\/files\/archive/);
  await page.route(/\/files\/archive/, (route) => route.fulfill({ status: 507, json: { code: "limit", detail: "too many of them", hints: [] } }));
  await button(page, "Download").click();
  await page.getByRole("alert").filter({ hasText: "Too many of them" }).waitFor();
}));

test("what is done is done to the entry that was chosen, while rows come anew that stand before it", () => (world.write("lab/moved/b", "b"), visit(world, { user: "ada", at: link("/moved", "/") }, async (page) => {
  await row(page, "Left", "b").waitFor();
  world.write("lab/moved/a", "a");
  const gate = () => { let open = () => {}; const opened = new Promise((done) => { open = () => done(null); }); return { open, opened }; };
  const rows = gate(), places = gate();
  await page.route(/\/listings\/[^/]+\?/, async (route) => {
    await (route.request().url().includes("around=") ? places : rows).opened;
    await route.continue();
  });
  await button(page, "Read the folder again").first().click();
  await row(page, "Left", "b").click();
  rows.open();
  await row(page, "Left", "a").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), button(page, "Download").click()]);
  assert.equal(download.suggestedFilename(), "b");
  places.open();
})));

test("range of a folder that is still read begins at the row that was chosen", () => visit(world, { user: "ada", at: link("/empty", "/") }, async (page) => {
  let first = true;
  // The service has read all but the first two names so far.
  await page.route(/\/listings\/[^/]+\?/, async (route) => {
    const answer = await route.fetch(), told = await answer.json();
    if (first && told.entries.length > 2) Object.assign(told, { state: "reading", entries: told.entries.slice(2), total: told.total - 2 });
    await route.fulfill({ response: answer, json: told });
  });
  for (const name of ["1", "2", "3", "4", "5", "6"]) world.write(`lab/range/${name}`, name);
  await page.goto(`${world.origin}/${link("/range", "/")}`);
  await row(page, "Left", "4").locator(".tick").click();
  await foot(page, "Left").getByText("1 selected").waitFor();
  first = false;
  await row(page, "Left", "1").waitFor();
  await row(page, "Left", "5").click({ modifiers: ["Shift"] });
  await foot(page, "Left").getByText("2 selected").waitFor();
  assert.deepEqual(await grid(page, "Left").locator("[aria-selected=true] bdi").allInnerTexts(), ["4", "5"]);
}));

test("viewers are told that they see figures, and no folder is asked for", () => visit(world, { user: "eve", at: link("/run", "/") }, async (page) => {
  await page.getByText("A viewer sees figures, not files").waitFor();
  await accessible(page, "files of a viewer");
  assert.equal(await page.getByRole("alert").count(), 0);
}));

for (const [what, how] of /** @type {[string, object][]} */ ([["light", {}], ["dark", { dark: true }], ["narrow", { width: 390 }]])) {
  test(`axe-core finds nothing in the states of a pane, ${what}`, () => visit(world, { user: "ada", at: link("/run", "/"), ...how }, async (page) => {
    await row(page, "Left", "raw").waitFor();
    await row(page, "Left", "file-1.dat").locator(".tick").click();
    await accessible(page, `selected, ${what}`);
    await page.getByLabel("Filter of the left pane").fill("nothing has this name");
    await page.getByText("Nothing matches the filter").waitFor();
    await accessible(page, `filtered to nothing, ${what}`);
    await page.goto(`${world.origin}/${link("/empty", "/")}`);
    await page.getByText("This folder is empty").waitFor();
    await accessible(page, `empty, ${what}`);
    await button(page, "Bookmarks").first().click();
    await dialog(page).waitFor();
    await accessible(page, `places, ${what}`);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
    await grid(page, "Left").focus();
    await page.keyboard.press("?");
    await dialog(page).waitFor();
    await accessible(page, `keys, ${what}`);
  }));
}
