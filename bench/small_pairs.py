#!/usr/bin/env python3
"""Two builds of Carrack with many small files, in turn: CPU time of all processes first, then time.

    python3 bench/small_pairs.py OLD NEW                     50,000 files, 7 pairs on each place: about ten minutes; as root
    python3 bench/small_pairs.py OLD NEW --pairs 3 --files 5000 --only tmpfs-node

Places: tmpfs-local (one process), tmpfs-node (a node on loopback), ext4-local and ext4-node (an ext4 image in memory).
Over ssh: `bash bench/run.sh --workloads many --against OLD`. Each run copies a tree of files of 1 KiB in directories of
250 to an empty directory. The order changes from pair to pair; a first pair does not count. CPU time is that of both
sides together. Ends with 1 if the median of the pairs' ratios, new by old, is above 1.01 in CPU time or above 1.02 in
time.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import accounting
import paired

TOKEN = "small-pairs-token-0123456789abcdef"


def make_tree(top, files, size=1024, each=250):
    """So many files of so many bytes, `each` of them in a directory."""
    for number in range(files):
        directory = os.path.join(top, f"d{number // each}")
        if number % each == 0:
            os.makedirs(directory)
        with open(os.path.join(directory, f"f{number}"), "wb") as file:
            file.write((b"%08d" % number) * (size // 8))


def image(directory):
    """An ext4 file system in a file in memory, mounted."""
    path, at = os.path.join(directory, "image"), os.path.join(directory, "ext4")
    os.mkdir(at)
    subprocess.run(["truncate", "-s", "2G", path], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-N", "400000", path], check=True)
    subprocess.run(["mount", "-o", "loop", path, at], check=True)
    return at


class Node:
    """A node of one build on loopback; `program` is its words on a command line."""

    def __init__(self, program, root, directory):
        self.tokens = os.path.join(directory, "token")
        with open(self.tokens, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(TOKEN + "\n")
        key = os.path.join(directory, f"key{os.getpid()}")
        log = os.path.join(directory, "node.log")
        with open(log, "w") as file:
            self.child = subprocess.Popen(
                [*program, "serve", "--node-only", "--json", "--listen", "127.0.0.1:0", "--root", root, "--key-file",
                 key, "--token-file", self.tokens], stdout=subprocess.PIPE, stderr=file, text=True)
        line = self.child.stdout.readline()
        if not line:
            with open(log) as file:
                sys.exit(f"the node did not start: {file.read()}")
        told = json.loads(line)
        self.at = f"carrack://127.0.0.1:{told['port']}/"
        self.pin = f"#{told['fingerprint']}"

    def end(self):
        self.child.terminate()
        self.child.wait()


def run(program, source, place, ext4, work, group):
    """One copy: CPU seconds of both sides, and seconds."""
    kind, how = place.split("-")
    top = ext4 if kind == "ext4" else os.path.join(work, "tmpfs")
    shutil.rmtree(os.path.join(top, "to"), ignore_errors=True)
    os.makedirs(top, exist_ok=True)
    if kind == "ext4":
        subprocess.run(["sync", "-f", top], check=True)
    command, node = [*program, source + "/"], None
    environment = {**os.environ, "XDG_STATE_HOME": os.path.join(work, "state")}
    if how == "local":
        command += [os.path.join(top, "to")]
    else:
        node = Node(program, top, work)
        location = node.at + "to" + node.pin
        command += ["--token-file", node.tokens, location]
    before, start = sum(group.cpu()), time.monotonic()
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.monotonic() - start
    if node:
        node.end()
    cpu = sum(group.cpu()) - before
    if ended.returncode != 0:
        sys.exit(f"{place}: {ended.stderr}")
    return cpu, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--only", help="places whose names contain this")
    given = parser.parse_args()
    programs = [[os.path.abspath(given.old)], [os.path.abspath(given.new)]]
    places = ["tmpfs-local", "tmpfs-node", "ext4-local", "ext4-node"]
    places = [place for place in places if not given.only or given.only in place]
    group = accounting.Cgroup()
    group.join()
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-pairs-")
    ext4, slower = None, False
    try:
        source = os.path.join(work, "from")
        make_tree(source, given.files)
        if any(place.startswith("ext4") for place in places):
            ext4 = image(work)
        slower = paired.table("place", places, given.pairs, (1.01, 1.02),
                              lambda place, which: run(programs[which], source, place, ext4, work, group))
    finally:
        if ext4:
            subprocess.run(["umount", ext4], check=False)
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
