// Uploads by the page: a large file goes on after the server was killed in the midst of it, and arrives whole.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { after, before, test } from "node:test";
import { endBrowser, visit } from "./support/browser.mjs";
import { b3sum, until, World } from "./support/world.mjs";

/** @type {World} */
let world;
before(async () => {
  world = await World.start();
  world.addUser("ada");
  world.run("endpoint", "edit", "lab", "--uploads");
});
after(async () => { await endBrowser(); world?.endNow(); });

const MIB = 1 << 20, SIZE = 300 * MIB;
const AT = "#/files?left=@lab:/&right=@archive:/";
const uploads = (page) => page.getByRole("region", { name: "Uploads" });
const choose = (page, file) => page.locator("input[type=file]").first().setInputFiles(file);
/** Bytes that the page says were sent. */
async function sent(page) {
  const told = /sending ([\d.]+) MiB of/.exec(await uploads(page).innerText());
  return told ? Number(told[1]) : 0;
}

test("upload goes on when the server was killed in the midst and the same file is dropped again", () => visit(world, { user: "ada", at: AT }, async (page, guard, context) => {
  const file = world.write("large.dat", randomBytes(SIZE));
  guard.expect(/^net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|CONNECTION_CLOSED|SOCKET_NOT_CONNECTED|CONTENT_LENGTH_MISMATCH) /);
  await choose(page, file);
  await until("a part has been sent", async () => (await sent(page)) >= 40);
  await world.kill();
  assert.ok(!fs.existsSync(world.path("lab/large.dat")), "nothing has the name yet");
  await page.close();
  await world.serve();
  const again = await context.newPage();
  guard.watch(again);
  await again.goto(`${world.origin}/${AT}`);
  await again.getByRole("button", { name: "Log out" }).waitFor();
  await choose(again, file);
  await uploads(again).getByText(/were there/).waitFor();
  await uploads(again).getByText("done, verified").waitFor();
  assert.equal(b3sum(world.path("lab/large.dat")), b3sum(file));
  await again.getByRole("grid", { name: /^Left pane/ }).getByText("large.dat").waitFor();
}));

test("upload never takes the place of another file by itself", () => visit(world, { user: "ada", at: AT }, async (page) => {
  world.write("lab/taken.txt", "what was there");
  const file = world.write("taken.txt", "what comes");
  await choose(page, file);
  await uploads(page).getByRole("button", { name: "Replace" }).waitFor();
  assert.equal(fs.readFileSync(world.path("lab/taken.txt"), "utf8"), "what was there");
  await uploads(page).getByRole("button", { name: "Replace" }).click();
  await uploads(page).getByText("done, verified").waitFor();
  assert.equal(fs.readFileSync(world.path("lab/taken.txt"), "utf8"), "what comes");
}));
