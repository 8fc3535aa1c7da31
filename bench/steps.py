#!/usr/bin/env python3
"""Two builds of Carrack in turn, to a node on loopback: a large file and small ones, on four file systems.

    python3 bench/steps.py OLD NEW                       9 pairs of each row: about forty minutes; as root
    python3 bench/steps.py OLD NEW --pairs 3 --only tmpfs
    python3 bench/steps.py OLD NEW --only large          or `small`, `ext4`, `--streams 8`: rows whose names contain this

ext4 (with a journal), XFS and Btrfs are images in memory. CPU time is that of both sides together. Memory is touched
before each copy. `over`: small files that stand there are replaced. The order changes from pair to pair; a first pair
does not count. Ends with 1 if the median of a row's ratios, new by old, is above 1.02 in CPU time or above 1.05 in time.
Other programs beside them, in one run: `bash bench/run.sh --workloads file,small,many,medium --before OLD`.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

import accounting
import paired
import small_pairs

UNSEEN = "--encrypt none --digest none --verify none"
WAYS = {"unseen": UNSEEN, "clear": "--encrypt none", "TLS": ""}
FILE_SYSTEMS = {"ext4": ["mkfs.ext4", "-q", "-F", "-N", "200000"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}


def rows():
    """Name, file system, kind, and options."""
    found = [(f"large, tmpfs, {way}", "tmpfs", "large", options) for way, options in WAYS.items()]
    found += [(f"large, tmpfs, {way}, --streams {streams}", "tmpfs", "large", f"{options} --streams {streams}")
              for way, options in WAYS.items() if way != "clear" for streams in (1, 8, 32)]
    found += [(f"large, {system}, TLS", system, "large", "") for system in FILE_SYSTEMS]
    found += [(f"small, {system}", system, "small", "") for system in ("tmpfs", *FILE_SYSTEMS)]
    found += [(f"small, {system}, over", system, "over", "") for system in ("tmpfs", *FILE_SYSTEMS)]
    return {name: rest for name, *rest in found}


def image(directory, system, mib):
    path, at = os.path.join(directory, f"image-{system}"), os.path.join(directory, system)
    os.mkdir(at)
    subprocess.run(["truncate", "-s", f"{mib}M", path], check=True)
    subprocess.run([*FILE_SYSTEMS[system], path], check=True)
    subprocess.run(["mount", "-o", "loop", path, at], check=True)
    return at


class Scene:
    def __init__(self, work, given, systems):
        self.work, self.mounted = work, []
        self.large, self.small = os.path.join(work, "large"), os.path.join(work, "small")
        with open(self.large, "wb") as file:
            for _ in range(given.size):
                file.write(os.urandom(1 << 20))
        small_pairs.make_tree(self.small, given.files, 2048, 100)
        self.tops = {"tmpfs": os.path.join(work, "tmpfs")}
        os.mkdir(self.tops["tmpfs"])
        for system in systems - {"tmpfs"}:
            self.tops[system] = image(work, system, given.size + 1024)
            self.mounted.append(self.tops[system])
        self.group = accounting.Cgroup()
        self.group.join()
        self.size = given.size << 20

    def copy(self, program, row):
        """CPU seconds of both sides, and seconds."""
        system, kind, options = row
        top = self.tops[system]
        source, target = (self.large, "file") if kind == "large" else (self.small + "/", "to")
        there = os.path.join(top, target)
        if kind != "over":
            if os.path.isdir(there):
                shutil.rmtree(there)
            elif os.path.exists(there):
                os.remove(there)
        node = small_pairs.Node([program], top, self.work)
        command = [program, "-q", *options.split(), "--token-file", node.tokens, source, node.at + target + node.pin]
        environment = {**os.environ, "XDG_STATE_HOME": os.path.join(self.work, "state")}
        if kind == "over" and not os.path.isdir(there):
            subprocess.run(command, env=environment, check=True)
        if system != "tmpfs":
            subprocess.run(["sync", "-f", top], check=True)
        accounting.touch_memory(self.size if kind == "large" else 256 << 20)
        before, start = sum(self.group.cpu()), time.monotonic()
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
        seconds = time.monotonic() - start
        node.end()
        cpu = sum(self.group.cpu()) - before
        if ended.returncode:
            sys.exit(f"{row}: {ended.stderr}")
        return cpu, seconds

    def close(self):
        for at in self.mounted:
            subprocess.run(["umount", at], check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--size", type=int, default=3072, metavar="MIB", help="of the large file [%(default)s]")
    parser.add_argument("--files", type=int, default=30_000)
    given = parser.parse_args()
    programs = [os.path.abspath(given.old), os.path.abspath(given.new)]
    chosen = {name: row for name, row in rows().items() if given.only in name}
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-steps-")
    scene = None
    try:
        scene = Scene(work, given, {row[0] for row in chosen.values()})
        slower = paired.table("row", list(chosen), given.pairs, (1.02, 1.05),
                              lambda name, which: scene.copy(programs[which], chosen[name]))
    finally:
        if scene:
            scene.close()
        shutil.rmtree(work, ignore_errors=True)
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
