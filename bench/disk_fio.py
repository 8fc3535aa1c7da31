#!/usr/bin/env python3
"""Compares `carrack bench disk` with fio on the same file system, mode, record and depth.

Usage: disk_fio.py [--pairs N] [--size MIB] [--milliseconds N] [--only WORD] [--report FILE] CARRACK

Runs on a tmpfs and, as root, on ext4 and XFS in images in that tmpfs (loop devices, so no disk's noise is measured).
Each row is measured in pairs, carrack and fio in turn, the order changing from pair to pair; their medians are
compared. Both write a new file, or read one that was laid out in the same way a moment ago; both end after all of its
bytes or after the same time. Where several operations are under way, both have as many threads with one operation each
(fio: psync and numjobs). Exit code 1 if a row is more than 10 % away. The host must be quiet.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
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
    ("read cached 64K", "read", "cached", ["--rw=read"], "64K", 1),
    ("read direct", "read", "direct", ["--rw=read", "--direct=1"], "1M", 1),
    ("random read direct", "random-read", "direct", ["--rw=randread", "--direct=1"], "4K", 1),
    ("random read direct", "random-read", "direct", ["--rw=randread", "--direct=1"], "4K", 8),
    ("random write direct", "random-write", "direct", ["--rw=randwrite", "--direct=1", "--overwrite=1"], "4K", 1),
    ("random write direct", "random-write", "direct", ["--rw=randwrite", "--direct=1", "--overwrite=1"], "4K", 8),
]
MOST = 0.10


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def carrack(program, place, row, given):
    _, operation, mode, _, record, depth = row
    lines = run([program, "bench", "disk", place, "--json", "--no-keep", f"--op={operation}", f"--mode={mode}",
                 f"--record={record}", f"--depth={depth}", f"--size={given.size}M",
                 f"--time={given.milliseconds}ms"]).splitlines()
    rows = [line for line in map(json.loads, lines) if line["type"] == "row"]
    return rows[0]["values"]["bytes_per_second"]


def lay(name, megabytes):
    """Writes a file as carrack lays one that it will visit: 1 MiB at a time, random bytes, fdatasync, nothing in the
    cache. fio would empty the cache while its clock runs."""
    piece = os.urandom(1 << 20)
    with open(name, "wb", buffering=0) as file:
        for _ in range(megabytes):
            file.write(piece)
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fio(place, row, given):
    """One run, on a file of its own: new for a write, else laid out before."""
    _, operation, _, options, record, depth = row
    name = os.path.join(place, "fio.dat")
    if operation != "write":
        lay(name, given.size)
    command = ["fio", "--name=row", f"--filename={name}", "--output-format=json", "--thread", "--fallocate=none",
               "--randrepeat=0", "--group_reporting", f"--bs={record}", f"--size={given.size}M",
               f"--runtime={given.milliseconds}ms",
               # As many threads as the depth, each with its share of the operations.
               "--ioengine=psync", f"--numjobs={depth}", f"--io_size={given.size // depth}M"]
    try:
        job = json.loads(run(command + options))["jobs"][0]
    finally:
        if os.path.exists(name):
            os.unlink(name)
    return job["write" if "write" in operation else "read"]["bw_bytes"]


# No work left for later: what a file system does in the background after its first mount would fall into some row.
MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-K"],
}


def image(directory, kind, megabytes):
    """A file system in an image; answers with its mount point and how to undo it."""
    path, point = os.path.join(directory, f"{kind}.img"), os.path.join(directory, kind)
    with open(path, "wb") as file:
        # All of its memory was written to before: no row pays for memory that a row before it did not touch. Reserving
        # it is not enough, for the kernel clears a reserved page only when it is used.
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
    run(MAKE[kind] + [path])
    os.mkdir(point)
    run(["mount", "-o", "loop", path, point])
    return point, lambda: (subprocess.run(["umount", point], check=False), os.unlink(path))


WORKERS = "/sys/devices/virtual/workqueue/cpumask"


class OneProcessor:
    """Runs what is started meanwhile, and the kernel's workers, on one processor. A loop device hands each request to a
    worker. On a virtual machine, waking a worker on another processor takes 4 or 40 microseconds, by chance; that would
    be most of what a row measures."""

    def __enter__(self):
        self.processors = os.sched_getaffinity(0)
        with open(WORKERS) as file:
            self.workers = file.read()
        self.set({min(self.processors)}, f"{1 << min(self.processors):x}")
        return self

    def __exit__(self, *_):
        self.set(self.processors, self.workers)

    def set(self, processors, workers):
        os.sched_setaffinity(0, processors)
        with open(WORKERS, "w") as file:
            file.write(workers)


def compare(program, place, given):
    for row in ROWS:
        if given.only and given.only not in row[0]:
            continue
        ours, theirs = [], []
        # The first pair warms up memory and file system, and does not count.
        for pair in range(given.pairs + 1):
            measure = [lambda: ours.append(carrack(program, place, row, given)),
                       lambda: theirs.append(fio(place, row, given))]
            for one in measure if pair % 2 == 0 else reversed(measure):
                one()
        yield row, ours[1:], theirs[1:]


def table_line(kind, row, ours, theirs):
    """A line of a table, and whether the two are far from each other."""
    name, _, _, _, record, depth = row
    ratio = statistics.median(ours) / statistics.median(theirs)
    far = abs(ratio - 1) > MOST
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    shown = f"**{ratio:.2f}**" if far else f"{ratio:.2f}"
    return (f"| {kind} | {name} | {record} | {depth} | {statistics.median(ours) / 1e6:,.0f} | "
            f"{statistics.median(theirs) / 1e6:,.0f} | {shown} | {low:.2f}-{high:.2f} |"), far


HEAD = ["| file system | row | record | depth | carrack MB/s | fio MB/s | ratio | of single pairs |",
        "|---|---|--:|--:|--:|--:|--:|--:|"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("carrack")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--size", type=int, default=512, help="of the file, in MiB")
    parser.add_argument("--milliseconds", type=int, default=1000, help="limit for one run of one row")
    parser.add_argument("--only", default="", help="rows with this word in their name")
    parser.add_argument("--places", default="tmpfs,ext4,xfs")
    parser.add_argument("--report", default="", help="write the table there, and every single rate below it")
    given = parser.parse_args()
    program = os.path.abspath(given.carrack)
    # What is mounted is unmounted, also after a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = tempfile.mkdtemp(prefix="carrack-fio-", dir="/dev/shm")
    undo, table, each, far = [], list(HEAD), [], 0
    print("\n".join(HEAD), flush=True)
    try:
        for kind in given.places.split(","):
            place, processors = os.path.join(directory, kind), contextlib.nullcontext()
            if kind == "tmpfs":
                os.mkdir(place)
            elif os.geteuid() != 0:
                print(f"{kind}: mounting an image needs root", file=sys.stderr)
                continue
            else:
                # Files of both, and room: a full file system is slower.
                place, remove = image(directory, kind, 4 * given.size)
                undo.append(remove)
                processors = OneProcessor()
            with processors:
                for row, ours, theirs in compare(program, place, given):
                    line, is_far = table_line(kind, row, ours, theirs)
                    far += is_far
                    print(line, flush=True)
                    table.append(line)
                    each.append(f"{kind} {row[0]} {row[4]} {row[5]}: " +
                                " ".join(f"{a / 1e6:.0f}/{b / 1e6:.0f}" for a, b in zip(ours, theirs)))
            if undo:
                undo.pop()()
    finally:
        for remove in undo:
            remove()
        shutil.rmtree(directory, ignore_errors=True)
    if given.report:
        with open(given.report, "w") as file:
            file.write("\n".join(table + [""] + each) + "\n")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
