#!/usr/bin/env python3
"""Trees that shrink well, a little and not at all, over links of several rates: with and without -z, beside rsync and scp.

    python3 bench/compress.py target/release/carrack --programs target/release      20 Mbit/s, 1 Gbit/s, loopback; as root
    python3 bench/compress.py target/release/carrack --rates 100mbit --runs 5

Each program goes over ssh to the far end of a link of 20 ms that is made for it, or over loopback; both trees are in
memory. Before each run the destination is removed. `text` is from /usr/share and the sources of crates, `binary` from
/usr/lib, both joined to files of 1 MiB; `random` is one file. MB are those of the link's near end, in both directions; CPU seconds those of both sides.
The links need `cargo build --release -p carrack-faults`.
"""
import argparse
import os
import pathlib
import shutil
import sys
import tempfile

import sync
from link import Link

RTT_MS = 20
# Bytes of a tree: some seconds over its link.
SIZES = {"20mbit": 12 << 20, "1gbit": 256 << 20, "loopback": 512 << 20}
TEXT = ["/usr/share/doc", "/usr/share/perl", "/usr/include", os.path.expanduser("~/.cargo/registry/src")]
BINARY = ["/usr/lib"]
PACKED = (".gz", ".xz", ".zst", ".crate", ".png", ".woff2", ".zip")


def gather(roots, top, size, is_wanted):
    """Files of 1 MiB, joined of those below these roots, until there are so many bytes: scp waits for a round trip or more for each file."""
    os.makedirs(top)
    number, left, out = 0, size, None
    for path in (path for root in roots for path in sync.all_files(root)):
        if os.path.islink(path) or not os.path.isfile(path) or not is_wanted(path):
            continue
        if out is None or out.tell() >= 1 << 20:
            out = open(os.path.join(top, f"{number}"), "wb")
            number += 1
        with open(path, "rb") as file:
            left -= out.write(file.read(left))
        if left <= 0:
            return out.close()
    sys.exit(f"{roots} have {size - left} bytes of {size}")


def make(top, what, size):
    if what == "text":
        gather(TEXT, top, size, lambda path: not path.endswith(PACKED))
    elif what == "binary":
        gather(BINARY, top, size, lambda path: ".so" in path)
    else:
        os.makedirs(top)
        with open(os.path.join(top, "noise"), "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))


def commands(scene, source, target):
    known = scene.commands(source, target)
    options = scene.place.fields["ssh"].split()[1:]
    carrack = [scene.bench.carrack, "copy", "-q", "--no-resume", *known["carrack"][5:]]
    rsync = [word for word in known["rsync"] if word != "--delete"]
    scp = ["scp", "-q", "-r", "-p", *options, source, known["rsync"][-1]]
    return {
        "carrack": carrack,
        "carrack -z": [*carrack, "-z"],
        "rsync": rsync,
        "rsync -z": [*rsync, "-z"],
        "scp": scp,
        "scp -C": [scp[0], "-C", *scp[1:]],
    }


def measure(given, work, rate, what):
    link = None
    if rate != "loopback":
        link = Link(os.path.join(given.programs, "carrack-link"), pathlib.Path(work, "link.log"), RTT_MS)
        link.process.stdin.write(f"rate {rate}\n")
        link.process.stdin.flush()
    place = tempfile.mkdtemp(dir=work)
    os.chmod(place, 0o755)
    scene = sync.Scene(given, place, link)
    try:
        source, target = (os.path.join(place, name) for name in ("from", "to"))
        make(source, what, SIZES.get(rate, 64 << 20))
        size = sum(os.path.getsize(path) for path in sync.all_files(source))
        for name, command in commands(scene, source, target).items():
            if name.split()[0] in given.without.split(","):
                continue
            cpu, seconds, wire = scene.medians(name, command, (source, target), given.runs, lambda: shutil.rmtree(target, ignore_errors=True))
            print(f"| {rate} | {what}, {size / 1e6:.0f} MB | {name} | {seconds:.2f} | {wire / 1e6:.1f} | {cpu:.2f} |", flush=True)
    finally:
        scene.close()
        if link:
            link.close()
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack")
    parser.add_argument("--programs", default="target/release", help="where carrack-link is")
    parser.add_argument("--rates", default="20mbit,1gbit,loopback")
    parser.add_argument("--trees", default="text,binary,random")
    parser.add_argument("--without", default="", help="carrack, rsync or scp, which takes minutes over 1 Gbit/s")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-compress-")
    os.chmod(work, 0o755)
    try:
        print("| link | tree | program | s | MB | CPU s |\n|---|---|---|--:|--:|--:|", flush=True)
        for rate in given.rates.split(","):
            for what in given.trees.split(","):
                measure(given, work, rate, what)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
