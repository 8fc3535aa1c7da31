"""More ways for limited.py to slow a copy down: those of strangers (`FIELD`), and ten that were written, with what is to
be named, before the rules that name it were changed (`HELD`): nothing may be tuned to those.

A policer and `fq` with a largest rate are not here: kernels without `act_police` and `sch_fq` cannot make them.
"""
import sys
import time

from limited_machine import MIB, files, over

CLEAR = ("--encrypt", "none")
# The kernel then sends the file by itself.
UNSEEN = (*CLEAR, "--digest", "none", "--verify", "none")
TAKE = """
import os, socket, sys, threading
listener = socket.create_server((sys.argv[1], 0))
print("port", listener.getsockname()[1], flush=True)
def take(one):
    while one.recv(1 << 18):
        pass
while True:
    threading.Thread(target=take, args=(listener.accept()[0],), daemon=True).start()
"""
POUR = """
import socket, sys, threading
def pour():
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as to:
        while True:
            to.sendall(bytes(1 << 16))
for _ in range(int(sys.argv[3])):
    threading.Thread(target=pour, daemon=True).start()
print("pouring", flush=True)
threading.Event().wait()
"""
DRIP = """
import os, time
for _ in range(48):
    os.write(1, bytes(1 << 18))
    time.sleep(0.1)
"""


def pull(machine, source, *options, prefix=()):
    return machine.copy(source, machine.home / "there", *options, prefix=prefix)


def pull_over(machine, size, *options, change=lambda near, far: None, **link):
    """Pulls one file from the far host."""
    near, far, address = machine.link(**link)
    change(near, far)
    files(machine.home / "root", 1, size)
    node = machine.node(prefix=far, listen=f"{address}:0")
    return pull(machine, f"{node}/f0", *options, prefix=near)


def small(machine, host, name, size=131072):
    def change(near, far):
        machine.run(*{"near": near, "far": far}[host], "sysctl", "-qw", f"net.ipv4.{name}=4096 65536 {size}")
    return change


# Of strangers: the path.

def pull_rate(machine):
    return pull_over(machine, 64 * MIB, rate="200mbit", rtt_ms=20)


def tbf_far(machine):
    def shape(_, far):
        machine.run(*far, "tc", "qdisc", "add", "dev", "link0", "root",
                    "tbf", "rate", "160mbit", "burst", "256k", "latency", "50ms")
    return pull_over(machine, 48 * MIB, rtt_ms=20, change=shape)


def tunnel_rate(machine):
    relay = machine.relay(machine.node(), rate=12_000_000)
    return machine.copy("random:36M", relay + "/", "--link", "tunnel")


def loss_one_way(machine):
    def drop(_, far):
        tc = [*far, "tc"]
        machine.run(*tc, "qdisc", "add", "dev", "link0", "clsact")
        # A = random; below 2^32 / 100 it is dropped (2), else passed on (-1).
        program = "4,32 0 0 4294963256,53 0 1 42949672,6 0 0 4294967295,6 0 0 2"
        machine.run(*tc, "filter", "add", "dev", "link0", "ingress", "bpf", "da", "bytecode", program)
    return over(machine, "48M", "--streams", "4", rate="1gbit", rtt_ms=30, cc="cubic", change=drop)


def loss_pull_reno(machine):
    return pull_over(machine, 32 * MIB, "--streams", "4", rate="1gbit", rtt_ms=40, loss="0.003", cc="reno")


def rtt_pull(machine):
    return pull_over(machine, 48 * MIB, "--streams", "1", rate="5gbit", rtt_ms=120)


def rtt_small(machine):
    near, far, address = machine.link(rate="5gbit", rtt_ms=200)
    files(machine.home / "tree", 2000, 4096)
    node = machine.node(prefix=far, listen=f"{address}:0")
    return machine.copy(machine.home / "tree", node + "/", "--streams", "1", prefix=near)


def rmem_pull(machine):
    return pull_over(machine, 16 * MIB, "--streams", "2", rate="1gbit", rtt_ms=40, tcp_buffer_mib=0,
                     change=small(machine, "near", "tcp_rmem"))


def wmem_pull(machine):
    return pull_over(machine, 16 * MIB, "--streams", "2", rate="1gbit", rtt_ms=40, tcp_buffer_mib=0,
                     change=small(machine, "far", "tcp_wmem"))


def rmem_auto(machine):
    return pull_over(machine, 64 * MIB, rate="1gbit", rtt_ms=60, tcp_buffer_mib=0,
                     change=small(machine, "near", "tcp_rmem"))


def compete(machine):
    """Eight connections of others fill the link before the copy begins."""
    near, far, address = machine.link(rate="400mbit", rtt_ms=20, cc="cubic")
    pour(machine, near, far, address, 8)
    node = machine.node(prefix=far, listen=f"{address}:0")
    return machine.copy("random:48M", node + "/", prefix=near)


def pour(machine, near, far, address, count):
    python = [sys.executable, "-c"]
    _, port = machine.start(*far, *python, TAKE, address, until="port")
    machine.start(*near, *python, POUR, address, port.split()[1], count, until="pouring")
    # Until they have found the rate of the link.
    time.sleep(2)


def mid_rate(machine):
    near, far, address = machine.link(rate="400mbit", rtt_ms=20)
    node = machine.node(prefix=far, listen=f"{address}:0")
    running = machine.begin("random:440M", node + "/", prefix=near)
    time.sleep(5)
    machine.changes("rate 80mbit")
    return machine.named(running)


def mid_source(machine):
    disk = machine.disk()
    disk.write("big", 400 * MIB)
    disk.limit(read_bps=48 * MIB)
    running = machine.begin(disk.at / "big", machine.node() + "/")
    time.sleep(5)
    machine.changes()
    disk.change(read_bps=8 * MIB)
    return machine.named(running)


def mid_loss(machine):
    """Four seconds of a full link, then a link that loses."""
    near, far, address = machine.link(rate="500mbit", rtt_ms=40, cc="cubic")
    node = machine.node(prefix=far, listen=f"{address}:0")
    running = machine.begin("random:280M", node + "/", "--streams", "4", prefix=near)
    time.sleep(4)
    machine.changes("loss 0.02")
    return machine.named(running)


# Of strangers: processors.

def quota_src_node(machine):
    files(machine.home / "root", 1, 192 * MIB)
    return pull(machine, machine.node(prefix=machine.group(0.2)) + "/f0")


def quota_dst_cmd(machine):
    files(machine.home / "root", 1, 192 * MIB)
    node = machine.node()
    return pull(machine, f"{node}/f0", prefix=machine.group(0.2))


def quota_agent(machine):
    files(machine.home / "far", 1, 192 * MIB)
    return pull(machine, f"here:{machine.home}/far/f0", machine.ssh(machine.group(0.2)))


def shares_dst(machine):
    """A small share of the processor that the destination has, beside programs that use all of it."""
    words = machine.burners(2)
    node = machine.node(prefix=[*words, *machine.group_of_shares(256)])
    return machine.copy("random:512M", node + "/", prefix=machine.on_processor(1))


# Of strangers: storage.

def blk_read_pull(machine):
    disk = machine.disk()
    disk.write("big", 48 * MIB)
    disk.limit(read_bps=16 * MIB)
    return pull(machine, machine.node(root=disk.at) + "/big")


def blk_write(machine):
    disk = machine.disk(kind="xfs")
    disk.limit(write_bps=16 * MIB)
    return machine.copy("random:64M", machine.node(root=disk.at) + "/")


def blk_write_pull(machine):
    disk = machine.disk(kind="xfs")
    disk.limit(write_bps=16 * MIB)
    files(machine.home / "root", 1, 64 * MIB)
    return machine.copy(machine.node() + "/f0", disk.at / "there")


def blk_iops_small(machine):
    """The scan reads many inodes at once; each small file is a request of its own."""
    disk = machine.disk(kind="xfs")
    files(disk.at, 1200, 24_000)
    disk.limit(read_iops=200)
    return machine.copy(disk.at, machine.node() + "/")


def fuse_rate_read(machine):
    backing, at = machine.slow("disk", read=7)
    files(backing, 1, 64 * MIB)
    return machine.copy(at / "f0", machine.node() + "/", *UNSEEN)


def fuse_rate_write(machine):
    _, at = machine.slow("disk", write=7)
    files(machine.home / "root", 1, 64 * MIB)
    return machine.copy(machine.node() + "/f0", at / "there")


def fuse_burst(machine):
    """A disk that is quick for three seconds, at a rate that no host exceeds, and slow for all that comes after it."""
    _, at = machine.slow("disk", write=2)
    running = machine.begin("random:900M", machine.node(root=at) + "/")
    time.sleep(3)
    machine.slows("write 40")
    return machine.named(running)


def stdin_slow(machine):
    drips = machine.start(sys.executable, "-c", DRIP)[0]
    return machine.named(machine.begin("-", machine.node() + "/there", stdin=drips.stdout))


def third_src(machine):
    disk = machine.disk()
    disk.write("big", 48 * MIB)
    disk.limit(read_bps=24 * MIB)
    return machine.copy(machine.node(root=disk.at) + "/big", machine.node() + "/")


def fuse_open(machine):
    backing, at = machine.slow("tree", open=6)
    files(backing, 300, 8192)
    return machine.copy(at, machine.node() + "/")


def fuse_readdir(machine):
    backing, at = machine.slow("tree", list=20)
    for number in range(150):
        files(backing / f"d{number}", 2, 512)
    return machine.copy(at, machine.node() + "/")


def fuse_create(machine):
    _, at = machine.slow("disk", create=6)
    files(machine.home / "tree", 300, 2048)
    return machine.copy(machine.home / "tree", machine.node(root=at) + "/")


def fuse_rename(machine):
    _, at = machine.slow("disk", rename=6)
    files(machine.home / "tree", 300, 2048)
    return machine.copy(machine.home / "tree", machine.node(root=at) + "/")


def bw_pull(machine):
    files(machine.home / "root", 1, 24 * MIB)
    return pull(machine, machine.node() + "/f0", "--bwlimit", "8MB")


FIELD = [
    ("network", "a pull over 200 Mbit/s, 20 ms", pull_rate),
    ("network", "a pull; `tbf` at the far host", tbf_far),
    ("network", "a relay passes 12 MB/s on; through the control connections", tunnel_rate),
    ("loss", "one way loses 1 %, 30 ms, cubic", loss_one_way),
    ("loss", "a pull; 0.3 % lost, 40 ms, reno", loss_pull_reno),
    ("round-trip", "a pull; 120 ms, one stream", rtt_pull),
    ("round-trip", "2,000 small files, 200 ms, one stream", rtt_small),
    ("window", "a pull; `tcp_rmem` here", rmem_pull),
    ("window", "a pull; `tcp_wmem` there", wmem_pull),
    ("window", "a pull; `tcp_rmem` here, streams as they are chosen", rmem_auto),
    ("network", "a full link, shared with eight connections of others", compete),
    ("network", "400 Mbit/s for 5 s, then 80 for longer", mid_rate),
    ("source-storage", "a disk of 48 MiB/s for 5 s, then of 8 for longer", mid_source),
    ("loss", "a full link for 4 s, then 2 % lost for longer", mid_loss),
    ("source-processors", "a pull from a node with a fifth of a processor", quota_src_node),
    ("destination-processors", "a pull by a command with a fifth of a processor", quota_dst_cmd),
    ("source-processors", "a pull by ssh from an agent with a fifth of a processor", quota_agent),
    ("destination-processors", "a small share of a busy processor", shares_dst),
    ("source-storage", "a pull from a disk that is throttled", blk_read_pull),
    ("destination-storage", "XFS on a disk that is throttled", blk_write),
    ("destination-storage", "a pull to XFS on a disk that is throttled", blk_write_pull),
    ("source-storage", "1,200 files of 24 kB from a disk held to 200 reads a second", blk_iops_small),
    ("source-storage", "FUSE: slow reads, in the clear, no digests", fuse_rate_read),
    ("destination-storage", "a pull; FUSE: slow writes", fuse_rate_write),
    ("destination-storage", "FUSE: quick for 3 s, then slow", fuse_burst),
    ("source-storage", "standard input that drips", stdin_slow),
    ("source-storage", "from node to node; a disk that is throttled", third_src),
    ("source-metadata", "FUSE: slow opens", fuse_open),
    ("source-metadata", "FUSE: slow lists", fuse_readdir),
    ("destination-metadata", "FUSE: slow creates", fuse_create),
    ("destination-metadata", "FUSE: slow renames", fuse_rename),
    ("rate-limit", "a pull with `--bwlimit 8MB`", bw_pull),
]


# Held back.

def compete_pull(machine):
    near, far, address = machine.link(rate="100mbit", rtt_ms=40, cc="cubic")
    python = [sys.executable, "-c"]
    _, port = machine.start(*near, *python, TAKE, "10.200.0.1", until="port")
    machine.start(*far, *python, POUR, "10.200.0.1", port.split()[1], 4, until="pouring")
    time.sleep(2)
    files(machine.home / "root", 1, 24 * MIB)
    node = machine.node(prefix=far, listen=f"{address}:0")
    return pull(machine, f"{node}/f0", prefix=near)


def iops_pull(machine):
    disk = machine.disk()
    files(disk.at, 500, 40_000)
    disk.limit(read_iops=120)
    return pull(machine, machine.node(root=disk.at) + "/", *CLEAR)


def loss_behind_queue(machine):
    """The link is full for two seconds; then it loses 1 % for longer, and its queue is empty."""
    near, far, address = machine.link(rate="300mbit", rtt_ms=60, cc="reno")
    node = machine.node(prefix=far, listen=f"{address}:0")
    running = machine.begin("random:140M", node + "/", "--streams", "3", prefix=near)
    time.sleep(3)
    machine.changes("loss 0.01")
    return machine.named(running)


def read_clear_far(machine):
    """A slow disk behind a link that is quick and far, in the clear and without digests."""
    near, far, address = machine.link(rate="1gbit", rtt_ms=10)
    backing, at = machine.slow("disk", read=10)
    files(backing, 1, 64 * MIB)
    node = machine.node(prefix=far, listen=f"{address}:0", root=at)
    return pull(machine, f"{node}/f0", *UNSEEN, prefix=near)


def link_away(machine):
    """Five seconds of copying, and nothing for 45 s between them."""
    near, far, address = machine.link(rate="200mbit", rtt_ms=20)
    node = machine.node(prefix=far, listen=f"{address}:0")
    running = machine.begin("random:128M", node + "/", prefix=near)
    time.sleep(3)
    machine.tell("loss 1")
    time.sleep(45)
    machine.tell("loss 0")
    return machine.named(running)


def write_clear_pull(machine):
    disk = machine.disk()
    disk.limit(write_bps=12 * MIB)
    files(machine.home / "root", 3, 20 * MIB)
    return machine.copy(machine.node() + "/", disk.at / "there", *UNSEEN)


def far_rate(machine):
    return pull_over(machine, 160 * MIB, rate="250mbit", rtt_ms=90, cc="bbr")


def small_files_group(machine):
    files(machine.home / "tree", 6000, 12_000)
    return machine.copy(machine.home / "tree", machine.node(prefix=machine.group(0.15)) + "/")


def open_ssh(machine):
    backing, at = machine.slow("tree", open=10)
    files(backing, 200, 30_000)
    return pull(machine, f"here:{at}/", machine.ssh())


def window_clear(machine):
    return pull_over(machine, 24 * MIB, "--streams", "3", *UNSEEN, rate="1gbit", rtt_ms=80, tcp_buffer_mib=0,
                     change=small(machine, "near", "tcp_rmem", 196608))


HELD = [
    ("network", "a pull over a full link, shared with four connections of others", compete_pull),
    ("source-storage", "a pull in the clear; 500 files of 40 kB from a disk held to 120 reads a second", iops_pull),
    ("loss", "a full link for 3 s, then 1 % lost for longer, 60 ms, reno", loss_behind_queue),
    ("source-storage", "a far FUSE with slow reads, in the clear, no digests", read_clear_far),
    ("no-link", "a link that is away for 45 s", link_away),
    ("destination-storage", "a pull in the clear, no digests, to a disk that is throttled", write_clear_pull),
    ("network", "a pull over 250 Mbit/s, 90 ms, bbr: nothing else is slow", far_rate),
    ("destination-processors", "6,000 small files; a control group with 0.15 of a processor", small_files_group),
    ("source-metadata", "a pull by ssh; FUSE: slow opens", open_ssh),
    ("window", "a pull in the clear, no digests; `tcp_rmem` here, 80 ms", window_clear),
]
