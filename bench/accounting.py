"""How much CPU time the processes of a run took, and how calm the host was meanwhile."""
import mmap
import os
import pathlib
import signal
import time

TICK = os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 3


def touch_memory(bytes_to_touch):
    """Has the kernel hand out so much memory, and gives it back: a virtual machine's first touch of a page costs several
    times as much as the next, and falls on whoever is measured."""
    with mmap.mmap(-1, max(bytes_to_touch, mmap.PAGESIZE)) as memory:
        pages = len(range(0, len(memory), mmap.PAGESIZE))
        memory[::mmap.PAGESIZE] = b"1" * pages


class Cgroup:
    """All that a measurement starts, on both sides, lives in one cgroup, whose CPU time is exact."""

    def __init__(self, suffix=""):
        for base, self.v2 in (("/sys/fs/cgroup", True), ("/sys/fs/cgroup/unified", True), ("/sys/fs/cgroup/cpuacct", False)):
            self.dir = pathlib.Path(base, f"carrack-bench-{os.getpid()}{suffix}")
            self.name = "cgroup v2" if self.v2 else "cgroup v1 cpuacct"
            if os.path.exists(base + ("/cgroup.controllers" if self.v2 else "/cpuacct.usage_user")) and os.access(base, os.W_OK):
                self.dir.mkdir()
                return
        raise OSError("no cgroup that counts CPU time can be made")

    def join(self):
        (self.dir / "cgroup.procs").write_text(str(os.getpid()))

    def cpu(self):
        if self.v2:
            stat = dict(line.split() for line in (self.dir / "cpu.stat").read_text().splitlines())
            return int(stat["user_usec"]) / 1e6, int(stat["system_usec"]) / 1e6
        return tuple(int((self.dir / f"cpuacct.usage_{half}").read_text()) / 1e9 for half in ("user", "sys"))

    def settle(self, servers):
        """Waits until only the servers are left. What does not leave is named, and killed."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            late = [int(pid) for pid in (self.dir / "cgroup.procs").read_text().split() if int(pid) not in servers]
            if not late or time.monotonic() > deadline:
                break
            time.sleep(0.005)
        names = []
        for pid in late:
            try:
                names.append(pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it left just now
        return names

    def close(self):
        self.settle(())
        for _ in range(100):
            try:
                return self.dir.rmdir()
            except OSError:
                time.sleep(0.02)


class Usage:
    """Without a cgroup: children that were waited for, and the servers with theirs. In ticks, and a stray process is missed."""

    name = "resource usage of children (no cgroup): steps of 10 ms, may miss some"

    def __init__(self):
        self.servers = []

    def join(self):
        pass

    def cpu(self):
        times = os.times()
        user, system = times.children_user, times.children_system
        for pid in self.servers:
            stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            user += (int(stat[11]) + int(stat[13])) / TICK
            system += (int(stat[12]) + int(stat[14])) / TICK
        return user, system

    def settle(self, servers):
        self.servers = list(servers)
        time.sleep(0.2)
        return []

    def close(self):
        pass


def machine():
    """Seconds since boot, of all cores together: busy, stolen by the hypervisor, all."""
    user, nice, system, idle, iowait, irq, softirq, steal = (int(x) / TICK for x in open("/proc/stat").readline().split()[1:9])
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + steal + idle + iowait


def memcpy_speed(source=bytearray(64 << 20), target=bytearray(64 << 20)):
    """GB/s of one core now: a host that is busy elsewhere shows as less."""
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        target[:] = source
        best = max(best, len(source) / 1e9 / (time.perf_counter() - start))
    return best
