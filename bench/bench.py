#!/usr/bin/env python3
"""Measures Carrack beside other programs on this host: speed, and the CPU time of both sides together. See README.md."""
import argparse
import datetime
import hashlib
import itertools
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import accounting
import link as far_link
import pagecache
import peers
import report
import servers
import workloads
from peers import PEERS
from workloads import DEFAULT, WORKLOADS

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fill(template, fields):
    """Only known fields: the braces of the shell stay."""
    return re.sub(r"\{(\w+)\}", lambda m: str(fields.get(m[1], m[0])), template)


# ---- The stage: directories and processes
class Bench:
    """One binary of Carrack with servers of its own. `other` is the stage of another binary: its sources and its links serve both."""

    def __init__(self, options, carrack, other=None):
        self.options, self.original, self.other, self.started = options, carrack, other, time.monotonic()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-bench.", dir=options.dir))
        self.logs, self.on_disk = self.work / "logs", None
        self.places, self.client = {}, None
        self.cpu_time = accounting.Usage()

    def open(self):
        try:
            self.cpu_time = accounting.Cgroup("-before" if self.other else "")
        except OSError as error:
            print(f"note: {error}: CPU seconds are those of {self.cpu_time.name}", file=sys.stderr)
        for path in (self.work / "data", self.logs, self.work / "bin"):
            path.mkdir()
        # A copy: a build meanwhile changes nothing.
        self.carrack = self.work / "bin/carrack"
        shutil.copy(self.original, self.carrack)
        self.environment = self.make_environment()

    def make_environment(self):
        drop = ("CARRACK_", "RSYNC_", "SSH_", "XDG_", "XRD_", "RCLONE_", "GLOBUS_", "BASH_ENV")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
        for name in ("CONFIG", "STATE", "CACHE", "RUNTIME"):
            path = self.work / "xdg" / name.lower()
            path.mkdir(parents=True, mode=0o700)
            environment[f"XDG_{name}_{'DIR' if name == 'RUNTIME' else 'HOME'}"] = str(path)
        paths = [p for p in os.environ["PATH"].split(":") if p and not os.path.exists(os.path.join(p, "carrack"))]
        environment["PATH"] = ":".join(paths if self.options.push else [str(self.work / "bin"), *paths])
        environment.update(LC_ALL="C", RSYNC_PASSWORD=secrets.token_hex(16))
        return environment

    def place(self, name):
        """Made when first needed; OSError if it cannot be."""
        if name not in self.places:
            data, link = self.work / "data", None
            if name == "disk":
                os.makedirs(self.options.disk_dir, exist_ok=True)
                self.on_disk = pathlib.Path(tempfile.mkdtemp(prefix="carrack-bench.", dir=self.options.disk_dir))
                data = self.on_disk / "data"
                data.mkdir()
            elif name == "far" and self.other:
                link = self.other.place(name).link
            elif name == "far":
                link = far_link.Link(self.options.link, self.logs / "link")
            for host, address in ((link.near, link.near_address), (link.far, link.address)) if link else ():
                (self.work / f"{host}.hosts").write_text(f"{servers.LOOPBACK} localhost\n{address} {os.uname().nodename}\n")
            self.places[name] = servers.Place(self, name, data, link)
        return self.places[name]

    def spawn(self, command, log, host=None):
        """A line of shell in a session and in the cgroup of its own, maybe on a host of a link; what it says goes to `log`."""
        # There is no name server there, and some servers look for their own name. The mounts of `ip netns exec` are its own.
        names = f"mount --bind {self.work}/{host}.hosts /etc/hosts; " if host else ""
        inside = ["ip", "netns", "exec", host] if host else []
        with open(log, "wb") as said:
            return subprocess.Popen(
                [*inside, "bash", "-c", names + "set -o pipefail; " + command], stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self.work,
                env=self.environment, start_new_session=True, preexec_fn=self.cpu_time.join)

    def source(self, place, shape):
        """Random bytes, made once for workloads of one shape."""
        path = place.data / f"source-{shape.files}x{shape.size}"
        if not path.exists():
            need, free = shape.files * shape.size * 2 + (256 << 20), shutil.disk_usage(place.data).free
            if str(place.data).startswith("/dev/shm"):  # its limit may be more than the memory there is
                free = min(free, memory("MemAvailable"))
            if free < need:
                sys.exit(f"error: {place.data} has {free >> 20} MiB free of {need >> 20} needed: see --dir, --disk-dir and --size")
            workloads.make(path, shape)
        return path

    def anonymous(self, text):
        """Without the paths of this host."""
        for path, name in ((self.work, "DIR"), (self.on_disk, "DISK"), (ROOT, ".")):
            text = text.replace(str(path), name) if path else text
        return text

    def sample(self):
        return (*self.cpu_time.cpu(), *accounting.machine())

    def servers(self):
        return {pid for place in self.places.values() for pid in place.servers()}

    def run(self, place, peer, command, shape, source, check):
        """One run of one peer."""
        remove(place.out)
        place.out.mkdir()
        if place.foreign_writer:
            place.out.chmod(0o777)
        if self.options.push:
            remove(self.work / "xdg/cache/carrack")  # so that every run pushes
        target, compared = place.out / "copy", "dst}" in command
        own = {"src": source, "dst": target, "size": shape.files * shape.size}
        if place.node and source:
            own["node_src"] = place.node(source.name)
        command = fill(command, {**place.fields, **own})
        if place.name == "disk":
            command += f" && sync -f {place.out}"
            subprocess.run(["sync", "-f", place.out], check=True)  # what the run before has left
            pagecache.evict(source)
        if place.name != "disk":
            accounting.touch_memory(shape.files * shape.size)
        result = {"peer": peer, "command": self.anonymous(command), "files": shape.files, "bytes": shape.files * shape.size, **self.timed(place, peer, command)}
        if place.name == "disk":
            result["source_cached_percent"] = pagecache.cached_percent(source)
            result["copy_cached_percent"] = pagecache.cached_percent(target)
        if compared and not result["fault"]:
            result["fault"] = workloads.difference(source, target, shape, check)
        result["compared"] = check and compared
        if self.options.before:
            remove(place.out)  # two stages would need twice the room
        return result

    def timed(self, place, peer, command):
        log = self.logs / peer
        self.cpu_time.settle(self.servers())
        memcpy, before, start = accounting.memcpy_speed(), self.sample(), time.monotonic()
        process = self.client = self.spawn(command, log, place.link and place.link.near)
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
        said, fault = log.read_text(errors="replace").strip(), None
        if status != 0:
            fault = f"timeout after {self.options.timeout} s" if seconds >= self.options.timeout else f"exit code {status}: {said[-200:]}"
        arrived = peers.arrived(said)
        return {
            **({"arrived": arrived} if arrived else {}), "fault": fault, "seconds": seconds, "user": user, "system": system,
            "memcpy_gbs": memcpy, "steal_percent": 100 * steal / whole, "others_percent": 100 * max(0, busy - user - system) / whole,
            "lingering": lingering, "said": self.anonymous(said[-400:])}

    def close(self):
        if self.client and self.client.poll() is None:
            os.killpg(self.client.pid, signal.SIGKILL)
            self.client.wait()
        for place in self.places.values():
            place.close()
            if place.link and not self.other:
                place.link.close()
        self.cpu_time.close()
        for path in filter(None, (self.work, self.on_disk)):
            remove(path)


def memory(what):
    return int(re.search(rf"{what}:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]) << 10


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---- The record
def said_by(*command):
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT, text=True, check=False)
        return (result.stdout.splitlines() or [""])[0].strip() if result.returncode == 0 else None
    except OSError:
        return None


def default_congestion_control():
    try:
        return pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    except OSError:
        return None


def session(bench):
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    versions = {"carrack": said_by(bench.carrack, "--version"), "ssh": said_by("ssh", "-V")}
    versions.update({name: said_by(name, "--version") for name in ("rsync", "tar", "cp", "iperf3", "xrdcp", "rclone", "fio", "bbcp")})
    versions["gridftp"] = said_by("globus-gridftp-server", "-version")
    changed = said_by("git", "status", "--porcelain", "--untracked-files=no")
    now = datetime.datetime.now(datetime.timezone.utc)
    return {
        "type": "session", "session": now.strftime("%Y%m%dT%H%M%SZ") + f"-{os.getpid()}", "date": now.isoformat(timespec="seconds"),
        "kernel": os.uname().release, "cpu": cpu[1] if cpu else os.uname().machine, "cores": os.cpu_count(),
        "memory_bytes": memory("MemTotal"), "congestion_control": default_congestion_control(),
        "cpu_time_from": bench.cpu_time.name, "directory": bench.options.dir, "push": bench.options.push, "versions": versions,
        "commit": (said_by("git", "rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else ""),
        "carrack_sha256": hashlib.sha256(bench.carrack.read_bytes()).hexdigest(),
        **({"before": said_by(bench.options.before, "--version")} if bench.options.before else {})}


# ---- The command
def usable(place, workload, chosen):
    """The command of each peer that takes part, in a place where all that it needs is there."""
    found = {}
    for peer, (needs, commands) in chosen.items():
        command = next((commands[kind] for kind in workload.kinds if kind in commands), None)
        if command and all([place.available(need) for need in needs]):
            found[peer] = command
    return found


def measure(bench, before, options):
    options.out.mkdir(parents=True, exist_ok=True)
    host, healthy = session(bench), True
    with open(options.out / "raw.jsonl", "a", encoding="utf-8") as raw:
        print(json.dumps(host), file=raw, flush=True)
        for position, name in enumerate(options.workloads):
            workload, shape = WORKLOADS[name], options.shapes[name]
            try:
                place = bench.place(workload.place)
            except OSError as error:
                print(f"note: {name} is left out: {error}", file=sys.stderr)
                continue
            stages = [(bench, "", usable(place, workload, options.chosen[name]))]
            if before:
                own = {peer: made for peer, made in options.chosen[name].items() if peer.startswith("carrack")}
                stages.insert(0, (before, "-before", usable(before.place(workload.place), workload, own)))
            source = None if workload.kinds == ("memory",) else bench.source(place, shape)
            cells = workload.quick_cells if options.quick else workload.cells
            left_out = set()
            for number in range(options.runs or workload.runs):  # interleaved, so that a change of the host's mood hits all alike
                # Who comes first takes turns, too.
                turns = stages if number % 2 == 0 else stages[::-1]
                for cell, kind, (stage, suffix, found) in itertools.product(cells, options.chosen[name], turns):
                    peer = kind + suffix
                    if kind not in found or (cell, peer) in left_out:
                        continue
                    if cell:
                        place.link.set(cell)
                    result = stage.run(stage.place(workload.place), peer, found[kind], shape, source, check=number == 0)
                    where = {"session": host["session"], "workload": name, "link": cell and str(cell), "run": number + 1}
                    print(json.dumps({"type": "run", **where, **result}), file=raw, flush=True)
                    print(line(name, cell, number + 1, result), file=sys.stderr, flush=True)
                    if result["fault"]:
                        healthy = False
                        left_out.add((cell, peer))
            for stage, _, _ in stages:
                remove(stage.place(workload.place).out)
            later = options.workloads[position + 1:]
            if source and all((options.shapes[w], WORKLOADS[w].place == "disk") != (shape, place.name == "disk") for w in later):
                remove(source)
    return healthy


def line(name, cell, number, result):
    """One run, for who watches."""
    gb = report.payload(result) / 1e9
    cached = [f"{what} cached {result[f'{what}_cached_percent']:.0f} %" for what in ("source", "copy")
              if result.get(f"{what}_cached_percent") is not None]
    return (f"{name}{f' ({cell})' if cell else ''} {number} {result['peer']:<24} {result['seconds']:8.2f} s {gb / result['seconds']:7.3f} GB/s "
            f"{report.cpu(result):7.2f} CPU-s {', '.join(cached)} {result['fault'] or ''}").rstrip()


def minutes(options, name):
    """What a workload may take: by the latest runs of its peers where there are some, else guessed."""
    seen, workload, shape = {}, WORKLOADS[name], options.shapes[name]
    if (options.out / "raw.jsonl").exists():
        for run in map(json.loads, (options.out / "raw.jsonl").read_text().splitlines()):
            if run["type"] == "run" and run["bytes"] == shape.files * shape.size and run["files"] == shape.files:
                seen[run["workload"], run.get("link"), run["peer"]] = run["seconds"]
    guess = lambda cell: 1 + shape.files * shape.size / (cell.gbit * 6e7 if cell else 3e8) + shape.files / 5000
    cells = workload.quick_cells if options.quick else workload.cells
    able = [peer for peer, (needs, _) in options.chosen[name].items() if not any(servers.missing(need) for need in needs)]
    seconds = sum(seen.get((name, cell and str(cell), peer), guess(cell)) + 1 for cell in cells for peer in able)
    return (seconds * (options.runs or workload.runs) * (2 if options.before else 1) + 10) / 60


def announce(options):
    absent = {}
    for peer, (needs, _) in (item for chosen in options.chosen.values() for item in chosen.items()):
        for program in (program for need in needs for program in servers.missing(need)):
            absent.setdefault(program, set()).add(peer)
    for program, names in absent.items():
        print(f"note: {program} is not installed, left out: {', '.join(sorted(names))}", file=sys.stderr)
    times = {name: minutes(options, name) for name in options.workloads}
    each = ", ".join(f"{name} {time:.0f}" if time >= 1 else f"{name} <1" for name, time in times.items())
    print(f"about {sum(times.values()):.0f} minutes: {each}", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    names = lambda text: [name for name in text.split(",") if name]
    parser.add_argument("--workloads", type=names, default=DEFAULT, help="some of " + ",".join(WORKLOADS) + " [%(default)s]")
    parser.add_argument("--peers", type=names, help="some of those that --list names [each workload has its own]")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=CMD",
                        help="one more program: a line of shell with {src} {dst} {size} {host} {port} {ssh} {ssh_config}")
    parser.add_argument("--runs", type=int, help="of each peer and workload [each workload has its own; 1 with --quick]")
    parser.add_argument("--size", type=int, metavar="MIB", help="of the file, in all workloads that have one but `startup`")
    parser.add_argument("--quick", action="store_true", help="small and once: shows that all works, measures nothing")
    parser.add_argument("--push", action="store_true", help="no carrack on the PATH at the far side: it is pushed there, in each run")
    parser.add_argument("--dir", default="/dev/shm", help="where all temporary data go [%(default)s]")
    parser.add_argument("--disk-dir", default=str(ROOT / "target"), help="where those of `disk` go [%(default)s]")
    parser.add_argument("--out", type=pathlib.Path, help="where results go [bench/results; target/bench-quick with --quick]")
    parser.add_argument("--carrack", type=pathlib.Path, default=ROOT / "target/release/carrack", help="the binary [%(default)s]")
    parser.add_argument("--before", type=pathlib.Path, metavar="FILE",
                        help="another binary: each of Carrack's runs is made with both in turn, and the ratios are told")
    parser.add_argument("--link", type=pathlib.Path, default=ROOT / "target/release/carrack-link", help="what makes the link [%(default)s]")
    parser.add_argument("--timeout", type=float, default=600, help="of one run, in seconds [%(default)s]")
    parser.add_argument("--list", action="store_true", help="name the workloads, the peers and their commands")
    options = parser.parse_args()
    options.runs = options.runs or (1 if options.quick else None)
    usual = "bench/results/before" if options.before else "bench/results"
    options.out = options.out or ROOT / ("target/bench-quick" if options.quick else usual)
    unknown = [f"workload {w}" for w in options.workloads if w not in WORKLOADS] + [f"peer {p}" for p in options.peers or () if p not in PEERS]
    plain = all(re.fullmatch(r"[\w./+-]+", path) for path in (options.dir, options.disk_dir))
    if unknown or not plain or not all("=" in peer for peer in options.peer):
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "--dir and --disk-dir take paths of plain characters, --peer NAME=CMD")
    options.shapes = {name: workload.quick if options.quick else workload.shape for name, workload in WORKLOADS.items()}
    if options.size:
        one_file = {name: shape for name, shape in options.shapes.items() if not shape.directories and shape.size > 1}
        options.shapes.update({name: shape._replace(size=options.size << 20) for name, shape in one_file.items()})
    options.chosen = {name: chosen(options, WORKLOADS[name]) for name in options.workloads}
    return options


def chosen(options, workload):
    """The peers of a workload: its own, or those asked for; and those given as a line of shell."""
    found = {name: PEERS[name] for name in (workload.peers.split() if options.peers is None else options.peers)}
    for name, command in (text.split("=", 1) for text in options.peer):
        found[name] = ["sshd"], dict.fromkeys(workload.kinds, command)
    return found


def show():
    for name, workload in WORKLOADS.items():
        print(f"{name}: {workload.shape.files:,} × {workload.shape.size:,} bytes, {workload.runs} runs of: {workload.peers}")
    for name, (needs, commands) in PEERS.items():
        print(f"\n{name} (needs {', '.join(needs) or 'nothing'})", *(f"  {k}: {c}" for k, c in commands.items()), sep="\n")


def on_signals(action):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, action)


def stop(number, _):
    on_signals(signal.SIG_IGN)  # a second one would cut the tidying short
    sys.exit(128 + number)


def main():
    options = arguments()
    if options.list:
        show()
        return 0
    announce(options)
    on_signals(stop)
    bench = Bench(options, options.carrack)
    before = options.before and Bench(options, options.before, bench)
    try:
        for stage in filter(None, (bench, before)):
            stage.open()
        healthy = measure(bench, before, options)
    finally:
        on_signals(signal.SIG_IGN)
        for stage in filter(None, (before, bench)):
            stage.close()
    report.report(options.out, options.workloads)
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
