#!/usr/bin/env python3
"""Copies within a host, beside cp and rsync: on tmpfs, ext4, XFS and Btrfs, and from tmpfs to ext4.

    python3 bench/local.py target/release/carrack                   all file systems and trees, 3 runs of each; as root
    python3 bench/local.py target/release/carrack --only btrfs --what file --runs 5

Trees: `file` (one large file), `many` (50 files), `small` (50,000 files of 2 KiB), `replacing` (the same over a tree that
is there). Each stands in three rows. `content`: nothing is compared or synced, beside `cp -a` and `rsync -a`.
`compared`: beside `cp -a` and `diff -r`. `durable`: Carrack as it comes, beside `cp -a` and `sync -f`, which
compares nothing. The order changes from run to run, and a first round does not count. Figures are medians of seconds.
The file systems are images in memory. `--no-share` measures Carrack with `--reflink never`, and cp, too.

    python3 bench/local.py target/release/carrack --only parallel --what many --programs target/release

`parallel` is a directory seen through FUSE in which each call that reads or writes takes 4 ms more, as on storage that is
slow for one and quick for many: who has several files under way at once is quicker. It needs `carrack-slow`
(`cargo build --release -p carrack-faults`).
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

KIB, MIB = 1 << 10, 1 << 20
MAKE = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f", "-m", "reflink=1"], "btrfs": ["mkfs.btrfs", "-q", "-f"]}
PLACES = {"tmpfs": ("tmpfs", "tmpfs"), "ext4": ("ext4", "ext4"), "xfs": ("xfs", "xfs"), "btrfs": ("btrfs", "btrfs"),
          "tmpfs to ext4": ("tmpfs", "ext4"), "parallel": ("parallel", "parallel")}


class Images:
    """File systems in images in memory, each made when it is first asked for."""

    def __init__(self, work, size, programs):
        self.work, self.size, self.programs, self.mounted, self.slow = pathlib.Path(work), size, programs, [], []

    def place(self, kind):
        point = self.work / kind
        if point.is_dir():
            return point
        point.mkdir()
        if kind == "parallel":
            backing = self.work / "backing"
            backing.mkdir()
            line = [os.path.join(self.programs, "carrack-slow"), "--read", "4", "--write", "4", str(backing), str(point)]
            self.slow.append(subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            if self.slow[-1].stdout.readline().strip() != "mounted":
                sys.exit("nothing could be mounted")
        elif kind != "tmpfs":
            image = self.work / f"{kind}.image"
            with open(image, "wb") as file:
                file.truncate(self.size)
            subprocess.run([*MAKE[kind], str(image)], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
            self.mounted.append(point)
        return point

    def beneath(self, kind):
        """Where the files of a place lie, which there is no need to wait for."""
        return self.work / "backing" if kind == "parallel" else self.place(kind)

    def close(self):
        for process in self.slow:
            process.stdin.close()
            process.wait()
        self.slow.clear()
        for point in self.mounted:
            subprocess.run(["umount", str(point)], check=True)
        self.mounted.clear()
        for path in self.work.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def make(top, files, size):
    piece = os.urandom(MIB)
    for number in range(files):
        directory = top / f"d{number // 500}"
        directory.mkdir(parents=True, exist_ok=True)
        with open(directory / f"file{number:06d}", "wb") as file:
            for at in range(0, size, MIB):
                file.write((number.to_bytes(8, "little") + at.to_bytes(8, "little") + piece[16:])[:size - at])


def commands(carrack, source, target, share):
    """Of each row, what is run for each program."""
    ours = [carrack, "copy", "-q", "--no-resume", *([] if share else ["--reflink", "never"]), f"{source}/", str(target)]
    cp = ["cp", "-a", *([] if share else ["--reflink=never"]), f"{source}/.", str(target)]
    rsync = ["rsync", "-a", "--whole-file", "--ignore-times", f"{source}/", str(target)]
    compare = ["diff", "-rq", str(source), str(target)]
    return {
        "content": {"carrack": [[*ours, "--verify", "none", "--digest", "none", "--durable", "none"]], "cp": [cp], "rsync": [rsync]},
        "compared": {"carrack": [[*ours, "--durable", "none"]], "cp": [cp, compare]},
        "durable": {"carrack": [ours], "cp": [cp, ["sync", "-f", str(target)]]},
    }


def run(lines, environment):
    start = time.monotonic()
    for line in lines:
        ended = subprocess.run(line, env=environment, capture_output=True, text=True)
        if ended.returncode:
            sys.exit(f"{' '.join(line)}: {ended.stdout}{ended.stderr}")
    return time.monotonic() - start


def measure(given, images, place, what):
    (of, to), replacing = PLACES[place], what == "replacing"
    files, size = {"file": (1, given.size), "many": (50, given.size // 50)}.get(what, (given.files, 2 * KIB))
    source, target = images.place(of) / "from", images.place(to) / "to"
    really = [images.beneath(of) / "from", images.beneath(to) / "to"]
    make(really[0], files, size)
    environment = {**os.environ, "XDG_STATE_HOME": str(images.work / "state")}
    rows = commands(given.carrack, source, target, not given.no_share)
    # diff reads 4 KiB at a time, which would be all that is measured.
    for row in ["content"] if place == "parallel" else rows:
        programs = rows[row]
        told = {program: [] for program in programs}
        for number in range(given.runs + 1):
            order = list(programs)[::1 if number % 2 else -1]
            for program in order:
                shutil.rmtree(really[1], ignore_errors=True)
                really[1].mkdir()
                if replacing:
                    subprocess.run(["cp", "-a", f"{really[0]}/.", str(really[1])], check=True)
                subprocess.run(["sync"], check=True)
                seconds = run(programs[program], environment)
                if number:
                    told[program].append(seconds)
                elif subprocess.run(["diff", "-rq", *map(str, really)], stdout=subprocess.DEVNULL).returncode:
                    sys.exit(f"{program}: the copy is another")
        cells = {program: statistics.median(runs) for program, runs in told.items()}
        best = min(seconds for program, seconds in cells.items() if program != "carrack")
        rest = f"{cells['rsync']:.2f}" if "rsync" in cells else ""
        print(f"| {place} | {what} | {row} | {cells['carrack']:.2f} | {cells['cp']:.2f} | {rest} | {cells['carrack'] / best:.2f} |", flush=True)
    for old in really:
        shutil.rmtree(old, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack", type=os.path.abspath)
    parser.add_argument("--only", choices=PLACES)
    parser.add_argument("--what", choices=["file", "many", "small", "replacing"])
    parser.add_argument("--size", type=int, default=2 << 30, help="bytes of `file`, and of `many` together [%(default)s]")
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-share", action="store_true")
    parser.add_argument("--programs", default="target/release", help="where carrack-slow is")
    given = parser.parse_args()
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-local-")
    print("| | | | carrack, s | cp | rsync | carrack by the best other |\n|---|---|---|--:|--:|--:|--:|", flush=True)
    for place in [given.only] if given.only else [place for place in PLACES if place != "parallel"]:
        images = Images(work, 3 * given.size, given.programs)
        try:
            for what in [given.what] if given.what else ["file", "many", "small", "replacing"]:
                measure(given, images, place, what)
        finally:
            images.close()
    os.rmdir(work)


if __name__ == "__main__":
    main()
