#!/usr/bin/env python3
"""The number of streams that a copy finds by itself, over an emulated link: when it changed, how soon the rate was within 10 % of the
best, and what fixed numbers bring beside it.

    python3 bench/growth.py                                   50 Mbit/s for each connection, 400 for all: 8 are best
    python3 bench/growth.py --halve-after 40                  after 40 s the link gives each connection half as much
    python3 bench/growth.py --rtt-ms 50 --rate 1gbit --flow-rate none --loss 1e-3 --fixed 8,32
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime

ROOT = pathlib.Path(__file__).resolve().parent.parent
WINDOW = 3  # seconds over which a rate is taken: blocks land in steps
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


def bits(text):
    return next((float(text[:-4]) * factor for unit, factor in UNITS.items() if text.endswith(unit)), None)


class Link:
    def __init__(self, args):
        command = [args.bin / "carrack-link", "--name", f"carrack-growth-{os.getpid()}", "--rate", args.rate,
                   "--flow-rate", args.flow_rate, "--rtt-ms", str(args.rtt_ms), "--loss", str(args.loss)]
        command += ["--cc", args.cc] if args.cc else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.near, _ = self.process.stdout.readline().split()
        self.far, self.address = self.process.stdout.readline().split()

    def set(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def copy(args, link, home, streams):
    """The events of one copy, each with the seconds since its link was made."""
    env = {**os.environ, "HOME": home, "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
    node = subprocess.Popen(["ip", "netns", "exec", link.far, args.bin / "carrack", "serve", "--node-only", "--anonymous", "--root", home,
                             "--listen", f"{link.address}:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    try:
        address = node.stdout.readline().split()[-1]
        command = ["ip", "netns", "exec", link.near, args.bin / "carrack", "--json", "--stats=250ms", "--block", "1M"]
        command += ["--streams", str(streams)] if streams else []
        timer = threading.Timer(args.halve_after, link.set, [f"flow-rate {bits(args.flow_rate) / 2e6}mbit"]) if args.halve_after else None
        if timer:
            timer.start()
        run = subprocess.run([*command, f"zero:{args.size}", f"carrack://{address}/dev/null"], stdout=subprocess.PIPE, text=True, env=env)
        if timer:
            timer.cancel()
            link.set(f"flow-rate {args.flow_rate}")
    finally:
        node.terminate()
        node.wait()
    if run.returncode:
        sys.exit(run.stdout)
    events = [json.loads(line) for line in run.stdout.splitlines()]
    at = lambda event: datetime.fromisoformat(event["time"]).timestamp()
    start = next(at(event) for event in events if event["type"] == "link")
    return [(at(event) - start, event) for event in events]


def rates(events):
    """Seconds, and the rate over the WINDOW before, in bits."""
    points = [(at, event["bytes_done"]) for at, event in events if event["type"] == "progress"]
    for at, done in points:
        earlier = next(((then, had) for then, had in points if then >= at - WINDOW), None)
        if earlier and at - earlier[0] > WINDOW / 2:
            yield at, (done - earlier[1]) * 8 / (at - earlier[0])


def show(args, events):
    summary = events[-1][1]
    for at, event in events:
        if event["type"] == "streams":
            print(f"  {at:6.1f} s  {event['before']:>3} -> {event['streams']:<3} {event['bytes_per_second'] * 8 / 1e6:7.0f} Mbit/s"
                  f"  lost {event['loss']:.2%}  {event['reason']}")
    each, most = bits(args.flow_rate), bits(args.rate)
    best = most or max(rate for _, rate in rates(events))
    good = [at for at, rate in rates(events) if rate >= 0.9 * best]
    if each and args.halve_after:
        again = [at for at in good if at > args.halve_after + WINDOW]
        print(f"  within 10 % of {best / 1e6:.0f} Mbit/s again {again[0] - args.halve_after:.1f} s after the change" if again else "  never again")
    print(f"  within 10 % of {best / 1e6:.0f} Mbit/s {'after %.1f s' % good[0] if good else 'never'}; "
          f"{summary['link']['streams']} streams at the end; {summary['elapsed_seconds']:.1f} s in all, "
          f"{summary['bytes_per_second'] * 8 / 1e6:.0f} Mbit/s; limited by {(summary['limited_by'] or {}).get('stage')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release", help="where carrack and carrack-link are [%(default)s]")
    parser.add_argument("--rate", default="400mbit", help="of the link [%(default)s]")
    parser.add_argument("--flow-rate", default="50mbit", help="of each connection, or none [%(default)s]")
    parser.add_argument("--rtt-ms", type=float, default=0)
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--cc", help="congestion control of both hosts")
    parser.add_argument("--size", default="3G", help="bytes to copy [%(default)s]")
    parser.add_argument("--halve-after", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--fixed", default="", help="numbers of streams to copy with as well, as in 2,8,32")
    args = parser.parse_args()
    link = Link(args)
    try:
        for streams in [0] * args.runs + [int(word) for word in args.fixed.split(",") if word]:
            with tempfile.TemporaryDirectory() as home:
                print(f"--streams {streams}:" if streams else "no option:", flush=True)
                show(args, copy(args, link, home, streams))
            time.sleep(1)
    finally:
        link.close()


if __name__ == "__main__":
    main()
