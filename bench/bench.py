#!/usr/bin/env python3
"""Measures Carrack beside other programs on this host: speed, and the CPU time of both sides together. See README.md."""
import argparse
import datetime
import getpass
import hashlib
import json
import os
import pathlib
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import accounting
import report

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
STARTUP_SECONDS = 10
STOP_SECONDS = 3

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


# ---- The stage: directories, servers, processes
class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-bench.", dir=options.dir))
        self.data, self.out, self.logs = self.work / "data", self.work / "data/out", self.work / "logs"
        self.processes, self.ready, self.node, self.made_run_sshd = {}, {}, None, False
        self.cpu_time = accounting.Usage()

    def open(self):
        try:
            self.cpu_time = accounting.Cgroup()
        except OSError as error:
            print(f"note: {error}: CPU seconds are those of {self.cpu_time.name}", file=sys.stderr)
        for path in (self.data, self.logs, self.work / "bin"):
            path.mkdir()
        # A copy: a build meanwhile changes nothing.
        self.carrack = self.work / "bin/carrack"
        shutil.copy(self.options.carrack, self.carrack)
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
                env=self.environment, start_new_session=True, preexec_fn=self.cpu_time.join)

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
            if self.options.dir.startswith("/dev/shm"):  # its limit may be more than the memory there is
                free = min(free, int(re.search(r"MemAvailable:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10)
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
        if self.node:
            self.fields["node_src"] = self.node(path.name)
        self.fields["src"] = path
        return path

    def sample(self):
        return (*self.cpu_time.cpu(), *accounting.machine())

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
        self.cpu_time.settle(self.servers())
        memcpy, before, start = accounting.memcpy_speed(), self.sample(), time.monotonic()
        process = self.processes["client"] = self.spawn(command, self.logs / peer)
        timer = threading.Timer(self.options.timeout, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            status = process.wait()
            seconds = time.monotonic() - start
        finally:
            timer.cancel()
        lingering = self.cpu_time.settle(self.servers())
        user, system, busy, steal, whole = (b - a for a, b in zip(before, self.sample()))
        whole = max(whole, 0.01)  # one step of that clock
        said = (self.logs / peer).read_text(errors="replace").strip()
        fault = None
        if status != 0:
            fault = f"timeout after {self.options.timeout} s" if seconds >= self.options.timeout else f"exit code {status}: {said[-200:]}"
        elif kind != "memory":
            fault = difference(source, target, kind, shape, check)
        return {
            "peer": peer, "command": command, "fault": fault, "seconds": seconds, "files": shape[0], "bytes": shape[0] * shape[1],
            "user": user, "system": system, "memcpy_gbs": memcpy, "steal_percent": 100 * steal / whole,
            "others_percent": 100 * max(0, busy - user - system) / whole,
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
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.cpu_time.close()
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
        "kernel": os.uname().release, "cpu": cpu[1] if cpu else os.uname().machine, "cores": os.cpu_count(),
        "cpu_time_from": bench.cpu_time.name, "directory": bench.options.dir, "push": bench.options.push, "versions": versions,
        "commit": (said_by("git", "rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else ""),
        "carrack_sha256": hashlib.sha256(bench.carrack.read_bytes()).hexdigest()}


# ---- The command
def measure(bench, options, peers):
    options.out.mkdir(parents=True, exist_ok=True)
    host, healthy = session(bench), True
    with open(options.out / "raw.jsonl", "a", encoding="utf-8") as raw:
        print(json.dumps(host), file=raw, flush=True)
        for position, workload in enumerate(options.workloads):
            kind, shape = WORKLOADS[workload][0], options.shapes[workload]
            usable = {n: c[kind] for n, (needs, c) in peers.items() if kind in c and all([bench.available(need) for need in needs])}
            source = bench.source(kind, shape)
            for number in range(options.runs):  # interleaved, so that a change of the host's mood hits all alike
                for peer, command in list(usable.items()):
                    result = bench.run(peer, command, kind, shape, check=number == 0)
                    place = {"type": "run", "session": host["session"], "workload": workload, "kind": kind, "run": number + 1}
                    print(json.dumps({**place, **result}), file=raw, flush=True)
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
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    bench = Bench(options)
    try:
        bench.open()
        healthy = measure(bench, options, peers)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        bench.close()
    report.report(options.out, options.workloads)
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
