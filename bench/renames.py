#!/usr/bin/env python3
"""A tree whose top directory was renamed, made so at the other side: `sync --delete --detect-renames` and `=quick`.

    python3 bench/renames.py target/release/carrack --programs target/release     10 GiB on this disk; as root

Over ssh to the far end of a link of 1 Gbit/s and 20 ms that is made for it. Both sides are on one disk, and nothing of
them is in memory before a run. `read` reads all files of both sides, two at a time. `send` is what the bytes alone take
on the link, which nobody is quicker than. Needs `cargo build --release -p carrack-faults`.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import sync
from link import Link

LARGE, SMALL = 64 << 20, 100_000
RATE = 1_000_000_000


def make_tree(top, size):
    """Large files, and 1,000 small ones; each is another."""
    os.makedirs(os.path.join(top, "small"))
    piece = os.urandom(1 << 20)
    for number in range(size // LARGE):
        with open(os.path.join(top, f"large {number}"), "wb") as file:
            for part in range(LARGE // len(piece)):
                file.write((number << 32 | part).to_bytes(8, "little") + piece[8:])
    for number in range(1000):
        with open(os.path.join(top, "small", str(number)), "wb") as file:
            file.write(number.to_bytes(8, "little") + piece[:SMALL])


def forget():
    """Has the system forget what it has read."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")


def read_all(*tops):
    start = time.monotonic()
    found = subprocess.Popen(["find", *tops, "-type", "f", "-print0"], stdout=subprocess.PIPE)
    subprocess.run(["xargs", "-0", "-n", "4", "-P", "2", "cat"], stdin=found.stdout, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack")
    parser.add_argument("--programs", default="target/release", help="where carrack-link is")
    parser.add_argument("--size", type=int, default=10 << 30)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--place", default="/var/tmp", help="a directory on the disk")
    given = parser.parse_args()
    work = tempfile.mkdtemp(dir=given.place, prefix="carrack-renames-")
    os.chmod(work, 0o755)
    link = Link(os.path.join(given.programs, "carrack-link"), pathlib.Path(work, "link.log"), 20)
    link.process.stdin.write("rate 1gbit\n")
    link.process.stdin.flush()
    scene = sync.Scene(given, work, link)
    try:
        source, target = os.path.join(work, "from"), os.path.join(work, "to")
        name = os.path.join(source, "top")
        make_tree(name, given.size)
        subprocess.run(["cp", "-a", source, target], check=True)
        size = sum(path.stat().st_size for path in pathlib.Path(name).rglob("*") if path.is_file())
        print(f"send: {size * 8 / RATE:.1f} s", flush=True)
        for run in range(given.runs):
            forget()
            print(f"read: {read_all(source, target):.2f} s", flush=True)
            for how in ("content", "quick"):
                renamed = os.path.join(source, f"{how} {run}")
                os.rename(name, renamed)
                name = renamed
                forget()
                command = [*scene.commands(source, target)["carrack"], f"--detect-renames={how}", "--max-delete=3"]
                cpu, seconds, wire = scene.run(command)
                if scene.differs(source, target):
                    sys.exit(f"{how}: the copy is another")
                print(f"{how}: {seconds:.2f} s, {wire / 1e6:.2f} MB, {cpu:.2f} CPU s", flush=True)
    finally:
        scene.close()
        link.close()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
