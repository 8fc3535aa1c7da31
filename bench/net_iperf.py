#!/usr/bin/env python3
"""Compares `carrack bench net` with as many iperf3 processes as it has streams, on loopback and over an emulated link.

    python3 bench/net_iperf.py                             1 and 8 streams on loopback; 8 at 1 Gbit/s, 20 ms, clean and with loss
    python3 bench/net_iperf.py --pairs 3 --only loopback

Both send from memory to memory in the clear, by pieces of 256 KiB, with the same congestion control, for the same time
after the same warm-up; the receiver takes the bytes into memory. Debian's iperf3 has one thread, so each stream is a
process with a server of its own. What iperf3's receivers had after the warm-up counts, summed over all. The two take
turns, the order changing from pair to pair, and the medians are compared. Ends with 1 if a row is more than 5 % below
iperf3. The host must be quiet. Needs iperf3, and target/release/carrack; the link needs root, ip, and carrack-link beside carrack.
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
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEAST = 0.95
# What Carrack hands to the kernel at a time. iperf3 would take half as much, and be slower where there is no path.
PIECE = "256K"
FIRST_PORT = 5301
# Name, streams, and what the link is: rate, round trip in ms, loss, congestion control; None for loopback.
ROWS = [
    ("loopback, 1 stream", 1, None),
    ("loopback, 8 streams", 8, None),
    ("1 Gbit/s, 20 ms, cubic, 8 streams", 8, ("1gbit", 20, "0", "cubic")),
    ("1 Gbit/s, 20 ms, loss 1e-4, bbr, 8 streams", 8, ("1gbit", 20, "1e-4", "bbr")),
]


class Loopback:
    """Both hosts are this one."""

    address = "127.0.0.1"

    def on(self, host, command):
        return [str(word) for word in command]

    def close(self):
        pass


class Link:
    """Two network namespaces and a long way between them."""

    def __init__(self, program, rate, rtt_ms, loss, congestion):
        command = [program, "--name", f"carrack-net-{os.getpid()}", "--rate", rate, "--rtt-ms", str(rtt_ms), "--cc", congestion]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.near, _ = self.process.stdout.readline().split()
        self.far, self.address = self.process.stdout.readline().split()
        self.process.stdin.write(f"loss {loss}\n")
        self.process.stdin.flush()

    def on(self, host, command):
        return ["ip", "netns", "exec", getattr(self, host), *map(str, command)]

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def listens(link, port):
    """A server that is asked too early costs the whole row."""
    tables = subprocess.run(link.on("far", ["cat", "/proc/net/tcp", "/proc/net/tcp6"]), capture_output=True, text=True).stdout
    return any(f":{port:04X} " in line and " 0A " in line for line in tables.splitlines())


def iperf3(link, streams, args):
    """Bytes a second of all receivers together."""
    ports = range(FIRST_PORT, FIRST_PORT + streams)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    servers = [subprocess.Popen(link.on("far", ["iperf3", "-s", "-1", "-p", port]), **quiet) for port in ports]
    deadline = time.monotonic() + 10
    while not all(listens(link, port) for port in ports):
        if time.monotonic() > deadline:
            sys.exit("iperf3 -s did not start")
        time.sleep(0.02)
    clients = [
        subprocess.Popen(
            link.on("near", ["iperf3", "-c", link.address, "-p", port, "-l", PIECE, "-t", args.seconds, "-O", args.omit, "-J"]),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for port in ports
    ]
    told = [json.loads(client.communicate()[0]) for client in clients]
    for server in servers:
        server.wait(10)
    failed = [one["error"] for one in told if "error" in one]
    if failed:
        sys.exit(f"iperf3: {failed[0]}")
    return sum(one["end"]["sum_received"]["bits_per_second"] / 8 for one in told)


class Node:
    """A node on the far host, for all rows of a link."""

    def __init__(self, link, args, home):
        self.link, self.args = link, args
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        (home / "root").mkdir(parents=True)
        command = [args.bin / "carrack", "serve", "--node-only", "--anonymous", "--measure=anyone", "--root", home / "root",
                   "--key-file", home / "key", "--listen", f"{link.address}:0"]
        self.process = subprocess.Popen(link.on("far", command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env=self.env)
        self.address = self.process.stdout.readline().split()[-1]

    def measure(self, streams):
        """Bytes a second that the receiver had, and how many segments were sent again."""
        command = [self.args.bin / "carrack", "bench", "net", f"carrack://{self.address}", "--json", "--no-keep", "--no-path",
                   "--way=there", "--mode=clear", f"--streams={streams}", f"--time={self.args.seconds}s", f"--omit={self.args.omit}s"]
        run = subprocess.run(self.link.on("near", command), capture_output=True, text=True, env=self.env)
        rows = [line for line in map(json.loads, run.stdout.splitlines()) if line["type"] == "row"]
        if run.returncode:
            sys.exit(f"carrack bench net: {run.stdout}{run.stderr}")
        return rows[0]["values"]["bytes_per_second"]

    def close(self):
        self.process.terminate()
        self.process.wait(10)


def compare(link, streams, args, home):
    node = Node(link, args, home)
    ours, theirs = [], []
    try:
        # The first pair warms up both, and does not count.
        for pair in range(args.pairs + 1):
            turns = [lambda: ours.append(node.measure(streams)), lambda: theirs.append(iperf3(link, streams, args))]
            for turn in turns if pair % 2 == 0 else reversed(turns):
                turn()
    finally:
        node.close()
    return ours[1:], theirs[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--omit", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    args.bin = args.bin.resolve()
    if not shutil.which("iperf3"):
        sys.exit("iperf3 is not installed")
    slow = 0
    with tempfile.TemporaryDirectory(prefix="carrack-net-") as directory:
        for number, (name, streams, way) in enumerate(ROWS):
            if args.only not in name:
                continue
            link = Link(args.bin / "carrack-link", *way) if way else Loopback()
            try:
                ours, theirs = compare(link, streams, args, pathlib.Path(directory) / str(number))
            finally:
                link.close()
            ratio = statistics.median(ours) / statistics.median(theirs)
            mark = "" if ratio >= LEAST else "  <-- more than 5 % below"
            slow += bool(mark)
            print(f"{name:44} {statistics.median(ours) / 1e6:8.0f} {statistics.median(theirs) / 1e6:8.0f} MB/s {ratio:6.3f}{mark}")
            print("    " + " ".join(f"{a / 1e6:.0f}/{b / 1e6:.0f}" for a, b in zip(ours, theirs)), flush=True)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
