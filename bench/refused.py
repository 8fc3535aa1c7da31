#!/usr/bin/env python3
"""What it costs where a kernel or a sandbox refuses all that came after Linux 3.10: with it and without it, in turn.

    python3 bench/refused.py PROGRAM                    9 pairs of file and small, in one process and to a node; as root
    python3 bench/refused.py PROGRAM --pairs 3 --only small

Both run behind `carrack-refused` (cargo build --release -p carrack-faults --bin carrack-refused), at both sides: new is
refused each newer call with ENOSYS and each newer flag with EOPNOTSUPP; old is refused nothing by a filter of the same
length, because looking at each call takes time by itself. file: 1 GiB from tmpfs to tmpfs. small: 20,000 files of
4 KiB in 200 directories, as in run.sh. Ends with 1 if the median of the pairs' ratios is above 1.10 in CPU time or in
time.
"""

import argparse
import os
import shutil
import sys
import tempfile

import accounting
import paired
from small_pairs import make_tree, run

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--refused", default=os.path.join(HERE, "../target/release/carrack-refused"))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", help="rows whose names contain this")
    given = parser.parse_args()
    refused, program = [os.path.abspath(path) for path in (given.refused, given.program)]
    programs = [[refused, "--nothing", program], [refused, program]]
    rows = [row for row in ("file-local", "file-node", "small-local", "small-node") if not given.only or given.only in row]
    group = accounting.Cgroup()
    group.join()
    work, slower = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-refused-"), False
    try:
        os.mkdir(os.path.join(work, "file"))
        with open(os.path.join(work, "file", "large"), "wb") as file:
            for _ in range(1024):
                file.write(os.urandom(1 << 20))
        make_tree(os.path.join(work, "small"), 20_000, size=4096, each=100)

        def copy(row, which):
            kind, how = row.split("-")
            return run(programs[which], os.path.join(work, kind), f"tmpfs-{how}", None, work, group)

        slower = paired.table("copy", rows, given.pairs, (1.10, 1.10), copy)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
