// A real service with two nodes as its endpoints, in a directory of its own. Everything that it starts, it ends by
// process id: at the end of the tests, and also when they are stopped.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** The program under test. CARRACK_TEST_PROGRAM names another build of it. */
const PROGRAM = path.resolve(process.env.CARRACK_TEST_PROGRAM ?? path.join(ROOT, "target/debug/carrack"));
export const TOKEN = "a-token-for-tests-only-0123456789";
/** How long anything is waited for, in milliseconds. */
export const PATIENCE = 30_000;
export const PASSWORD = "correct horse battery";
/** States in which a task has ended. */
const ENDED = ["SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"];

/** @type {Set<World>} */
const worlds = new Set();
process.on("exit", () => { for (const world of worlds) world.endNow(); });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

/** Asks again and again until the answer is true, or time is up. */
export async function until(what, ask, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`waited ${patience} ms in vain: ${what}`);
    await sleep(20);
  }
}

export class World {
  constructor() {
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), "carrack-page-"));
    fs.mkdirSync(this.path("home"));
    /** @type {Map<string, import("node:child_process").ChildProcess>} */
    this.children = new Map();
    /** @type {Map<string, string>} addresses of the nodes */
    this.nodes = new Map();
    this.log = "";
    /** What runs from now on. */
    this.program = PROGRAM;
    this.port = 0;
    worlds.add(this);
  }

  /** A service, and two nodes that are its endpoints @lab and @archive; anybody may use them. */
  static async start() {
    if (!fs.existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: cargo build -p carrack`);
    const world = new World();
    try {
      await world.serve();
      await Promise.all(["lab", "archive"].map((name) => world.addNode(name)));
      return world;
    } catch (error) {
      world.endNow();
      throw new Error(`${error.message}\n${world.log}`);
    }
  }

  path(...names) { return path.join(this.directory, ...names); }

  /** Writes a file, and the directories above it. The name may be bytes, below the directory. */
  write(name, content) {
    if (typeof name === "string") fs.mkdirSync(path.dirname(this.path(name)), { recursive: true });
    const to = typeof name === "string" ? this.path(name) : Buffer.concat([Buffer.from(`${this.directory}/`), name]);
    fs.writeFileSync(to, content);
    return to;
  }

  get environment() {
    return { PATH: process.env.PATH, HOME: this.path("home"), LC_ALL: "C.UTF-8" };
  }

  /** Starts the program, and waits for a line that begins with `last`; its lines until then. */
  async spawn(name, words, last) {
    const child = spawn(this.program, words, { cwd: this.directory, env: this.environment, stdio: ["ignore", "pipe", "pipe"] });
    this.children.set(name, child);
    child.stderr.on("data", (text) => { this.log += text; });
    const said = [];
    const lines = readline.createInterface({ input: child.stdout });
    await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${name} did not begin: ${said}`)), PATIENCE);
      child.once("exit", (code) => reject(new Error(`${name} ended with ${code}: ${said}`)));
      lines.on("line", (line) => { said.push(line); if (line.startsWith(last)) { clearTimeout(late); resolve(null); } });
    });
    return said;
  }

  /** Starts the service, or starts it again at the same port. */
  async serve() {
    const said = await this.spawn("service", ["serve", "--listen", `127.0.0.1:${this.port}`], "to submit a task: ");
    const told = (word) => said.find((line) => line.startsWith(word))?.slice(word.length) ?? "";
    this.port = Number(told("listening on ").split(":").at(-1));
    this.socket = told("service socket ");
  }

  get origin() { return `https://127.0.0.1:${this.port}`; }

  /** Starts a node, or starts it again at the same port; its location. */
  async serveNode(name) {
    const said = await this.spawn(name, ["serve", "--node-only", "--listen", this.nodes.get(name) ?? "127.0.0.1:0", "--root", this.path(name),
      "--token-file", this.path(`${name}.token`), "--key-file", this.path(`${name}.key`), "--dial-to", "127.0.0.0/8"], "fingerprint ");
    const told = (word) => said.find((line) => line.startsWith(word))?.slice(word.length).trim() ?? "";
    this.nodes.set(name, told("listening on "));
    return `carrack://${told("listening on ")}/${told("fingerprint ")}`;
  }

  async addNode(name) {
    fs.mkdirSync(this.path(name));
    fs.writeFileSync(this.path(`${name}.token`), TOKEN, { mode: 0o600 });
    const location = await this.serveNode(name);
    this.run("endpoint", "add", name, location, "--token-file", this.path(`${name}.token`), "--users", "*",
      "--description", `The ${name} of the tests`);
  }

  /** Runs a command to its end; what it prints. */
  run(...words) { return this.runWith("", ...words); }

  /** The same with standard input. */
  runWith(input, ...words) {
    const ran = spawnSync(this.program, words, { cwd: this.directory, env: this.environment, input, timeout: PATIENCE, encoding: "utf8" });
    if (ran.status !== 0) throw new Error(`carrack ${words.join(" ")}: ${ran.status} ${ran.stdout}${ran.stderr}`);
    return ran.stdout.trim();
  }

  addUser(name, role = "user") { this.runWith(`${PASSWORD}\n`, "service", "user", "add", name, "--password", "--role", role); }

  /** A link that logs a user in once, as a terminal shows it. */
  link(user) {
    const secret = /login=\S+/.exec(this.run("service", "user", "link", user))?.[0];
    return `${this.origin}/#${secret}`;
  }

  /** A call of the API, by the socket: as the account that runs the service. */
  async api(method, route, body) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    return await new Promise((resolve, reject) => {
      const request = http.request({ socketPath: this.socket, method, path: `/api/v1${route}`, timeout: PATIENCE,
        headers: { host: "localhost", ...(text && { "content-type": "application/json", "content-length": Buffer.byteLength(text) }) } },
        async (answer) => {
          let read = "";
          for await (const part of answer.setEncoding("utf8")) read += part;
          if ((answer.statusCode ?? 500) >= 400) reject(new Error(`${method} ${route}: ${answer.statusCode} ${read}`));
          else resolve(read ? JSON.parse(read) : null);
        });
      request.on("error", reject).on("timeout", () => request.destroy(new Error(`${method} ${route}: no answer`)));
      request.end(text);
    });
  }

  /** The status of an answer over the network. */
  async status(route, headers) {
    return await new Promise((resolve, reject) => {
      https.get(`${this.origin}${route}`, { headers, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"], agent: false },
        (answer) => { answer.resume(); resolve(answer.statusCode); }).on("error", reject);
    });
  }

  /** Submits a copy as the service's own account. */
  async submit(source, destination, more = {}) {
    return await this.api("POST", "/tasks", { pairs: [{ source, destination }], ...more });
  }

  /** A task, once it is in one of these states. */
  async reached(id, ...states) {
    let task;
    await until(`task ${id} is ${states}`, async () => {
      task = await this.api("GET", `/tasks/${id}`);
      if (ENDED.includes(task.state) && !states.includes(task.state)) throw new Error(`it is ${task.state}: ${JSON.stringify(task)}`);
      return states.includes(task.state);
    });
    return task;
  }

  /** Ends the service as nothing else does; its workers go on. */
  async kill(name = "service") {
    const child = this.children.get(name);
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => { child.once("exit", resolve); });
    child.kill("SIGKILL");
    await gone;
  }

  /** The service's process stops where it is, or goes on. */
  freeze(frozen) { this.children.get("service")?.kill(frozen ? "SIGSTOP" : "SIGCONT"); }

  /** Processes whose environment names this world's home: workers outlive the service. */
  remaining() {
    const home = Buffer.from(`HOME=${this.path("home")}\0`);
    return fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
      try { return fs.readFileSync(`/proc/${pid}/environ`).includes(home); } catch { return false; }
    }).map(Number);
  }

  endNow() {
    for (const child of this.children.values()) child.kill("SIGKILL");
    for (const pid of this.remaining()) try { process.kill(pid, "SIGKILL"); } catch { /* It is gone. */ }
    fs.rmSync(this.directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    worlds.delete(this);
  }
}

/** The BLAKE3 digest of a file, by another program than the one under test. */
export function b3sum(file) {
  const ran = spawnSync("b3sum", ["--no-names", file], { encoding: "utf8" });
  if (ran.status !== 0) throw new Error(`b3sum ${file}: ${ran.error ?? ran.stderr}`);
  return ran.stdout.trim();
}
