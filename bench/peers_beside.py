#!/usr/bin/env python3
"""`carrack bench peers` beside `make bench`: the same programs, on the same kind of file, between the same two directories of this host.

    python3 bench/peers_beside.py                    one file of 512 MiB, seven rounds: about five minutes
    python3 bench/peers_beside.py --size 64 --rounds 1

Both take turns: in each round a run of every program by bench/bench.py, and one by the verb, who comes first changing. The sshd is private
and started by bench.py's own code; all data is below /dev/shm. The table has the medians of both and the median of the ratios of each
round. It ends with 1 if a ratio is off by more than a tenth, or if two programs whose rates differ by more than a tenth stand in another
order.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import types

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import bench
import servers

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What `bench peers` calls a program, and what bench.py does.
NAMES = {
    "carrack": "carrack-ssh", "carrack-node": "carrack-node", "scp": "scp", "rsync": "rsync-ssh", "rsync-daemon": "rsync-daemon",
    "globus-url-copy": "gridftp-p4",
}
OFF_MOST = 0.10


def by_bench(args, out):
    """Bytes a second of each program by bench.py, under the names of the verb."""
    peers = [NAMES[name] for name in args.tools]
    command = [sys.executable, ROOT / "bench/bench.py", "--workloads", "file", "--peers", ",".join(peers), "--runs", "1", "--size", str(args.size),
               "--carrack", args.carrack, "--dir", args.dir, "--out", out]
    if (done := subprocess.run(command, capture_output=True, text=True)).returncode:
        sys.exit(done.stderr)
    runs = [json.loads(line) for line in (out / "raw.jsonl").read_text().splitlines()]
    rates = {run["peer"]: run["bytes"] / run["seconds"] for run in runs if run["type"] == "run"}
    return {name: rates[peer] for name, peer in NAMES.items() if peer in rates}


def by_verb(args, place, data):
    """The same by the verb."""
    a, b = data / "a", data / "b"
    for path in (a, b):
        path.mkdir(exist_ok=True)
    command = [args.carrack, "bench", "peers", a, f"{place.address}:{b}", "--rsh", place.fields["ssh"], "--json", "--no-keep", "--size",
               f"{args.size}M", "--files", "0", "--sessions", "1", "--runs", "1", "--tool", ",".join(args.tools)]
    done = subprocess.run(command, capture_output=True, text=True, env=place.bench.environment)
    if done.returncode:
        sys.exit(done.stderr)
    rows = [row for row in map(json.loads, done.stdout.splitlines()) if row["type"] == "row"]
    for row in rows:
        if "error" in row:
            print(f"note: {row['name']}: {row['error']}", file=sys.stderr)
    return {row["name"]: row["values"]["bytes_per_second"] for row in rows if "bytes_per_second" in row["values"]}


def stage(args):
    """bench.py's own place with its sshd, and nothing else of it."""
    options = types.SimpleNamespace(dir=args.dir, disk_dir=args.dir, push=False, before=None, carrack=args.carrack, link=None, timeout=600)
    made = bench.Bench(options, args.carrack)
    made.open()
    return made


def table(rounds):
    names = [name for name in NAMES if all(name in one for pair in rounds for one in pair)]
    medians = {name: [statistics.median(pair[which][name] for pair in rounds) for which in (0, 1)] for name in names}
    print("| program | make bench, MB/s | bench peers, MB/s | ratio |\n|---|--:|--:|--:|")
    healthy = True
    for name in sorted(names, key=lambda name: -medians[name][0]):
        ratio = statistics.median(pair[1][name] / pair[0][name] for pair in rounds)
        healthy &= abs(ratio - 1) <= OFF_MOST
        print(f"| {name} | {medians[name][0] / 1e6:.0f} | {medians[name][1] / 1e6:.0f} | {ratio:.2f} |")
    for one in names:
        for other in names:
            if medians[one][0] > medians[other][0] * (1 + OFF_MOST) and medians[one][1] < medians[other][1]:
                print(f"{one} and {other} stand in another order")
                healthy = False
    return healthy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carrack", type=pathlib.Path, default=ROOT / "target/release/carrack", help="the binary [%(default)s]")
    parser.add_argument("--size", type=int, default=512, metavar="MIB", help="of the file [%(default)s]")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dir", default="/dev/shm", help="where the files are [%(default)s]")
    args = parser.parse_args()
    needs = {"globus-url-copy": "gridftp", "rsync-daemon": "rsyncd", "rsync": "rsync", "scp": "scp"}
    args.tools = [name for name in NAMES if not servers.missing(needs.get(name, "sshd"))]
    made = stage(args)
    bench.on_signals(bench.stop)
    rounds = []
    try:
        place = made.place("here")
        if not place.available("sshd"):
            sys.exit("no sshd")
        with tempfile.TemporaryDirectory(dir=args.dir) as data, tempfile.TemporaryDirectory() as out:
            for number in range(args.rounds):
                ways = [lambda: by_bench(args, pathlib.Path(out) / str(number)), lambda: by_verb(args, place, pathlib.Path(data))]
                if number % 2:
                    verb = ways[1]()
                    rounds.append((ways[0](), verb))
                else:
                    rounds.append((ways[0](), ways[1]()))
                print(f"round {number + 1} of {args.rounds}", file=sys.stderr, flush=True)
    finally:
        bench.on_signals(bench.signal.SIG_IGN)
        made.close()
    return 0 if table(rounds) else 1


if __name__ == "__main__":
    sys.exit(main())
