#!/usr/bin/env python3
"""Compares `carrack bench disk` with fio on the same file system, mode, record and depth.

Usage: disk_fio.py [--pairs N] [--size SIZE] [--only WORD] [--report FILE] CARRACK

Runs on a tmpfs and, as root, on ext4 and XFS in images in that tmpfs (loop devices, so no disk's noise is measured).
Each row is measured in pairs, carrack and fio in turn, the order changing from pair to pair; their medians are
compared. Exit code 1 if a row is more than 10 % away. The host must be quiet.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

# Name, carrack's operation and mode, fio's options, record, depth.
ROWS = [
    ("write cached", "write", "cached", ["--rw=write"], "1M", 1),
    ("write fdatasync", "write", "fdatasync", ["--rw=write", "--end_fsync=1"], "1M", 1),
    ("write dsync", "write", "dsync", ["--rw=write", "--sync=dsync"], "1M", 1),
    ("write direct", "write", "direct", ["--rw=write", "--direct=1"], "1M", 1),
    ("read cached", "read", "cached", ["--rw=read"], "1M", 1),
    ("read direct", "read", "direct", ["--rw=read", "--direct=1"], "1M", 1),
    ("read cached 64K", "read", "cached", ["--rw=read"], "64K", 1),
    ("random read direct", "random-read", "direct", ["--rw=randread", "--direct=1"], "4K", 1),
    ("random read direct deep", "random-read", "direct", ["--rw=randread", "--direct=1"], "4K", 8),
    ("random write direct", "random-write", "direct", ["--rw=randwrite", "--direct=1", "--overwrite=1"], "4K", 1),
    ("random write direct deep", "random-write", "direct", ["--rw=randwrite", "--direct=1", "--overwrite=1"], "4K", 8),
]
MOST = 0.10
# Random rows end after this much: a file of 4 KiB records is many records.
RANDOM_SECONDS = 1.5


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def carrack(program, place, row, size):
    _, operation, mode, _, record, depth = row
    time = RANDOM_SECONDS if operation.startswith("random") else 0
    lines = run([program, "bench", "disk", place, "--json", "--no-keep", f"--op={operation}", f"--mode={mode}",
                 f"--record={record}", f"--depth={depth}", f"--size={size}", f"--time={time}s"]).splitlines()
    rows = [line for line in map(json.loads, lines) if line["type"] == "row"]
    return rows[0]["values"]["bytes_per_second"]


def fio(place, row, size):
    _, operation, _, options, record, depth = row
    name = os.path.join(place, "fio.dat")
    random = operation.startswith("random")
    base = ["fio", "--name=row", f"--filename={name}", f"--size={size}", "--output-format=json", "--thread",
            "--ioengine=psync", "--fallocate=none", "--randrepeat=0", "--group_reporting"]
    if operation == "write":
        # A new file, as carrack's is.
        if os.path.exists(name):
            os.unlink(name)
    elif not os.path.exists(name):
        run(base + ["--rw=write", "--bs=1M", "--end_fsync=1"])
    command = base + options + [f"--bs={record}"]
    if depth > 1:
        # Depth by the system's own queue, not by threads: what is compared.
        command = [word for word in command if not word.startswith("--ioengine")]
        command += ["--ioengine=libaio", f"--iodepth={depth}"]
    if random:
        command += [f"--runtime={RANDOM_SECONDS}"]
    job = json.loads(run(command))["jobs"][0]
    return job["write" if "write" in operation else "read"]["bw_bytes"]


def image(directory, kind, megabytes):
    """A file system in an image; answers with its mount point and how to undo it."""
    path, point = os.path.join(directory, f"{kind}.img"), os.path.join(directory, kind)
    with open(path, "wb") as file:
        file.truncate(megabytes << 20)
    run(["mkfs." + kind, "-q", path])
    os.mkdir(point)
    run(["mount", "-o", "loop", path, point])
    return point, lambda: (subprocess.run(["umount", point]), os.unlink(path))


def compare(program, place, size, pairs, only):
    for row in ROWS:
        if only and only not in row[0]:
            continue
        ours, theirs = [], []
        # The first pair warms up memory and file system, and does not count.
        for pair in range(pairs + 1):
            measure = [lambda: ours.append(carrack(program, place, row, size)),
                       lambda: theirs.append(fio(place, row, size))]
            for one in measure if pair % 2 == 0 else reversed(measure):
                one()
        leftover = os.path.join(place, "fio.dat")
        if os.path.exists(leftover):
            os.unlink(leftover)
        yield row[0], statistics.median(ours[1:]), statistics.median(theirs[1:]), ours[1:], theirs[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carrack")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--size", default="512M")
    parser.add_argument("--only", default="")
    parser.add_argument("--places", default="tmpfs,ext4,xfs")
    parser.add_argument("--report", default="")
    given = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="carrack-fio-", dir="/dev/shm")
    undo, lines, far = [], [], 0
    try:
        for kind in given.places.split(","):
            place = os.path.join(directory, kind)
            if kind == "tmpfs":
                os.mkdir(place)
            elif os.geteuid() != 0:
                print(f"{kind}: mounting an image needs root", file=sys.stderr)
                continue
            else:
                place, remove = image(directory, kind, 2048)
                undo.append(remove)
            for name, ours, theirs, each, others in compare(os.path.abspath(given.carrack), place, given.size,
                                                            given.pairs, given.only):
                ratio = ours / theirs
                mark = "" if abs(ratio - 1) <= MOST else "  <-- more than 10 %"
                far += bool(mark)
                line = f"{kind:6} {name:26} {ours / 1e6:10.0f} {theirs / 1e6:10.0f} MB/s {ratio:6.3f}{mark}"
                print(line, flush=True)
                spread = " ".join(f"{a / 1e6:.0f}/{b / 1e6:.0f}" for a, b in zip(each, others))
                lines += [line, f"         {spread}"]
            if undo:
                undo.pop()()
    finally:
        for remove in undo:
            remove()
        shutil.rmtree(directory, ignore_errors=True)
    if given.report:
        with open(given.report, "w") as file:
            file.write("file system, row, carrack, fio, ratio of medians; each pair below\n" + "\n".join(lines) + "\n")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
