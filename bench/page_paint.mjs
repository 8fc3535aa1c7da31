// The first paint of the page, and its first rows, through a network with latency: a relay before the service that holds
// what goes either way for half of it, a new connection for one way there and back, and more than TCP's first window
// for as long as TCP would, doubling it each time.
//
//   node bench/page_paint.mjs              0, 50 and 150 ms from there and back
//   node bench/page_paint.mjs 150          that alone
import net from "node:net";
import { endBrowser, visit } from "../tests/page/support/browser.mjs";
import { World } from "../tests/page/support/world.mjs";

// As with a certificate that is trusted: else the browser connects twice.
process.env.CARRACK_TEST_CHROMIUM_FLAGS = "--ignore-certificate-errors";
const TURNS = 5;
/** What TCP sends before the first acknowledgement: ten segments. */
const WINDOW = 10 * 1460;
const later = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const middle = (numbers) => numbers.sort((one, other) => one - other)[Math.floor(numbers.length / 2)];

/** Carries what comes from one socket to the other, each piece after half of the latency and none before its forerunner. */
function carry(from, to, latency, windowed) {
  let window = WINDOW, room = WINDOW, free = 0, chain = Promise.resolve();
  from.on("data", (piece) => {
    const came = performance.now();
    for (let at = 0; at < piece.length;) {
      if (windowed && room === 0) { free = Math.max(free, came) + latency; window *= 2; room = window; }
      const part = windowed ? piece.subarray(at, at + room) : piece.subarray(at);
      if (windowed) room -= part.length;
      at += part.length;
      const due = Math.max(came, free) + latency / 2;
      chain = chain.then(async () => { await later(Math.max(0, due - performance.now())); to.write(part); });
    }
  });
  from.on("end", () => { chain = chain.then(() => { to.end(); }); });
  from.on("error", () => to.destroy()).on("close", () => { chain = chain.then(() => { to.destroy(); }); });
}

/** A relay to the service; its port. */
async function relay(port, latency) {
  const server = net.createServer({ noDelay: true }, async (near) => {
    near.pause();
    // The handshake of TCP.
    await later(latency);
    const far = net.connect({ port, host: "127.0.0.1", noDelay: true });
    carry(near, far, latency, false);
    carry(far, near, latency, true);
    near.resume();
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", () => resolve(null)); });
  return { port: server.address().port, end: () => server.close() };
}

const world = await World.start();
try {
  world.addUser("ada");
  for (let number = 0; number < 40; number += 1) world.write(`lab/run/file-${number}.dat`, "x");
  process.stdout.write("| latency | first paint | rows | requests |\n|---|---|---|---|\n");
  for (const latency of process.argv[2] ? [Number(process.argv[2])] : [0, 50, 150]) {
    const paints = [], rows = [];
    let requests = 0;
    for (let turn = 0; turn < TURNS; turn += 1) {
      const way = await relay(world.port, latency);
      // A browser that has nothing of the page but who is logged in.
      await visit({ link: (user) => world.link(user), origin: `https://127.0.0.1:${way.port}` }, {}, async (page, _, context) => {
        await visit(world, { user: "ada" }, async (__, ___, own) => { await context.addCookies(await own.cookies()); });
        page.on("request", () => { requests += 1; });
        await page.goto(`https://127.0.0.1:${way.port}/#/files?left=@lab:/run&right=@archive:/`);
        await page.getByRole("row").filter({ hasText: "file-7.dat" }).waitFor();
        const [paint, all] = await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime, performance.now()]);
        paints.push(paint); rows.push(all);
      });
      way.end();
    }
    process.stdout.write(`| ${latency} ms | ${(middle(paints) / 1000).toFixed(2)} s | ${(middle(rows) / 1000).toFixed(2)} s | ${Math.round(requests / TURNS)} |\n`);
  }
} finally {
  await endBrowser();
  world.endNow();
}
