#!/usr/bin/env python3
"""Does a copy that is larger than the memory go as fast as a short one? Writes random bytes, made as they go, to a disk: a quarter of the
memory, then twice the memory; waits until all is durable, as Carrack does by itself. Prints the rates, and how much of each copy is left in
the page cache. Needs room for twice the memory.

    python3 bench/beyond_memory.py [--dir DIR] [--carrack BIN] [--runs N]"""
import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

import pagecache

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=ROOT / "target", help="on the disk [%(default)s]")
    parser.add_argument("--carrack", default=ROOT / "target/release/carrack", help="the binary [%(default)s]")
    parser.add_argument("--runs", type=int, default=3, help="of the short copy, before and after the long one [%(default)s]")
    options = parser.parse_args()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with tempfile.TemporaryDirectory(prefix="carrack-bench.", dir=options.dir) as directory:
        run = lambda size: copy(options.carrack, size, pathlib.Path(directory) / "copy")
        before = [run(memory // 4) for _ in range(options.runs)]
        long = run(2 * memory)
        after = [run(memory // 4) for _ in range(options.runs)]
    short = statistics.median(before + after)
    print(f"a quarter of the memory: {short:.3f} GB/s (median of {2 * options.runs}); twice the memory: {long:.3f} GB/s; {long / short:.2f} times")


def copy(carrack, size, target):
    subprocess.run(["sync", "-f", target.parent], check=True)
    start = time.monotonic()
    subprocess.run([carrack, "--no-progress", "-q", f"random:{size}", target], check=True)
    seconds = time.monotonic() - start
    print(f"{size / 1e9:7.1f} GB in {seconds:6.1f} s: {size / seconds / 1e9:.3f} GB/s; {pagecache.cached_percent(target):.0f} % of it in the page cache", flush=True)
    target.unlink()
    return size / seconds / 1e9


if __name__ == "__main__":
    main()
