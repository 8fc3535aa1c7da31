#!/usr/bin/env python3
"""What it costs to keep attributes where there are none: processor seconds of copies without flags, with `-a` and with
`-aX`, of trees of ordinary files, beside rsync's `-a` and `-aAX`.

    python3 bench/attributes.py target/release/carrack                     trees small, many and file, 7 runs of each
    python3 bench/attributes.py target/release/carrack --only many --runs 11 --before OLD

Trees: `small` (20,000 files of 10 KiB), `many` (100,000 files of 100 bytes), `file` (one of 2 GiB). Each is copied to a
new directory, and synced over itself (nothing to send), in memory (tmpfs, or --at DIRECTORY). `--before` is an older
program: without flags the new one is to need no more than that. The order changes from run to run, and a first round does
not count. Figures are medians of processor seconds (user and system) of the whole command, and of seconds.
"""
import argparse
import os
import pathlib
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TREES = {"small": (20_000, 10 << 10), "many": (100_000, 100), "file": (1, 2 << 30)}


def make(top, count, size):
    piece = os.urandom(min(size, 1 << 20))
    for number in range(count):
        directory = top / f"d{number // 1000}"
        if number % 1000 == 0:
            directory.mkdir(parents=True)
        with open(directory / f"f{number}", "wb") as file:
            for _ in range(max(1, size >> 20)):
                file.write(piece)


def measured(command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode != 0:
        sys.exit(f"{command}: {ran.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack")
    parser.add_argument("--before")
    parser.add_argument("--only", choices=TREES)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--at", default="/dev/shm")
    given = parser.parse_args()
    ways = {"plain": [given.carrack, "sync", "--reflink=never"], "-a": [given.carrack, "sync", "--reflink=never", "-a"],
            "-aX": [given.carrack, "sync", "--reflink=never", "-aX"], "rsync -a": ["rsync", "-a"], "rsync -aAX": ["rsync", "-aAX"]}
    if given.before:
        ways["plain before"] = [given.before, "sync", "--reflink=never"]
    print(f"{'tree':7}{'what':9}{'way':14}{'CPU s':>8}{'to plain':>10}{'s':>8}")
    with tempfile.TemporaryDirectory(dir=given.at) as work:
        work = pathlib.Path(work)
        for tree, (count, size) in TREES.items():
            if given.only not in (None, tree):
                continue
            make(work / "in", count, size)
            found = {(what, way): [] for what in ("copied", "same") for way in ways}
            for turn in range(given.runs + 1):
                order = list(ways)
                random.Random(turn).shuffle(order)
                for way in order:
                    command = [*ways[way], f"{work}/in/", f"{work}/out"]
                    for what in ("copied", "same"):
                        figures = measured(command)
                        if turn > 0:
                            found[what, way].append(figures)
                    shutil.rmtree(work / "out")
            for (what, way), figures in found.items():
                processor, seconds = (statistics.median(one) for one in zip(*figures))
                plain = statistics.median(one[0] for one in found[what, "plain"])
                print(f"{tree:7}{what:9}{way:14}{processor:8.2f}{processor / plain:10.2f}{seconds:8.2f}", flush=True)
            shutil.rmtree(work / "in")


main()
