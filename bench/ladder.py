#!/usr/bin/env python3
"""Each rung of `carrack bench ladder` beside what the resource that limits it gives to another program.

    python3 bench/ladder.py                            seven pairs of 128 MiB: about four minutes; as root
    python3 bench/ladder.py --pairs 1 --disk DIR       a directory on a disk that is slower than the link

Two hosts are joined by an emulated link of 1 Gbit/s and 1 ms, and a node runs on the far one. The disk of both is an ext4 image in memory
whose device reads and writes 75 MB/s: so every rung has one resource that is slower than the two processors, and than the others
of the rung. In the clear, nothing verified. Beside the rungs:

    zero->null, ram->null, ram->ram             iperf3 over the link, as many connections as the ladder had
    disk->null, disk->ram, disk->disk           `carrack bench disk` reads as much (direct, four requests under way)
    random->disk                                `carrack bench disk` writes as much in the same way
    disk->disk, once more                       `carrack` copies the same file to the same node

Ladders and the others take turns, and the medians of the ratios count. It ends with 1 if one is more than 10 % off. Needs root, `ip`,
iperf3, losetup, mkfs.ext4, the controller blkio of cgroup v1, and target/release/carrack with carrack-link beside it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import secrets
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEAR_ENOUGH = 0.1
LINK, RTT_MS, QUEUE_KIB = "1gbit", "1", "4096"
DISK_BYTES_PER_SECOND = 75_000_000
THROTTLE = pathlib.Path("/sys/fs/cgroup/blkio")
BESIDE = {
    "zero->null": "iperf3",
    "ram->null": "iperf3",
    "ram->ram": "iperf3",
    "disk->null": "bench disk, read",
    "disk->ram": "bench disk, read",
    "random->disk": "bench disk, write",
    "disk->disk": "bench disk, read",
}


def run(*command, **options):
    """What a program printed; it must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout}")
    return done.stdout


@contextlib.contextmanager
def slow_disk(home, size):
    """A file system in a file in memory, on a device of a known rate; where it is mounted."""
    image, mounted = home / "image", home / "disk"
    mounted.mkdir()
    with open(image, "wb") as file:
        file.truncate(4 * size + (64 << 20))
    run("mkfs.ext4", "-q", "-F", image)
    device = run("losetup", "-f", "--show", image).strip()
    number = pathlib.Path("/sys/block", device.removeprefix("/dev/"), "dev").read_text().strip()

    def limit(rate):
        for way in ("read", "write"):
            (THROTTLE / f"blkio.throttle.{way}_bps_device").write_text(f"{number} {rate}")

    try:
        limit(DISK_BYTES_PER_SECOND)
        run("mount", device, mounted)
        try:
            yield mounted
        finally:
            limit(0)
            run("umount", mounted)
    finally:
        run("losetup", "-d", device)


@contextlib.contextmanager
def linked(args):
    """Two hosts: the names of both, and the address of the far one."""
    command = [args.bin / "carrack-link", "--name", f"carrack-ladder-{os.getpid()}", "--rate", LINK, "--rtt-ms", RTT_MS, "--queue-kib", QUEUE_KIB, "--cc", "cubic"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        near, _ = process.stdout.readline().split()
        far, address = process.stdout.readline().split()
        yield near, far, address
    finally:
        process.stdin.close()
        process.wait(10)


class Stage:
    """The directories, the file and the hosts."""

    def __init__(self, args, home, disk, link):
        self.args, (self.near, self.far, self.address) = args, link
        self.here, self.there, self.ram = disk / "here", disk / "there", home / "ram"
        for directory in (self.here, self.there, self.ram):
            directory.mkdir()
        self.file = self.here / "file"
        with open(self.file, "wb") as file:
            for _ in range(args.bytes >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
        self.env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
        self.token = home / "token"
        self.token.write_text(secrets.token_hex(16))
        self.token.chmod(0o600)
        self.clear = ["--encrypt", "none", "--digest", "none", "--token-file", self.token]
        # Its root holds the disk and the memory.
        command = self.on(self.far, args.bin / "carrack", "serve", "--node-only", "--token-file", self.token, "--key-file", home / "key", "--root", "/",
                          "--listen", f"{self.address}:0")
        self.node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.env)
        said = dict(line.rsplit(maxsplit=1) for line in (self.node.stdout.readline() for _ in range(3)))
        self.node_address, self.pin = said["listening on"], said["fingerprint"]

    def end(self):
        self.node.terminate()
        self.node.wait()

    def on(self, host, *command):
        return ["ip", "netns", "exec", host, *command]

    def at(self, path):
        """A location on the node."""
        return f"carrack://{self.node_address}{path}{self.pin}"

    def json(self, *command):
        lines = run(*self.on(self.near, self.args.bin / "carrack", *command, "--json"), env=self.env).splitlines()
        return [json.loads(line) for line in lines]

    def ladder(self):
        """The rate of each rung, and the most connections that one had."""
        lines = self.json("bench", "ladder", self.here, self.at(self.there), "--size", str(self.args.bytes), "--runs", "1", "--no-keep",
                          "--source-ram", self.ram, "--destination-ram", self.ram, *self.clear)
        rows = [line for line in lines if line["type"] == "row"]
        return {row["name"]: row["values"]["bytes_per_second"] for row in rows}, int(max(row["values"]["streams"] for row in rows))

    def network(self, connections):
        """What iperf3's receiver got, in bytes a second."""
        server = subprocess.Popen(self.on(self.far, "iperf3", "-s", "-1", "--forceflush"), stdout=subprocess.PIPE, text=True)
        try:
            while "listening" not in server.stdout.readline():
                pass
            seconds = str(max(3, round(self.args.bytes / 125e6)))
            said = run(*self.on(self.near, "iperf3", "-c", self.address, "-P", str(connections), "-t", seconds, "-J"))
            return json.loads(said)["end"]["sum_received"]["bits_per_second"] / 8
        finally:
            server.kill()
            server.wait()

    def disk(self, operation, *options):
        """What `carrack bench disk` finds, in bytes a second."""
        lines = self.json("bench", "disk", self.here, "--op", operation, "--size", str(self.args.bytes), "--time", "0", "--no-keep", *options)
        return next(line["values"]["bytes_per_second"] for line in lines if line["type"] == "row")

    def copy(self):
        """The rate of `carrack`, of a file of which nothing is in the cache."""
        file = os.open(self.file, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
        summary = self.json(self.file, self.at(self.there), "--verify", "none", *self.clear)[-1]
        (self.there / "file").unlink()
        return summary["bytes_per_second"]

    def beside(self, connections):
        return {
            "iperf3": self.network(connections),
            "bench disk, read": self.disk("read", "--mode", "direct", "--depth", "4"),
            "bench disk, write": self.disk("write", "--mode", "direct", "--depth", "4"),
            "carrack copy": self.copy(),
        }


def show(args, ladders, others):
    """The table, and whether every rung is near enough."""
    print(f"| rung | ladder, MB/s (median of {args.pairs}) | beside it | MB/s | ratio |\n|---|--:|---|--:|--:|")
    near = True
    shown = lambda rates: f"{statistics.median(rates) / 1e6:.0f} ({min(rates) / 1e6:.0f} to {max(rates) / 1e6:.0f})"
    for rung, beside in [*BESIDE.items(), ("disk->disk", "carrack copy")]:
        mine, its = [rates[rung] for rates in ladders], [rates[beside] for rates in others]
        ratio = statistics.median(a / b for a, b in zip(mine, its))
        print(f"| {rung} | {shown(mine)} | {beside} | {shown(its)} | {ratio:.2f} |")
        near = near and abs(ratio - 1) <= NEAR_ENOUGH
    return near


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release", help="where carrack and carrack-link are [%(default)s]")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--size", type=int, default=128, metavar="MIB", help="of each rung [%(default)s]")
    parser.add_argument("--disk", type=pathlib.Path, metavar="DIR", help="a directory on a disk, in place of the image")
    args = parser.parse_args()
    args.bytes = args.size << 20
    ladders, others = [], []
    with contextlib.ExitStack() as stack:
        home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        if args.disk:
            disk = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(dir=args.disk)))
        else:
            disk = stack.enter_context(slow_disk(home, args.bytes))
        stage = Stage(args, home, disk, stack.enter_context(linked(args)))
        stack.callback(stage.end)
        for number in range(args.pairs):
            rates, connections = stage.ladder()
            ladders.append(rates)
            others.append(stage.beside(connections))
            told = [f"{name} {rate / 1e6:.0f}" for name, rate in (rates | others[-1]).items()]
            print(f"{number + 1} of {args.pairs}: {', '.join(told)}", file=sys.stderr, flush=True)
    return int(not show(args, ladders, others))


if __name__ == "__main__":
    sys.exit(main())
