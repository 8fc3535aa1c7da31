// Makes the pictures of the documents again, from a real service with nodes and tasks:
//   node tests/page/pictures.mjs            all of them
//   node tests/page/pictures.mjs task       those whose name contains a word
import fs from "node:fs";
import { randomBytes } from "node:crypto";
import { endBrowser, visit } from "./support/browser.mjs";
import { until, World } from "./support/world.mjs";

const OUT = new URL("../../docs/pictures/", import.meta.url), MIB = 1 << 20, MOST = 150_000;
const only = process.argv[2] ?? "";
fs.mkdirSync(OUT, { recursive: true });

const world = await World.start();
try {
  for (let number = 0; number < 48; number += 1) {
    world.write(`lab/run42/detector-${number % 4}/frame-${String(number).padStart(4, "0")}.dat`, randomBytes(90_000 + number * 1000));
  }
  for (const [name, size] of /** @type {[string, number]} */ ([["calibration.h5", 3 * MIB], ["notes.txt", 1200], ["run42.log", 38_000], ["spectra.csv", 420_000]])) world.write(`lab/run42/${name}`, randomBytes(size));
  world.write("archive/2026/run41/calibration.h5", randomBytes(2 * MIB));
  world.write("lab/large.dat", randomBytes(160 * MIB));
  /** @type {Record<string, string>} */
  const tasks = {};
  const submit = async (label, source, destination, more = {}) => { tasks[label] = (await world.submit(source, destination, { label, ...more })).id; };
  fs.mkdirSync(world.path("scratch"));
  await world.api("POST", "/endpoints", { name: "scratch", location: { kind: "local", root: world.path("scratch") } });
  if ("node".includes(only)) {
    // Before anything else runs: the figures in the picture are this host's own.
    await world.api("POST", "/endpoints/scratch/test");
    await world.api("POST", "/endpoints/scratch/bench");
    await until("the storage is measured", async () => (await world.api("GET", "/endpoints/scratch/bench")).state === "finished", 120_000);
  }
  await submit("run 41", "@lab:/run42/detector-0/", "@archive:/2026/run41/");
  await submit("calibration", "@lab:/calibration/", "@archive:/calibration/");
  await submit("spectra", "@lab:/run42/", "@archive:/2026/spectra/");
  await world.api("POST", "/tasks", { label: "nightly", pairs: [{ source: "@lab:/run42/detector-1/", destination: "@archive:/n/" }, { source: "@lab:/absent", destination: "@archive:/n/" }] });
  await submit("large", "@lab:/large.dat", "@archive:/large.dat", { options: { rate_limit: 4 * MIB } });
  await world.reached(tasks.spectra, "SUCCEEDED");
  await until("the plots have something to show", async () => (await world.api("GET", `/tasks/${tasks.large}`)).progress.bytes_moved > 90 * MIB, 120_000);

  /** @type {[string, string, object, ((page: import("playwright-core").Page) => Promise<void>)?][]} */
  const pictures = [
    ["files", `#/files?${new URLSearchParams({ left: "@lab:/run42", right: "@archive:/2026/spectra" })}`, { width: 1380 }, async (page) => {
      const left = page.getByRole("grid", { name: /^Left pane/ });
      await left.getByText("spectra.csv").waitFor();
      await page.getByRole("grid", { name: /^Right pane/ }).getByText("calibration.h5").waitFor();
      await left.focus();
      for (const key of ["ArrowDown", " ", "ArrowDown", " ", "ArrowDown", "ArrowDown", " "]) await page.keyboard.press(key);
      await page.getByText("3 selected").waitFor();
    }],
    ["tasks", "#/tasks", {}],
    ["task", `#/tasks/${tasks.large}`, { height: 820 }, async (page) => { await page.locator(".uplot").first().waitFor(); }],
    ["node", "#/node/scratch", { height: 1000 }, async (page) => {
      await page.getByRole("region", { name: "Ladder of scratch" }).waitFor();
      await page.getByRole("region", { name: "Findings" }).evaluate((one) => { one.style.scrollMarginTop = "24px"; one.scrollIntoView(); });
    }],
    ["overview-dark", "#/overview", { dark: true }, async (page) => { await page.locator(".uplot").first().waitFor(); }],
  ];
  for (const [name, at, how, ready] of pictures.filter(([name]) => name.includes(only))) {
    await visit(world, { user: "local", at, width: 1280, height: 760, ...how }, async (page) => {
      await until("everything is read", async () => await page.locator("main h1").count() > 0 && await page.locator("[aria-busy=true]").count() === 0);
      await ready?.(page);
      await page.getByRole("status").getByText("Live").waitFor();
      const picture = await page.screenshot({ animations: "disabled" });
      if (picture.length > MOST) throw new Error(`${name}: ${picture.length} bytes`);
      fs.writeFileSync(new URL(`${name}.png`, OUT), picture);
      process.stdout.write(`docs/pictures/${name}.png: ${picture.length} bytes\n`);
    });
  }
} finally {
  await endBrowser();
  world.endNow();
}
