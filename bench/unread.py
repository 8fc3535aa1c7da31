#!/usr/bin/env python3
"""A reader of `carrack -v --json` that stops, while a million files go from one node to another: what each process has in memory, and whether
the session lives. The first reader stops and then reads all; the second stops for good, until the command gets Ctrl-C.

    python3 bench/unread.py                                   1,000,000 files, two minutes
    python3 bench/unread.py --files 100000 --stop 40

Needs room for the files in --dir: 2 GB of memory for a million in /dev/shm, where nobody waits for a disk. A process that had more than
--memory at any time, a lost session, a missing line or a wrong exit code is a failure, and the exit code tells.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
INTERRUPTED = 20


def peak(pid):
    """The most that a process has had resident, in MB."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM:")), 0)


class Node:
    def __init__(self, args, root, home):
        root.mkdir(exist_ok=True)
        command = [args.bin, "serve", "--node-only", "--anonymous", "--root", root, "--listen", "127.0.0.1:0", "--dial-to", "127.0.0.0/8"]
        env = {**os.environ, "HOME": str(home)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
        words = dict(line.split(" ", 1) for line in (self.process.stdout.readline() for _ in range(3)))
        self.at = f"carrack://{words['listening'].split()[-1]}/%s{words['fingerprint'].strip()}"

    def close(self):
        self.process.terminate()
        self.process.wait()


class Peaks(threading.Thread):
    """The peaks of some processes, for as long as they are there."""

    def __init__(self, processes):
        super().__init__(daemon=True)
        self.processes, self.peaks = processes, dict.fromkeys(processes, 0)
        self.start()

    def run(self):
        while True:
            for name, process in self.processes.items():
                try:
                    self.peaks[name] = max(self.peaks[name], peak(process.pid))
                except (FileNotFoundError, ProcessLookupError):
                    pass
            time.sleep(0.1)


def is_stuck(pipe, seconds):
    """Waits until a pipe has been full, and nobody has taken anything, for so long."""
    import fcntl
    import termios
    import struct

    waiting = lambda: struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]
    seen, since = waiting(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.1)
        now = waiting()
        if now != seen:
            seen, since = now, time.monotonic()


def copy(args, nodes, home, place):
    command = [args.bin, "-v", "--json", "--stats=0", "--durable", "none", "--retries", "0", nodes["source"].at % "", nodes["destination"].at % place]
    env = {**os.environ, "HOME": str(home)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    others = {f"{name} node": node.process for name, node in nodes.items()}
    return process, Peaks({"command": process, **others})


def told(peaks, args):
    print("  most memory, MB: " + ", ".join(f"{name} {size:.0f}" for name, size in peaks.peaks.items()), flush=True)
    return [f"{name} had {size:.0f} MB" for name, size in peaks.peaks.items() if size > args.memory]


def pauses(args, nodes, home):
    process, peaks = copy(args, nodes, home, "paused")
    began = time.monotonic()
    is_stuck(process.stdout, args.stop)
    print(f"  nothing read for {time.monotonic() - began:.0f} s", flush=True)
    kinds = {}
    for line in process.stdout:
        event = json.loads(line)
        kinds[event["type"]] = kinds.get(event["type"], 0) + 1
        if event["type"] == "summary":
            summary = event
    code = process.wait()
    faults = told(peaks, args)
    print(f"  {kinds.get('item', 0)} items, exit code {code}, {time.monotonic() - began:.0f} s in all", flush=True)
    if kinds.get("item") != args.files or summary["files"] != args.files:
        faults.append(f"{kinds.get('item')} items were told and {summary['files']} copied of {args.files}")
    if code or "session-lost" in kinds:
        faults.append(f"exit code {code}, {kinds.get('session-lost', 0)} sessions lost: {process.stderr.read().decode()}")
    return faults


def stops(args, nodes, home):
    process, peaks = copy(args, nodes, home, "stopped")
    is_stuck(process.stdout, args.stop)
    faults = [] if process.poll() is None else ["it ended by itself"]
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    try:
        code = process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        code = "none"
    print(f"  Ctrl-C: exit code {code} after {time.monotonic() - began:.1f} s", flush=True)
    return faults + told(peaks, args) + ([] if code == INTERRUPTED else [f"exit code {code} instead of {INTERRUPTED}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release/carrack", help="the program [%(default)s]")
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--stop", type=float, default=120, help="seconds for which nothing is read [%(default)s]")
    parser.add_argument("--memory", type=float, default=64, help="MB that a process may have [%(default)s]")
    parser.add_argument("--dir", default="/dev/shm", help="where the files are made [%(default)s]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as top:
        top = pathlib.Path(top)
        for index in range(args.files):
            if index % 1000 == 0:
                place = top / f"source/d{index // 1000:04}"
                place.mkdir(parents=True)
            (place / f"f{index:07}").touch()
        homes = {name: top / f"home-{name}" for name in ("source", "destination", "command")}
        for home in homes.values():
            home.mkdir()
        nodes = {name: Node(args, top / name, homes[name]) for name in ("source", "destination")}
        faults = []
        try:
            for what, case in (("a reader that pauses", pauses), ("a reader that stops for good", stops)):
                print(f"{what}:", flush=True)
                faults += case(args, nodes, homes["command"])
        finally:
            for node in nodes.values():
                node.close()
    sys.exit("\n".join(faults) or 0)


if __name__ == "__main__":
    main()
