#!/usr/bin/env python3
"""Is the cause of a slow copy named? Each cause is made in different ways, each way several times; beside them copies
that nothing slows down. Counted is what the report says (`limited_by` of --json).

    make program; cargo build --release -p carrack-faults
    python3 bench/limited.py                                   all of it 20 times, about 40 minutes
    python3 bench/limited.py --runs 3 --only loss window       some causes
    python3 bench/limited.py --crossed --runs 5                other kinds of copies: by ssh, resumed, local, ...
    python3 bench/limited.py --field --runs 1                  ways that strangers found
    python3 bench/limited.py --held --runs 1                   ways to which nothing may be tuned
    python3 bench/limited.py --list                            the ways, and run nothing

Needs root, two processors, network namespaces, FUSE, control groups of version 1, loop devices, `tc`, `strace`,
`mkfs.ext4`, `mkfs.xfs` and `taskset`. A table in Markdown goes to standard output as it grows. Exits with 1 if a cause was named in
fewer than 19 of 20 runs. --keep DIR keeps the timelines of the runs in which something else was named.

Other programs that use the processors are a cause, too, and may be named. Builds in the idle scheduling class give way
only where `kernel.sched_autogroup_enabled` is 0.
"""
import argparse
import os
import pathlib
import shutil
import sys
import time

import limited_more
from limited_machine import MIB, Machine, files, over

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Calls by which files are made and named.
NAMING = ["openat", "openat2", "mkdirat", "renameat", "renameat2", "linkat", "unlinkat"]


# Storage, and what finds and makes files.

def read_fuse(machine):
    backing, at = machine.slow("disk", read=5)
    (backing / "big").write_bytes(os.urandom(24 * MIB))
    return machine.copy(at / "big", machine.node() + "/")


def read_group(machine):
    disk = machine.disk()
    disk.write("big", 48 * MIB)
    disk.limit(read_bps=24 * MIB)
    return machine.copy(disk.at / "big", machine.node() + "/")


def read_group_clear(machine):
    """The kernel sends the file by itself."""
    disk = machine.disk()
    disk.write("big", 48 * MIB)
    disk.limit(read_bps=24 * MIB)
    unseen = ("--encrypt", "none", "--digest", "none", "--verify", "none")
    return machine.copy(disk.at / "big", machine.node() + "/", *unseen)


def write_fuse(machine):
    _, at = machine.slow("disk", write=5)
    return machine.copy("random:64M", machine.node(root=at) + "/")


def write_group(machine):
    disk = machine.disk()
    disk.limit(write_bps=24 * MIB)
    return machine.copy("random:64M", machine.node(root=disk.at) + "/")


def sync_fuse(machine):
    _, at = machine.slow("disk", sync=40)
    files(machine.home / "tree", 60, 1_200_000)
    return machine.copy(machine.home / "tree", machine.node(root=at) + "/", "--durable", "each")


def list_fuse(machine):
    backing, at = machine.slow("tree", metadata=3)
    files(backing, 300, 2048)
    return machine.copy(at, machine.node() + "/")


def list_group(machine):
    disk = machine.disk("-T", "news")
    for number in range(400):
        files(disk.at / f"d{number}", 3, 0)
    disk.limit(read_iops=150)
    return machine.copy(disk.at, machine.node() + "/")


def make_fuse(machine):
    _, at = machine.slow("disk", metadata=3)
    files(machine.home / "tree", 300, 2048)
    return machine.copy(machine.home / "tree", machine.node(root=at) + "/")


def make_large(machine):
    _, at = machine.slow("disk", metadata=10)
    files(machine.home / "tree", 40, 1_100_000)
    return machine.copy(machine.home / "tree", machine.node(root=at) + "/")


def make_traced(machine):
    files(machine.home / "tree", 300, 2048)
    return machine.copy(machine.home / "tree", machine.node(prefix=machine.traced(NAMING, 3)) + "/")


# Processors.

def source_group(machine):
    node = machine.node()
    return machine.copy("random:512M", node + "/", prefix=machine.group(0.2))


def source_burners(machine):
    node = machine.node(prefix=machine.on_processor(1))
    return machine.copy("random:768M", node + "/", prefix=machine.burners(4))


def destination_group(machine):
    return machine.copy("random:512M", machine.node(prefix=machine.group(0.2)) + "/")


def destination_burners(machine):
    node = machine.node(prefix=machine.burners(4))
    return machine.copy("random:768M", node + "/", prefix=machine.on_processor(1))


# The path.

def rate_link(machine):
    return over(machine, "64M", rate="200mbit", rtt_ms=10)


def rate_tbf(machine):
    def shape(near, _):
        machine.run(*near, "tc", "qdisc", "add", "dev", "link0", "root",
                    "tbf", "rate", "200mbit", "burst", "256k", "latency", "50ms")
    return over(machine, "64M", rtt_ms=10, change=shape)


def rate_relay(machine):
    node = machine.node()
    relay = machine.relay(node, rate=16_000_000)
    return machine.copy("random:48M", relay + "/")


def loss_link(machine):
    return over(machine, "48M", "--streams", "4", rate="1gbit", rtt_ms=40, loss="0.005", cc="cubic")


def loss_filter(machine):
    """The far host's device drops one packet in fifty as it comes in: up to 64 KiB at once, as it takes them."""
    def drop(_, far):
        tc = [*far, "tc"]
        machine.run(*tc, "qdisc", "add", "dev", "link0", "clsact")
        # A = random; below 2^32 / 50 it is dropped (2), else passed on (-1).
        program = "4,32 0 0 4294963256,53 0 1 85899345,6 0 0 4294967295,6 0 0 2"
        machine.run(*tc, "filter", "add", "dev", "link0", "ingress", "bpf", "da", "bytecode", program)
    return over(machine, "64M", "--streams", "4", rate="1gbit", rtt_ms=40, cc="cubic", change=drop)


def round_trip(machine):
    return over(machine, "48M", "--streams", "1", rate="5gbit", rtt_ms=150)


def round_trip_reno(machine):
    return over(machine, "48M", "--streams", "1", rate="5gbit", rtt_ms=100, cc="reno")


def small_buffers(machine, host, name):
    def small(near, far):
        machine.run(*{"near": near, "far": far}[host], "sysctl", "-qw", f"net.ipv4.{name}=4096 65536 131072")
    return over(machine, "16M", "--streams", "2", rate="1gbit", rtt_ms=40, tcp_buffer_mib=0, change=small)


def window_receiver(machine):
    return small_buffers(machine, "far", "tcp_rmem")


def window_sender(machine):
    return small_buffers(machine, "near", "tcp_wmem")


# The same causes in copies of other kinds, and in copies whose limit changes.

def read_group_ssh(machine):
    disk = machine.disk()
    disk.write("big", 48 * MIB)
    disk.limit(read_bps=24 * MIB)
    return machine.copy(disk.at / "big", f"here:{machine.home}/there", machine.ssh())


def write_fuse_ssh(machine):
    _, at = machine.slow("disk", write=5)
    return machine.copy("random:64M", f"here:{at}/there", machine.ssh())


def destination_group_ssh(machine):
    return machine.copy("random:192M", f"here:{machine.home}/there", machine.ssh(machine.group(0.2)))


def third_source_group(machine):
    one, other = machine.home / "one", machine.home / "other"
    files(one, 1, 128 * MIB)
    other.mkdir()
    source = machine.node(root=one, prefix=machine.group(0.2))
    return machine.copy(f"{source}/f0", machine.node(root=other) + "/")


def third_write_fuse(machine):
    files(machine.home / "root", 1, 64 * MIB)
    _, at = machine.slow("disk", write=5)
    return machine.copy(machine.node() + "/f0", machine.node(root=at) + "/")


def third_loss(machine):
    """Both nodes are far from each other; the command is beside the source."""
    near, far, address = machine.link(rate="1gbit", rtt_ms=40, loss="0.005", cc="cubic")
    one = machine.home / "one"
    files(one, 1, 24 * MIB)
    source = machine.node(prefix=near, root=one, listen="10.200.0.1:0")
    other = machine.node(prefix=far, listen=f"{address}:0")
    return machine.copy(f"{source}/f0", other + "/", "--streams", "4", prefix=near)


CLEAR = ("--encrypt", "none")


def loss_clear(machine):
    return over(machine, "24M", "--streams", "4", *CLEAR, rate="1gbit", rtt_ms=40, loss="0.005", cc="cubic")


def rate_clear(machine):
    return over(machine, "64M", *CLEAR, rate="200mbit", rtt_ms=10)


def write_fuse_clear(machine):
    _, at = machine.slow("disk", write=5)
    return machine.copy("random:64M", machine.node(root=at) + "/", *CLEAR)


def read_group_local(machine):
    disk = machine.disk()
    disk.write("big", 48 * MIB)
    disk.limit(read_bps=24 * MIB)
    return machine.copy(disk.at / "big", machine.home / "there")


def write_fuse_local(machine):
    _, at = machine.slow("disk", write=5)
    return machine.copy("random:32M", at / "there")


def make_fuse_local(machine):
    _, at = machine.slow("disk", metadata=3)
    files(machine.home / "tree", 300, 2048)
    return machine.copy(machine.home / "tree", at)


def resumed_read_group(machine):
    """The first attempt is ended after its first checkpoints, as by a user; the second one goes on."""
    disk = machine.disk()
    disk.write("big", 96 * MIB)
    disk.limit(read_bps=24 * MIB)
    target = machine.node() + "/"
    machine.copy(disk.at / "big", target, "--deadline", "2s", ends="failed")
    return machine.copy(disk.at / "big", target)


def resumed_write_fuse(machine):
    _, at = machine.slow("disk", write=5)
    files(machine.home / "from", 1, 96 * MIB)
    target = machine.node(root=at) + "/"
    machine.copy(machine.home / "from/f0", target, "--deadline", "2s", ends="failed")
    return machine.copy(machine.home / "from/f0", target)


def midway_disk(machine):
    """At first the link is the limit, for a second and a half; then the destination's disk, for three or four."""
    near, far, address = machine.link(rate="200mbit", rtt_ms=10)
    disk = machine.disk()
    disk.limit()
    node = machine.node(prefix=far, listen=f"{address}:0", root=disk.at)
    running = machine.begin("random:40M", node + "/", prefix=near)
    time.sleep(1)
    disk.change(write_bps=8 * MIB)
    return machine.named(running)


def midway_link(machine):
    """At first the source's disk is the limit, for a second; then the link, for four."""
    near, far, address = machine.link(rate="1gbit", rtt_ms=10)
    disk = machine.disk()
    disk.write("big", 64 * MIB)
    disk.limit(read_bps=16 * MIB)
    node = machine.node(prefix=far, listen=f"{address}:0")
    running = machine.begin(disk.at / "big", node + "/", prefix=near)
    time.sleep(1)
    disk.change(read_bps=0)
    machine.tell("rate 80mbit")
    return machine.named(running)


# What was asked for, and nothing at all.

def asked(machine):
    return machine.copy("random:24M", machine.node() + "/", "--bwlimit", "12MB")


def asked_locally(machine):
    return machine.copy("random:24M", machine.home / "there", "--bwlimit", "12MB")


def clean_loopback(machine):
    return machine.copy("random:1G", machine.node() + "/")


def clean_memory(machine):
    return machine.copy("random:1G", machine.home / "there")


def clean_link(machine):
    return over(machine, "128M", rate="500mbit", rtt_ms=10)


# What is to be named, how it is made, and a function that makes a copy on a machine of its own.
WAYS = [
    ("source-storage", "FUSE: each read takes 5 ms longer", read_fuse),
    ("source-storage", "a control group lets 24 MiB/s be read from an ext4 disk", read_group),
    ("source-storage", "the same, in the clear and without a digest", read_group_clear),
    ("source-metadata", "FUSE: each call but reading takes 3 ms longer; 300 files", list_fuse),
    ("source-metadata", "a control group lets an ext4 disk read 150 times a second; 400 directories", list_group),
    ("source-processors", "a control group with a fifth of a processor", source_group),
    ("source-processors", "one processor, shared with four programs that use all of it", source_burners),
    ("network", "the emulated link carries 200 Mbit/s, 10 ms", rate_link),
    ("network", "`tc ... tbf rate 200mbit` at the source, 10 ms", rate_tbf),
    ("network", "a relay passes 16 MB/s on", rate_relay),
    ("loss", "the emulated link loses 0.5 % of the segments, 40 ms, cubic", loss_link),
    ("loss", "`tc filter` drops 2 % of the packets at the destination, 40 ms, cubic", loss_filter),
    ("round-trip", "150 ms, one stream", round_trip),
    ("round-trip", "100 ms, one stream, reno", round_trip_reno),
    ("window", "`tcp_rmem` of 128 KiB at the destination, 40 ms", window_receiver),
    ("window", "`tcp_wmem` of 128 KiB at the source, 40 ms", window_sender),
    ("destination-processors", "a control group with a fifth of a processor", destination_group),
    ("destination-processors", "one processor, shared with four programs that use all of it", destination_burners),
    ("destination-storage", "FUSE: each write takes 5 ms longer", write_fuse),
    ("destination-storage", "a control group lets 24 MiB/s be written to an ext4 disk", write_group),
    ("destination-storage", "FUSE: each fsync takes 40 ms longer; 60 files, `--durable each`", sync_fuse),
    ("destination-metadata", "FUSE: each call but writing takes 3 ms longer; 300 files", make_fuse),
    ("destination-metadata", "the same, 10 ms and 40 files of 1.1 MB", make_large),
    ("destination-metadata", "`strace` delays each call that opens, makes or renames by 3 ms; 300 files", make_traced),
    ("rate-limit", "`--bwlimit 12MB` to a node", asked),
    ("rate-limit", "`--bwlimit 12MB` within one process", asked_locally),
    ("clean", "loopback to a node: the processors", clean_loopback),
    ("clean", "within one process: the processors", clean_memory),
    ("clean", "the emulated link at 500 Mbit/s, 10 ms: the link", clean_link),
]
CROSSED = [
    ("source-storage", "to a host by ssh; a throttled disk", read_group_ssh),
    ("destination-storage", "to a host by ssh; FUSE", write_fuse_ssh),
    ("destination-processors", "to a host by ssh; a control group", destination_group_ssh),
    ("source-processors", "from node to node; a control group", third_source_group),
    ("destination-storage", "from node to node; FUSE", third_write_fuse),
    ("loss", "from node to node; the emulated link", third_loss),
    ("loss", "in the clear; the emulated link", loss_clear),
    ("network", "in the clear; the emulated link", rate_clear),
    ("destination-storage", "in the clear; FUSE", write_fuse_clear),
    ("source-storage", "within one process; a throttled disk", read_group_local),
    ("destination-storage", "within one process; FUSE", write_fuse_local),
    ("destination-metadata", "within one process; FUSE", make_fuse_local),
    ("source-storage", "resumed; a throttled disk", resumed_read_group),
    ("destination-storage", "resumed; FUSE", resumed_write_fuse),
    ("destination-storage", "the link for 1.5 s, then a throttled disk for longer", midway_disk),
    ("network", "a throttled disk for 1 s, then the link for longer", midway_link),
]
# Where nothing is slow, what is left is the truth: two processors, or the rate of the link.
CHANGE_SECONDS = 2
PROCESSORS = {"source-processors", "destination-processors"}
TRUE_OF_CLEAN = {clean_loopback: PROCESSORS, clean_memory: PROCESSORS, clean_link: {"network"}}


def measure(args, cause, way):
    """How often the right stage was named in so many runs, what else was named how often, and what else was wrong."""
    right, others, wrong = 0, {}, []
    for number in range(args.runs):
        machine = Machine(args.bin)
        with machine.stack:
            named = way(machine)
            is_right = named in TRUE_OF_CLEAN.get(way, {cause})
            if args.keep and (not is_right or args.keep_all):
                kept = args.keep / f"{cause}-{way.__name__}-{number}-{named}.timeline"
                shutil.copy(machine.timeline, kept)
            wrong += beside(machine)
        if is_right:
            right += 1
        else:
            others[named] = others.get(named, 0) + 1
    return right, others, wrong


def beside(machine):
    """What is wrong beside the stage: shares that add up to more than all of the time, a change that is told late."""
    limit, wrong = machine.limit, []
    if limit and "next" in limit and limit["share"] + limit["next"]["share"] > 1.001:
        wrong.append(f"shares {limit['share']:.2f} + {limit['next']['share']:.2f}")
    if machine.changed is not None:
        late = machine.fell_late()
        if late is None or abs(late) > CHANGE_SECONDS:
            wrong.append("change not told" if late is None else f"change told {late:+.1f} s off")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release", help="where the programs are")
    parser.add_argument("--only", nargs="*", help="causes, or names of ways", metavar="CAUSE")
    parser.add_argument("--crossed", action="store_true", help="copies of other kinds, and whose limit changes")
    parser.add_argument("--field", action="store_true", help="ways that strangers found")
    parser.add_argument("--held", action="store_true", help="ways to which nothing may be tuned")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep timelines of wrong runs")
    parser.add_argument("--keep-all", action="store_true", help="with --keep: of all runs")
    parser.add_argument("--list", action="store_true", help="list the ways")
    args = parser.parse_args()
    ways = (CROSSED if args.crossed else limited_more.FIELD if args.field else limited_more.HELD if args.held
            else WAYS)
    chosen = [(cause, how, way) for cause, how, way in ways
              if not args.only or cause in args.only or way.__name__ in args.only]
    if args.list:
        for cause, how, way in chosen:
            print(f"{cause:24}{way.__name__:20}{how}")
        return
    needed = ("ip", "tc", "taskset", "strace", "mkfs.ext4", "mkfs.xfs", "losetup")
    missing = [program for program in needed if not shutil.which(program)]
    if missing or os.geteuid() != 0:
        sys.exit(f"needs root, and these programs: {' '.join(missing) or 'all are there'}")
    if args.keep:
        args.keep.mkdir(parents=True, exist_ok=True)
    print("| cause | made by | named | otherwise |\n|---|---|--:|---|")
    wrong = 0
    total = 0
    for cause, how, way in chosen:
        right, others, beside_it = measure(args, cause, way)
        told = ", ".join([*(f"`{stage}` {count}" for stage, count in others.items()), *beside_it])
        total += right
        wrong += right < args.runs * 0.95 or bool(beside_it)
        print(f"| `{cause}` | {how} | {right} of {args.runs} | {told} |", flush=True)
    print(f"\n{total} of {args.runs * len(chosen)} named")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
