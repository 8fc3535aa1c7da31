#!/usr/bin/env python3
"""What the kernel ends when the memory of a service and its workers runs out.

    python3 bench/managed_oom.py [target/release/carrack]     half a minute; as root, where there are memory groups (cgroup 1 or 2)

A service, a task under way and a process that stands for a worker that grows (it has a worker's place in the kernel's order, and takes a
MiB a millisecond) share a group of 400 MiB, as the units of contrib/systemd bound them. The process that grows must be ended, five times
in turn; the service must answer all the while, and the task must end as SUCCEEDED. Exit code 1 where it is not so.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed
from managed_load import request

MIB = 1 << 20
LIMIT = 400 * MIB
GROWS = "import sys; kept = []\nwhile True:\n    kept.append(bytearray(b'x' * (1 << 20)))\n    import time; time.sleep(0.001)"


def group():
    """A memory group of its own, or none: its directory."""
    for top, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        made = pathlib.Path(top) / f"carrack-{os.getpid()}"
        try:
            made.mkdir()
            (made / limit).write_text(str(LIMIT))
            return made
        except OSError:
            if made.exists():
                made.rmdir()
    raise SystemExit("there are no memory groups here, or no right to make one")


def score(pid):
    """A process's place in the kernel's order."""
    return int(pathlib.Path("/proc", str(pid), "oom_score_adj").read_text())


def main():
    """The service, its task, and what grows beside them."""
    carrack = managed.parser(__doc__).parse_args().carrack
    made, wrong = group(), []
    with tempfile.TemporaryDirectory(prefix="carrack-oom-") as directory:
        service = managed.Server(carrack, directory, "service").start()
        try:
            (made / "cgroup.procs").write_text(str(service.process.pid))
            (service.root / "large").write_bytes(os.urandom(64 * MIB))
            service.run("endpoint", "add", "here", str(service.root))
            task = service.run("task", "submit", "@here:/large", "@here:/copy", "--bwlimit=4MB").stdout.strip()
            while not (workers := service.workers()):
                time.sleep(0.05)
            while (place := score(workers[0])) == score(service.process.pid):
                time.sleep(0.05)
            for turn in range(5):
                def join():
                    (made / "cgroup.procs").write_text(str(os.getpid()))
                    pathlib.Path("/proc/self/oom_score_adj").write_text(str(place))
                grows = subprocess.Popen([sys.executable, "-c", GROWS], preexec_fn=join)
                answers, slowest = 0, 0.0
                while grows.poll() is None:
                    began = time.monotonic()
                    status, _ = request(service, "GET", "/api/v1/whoami", None)
                    slowest = max(slowest, time.monotonic() - began)
                    answers += status == 200
                    time.sleep(0.02)
                print(f"turn {turn}: what grew ended by signal {-grows.returncode}; the service answered {answers} times, slowest {slowest:.2f} s", flush=True)
                if grows.returncode != -9:
                    wrong.append(f"what grew ended with {grows.returncode}")
                if service.process.poll() is not None:
                    wrong.append("the service has ended")
                    break
            service.run("task", "wait", task, "--timeout=120s", check=False)
            state = service.json("task", "show", task)[0]["state"]
            print(f"the task is {state}")
            if state != "SUCCEEDED":
                wrong.append(f"the task is {state}")
        finally:
            service.end()
            for pid in service.workers():
                os.kill(pid, 9)
            while (made / "cgroup.procs").read_text():
                time.sleep(0.05)
            made.rmdir()
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
