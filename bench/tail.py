#!/usr/bin/env python3
"""What one stopped stream of eight costs: copies over loopback through a relay that stops one data connection for good half way, beside
copies through the same relay that does not. Prints the ratio of the medians; the aim is 1.3 at most.

    python3 bench/tail.py [--runs 5] [--mib 1024] [--rate-mb 100] [--bin target/release]
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def copy(args, home, stop):
    """Seconds of one copy, and what it says of itself."""
    env = {**os.environ, "HOME": home, "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
    total = args.mib << 20
    node = subprocess.Popen([args.bin / "carrack", "serve", "--node-only", "--anonymous", "--root", f"{home}/root", "--listen", "127.0.0.1:0"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    address = node.stdout.readline().split()[-1]
    relay = [args.bin / "carrack-relay", address, "--rate", str(args.rate_mb * 10**6)]
    relay = subprocess.Popen(relay + (["--stop-after", str(total // 2)] if stop else []),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        there = relay.stdout.readline().strip()
        run = subprocess.run([args.bin / "carrack", "--json", "--streams", "8", "--data-address", there.split(":")[0],
                              f"{home}/file", f"carrack://{there}/copy"], stdout=subprocess.PIPE, text=True, env=env)
    finally:
        said = relay.communicate()[1]
        node.terminate()
        node.wait()
    summary = json.loads(run.stdout.splitlines()[-1])
    if run.returncode or said.strip() != f"stopped: {int(stop)}":
        sys.exit(f"{said}{run.stdout}")
    subprocess.run(["cmp", f"{home}/file", f"{home}/root/copy"], check=True)
    os.unlink(f"{home}/root/copy")
    return summary["elapsed_seconds"], summary["faults"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release", help="where carrack and carrack-relay are [%(default)s]")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mib", type=int, default=1024, help="size of the file [%(default)s]")
    parser.add_argument("--rate-mb", type=int, default=100, help="MB/s of the relay [%(default)s]")
    args = parser.parse_args()
    times = {False: [], True: []}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as home:
        os.mkdir(f"{home}/root")
        with open(f"{home}/file", "wb") as file:
            for _ in range(args.mib):
                file.write(os.urandom(1 << 20))
        for run in range(args.runs):
            for stop in times:
                seconds, faults = copy(args, home, stop)
                times[stop].append(seconds)
                print(f"{run + 1} {'one stopped' if stop else 'none stopped'}: {seconds:.2f} s, stragglers {faults['stragglers']}, "
                      f"streams lost {faults['streams_lost']}", flush=True)
    none, one = (statistics.median(times[stop]) for stop in (False, True))
    print(f"medians of {args.runs}: none stopped {none:.2f} s, one of eight stopped {one:.2f} s, ratio {one / none:.3f}")


if __name__ == "__main__":
    main()
