#!/usr/bin/env python3
"""A large file of which 1 % has changed, sent over links of several rates: --delta auto, always and never, and rsync.

    python3 bench/delta.py target/release/carrack --programs target/release     1 GiB; 20 Mbit/s to 10 Gbit/s; as root
    python3 bench/delta.py target/release/carrack --size 4294967296 --rates 1gbit --runs 3
    python3 bench/delta.py target/release/carrack --size 268435456 --rates 20mbit,1gbit,10gbit --disks 0,1,4 --runs 3 --only auto,always,never

Each program goes over ssh to the far end of a link of 20 ms that is made for it; both files are in memory. Before each
run the old file is put back. Rows: the rate of the link. MB are those of the link's near end, in both directions.
With `--disks` both sides see their files through FUSE, where each call that reads or writes takes so many milliseconds
more (0: in memory as it is). `inserted` puts one byte before everything else: nothing is where it was, and only rsync finds it.
Needs `cargo build --release -p carrack-faults`.
"""
import argparse
import contextlib
import functools
import os
import pathlib
import shutil
import tempfile
import types

import sync
from link import Link

RTT_MS = 20
BLOCK = 1 << 20


def write(path, size, seed):
    piece = os.urandom(BLOCK)
    with open(path, "wb") as file:
        for number in range(size // BLOCK):
            # Each block is another, and made quickly.
            file.write((number ^ seed).to_bytes(8, "little") + piece[8:])


def change(path, size):
    """A byte in each of 1 % of the blocks, spread out."""
    with open(path, "r+b") as file:
        for number in range(0, size // BLOCK, 100):
            file.seek(number * BLOCK + 12345)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 255]))


def insert(path, old):
    with open(path, "wb") as file, open(old, "rb") as before:
        file.write(b"x")
        shutil.copyfileobj(before, file, BLOCK)


def measure(given, work, rate, what, disk="0"):
    link = Link(os.path.join(given.programs, "carrack-link"), pathlib.Path(work, "link.log"), RTT_MS)
    link.process.stdin.write(f"rate {rate}\n")
    link.process.stdin.flush()
    place = tempfile.mkdtemp(dir=work)
    os.chmod(place, 0o755)
    scene = sync.Scene(given, place, link)
    stack = contextlib.ExitStack()
    try:
        source, target, kept = (os.path.join(place, name) for name in ("from", "to", "kept"))
        for directory in (source, target):
            os.mkdir(directory)
            if disk != "0":
                backing = f"{directory}-backing"
                os.mkdir(backing)
                sync.mounted(stack, given.programs, "carrack-slow", backing, directory, "--read", disk, "--write", disk)
        write(kept, given.size, 0)
        shutil.copy(kept, os.path.join(source, "file"))
        if what == "inserted":
            insert(os.path.join(source, "file"), kept)
        else:
            change(os.path.join(source, "file"), given.size)
        cells = []
        programs = [("auto", "carrack"), ("always", "carrack"), ("never", "carrack"), ("rsync", "rsync")]
        for name, program in programs:
            if name not in given.only.split(","):
                continue
            if name == "never" and what == "inserted":
                continue
            command = [*scene.commands(source, target)[program], *([f"--delta={name}"] if program == "carrack" else ["--no-whole-file"])]
            put_back = functools.partial(shutil.copy, kept, os.path.join(target, "file"))
            # What both sides hold is looked at where it lies, and not through the slow disks.
            lies = [f"{directory}-backing" if disk != "0" else directory for directory in (source, target)]
            cpu, seconds, wire = scene.medians(name, command, lies, given.runs, put_back)
            cells.append(f"{name}: {seconds:.2f} s, {wire / 1e6:.1f} MB, {cpu:.2f} CPU s")
        print(f"| {rate}, {what}{f', {disk} ms a call' if disk != '0' else ''} | {' | '.join(cells)} |", flush=True)
    finally:
        scene.close()
        link.close()
        stack.close()
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack")
    parser.add_argument("--programs", default="target/release", help="where carrack-link is")
    parser.add_argument("--size", type=int, default=1 << 30)
    parser.add_argument("--rates", default="20mbit,100mbit,1gbit,10gbit")
    parser.add_argument("--disks", default="0", help="milliseconds a call")
    parser.add_argument("--only", default="auto,always,never,rsync")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    given.size -= given.size % BLOCK
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-delta-")
    os.chmod(work, 0o755)
    try:
        for rate in given.rates.split(","):
            for disk in given.disks.split(","):
                measure(given, work, rate, "1 % changed", disk)
        measure(types.SimpleNamespace(**{**vars(given), "size": min(given.size, 64 << 20)}), work, given.rates.split(",")[-1], "inserted")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
