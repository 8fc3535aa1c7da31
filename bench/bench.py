#!/usr/bin/env python3
"""Measures Carrack beside other programs on this host: speed, and the CPU time of both sides together. See README.md."""
import argparse
import datetime
import getpass
import hashlib
import html
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TICK = os.sysconf("SC_CLK_TCK")
HOST = "127.0.0.1"
STARTUP_SECONDS = 10
SETTLE_SECONDS = 3

# ---- What is measured: name: kind, (files, bytes of each, directories), and the same for --quick.
WORKLOADS = {
    "file": ("file", (1, 4 << 30, 0), (1, 512 << 20, 0)),
    "memory": ("memory", (1, 4 << 30, 0), (1, 512 << 20, 0)),
    "small": ("tree", (20000, 4 << 10, 200), (4000, 4 << 10, 40)),
    "medium": ("tree", (1000, 1 << 20, 10), (200, 1 << 20, 10)),
}

# ---- By whom: name: what it needs, and a line of shell for each kind of workload that it takes part in.
# {src} is a file, or a tree whose contents go to {dst}, which is not there yet; in memory runs {dst} is /dev/null.
AES = "-c aes128-gcm@openssh.com"


def carrack(needs, options, to, back):
    run = f"{{carrack}} --no-progress {options}"
    return needs, {"file": f"{run} {{src}} {to}", "tree": f"{run} {{src}}/ {to}", "memory": f"{run} {back} null:"}


def carrack_ssh(options):
    return carrack(["sshd"], f"-e '{{ssh}}' {options}", "{host}:{dst}", "{host}:{src}")


def carrack_node(options):
    return carrack(["node"], f"--token-file {{token}} {options}", "{node_dst}", "{node_src}")


def scp(cipher):
    run = f"scp -q -F {{ssh_config}} {cipher}"
    return ["sshd", "scp"], {"file": f"{run} {{src}} {{host}}:{{dst}}", "tree": f"{run} -r {{src}} {{host}}:{{dst}}"}


def rsync(needs, options, to):
    return ["rsync", *needs], {"file": f"rsync -a {options} {{src}} {to}", "tree": f"rsync -a {options} {{src}}/ {to}/"}


def pipe(cipher):
    tree = f"tar -C {{src}} -cf - . | {{ssh}} {cipher} {{host}} 'mkdir {{dst}} && tar -C {{dst}} -xf -'"
    return ["sshd", "tar"], {"tree": tree, "memory": f"{{ssh}} {cipher} {{host}} 'cat {{src}}' > {{dst}}"}


PEERS = {
    "cp": ([], {"file": "cp {src} {dst}", "tree": "cp -r {src} {dst}", "memory": "cat {src} > {dst}"}),
    "carrack-ssh": carrack_ssh(""),
    "carrack-ssh-unverified": carrack_ssh("--digest none --verify none"),
    "carrack-node": carrack_node(""),
    "carrack-node-clear": carrack_node("--encrypt none"),
    "scp": scp(""),
    "scp-aes128gcm": scp(AES),
    "rsync-ssh": rsync(["sshd"], "-e '{ssh}'", "{host}:{dst}"),
    "rsync-ssh-aes128gcm": rsync(["sshd"], f"-e '{{ssh}} {AES}'", "{host}:{dst}"),
    "rsync-daemon": rsync(["rsyncd"], "", "{rsyncd_dst}"),
    "pipe-ssh": pipe(""),
    "pipe-ssh-aes128gcm": pipe(AES),
}


def fill(template, fields):
    """Only known fields: the braces of the shell stay."""
    return re.sub(r"\{(\w+)\}", lambda m: str(fields.get(m[1], m[0])), template)


# ---- CPU time
class Cgroup:
    """All that a measurement starts, on both sides, lives in one cgroup, whose CPU time is exact."""

    def __init__(self):
        for base, self.v2 in (("/sys/fs/cgroup", True), ("/sys/fs/cgroup/unified", True), ("/sys/fs/cgroup/cpuacct", False)):
            if os.path.exists(base + ("/cgroup.controllers" if self.v2 else "/cpuacct.usage_user")):
                self.dir = pathlib.Path(base, f"carrack-bench-{os.getpid()}")
                self.dir.mkdir()
                self.name = "cgroup v2" if self.v2 else "cgroup v1 cpuacct"
                return
        raise OSError("no cgroup hierarchy with CPU accounting")

    def join(self):
        (self.dir / "cgroup.procs").write_text(str(os.getpid()))

    def cpu(self):
        if self.v2:
            stat = dict(line.split() for line in (self.dir / "cpu.stat").read_text().splitlines())
            return int(stat["user_usec"]) / 1e6, int(stat["system_usec"]) / 1e6
        return tuple(int((self.dir / f"cpuacct.usage_{half}").read_text()) / 1e9 for half in ("user", "sys"))

    def settle(self, servers):
        """Waits until only the servers are left. What does not leave is named, and killed."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            late = [int(pid) for pid in (self.dir / "cgroup.procs").read_text().split() if int(pid) not in servers]
            if not late or time.monotonic() > deadline:
                break
            time.sleep(0.005)
        names = []
        for pid in late:
            try:
                names.append(pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it left just now
        return names

    def close(self):
        self.settle(())
        for _ in range(100):
            try:
                return self.dir.rmdir()
            except OSError:
                time.sleep(0.02)


class Usage:
    """Without a cgroup: children that were waited for, and the servers with theirs. In ticks, and a stray process is missed."""

    name = "resource usage of children (no cgroup): steps of 10 ms, may miss some"

    def __init__(self):
        self.servers = []

    def join(self):
        pass

    def cpu(self):
        times = os.times()
        user, system = times.children_user, times.children_system
        for pid in self.servers:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            user += (int(stat[11]) + int(stat[13])) / TICK
            system += (int(stat[12]) + int(stat[14])) / TICK
        return user, system

    def settle(self, servers):
        self.servers = list(servers)
        time.sleep(0.2)
        return []

    def close(self):
        pass


def machine():
    """Seconds since boot of all cores: busy, stolen by the hypervisor, all."""
    user, nice, system, idle, iowait, irq, softirq, steal = (int(x) / TICK for x in open("/proc/stat").readline().split()[1:9])
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + steal + idle + iowait


def memcpy_speed(source=bytearray(64 << 20), target=bytearray(64 << 20)):
    """GB/s of one core now: a host that is busy elsewhere shows as less."""
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        target[:] = source
        best = max(best, len(source) / 1e9 / (time.perf_counter() - start))
    return best


# ---- The stage: directories, servers, processes
class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-bench.", dir=options.dir))
        self.data, self.out, self.logs = self.work / "data", self.work / "data/out", self.work / "logs"
        self.processes, self.ready, self.made_run_sshd = {}, {}, False
        self.accounting = Usage()
        try:
            self.accounting = Cgroup()
        except OSError as error:
            print(f"note: no cgroup ({error}); CPU seconds are those of {Usage.name}", file=sys.stderr)
        for path in (self.data, self.logs, self.work / "bin"):
            path.mkdir()
        # A copy: a build meanwhile changes nothing.
        self.carrack = self.work / "bin/carrack"
        shutil.copy(options.carrack, self.carrack)
        self.environment = self.make_environment()
        self.fields = {
            "carrack": self.carrack, "host": HOST, "ssh_config": self.work / "ssh_config", "ssh": f"ssh -F {self.work}/ssh_config",
            "token": self.work / "token",
        }

    def make_environment(self):
        drop = ("CARRACK_", "RSYNC_", "SSH_", "XDG_", "BASH_ENV")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
        for name in ("CONFIG", "STATE", "CACHE", "RUNTIME"):
            path = self.work / "xdg" / name.lower()
            path.mkdir(parents=True, mode=0o700)
            environment[f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}"] = str(path)
        paths = [p for p in os.environ["PATH"].split(":") if p and not os.path.exists(os.path.join(p, "carrack"))]
        environment["PATH"] = ":".join(paths if self.options.push else [str(self.work / "bin"), *paths])
        environment.update(LC_ALL="C", RSYNC_PASSWORD=secrets.token_hex(16))
        return environment

    def spawn(self, command, log):
        """A line of shell in a session and in the cgroup of its own; what it says goes to `log`."""
        with open(log, "wb") as said:
            return subprocess.Popen(
                ["bash", "-c", "set -o pipefail; " + command], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.work,
                env=self.environment, start_new_session=True, preexec_fn=self.accounting.join)

    def serve(self, name, command, is_ready):
        log = self.logs / name
        process = self.processes[name] = self.spawn("exec " + command, log)
        deadline = time.monotonic() + STARTUP_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if is_ready(log.read_text(errors="replace")):
                return True
            time.sleep(0.02)
        print(f"note: {name} did not start: {log.read_text(errors='replace').strip()[-300:]}", file=sys.stderr)
        return False

    def available(self, need):
        """Whether a program is installed, or a server is up; servers are started when first needed."""
        if need not in self.ready:
            start = {"sshd": self.start_sshd, "rsyncd": self.start_rsyncd, "node": self.start_node}.get(need)
            programs = {"sshd": ("sshd", "ssh", "ssh-keygen"), "rsyncd": ("rsync",), "node": ()}.get(need, (need,))
            missing = [program for program in programs if not shutil.which(program)]
            if missing:
                print(f"note: not installed: {', '.join(missing)}", file=sys.stderr)
            self.ready[need] = not missing and (start is None or start())
        return self.ready[need]

    def start_sshd(self):
        if os.geteuid() == 0 and not os.path.exists("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)  # where sshd separates its privileges; the package makes it at boot
            self.made_run_sshd = True
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", self.work / key], check=True)
        port = self.fields["port"] = free_port()
        # SHLVL: bash reads ~/.bashrc for a command over ssh, however long that takes, unless it is an inner shell.
        keep = {"SHLVL": "2", **{k: v for k, v in self.environment.items() if k == "PATH" or k.startswith("XDG_")}}
        (self.work / "sshd_config").write_text(f"""Port {port}
ListenAddress {HOST}
HostKey {self.work}/host_key
AuthorizedKeysFile {self.work}/user_key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
Subsystem sftp internal-sftp
SetEnv {' '.join(f'"{k}={v}"' for k, v in keep.items())}
""")
        (self.work / "known_hosts").write_text(f"[{HOST}]:{port} {(self.work / 'host_key.pub').read_text()}")
        (self.work / "ssh_config").write_text(f"""Host *
Port {port}
User {getpass.getuser()}
IdentityFile {self.work}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {self.work}/known_hosts
GlobalKnownHostsFile none
StrictHostKeyChecking yes
""")
        return self.serve("sshd", f"{shutil.which('sshd')} -D -e -f {self.work}/sshd_config", lambda _: listens(port))

    def start_rsyncd(self):
        port = free_port()
        write_private(self.work / "rsyncd.secrets", f"bench:{self.environment['RSYNC_PASSWORD']}\n")
        user = f"uid = {os.getuid()}\ngid = {os.getgid()}\n" if os.geteuid() == 0 else ""
        (self.work / "rsyncd.conf").write_text(f"""{user}use chroot = no
reverse lookup = no
[data]
path = {self.data}
read only = no
auth users = bench
secrets file = {self.work}/rsyncd.secrets
""")
        self.fields["rsyncd_dst"] = f"rsync://bench@{HOST}:{port}/data/out/copy"
        command = f"rsync --daemon --no-detach --address={HOST} --port={port} --config={self.work}/rsyncd.conf"
        return self.serve("rsyncd", command, lambda _: listens(port))

    def start_node(self):
        write_private(self.fields["token"], secrets.token_hex(32) + "\n")
        said = {}

        def is_ready(log):
            said.update(re.findall(r"^(listening on|fingerprint) (\S+)\n", log, re.M))
            return len(said) == 2

        files = f"--token-file {self.fields['token']} --key-file {self.work}/node_key"
        if not self.serve("node", f"{self.carrack} serve --root {self.data} {files} --listen {HOST}:0", is_ready):
            return False
        self.node = lambda path: f"carrack://{said['listening on']}/{path}{said['fingerprint']}"
        self.fields["node_dst"] = self.node("out/copy")
        return True

    def source(self, kind, shape):
        """Random bytes, made once for workloads of one shape."""
        files, size, directories = shape
        path = self.data / f"source-{files}x{size}"
        if not path.exists():
            need = files * size * (1 if kind == "memory" else 2) + (256 << 20)
            free = shutil.disk_usage(self.data).free
            if free < need:
                sys.exit(f"error: {self.options.dir} has {free >> 20} MiB free of {need >> 20} needed: see --dir and --size")
            if directories:
                for number in range(files):
                    parent = path / f"d{number * directories // files:04d}"
                    parent.mkdir(parents=True, exist_ok=True)
                    (parent / f"f{number:06d}").write_bytes(os.urandom(size))
            else:
                with open(path, "wb") as out:
                    for start in range(0, size, 16 << 20):
                        out.write(os.urandom(min(16 << 20, size - start)))
        if "node" in self.processes:
            self.fields["node_src"] = self.node(path.name)
        self.fields["src"] = path
        return path

    def sample(self):
        return (*self.accounting.cpu(), *machine())

    def servers(self):
        return {process.pid for process in self.processes.values() if process.poll() is None}

    def run(self, peer, command, kind, shape, check):
        """One run of one peer."""
        remove(self.out)
        self.out.mkdir()
        if self.options.push:
            remove(self.work / "xdg/cache/carrack")  # so that every run pushes
        source, target = self.fields["src"], self.out / "copy"
        command = fill(command, {**self.fields, "dst": "/dev/null" if kind == "memory" else target})
        self.accounting.settle(self.servers())
        memcpy, before, start = memcpy_speed(), self.sample(), time.monotonic()
        process = self.processes["client"] = self.spawn(command, self.logs / peer)
        timer = threading.Timer(self.options.timeout, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        status = process.wait()
        seconds = time.monotonic() - start
        timer.cancel()
        lingering = self.accounting.settle(self.servers())
        user, system, busy, steal, whole = (b - a for a, b in zip(before, self.sample()))
        said = (self.logs / peer).read_text(errors="replace").strip()
        fault = None
        if status != 0:
            fault = f"timeout after {self.options.timeout} s" if seconds >= self.options.timeout else f"exit code {status}: {said[-200:]}"
        elif kind != "memory":
            fault = difference(source, target, kind, shape, check)
        return {
            "peer": peer, "command": command, "fault": fault, "seconds": seconds, "files": shape[0], "bytes": shape[0] * shape[1],
            "user": user, "system": system, "busy": busy, "steal_percent": 100 * steal / max(whole, 1e-9), "memcpy_gbs": memcpy,
            "compared": check and kind != "memory", "lingering": lingering, "said": said[-400:]}

    def close(self):
        client = self.processes.pop("client", None)
        if client and client.poll() is None:
            os.killpg(client.pid, signal.SIGKILL)
            client.wait()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(SETTLE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.accounting.close()
        if self.made_run_sshd:
            os.rmdir("/run/sshd")
        remove(self.work)


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def write_private(path, text):
    path.touch(mode=0o600)
    path.write_text(text)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def difference(source, target, kind, shape, check):
    """What is wrong with a destination: bytes are compared if `check`, counts and sizes always."""
    if not source.is_dir() and target.is_dir() or (target / source.name).is_dir():
        target = target / source.name  # some programs always put a source below the destination
    files = [target] if kind == "file" else [p for p in target.rglob("*") if p.is_file()]
    if len(files) != shape[0] or any(not p.is_file() or p.stat().st_size != shape[1] for p in files):
        return "the destination lacks files, or bytes of them"
    compare = ["cmp", "-s"] if kind == "file" else ["diff", "-rq"]
    if check and subprocess.run([*compare, source, target], stdout=subprocess.DEVNULL).returncode != 0:
        return "the destination differs from the source"
    return None


# ---- The record
def said_by(*command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT, text=True, check=False)
        return (result.stdout.splitlines() or [""])[0].strip() if result.returncode == 0 else None
    except OSError:
        return None


def session(bench):
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    versions = {name: said_by(name, "--version") for name in ("rsync", "tar", "cp")}
    versions.update(carrack=said_by(bench.carrack, "--version"), ssh=said_by("ssh", "-V"))
    changed = said_by("git", "status", "--porcelain", "--untracked-files=no")
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "type": "session", "session": now.strftime("%Y%m%dT%H%M%SZ") + f"-{os.getpid()}", "date": now.isoformat(timespec="seconds"),
        "kernel": os.uname().release, "cpu": cpu[1] if cpu else os.uname().machine, "cores": len(os.sched_getaffinity(0)),
        "cpu_time_from": bench.accounting.name, "directory": bench.options.dir, "push": bench.options.push, "versions": versions,
        "commit": (said_by("git", "rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else ""),
        "carrack_sha256": hashlib.sha256(bench.carrack.read_bytes()).hexdigest()}


def spread(values, digits=2):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def rates(runs):
    """By peer, in order: GB/s and CPU-s/GB of the runs that went well."""
    good = {}
    for run in runs:
        if not run["fault"]:
            gb = run["bytes"] / 1e9
            good.setdefault(run["peer"], []).append((gb / run["seconds"], (run["user"] + run["system"]) / gb))
    return {peer: tuple(zip(*pairs)) for peer, pairs in good.items()}


def table(workload, host, runs):
    kind = WORKLOADS[workload][0]
    shape = f"{runs[0]['files']:,} × {runs[0]['bytes'] // runs[0]['files']:,} bytes"
    lines = [
        f"## {workload}: {shape}", "",
        f"{host['date']}, {host['cpu']}, {host['cores']} cores, Linux {host['kernel']}, {host['versions']['carrack']}, commit "
        f"{host['commit']}; CPU time from {host['cpu_time_from']}" + ("; the agent pushed in each run" if host["push"] else "") + "; memcpy "
        + spread([r["memcpy_gbs"] for r in runs], 1) + " GB/s; median (min..max)", "",
        "| peer | runs | GB/s | seconds | files/s | CPU-s user+system | CPU-s/GB | steal % | others % | |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
    for peer in dict.fromkeys(r["peer"] for r in runs):
        mine = [r for r in runs if r["peer"] == peer]
        good = [r for r in mine if not r["fault"]]
        note = "; ".join(dict.fromkeys([r["fault"] for r in mine if r["fault"]] + ["left behind: " + ", ".join(r["lingering"]) for r in mine if r["lingering"]]))
        note = " ".join(note.replace("|", "\\|").split())
        if not good:
            lines.append(f"| {peer} | 0 of {len(mine)} | | | | | | | | {note} |")
            continue
        speed, cost = rates(good)[peer]
        files = f"{statistics.median(r['files'] / r['seconds'] for r in good):,.0f}" if kind == "tree" else ""
        user, system = (statistics.median(r[half] for r in good) for half in ("user", "system"))
        others = statistics.median(max(0, r["busy"] - r["user"] - r["system"]) / r["seconds"] / host["cores"] * 100 for r in good)
        steal = statistics.median(r["steal_percent"] for r in good)
        lines.append(
            f"| {peer} | {len(good)} of {len(mine)} | {spread(speed, 3)} | {spread([r['seconds'] for r in good])} | {files} "
            f"| {user:.2f}+{system:.2f} | {spread(cost)} | {steal:.1f} | {others:.0f} | {note} |")
    return "\n".join(lines) + "\n"


def chart(results):
    """Two bars for each peer of each workload; a thin line goes from the least to the most."""
    parts, top, left, width = [], 40, 190, 260
    for workload, (_, runs) in results.items():
        by_peer = rates(runs)
        parts.append(f'<text x="10" y="{top}" class="b">{workload}</text>')
        for column, title in enumerate(("GB/s (more is better)", "CPU seconds of both sides for each GB (less is better)")):
            x0 = left + column * (width + 130)
            parts.append(f'<text x="{x0}" y="{top}" class="b">{title}</text>')
            most = max((max(values[column]) for values in by_peer.values()), default=1)
            for row, (peer, values) in enumerate(by_peer.items()):
                y, median = top + 12 + row * 20, statistics.median(values[column])
                low, mid, high = (v / most * width for v in (min(values[column]), median, max(values[column])))
                colour = "#1f6feb" if peer.startswith("carrack") else "#9aa4b2"
                if column == 0:
                    parts.append(f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{html.escape(peer)}</text>')
                parts.append(f'<rect x="{x0}" y="{y}" width="{mid:.1f}" height="14" fill="{colour}"/>')
                parts.append(f'<path d="M{x0 + low:.1f} {y + 7}H{x0 + high:.1f}" stroke="#222"/>')
                parts.append(f'<text x="{x0 + max(high, mid) + 6:.1f}" y="{y + 12}">{median:.2f}</text>')
        top += 50 + 20 * len(by_peer)
    host = list(results.values())[-1][0]
    parts.append(f'<text x="10" y="{top}">{html.escape(host["cpu"])}, {host["cores"]} cores, commit {host["commit"]}, {host["date"]}</text>')
    style = "<style>text{font:12px sans-serif;fill:#222}.b{font-weight:bold}</style>"
    size = f'width="900" height="{top + 20}" viewBox="0 0 900 {top + 20}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{style}<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"


def report(out, workloads):
    """Tables of `workloads` and the chart of all, each from the latest session that measured it."""
    hosts, latest = {}, {}
    for record in map(json.loads, (out / "raw.jsonl").read_text().splitlines()):
        if record["type"] == "session":
            hosts[record["session"]] = record
        else:
            latest.setdefault(record["workload"], {}).setdefault(record["session"], []).append(record)
    results = {}
    for workload in (w for w in WORKLOADS if w in latest):
        name, runs = list(latest[workload].items())[-1]
        results[workload] = hosts[name], runs
        if workload in workloads:
            text = table(workload, *results[workload])
            (out / f"{workload}.md").write_text(text)
            print("\n" + text, end="")
    if results:
        (out / "summary.svg").write_text(chart(results))


# ---- The command
def measure(bench, options, peers):
    options.out.mkdir(parents=True, exist_ok=True)
    host, healthy = session(bench), True
    with open(options.out / "raw.jsonl", "a", encoding="utf-8") as raw:
        write = lambda record: (raw.write(json.dumps(record) + "\n"), raw.flush())
        write(host)
        for position, workload in enumerate(options.workloads):
            kind, shape = WORKLOADS[workload][0], options.shapes[workload]
            usable = {n: c[kind] for n, (needs, c) in peers.items() if kind in c and all([bench.available(need) for need in needs])}
            source = bench.source(kind, shape)
            for number in range(options.runs):  # interleaved, so that a change of the host's mood hits all alike
                for peer, command in list(usable.items()):
                    result = bench.run(peer, command, kind, shape, check=number == 0)
                    write({"type": "run", "session": host["session"], "workload": workload, "run": number + 1, **result})
                    gb = result["bytes"] / 1e9
                    print(f"{workload} {number + 1}/{options.runs} {peer:<24} {result['seconds']:8.2f} s {gb / result['seconds']:7.3f} GB/s "
                          f"{result['user'] + result['system']:7.2f} CPU-s {result['fault'] or ''}", file=sys.stderr, flush=True)
                    if result["fault"]:
                        healthy = False
                        del usable[peer]
            remove(bench.out)
            if all(options.shapes[later] != shape for later in options.workloads[position + 1:]):
                remove(source)
    return healthy


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    names = lambda text: [name for name in text.split(",") if name]
    parser.add_argument("--workloads", type=names, default=list(WORKLOADS), help="some of " + ",".join(WORKLOADS))
    parser.add_argument("--peers", type=names, default=list(PEERS), help="some of those that --list names")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=CMD",
                        help="one more program: a line of shell with {src} {dst} {host} {port} {ssh} {ssh_config}")
    parser.add_argument("--runs", type=int, help="of each peer and workload [5; 1 with --quick]")
    parser.add_argument("--size", type=int, metavar="MIB", help="of the file in `file` and `memory` [4096; 512 with --quick]")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that all works, measures nothing")
    parser.add_argument("--push", action="store_true", help="no carrack on the PATH at the far side: it is pushed there, in each run")
    parser.add_argument("--dir", default="/dev/shm", help="where all temporary data go [%(default)s]")
    parser.add_argument("--out", type=pathlib.Path, help="where results go [bench/results; target/bench-quick with --quick]")
    parser.add_argument("--carrack", type=pathlib.Path, default=ROOT / "target/release/carrack", help="the binary [%(default)s]")
    parser.add_argument("--timeout", type=float, default=600, help="of one run, in seconds [%(default)s]")
    parser.add_argument("--list", action="store_true", help="name the peers and their commands")
    parser.add_argument("--report", action="store_true", help="tables and chart anew from raw.jsonl, without measuring")
    options = parser.parse_args()
    options.runs = options.runs or (1 if options.quick else 5)
    options.out = options.out or ROOT / ("target/bench-quick" if options.quick else "bench/results")
    options.shapes = {name: workload[2 if options.quick else 1] for name, workload in WORKLOADS.items()}
    if options.size:
        options.shapes.update({name: (1, options.size << 20, 0) for name in ("file", "memory")})
    unknown = [f"workload {w}" for w in options.workloads if w not in WORKLOADS] + [f"peer {p}" for p in options.peers if p not in PEERS]
    if unknown or not re.fullmatch(r"[\w./+-]+", options.dir) or not all("=" in peer for peer in options.peer):
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "--dir takes a path of plain characters, --peer NAME=CMD")
    return options


def main():
    options = arguments()
    peers = {name: PEERS[name] for name in options.peers}
    for name, command in (text.split("=", 1) for text in options.peer):
        peers[name] = ["sshd"], dict.fromkeys(("file", "tree", "memory"), command)
    if options.list:
        for name, (needs, commands) in peers.items():
            print(f"{name} (needs {', '.join(needs) or 'nothing'})", *(f"  {k}: {c}" for k, c in commands.items()), sep="\n")
        return 0
    healthy = True
    if not options.report:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda number, _: sys.exit(128 + number))
        bench = Bench(options)
        try:
            healthy = measure(bench, options, peers)
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            bench.close()
    report(options.out, options.workloads)
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
