#!/usr/bin/env python3
"""The number of streams that a copy chooses by itself, beside fixed numbers, in nine cells of round trip × loss × data.

    python3 bench/cells.py                                        all nine, three runs each: about 18 minutes
    python3 bench/cells.py --runs 1 --cells far-lossy-file        some of them

Each cell has an emulated link of 1 Gbit/s. The nine are a Latin square: every round trip meets every loss and every kind of data once,
and so does every loss every kind of data. So a number of streams that suits only one of them shows, in a third of the runs that all 27
would take.

The time is that of the whole command, from its start to its end. Ways take turns, and who comes first changes; the median of each counts.
A fixed number that takes twice as long as the slowest run without an option is stopped: its time is at least that. It ends with 1 if
the copy without an option is more than 10 % slower than the best in any cell. Needs root, `ip`, and target/release/carrack with
carrack-link beside it.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEAST_OF_BEST = 0.9
STOPPED_AFTER = 2
FILES_IN_DIRECTORY = 1000

Data = collections.namedtuple("Data", "files size words")
Cell = collections.namedtuple("Cell", "rtt_ms loss data")
DATA = {
    "file": Data(1, 512 << 20, "one file of 512 MiB"),
    "medium": Data(512, 1 << 20, "512 files of 1 MiB"),
    "small": Data(100_000, 4 << 10, "100,000 files of 4 KiB"),
}
CELLS = {
    "near-clean-file": Cell(1, 0, "file"),
    "near-rare-medium": Cell(1, 1e-5, "medium"),
    "near-lossy-small": Cell(1, 1e-3, "small"),
    "middle-clean-small": Cell(20, 0, "small"),
    "middle-rare-file": Cell(20, 1e-5, "file"),
    "middle-lossy-medium": Cell(20, 1e-3, "medium"),
    "far-clean-medium": Cell(80, 0, "medium"),
    "far-rare-small": Cell(80, 1e-5, "small"),
    "far-lossy-file": Cell(80, 1e-3, "file"),
}


@contextlib.contextmanager
def linked(args, cell):
    """Two hosts with this cell's link between them: the names of both, and the address of the far one."""
    command = [args.bin / "carrack-link", "--name", f"carrack-cells-{os.getpid()}", "--rate", "1gbit", "--cc", args.cc,
               "--rtt-ms", str(cell.rtt_ms), "--loss", str(cell.loss)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        near, _ = process.stdout.readline().split()
        far, address = process.stdout.readline().split()
        yield near, far, address
    finally:
        process.stdin.close()
        process.wait(10)


def timed(args, link, home, source, streams, limit):
    """Seconds of one copy to a node of its own, and whether it was stopped after `limit` seconds."""
    near, far, address = link
    # Of this run alone: what is stopped leaves a part of a copy behind, which the next would go on with.
    there = home / "there"
    there.mkdir()
    env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
    on = lambda host, *command: ["ip", "netns", "exec", host, args.bin / "carrack", *command]
    node = subprocess.Popen(on(far, "serve", "--node-only", "--anonymous", "--root", home, "--listen", f"{address}:0"),
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        command = ["-q", *([] if streams is None else ["--streams", str(streams)])]
        if args.timeline:
            command += ["--timeline", args.timeline / f"{source.name}-{streams or 'auto'}-{time.time():.0f}"]
        command += [source, f"carrack://{node.stdout.readline().split()[-1]}/there/copy"]
        start = time.monotonic()
        run = subprocess.Popen(on(near, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        try:
            said, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()
            return limit, True
        seconds = time.monotonic() - start
        if run.returncode:
            sys.exit(f"{command}: {said}")
        return seconds, False
    finally:
        node.kill()
        node.wait()
        shutil.rmtree(there)


def measured(args, name, home):
    """The times of each way, and the ways that were stopped; None is the copy without an option."""
    cell = CELLS[name]
    source = make(home / name, DATA[cell.data])
    times, stopped = collections.defaultdict(list), set()
    for number in range(args.runs):
        # Who follows whom changes; the copy without an option is first where the others need its time as their limit.
        ways = [None, *(args.fixed if number % 2 == 0 else args.fixed[::-1])]
        for streams in ways:
            limit = STOPPED_AFTER * max(times[None]) if streams is not None else None
            with linked(args, cell) as link:
                seconds, cut = timed(args, link, home, source, streams, limit)
            times[streams].append(seconds)
            if cut:
                stopped.add(streams)
            print(f"{name} {number + 1} {'no option' if streams is None else f'--streams {streams}'}: {seconds:.2f} s"
                  f"{' stopped' if cut else ''}", file=sys.stderr, flush=True)
    shutil.rmtree(source) if source.is_dir() else source.unlink()
    return times, stopped


def make(path, data):
    """Of bytes that nothing can compress."""
    if data.files == 1:
        path.write_bytes(os.urandom(data.size))
        return path
    for number in range(data.files):
        directory = path / str(number // FILES_IN_DIRECTORY)
        if number % FILES_IN_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / str(number)).write_bytes(os.urandom(data.size))
    return path


def row(args, name, times, stopped):
    """A line of the table, and the rate without an option as a part of the best."""
    cell = CELLS[name]
    data = DATA[cell.data]
    medians = {streams: statistics.median(seconds) for streams, seconds in times.items()}
    share = min(medians.values()) / medians[None]
    best = min(args.fixed, key=medians.get, default=0)
    loss = f"{cell.loss:.0e}".replace("e-0", "e-") if cell.loss else "0"
    mb = lambda streams: data.files * data.size / medians[streams] / 1e6
    shown = [f"{'< ' if streams in stopped else ''}{mb(streams):.0f}" for streams in [None, *args.fixed]]
    shown = [f"**{text}**" if streams == best else text for streams, text in zip([None, *args.fixed], shown)]
    spread = f"{shown[0]} ({data.files * data.size / max(times[None]) / 1e6:.0f} to {data.files * data.size / min(times[None]) / 1e6:.0f})"
    return f"| {name} | {cell.rtt_ms} ms | {loss} | {data.words} | {spread} | {' | '.join(shown[1:])} | {share:.2f} |", share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: [name for name in text.split(",") if name]
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release", help="where carrack and carrack-link are [%(default)s]")
    parser.add_argument("--cells", type=names, default=list(CELLS), help="some of " + ",".join(CELLS))
    parser.add_argument("--fixed", type=lambda text: [int(n) for n in names(text)], default=[1, 4, 16, 64], help="numbers of streams [1,4,16,64]")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cc", default="cubic", help="congestion control of both hosts [%(default)s]")
    parser.add_argument("--dir", default="/dev/shm", help="where the files are [%(default)s]")
    parser.add_argument("--timeline", type=pathlib.Path, metavar="DIR", help="keep a timeline of each run there")
    args = parser.parse_args()
    if unknown := set(args.cells) - set(CELLS):
        parser.error(f"no such cells: {', '.join(sorted(unknown))}")
    # What has begun ends in good order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    print("| cell | round trip | loss | data | MB/s without an option | " + " | ".join(f"`--streams {n}`" for n in args.fixed) + " | of the best |")
    print("|---|--:|--:|---|--:|" + "--:|" * (len(args.fixed) + 1), flush=True)
    least = 1.0
    with tempfile.TemporaryDirectory(dir=args.dir) as home:
        for name in args.cells:
            line, share = row(args, name, *measured(args, name, pathlib.Path(home)))
            print(line, flush=True)
            least = min(least, share)
    return int(least < LEAST_OF_BEST)


if __name__ == "__main__":
    sys.exit(main())
