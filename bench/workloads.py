"""What is measured: the table of workloads, the data they need, and whether a copy is right."""
import os
import subprocess
from typing import NamedTuple


class Shape(NamedTuple):
    files: int
    size: int  # of each, in bytes
    directories: int = 0  # none: a single file


class Cell(NamedTuple):
    """How the link between two hosts is; its round trip takes RTT_MS."""
    gbit: int
    loss: str
    congestion: str

    def __str__(self):
        return f"{RTT_MS} ms, {self.gbit} Gbit/s, loss {self.loss}, {self.congestion}"


class Workload(NamedTuple):
    kinds: tuple  # which command of a peer is run: the first of these that it has
    shape: Shape
    quick: Shape  # and with --quick
    runs: int
    peers: str
    place: str = "here"  # over loopback; `disk`: the same, on a disk; `far`: over a link
    cells: tuple = (None,)
    quick_cells: tuple = (None,)


RTT_MS = 50
CARRACK = "carrack-ssh carrack-ssh-unverified carrack-node carrack-node-clear"
SSH = "scp scp-aes128gcm rsync-ssh rsync-ssh-aes128gcm"
FILE = f"cp {CARRACK} carrack-node-unseen {SSH} rsync-daemon gridftp-p1 gridftp-p4 xrdcp-S1 xrdcp-S4 rclone-sftp bbcp-s4"
TREE = f"cp {CARRACK} {SSH} rsync-daemon pipe-ssh pipe-ssh-aes128gcm gridftp-cc4 xrdcp-parallel4 bbcp-s4"
FETCH = f"cp {CARRACK} carrack-node-unseen pipe-ssh pipe-ssh-aes128gcm gridftp-p1 gridftp-p4 xrdcp-S1 xrdcp-S4"
MEMORY = f"iperf3 iperf3-P4 {CARRACK} carrack-node-unseen pipe-ssh pipe-ssh-aes128gcm gridftp-p1 gridftp-p4"
DISK = ("dd-read dd-copy fio-read fio-write fio-both cp carrack-ssh carrack-node carrack-node-clear scp-aes128gcm rsync-ssh-aes128gcm rsync-daemon "
        "gridftp-p4 xrdcp-S4")
INTEGRITY = ("carrack-node carrack-node-xxh128 carrack-node-unverified carrack-node-disk carrack-node-clear carrack-node-clear-xxh128 carrack-node-unseen rsync-daemon gridftp-p4 "
             "gridftp-p4-checksum xrdcp-S4 xrdcp-S4-checksum rclone-sftp rclone-sftp-unchecked")
STARTUP = "ssh-true carrack-ssh carrack-node scp rsync-ssh rsync-daemon gridftp-p1 xrdcp-S1"
FAR = tuple(Cell(1, loss, congestion) for loss in ("0", "1e-4", "1e-3") for congestion in ("cubic", "bbr"))
FAST = tuple(Cell(gbit, "0", "cubic") for gbit in (5, 10))
GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10

WORKLOADS = {
    "file": Workload(("file",), Shape(1, 4 * GIB), Shape(1, 256 * MIB), 3, FILE),
    "memory": Workload(("memory",), Shape(1, 4 * GIB), Shape(1, 256 * MIB), 5, MEMORY),
    "small": Workload(("tree",), Shape(20000, 4 * KIB, 200), Shape(2000, 4 * KIB, 20), 5, TREE),
    "medium": Workload(("tree",), Shape(1000, MIB, 10), Shape(100, MIB, 4), 5, TREE + " rclone-sftp"),
    "startup": Workload(("file", "login"), Shape(1, 1), Shape(1, 1), 10, STARTUP),
    "integrity": Workload(("file",), Shape(1, 4 * GIB), Shape(1, 256 * MIB), 3, INTEGRITY),
    "disk": Workload(("file", "disk"), Shape(1, 4 * GIB), Shape(1, 256 * MIB), 3, DISK, "disk"),
    "far": Workload(("file", "memory"), Shape(1, GIB), Shape(1, 64 * MIB), 3, "iperf3-P16 carrack-ssh gridftp-p16", "far", FAR, FAR[::5]),
    "far-fast": Workload(("file", "memory"), Shape(1, 4 * GIB), Shape(1, 256 * MIB), 3,
                         "iperf3 iperf3-P16 carrack-node-clear carrack-node-unseen gridftp-p16", "far", FAST, FAST),
    "far-small": Workload(("tree",), Shape(20000, 4 * KIB, 200), Shape(1000, 4 * KIB, 10), 3, "carrack-node carrack-ssh pipe-ssh rsync-daemon",
                          "far", FAR[:1], FAR[:1]),
    "many": Workload(("tree",), Shape(100000, 4 * KIB, 1000), Shape(4000, 4 * KIB, 40), 3, TREE),
    "fetch": Workload(("fetch",), Shape(1, 4 * GIB), Shape(1, 256 * MIB), 5, FETCH),
}
DEFAULT = [name for name in WORKLOADS if name not in ("many", "fetch")]


def make(path, shape):
    """Random bytes."""
    if shape.directories:
        for number in range(shape.files):
            parent = path / f"d{number * shape.directories // shape.files:04d}"
            parent.mkdir(parents=True, exist_ok=True)
            (parent / f"f{number:06d}").write_bytes(os.urandom(shape.size))
        return
    with open(path, "wb") as out:
        for start in range(0, shape.size, 16 << 20):
            out.write(os.urandom(min(16 << 20, shape.size - start)))


def difference(source, target, shape, check):
    """What is wrong with a destination: bytes are compared if `check`, counts and sizes always."""
    if not source.is_dir() and target.is_dir() or (target / source.name).is_dir():
        target = target / source.name  # some programs always put a source below the destination
    files = [p for p in target.rglob("*") if p.is_file()] if shape.directories else [target]
    if len(files) != shape.files or any(not p.is_file() or p.stat().st_size != shape.size for p in files):
        return "the destination lacks files, or bytes of them"
    compare = ["diff", "-rq"] if shape.directories else ["cmp", "-s"]
    if check and subprocess.run([*compare, source, target], stdout=subprocess.DEVNULL).returncode != 0:
        return "the destination differs from the source"
    return None
