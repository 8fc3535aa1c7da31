#!/usr/bin/env python3
"""What a host with many processors would do, reckoned from the processor time of each stage on this one.

    python3 bench/many_cores.py target/release/carrack                 30,000 files of 2 KiB and a file of 3 GiB; as root
    python3 bench/many_cores.py target/release/carrack --runs 5

Files are copied to a node on loopback, in memory and to an ext4 image with a journal, to nothing and over files that are
there. `--timeline` tells how long each stage worked, without what it waited. Per file, a stage that one thread carries
out caps the rate at its inverse, whatever the machine; a stage of the streams needs as many streams as its share. The
reckoning assumes that stages on different processors do not hold each other up; what they share (a directory's lock, a
session's lock, memory's rate) it does not know. Medians of several runs.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import accounting
import small_pairs

AIM = 1_000_000  # small files a second
LINE = 400e9 / 8  # bytes a second
# By side: the stages that one thread, or a few that follow the processors, carry out; and those of the streams.
ALONE = [("source", "list", "scan"), ("destination", "publish", "names")]
STREAMS = {"source": ("find", "read", "hash", "send"), "destination": ("create", "write", "hash", "receive")}


def stages(path):
    """Microseconds worked, by side and stage, at the end."""
    found = {}
    with open(path) as lines:
        for line in map(json.loads, lines):
            if line["type"] == "sample":
                found[line["side"]] = {name: stage.get("worked_us", 0) for name, stage in line["stages"].items()}
    return found


def copy(program, source, node, work):
    path = os.path.join(work, "timeline")
    if os.path.exists(path):
        os.remove(path)
    command = [program, "-q", "--timeline", path, "--token-file", node.tokens, source, node.at + "to" + node.pin]
    accounting.touch_memory(256 << 20)
    subprocess.run(command, check=True, env={**os.environ, "XDG_STATE_HOME": os.path.join(work, "state")})
    return stages(path)


def medians(runs):
    keys = {(side, stage) for run in runs for side in run for stage in run[side]}
    return {key: statistics.median(run.get(key[0], {}).get(key[1], 0) for run in runs) for key in keys}


def small(name, runs, files):
    """A row of what small files need."""
    each = {key: value / files for key, value in medians(runs).items()}
    alone = [each.get((side, stage), 0) for side, stage, _ in ALONE]
    streams = [sum(each.get((side, stage), 0) for stage in STREAMS[side]) for side in ("source", "destination")]
    cells = [f"{us:.1f}" for us in (*alone, *streams)]
    caps = [f"{1e6 / us:,.0f}" if us else "-" for us in alone]
    needed = [AIM * us / 1e6 for us in (*alone, *streams)]
    threads = [f"{count:.0f}" for count in needed]
    print(f"| {name} | " + " | ".join(cells) + " | " + " | ".join(caps) + " | " + " | ".join(threads) + f" | {sum(needed):.0f} |")


def large(name, runs, size):
    each = medians(runs)
    cells = []
    for side in ("source", "destination"):
        us = sum(each.get((side, stage), 0) for stage in STREAMS[side])
        cells += [f"{us / 1e6 / (size / 1e9):.2f}", f"{us / 1e6 / size * LINE:.0f}"]
    print(f"| {name} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--size", type=int, default=3 << 30, help="of the large file, in bytes")
    given = parser.parse_args()
    program = os.path.abspath(given.program)
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-cores-")
    ext4 = None
    try:
        source = os.path.join(work, "from")
        small_pairs.make_tree(source, given.files, 2048, 100)
        ext4 = small_pairs.image(work)
        memory = os.path.join(work, "memory")
        os.mkdir(memory)
        print("| small files | µs a file: scan | names | sending streams | receiving streams | files/s of one thread: scan | names "
              f"| threads for {AIM:,} files/s: scan | names | sending | receiving | processors |")
        print("|---|" + "--:|" * 11)
        for place, top in (("memory", memory), ("ext4", ext4)):
            node = small_pairs.Node([program], top, work)
            new, over = [], []
            try:
                for _ in range(given.runs):
                    new.append(copy(program, source + "/", node, work))
                    over.append(copy(program, source + "/", node, work))
                    shutil.rmtree(os.path.join(top, "to"))
                    subprocess.run(["sync", "-f", top], check=True)
            finally:
                node.end()
            small(f"to {place}", new, given.files)
            small(f"over files in {place}", over, given.files)
        print("\n| a large file | sending streams, CPU-s/GB | streams for 400 Gb/s | receiving streams, CPU-s/GB | streams for 400 Gb/s |")
        print("|---|" + "--:|" * 4)
        file = os.path.join(work, "file")
        with open(file, "wb") as out:
            for _ in range(given.size >> 20):
                out.write(os.urandom(1 << 20))
        node = small_pairs.Node([program], memory, work)
        try:
            runs = []
            for _ in range(given.runs):
                runs.append(copy(program, file, node, work))
                os.remove(os.path.join(memory, "to"))
            large("TLS, BLAKE3", runs, given.size)
        finally:
            node.end()
    finally:
        if ext4:
            subprocess.run(["umount", ext4], check=False)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
