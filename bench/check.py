#!/usr/bin/env python3
"""Two trees that are the same but for some files, compared: time and CPU time, beside other programs.

    python3 bench/check.py target/release/carrack                  100,000 files of 4 KiB, then 2 of 2 GiB; 5 runs each
    python3 bench/check.py target/release/carrack --files 1000000 --runs 3

By size and time: `carrack check`, `rsync -n`. By content: `carrack check -c`, `rsync -nc`, `diff -r`, and rclone where
it is installed. All on this host, in memory (`--dir` names another place). One file in a thousand has another byte under
the same size and time, one another time: who compares content has to find the former, who does not the latter. The order
changes from run to run; a first round does not count. A program that finds anything else ends the run.
"""
import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import accounting
from sync import make_tree, all_files

STAMP = (1_500_000_000_000_000_000, 1_500_000_000_000_000_000)
ALTERED_EACH = 1000


def plant(top, files, size):
    """Two trees, and the paths that differ: by content, and by time."""
    one, two = top / "one", top / "two"
    make_tree(one, files, size)
    for path in all_files(one):
        os.utime(path, ns=STAMP)
    subprocess.run(["cp", "-a", one, two], check=True)
    names = [os.path.relpath(path, two) for path in all_files(two)]
    chosen = random.Random(7).sample(names, max(2, 2 * (len(names) // ALTERED_EACH)))
    content, times = set(chosen[::2]), set(chosen[1::2])
    for name in content:
        with open(two / name, "r+b") as file:
            file.seek(size // 2)
            byte = file.read(1)
            file.seek(size // 2)
            file.write(bytes([byte[0] ^ 1]))
        os.utime(two / name, ns=STAMP)
    for name in times:
        os.utime(two / name, ns=(STAMP[0], STAMP[1] + 10**10))
    return content, times


def contenders(carrack):
    """By what they compare: a name, the command, and how its output names what differs."""
    ours = lambda line: line[2:].rsplit(" (", 1)[0] if line.startswith("* ") else None
    rsync = lambda line: line.split(" ", 1)[1] if line.startswith(">f") else None
    diff = lambda line: line.split(" and ")[0].removeprefix("Files one/") if line.startswith("Files ") else None
    rows = {
        "time": [
            ("carrack check", [carrack, "check", "-q", "one", "two"], ours),
            ("rsync -n", ["rsync", "-rtn", "--out-format=%i %n", "one/", "two"], rsync),
        ],
        "content": [
            ("carrack check -c", [carrack, "check", "-q", "-c", "one", "two"], ours),
            ("rsync -nc", ["rsync", "-rtnc", "--out-format=%i %n", "one/", "two"], rsync),
            ("diff -r", ["diff", "-rq", "one", "two"], diff),
        ],
    }
    if shutil.which("rclone"):
        command = ["rclone", "check", "--config=", "--differ=-", "--log-level=ERROR", "one", "two"]
        rows["content"].append(("rclone check", command, lambda line: line))
    return rows


def measure(command, names, top, group):
    before = group.cpu()
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=top, stdout=subprocess.PIPE, text=True, preexec_fn=group.join)
    out = process.stdout.read()
    process.wait()
    seconds = time.monotonic() - start
    group.settle(())
    after = group.cpu()
    found = {names(line) for line in out.splitlines()} - {None}
    return found, seconds, sum(after) - sum(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack")
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--large", type=int, default=2 << 30, help="bytes of each of two large files; 0 for none")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--dir", default="/dev/shm")
    asked = parser.parse_args()
    carrack = os.path.realpath(asked.carrack)
    group = accounting.Cgroup()
    trees = [(asked.files, asked.size)] + ([(2, asked.large)] if asked.large else [])
    try:
        for files, size in trees:
            with tempfile.TemporaryDirectory(dir=asked.dir, prefix="carrack-check-") as work:
                top = pathlib.Path(work)
                content, times = plant(top, files, size)
                print(f"\n{files} files of {size} bytes")
                print(f"{'':20}{'s':>8}{'CPU s':>8}   (medians of {asked.runs})")
                for by, rows in contenders(carrack).items():
                    measured = {name: [] for name, _, _ in rows}
                    for run in range(asked.runs + 1):
                        for name, command, names in rows[run % len(rows):] + rows[:run % len(rows)]:
                            found, *figures = measure(command, names, top, group)
                            # rsync -c names files of another time as well: it would set that.
                            expected = times if by == "time" else content
                            if found != expected and not (name == "rsync -nc" and found == content | times):
                                sys.exit(f"{name} found {sorted(found ^ expected)[:9]} too much or too little")
                            if run:
                                measured[name].append(figures)
                    for name, figures in measured.items():
                        seconds, cpu = (statistics.median(column) for column in zip(*figures))
                        print(f"{name:20}{seconds:8.2f}{cpu:8.2f}", flush=True)
    finally:
        group.close()


main()
