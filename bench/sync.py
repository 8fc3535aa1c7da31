#!/usr/bin/env python3
"""A second sync of a tree, beside rsync: CPU time of both sides, time, and bytes on the wire.

    python3 bench/sync.py target/release/carrack                  200,000 files, 5 runs of each; as root
    python3 bench/sync.py target/release/carrack --files 1000000 --runs 3
    python3 bench/sync.py target/release/carrack --only week      a student's week: 2,001 files, 300 MB
    python3 bench/sync.py target/release/carrack --only slow --files 20000 --programs target/release
                                                                  each call for metadata takes 0.3 ms more, on both sides
    python3 bench/sync.py target/release/carrack --only far --files 20000 --programs target/release
                                                                  the same over 50 ms, and without the 0.3 ms
    python3 bench/sync.py target/release/carrack --only invented --files 10000000 --runs 1 --programs target/release
                                                                  a dry run over files that FUSE makes up: time, and memory of both sides

Both programs go over ssh to this host, in memory. Rows: nothing has changed; one file in ten has another time and size.
`week`: nothing changed, 1 % of the files changed, 40 removed, 40 touched. Before each run the tree is made as it was.
`slow`, `far` and `invented` need `cargo build --release -p carrack-faults`. `invented` runs Carrack alone.
Bytes are those of the loopback device, or of the link's near end. The order changes from run to run; a first pair does not count.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import accounting
import servers
from link import Link

FAR_RTT_MS = 50


class Bench:
    def __init__(self, work, carrack, group):
        self.work, self.carrack, self.logs = pathlib.Path(work), carrack, pathlib.Path(work) / "logs"
        self.group, self.servers = group, []
        self.logs.mkdir()
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.work / "state")}

    def spawn(self, command, log, namespace):
        with open(log, "w") as file:
            server = subprocess.Popen([*within(namespace), "sh", "-c", command], stdout=file, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, preexec_fn=self.group.join)
        self.servers.append(server.pid)
        return server


def make_tree(top, files, size, each=100):
    for number in range(files):
        directory = os.path.join(top, f"d{number // each % 100}", f"e{number // each}")
        if number % each == 0:
            os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, f"file{number:07d}"), "wb") as file:
            file.write(os.urandom(size) if size > 64 else b"x" * size)


def all_files(top):
    return sorted(os.path.join(directory, name) for directory, _, names in os.walk(top) for name in names)


def change(paths, grow):
    for path in paths:
        if grow:
            with open(path, "ab") as file:
                file.write(b"changed")
        os.utime(path, ns=(1_500_000_000_123_456_789, 1_500_000_000_123_456_789 + int(grow)))


def within(namespace):
    return ["ip", "netns", "exec", namespace] if namespace else []


def wire_bytes(namespace):
    """What the loopback device has carried; of a namespace, its other device, in both directions."""
    said = subprocess.run([*within(namespace), "cat", "/proc/net/dev"], check=True, capture_output=True, text=True).stdout
    devices = {name.strip(): figures.split() for name, _, figures in (line.partition(":") for line in said.splitlines()) if figures}
    if not namespace:
        return int(devices["lo"][0])
    return sum(int(figures[0]) + int(figures[8]) for name, figures in devices.items() if name != "lo")


class Scene:
    def __init__(self, given, work, link=None):
        self.given, self.work, self.near = given, work, link and link.near
        self.group = accounting.Cgroup(f"-{pathlib.Path(work).name}")
        self.bench = Bench(work, os.path.abspath(given.carrack), self.group)
        data = pathlib.Path(work) / "data"
        (data / "out").mkdir(parents=True)
        self.place = servers.Place(self.bench, "here", data, link)

    def close(self):
        self.place.close()
        self.group.close()

    def differs(self, source, target):
        return subprocess.run(["diff", "-rq", source, target], stdout=subprocess.DEVNULL).returncode != 0

    def commands(self, source, target):
        # Started now: it has what is mounted by then.
        if not self.place.available("sshd"):
            sys.exit("there is no sshd")
        ssh = self.place.fields["ssh"]
        far = f"{self.place.fields['user']}@{self.place.address}:{target}"
        carrack = [self.bench.carrack, "sync", "-q", "--delete", "--no-resume", "--remote-path", self.bench.carrack, "-e", ssh, source + "/", far]
        rsync = ["rsync", "-a", "--delete", "-e", ssh, source + "/", far]
        return {"carrack": carrack, "rsync": rsync}

    def medians(self, name, command, between, runs, prepare):
        """CPU seconds, seconds and bytes of a command that copies one directory of `between` to the other."""
        told = []
        for _ in range(runs):
            prepare()
            told.append(self.run(command))
            if self.differs(*between):
                sys.exit(f"{name}: the copy is another")
        return [statistics.median(column) for column in zip(*told)]

    def run(self, command):
        wire, before, start = wire_bytes(self.near), sum(self.group.cpu()), time.monotonic()
        self.said = ended = subprocess.run([*within(self.near), *command], env=self.bench.environment, capture_output=True, text=True, preexec_fn=self.group.join)
        seconds = time.monotonic() - start
        if ended.returncode:
            sys.exit(f"{shlex.join(command)}: {ended.stderr}")
        self.group.settle(self.bench.servers)
        return sum(self.group.cpu()) - before, seconds, wire_bytes(self.near) - wire


def row(scene, name, source, target, prepare):
    """`prepare` makes the destination what it was, and the source what it is to be sent as."""
    told = {"carrack": [], "rsync": []}
    for number in range(scene.given.runs + 1):
        order = ["carrack", "rsync"] if number % 2 else ["rsync", "carrack"]
        for program in order:
            prepare()
            figures = scene.run(scene.commands(source, target)[program])
            if number:
                told[program].append(figures)
    cells = {program: [statistics.median(column) for column in zip(*runs)] for program, runs in told.items()}
    ours, theirs = cells["carrack"], cells["rsync"]
    print(f"| {name} | {ours[0]:.2f} | {theirs[0]:.2f} | {ours[0] / theirs[0]:.2f} | {ours[1]:.2f} | {theirs[1]:.2f} | "
          f"{ours[1] / theirs[1]:.2f} | {ours[2] / 1e6:.2f} | {theirs[2] / 1e6:.2f} |", flush=True)


def table(what):
    print(f"| {what} | CPU s, carrack | rsync | ratio | time s, carrack | rsync | ratio | MB on the wire, carrack | rsync |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|", flush=True)


def unchanged(scene, work):
    source, target = os.path.join(work, "from"), os.path.join(work, "to")
    make_tree(source, scene.given.files, 1)
    subprocess.run(["cp", "-a", source, target], check=True)
    table(f"{scene.given.files:,} files")
    row(scene, "nothing changed", source, target, lambda: None)
    some = [path.replace(source, target) for path in all_files(source)[::10]]
    row(scene, "10 % changed", source, target, lambda: change(some, True))


def slow(scene, work):
    plain = [os.path.join(work, name) for name in ("plain", "plain-to")]
    make_tree(plain[0], scene.given.files, 1)
    subprocess.run(["cp", "-a", *plain], check=True)
    with contextlib.ExitStack() as stack:
        source, target = (mounted(stack, scene.given.programs, "carrack-slow", name, name + "-slow", "--metadata", "0.3")
                          for name in plain)
        table(f"{scene.given.files:,} files, 0.3 ms a call")
        row(scene, "nothing changed", source, target, lambda: None)
        some = [path.replace(plain[0], plain[1]) for path in all_files(plain[0])[::10]]
        row(scene, "10 % changed", source, target, lambda: change(some, True))


def far(scene, work):
    """Over a link that is made for it, in a directory of its own."""
    link = Link(os.path.join(scene.given.programs, "carrack-link"), pathlib.Path(work, "link.log"), FAR_RTT_MS)
    try:
        for name, measure in (("quick", unchanged), ("waits", slow)):
            print(f"over {FAR_RTT_MS} ms:")
            below = os.path.join(work, name)
            os.mkdir(below, 0o755)
            there = Scene(scene.given, below, link)
            try:
                measure(there, below)
            finally:
                there.close()
    finally:
        link.close()


def invented(scene, work):
    with contextlib.ExitStack() as stack:
        source, target = (mounted(stack, scene.given.programs, "carrack-invented", os.path.join(work, name), None,
                                  "--files", scene.given.files) for name in ("made-up", "made-up-to"))
        # What is compared says so in counts, and in the largest resident memory of any of its processes.
        # Neither can be written to: a dry run compares all the same.
        command = ["/usr/bin/time", "-f", "%M", *scene.commands(source, target)["carrack"], "--json", "-n"]
        agent = f"/usr/bin/time -o {work}/agent -f %M {scene.bench.carrack}"
        command[command.index("--remote-path") + 1] = agent_script(work, agent)
        print("| files | same | CPU s | time s | MB, command | MB, far side |\n|--:|--:|--:|--:|--:|--:|")
        for _ in range(scene.given.runs):
            cpu, seconds, _ = scene.run(command)
            same = json.loads(scene.said.stdout.splitlines()[-1])["files_same"]
            here, there = (int(text.split()[-1]) / 1024 for text in (scene.said.stderr, pathlib.Path(work, "agent").read_text()))
            print(f"| {scene.given.files:,} | {same:,} | {cpu:.1f} | {seconds:.1f} | {here:.0f} | {there:.0f} |", flush=True)


def agent_script(work, command):
    script = pathlib.Path(work, "agent.sh")
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    script.chmod(0o755)
    return str(script)


def mounted(stack, programs, program, backing, at, *options):
    """Mounts a file system until `stack` is closed, and gives its directory."""
    at = at or backing
    os.makedirs(at, exist_ok=True)
    words = [os.path.join(programs, program), *([backing] if at != backing else []), at, *map(str, options)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    stack.callback(lambda: (server.stdin.close(), server.wait()))
    if server.stdout.readline().strip() != "mounted":
        sys.exit(f"{shlex.join(words)} did not mount")
    return at


def week(scene, work):
    source, target, kept = (os.path.join(work, name) for name in ("week", "week-to", "week-kept"))
    make_tree(source, 2000, 145_000)
    make_tree(os.path.join(source, "large"), 1, 10_000_000)
    subprocess.run(["cp", "-a", source, kept], check=True)

    def again(what=None):
        subprocess.run(["rsync", "-a", "--delete", kept + "/", source + "/"], check=True)
        subprocess.run(["rsync", "-a", "--delete", kept + "/", target + "/"], check=True)
        if what:
            what(all_files(source))

    table("a student's week")
    row(scene, "nothing changed", source, target, again)
    row(scene, "1 % changed", source, target, lambda: again(lambda files: change(files[::100], True)))
    row(scene, "40 removed", source, target, lambda: again(lambda files: [os.remove(path) for path in files[::50]]))
    row(scene, "40 touched", source, target, lambda: again(lambda files: [os.utime(path) for path in files[::50]]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack")
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", choices=["unchanged", "week", "slow", "far", "invented"])
    parser.add_argument("--programs", default="target/release", help="where carrack-slow and carrack-invented are")
    given = parser.parse_args()
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-sync-")
    os.chmod(work, 0o755)
    scene = None
    try:
        scene = Scene(given, work)
        for name, measure in (("unchanged", unchanged), ("week", week), ("slow", slow), ("far", far), ("invented", invented)):
            if given.only == name or (given.only is None and name in ("unchanged", "week")):
                measure(scene, work)
    finally:
        if scene:
            scene.close()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
