#!/usr/bin/env python3
"""Kills at random while managed transfers run: the service, its workers, the node that they read and the node that they write.

    python3 bench/managed_kills.py [target/release/carrack]                 50 tasks of 1 to 1,000 files, 200 kills: about ten minutes
    python3 bench/managed_kills.py CARRACK --tasks 10 --kills 20 --seed 7

Every task is submitted several times with one submission id. At the end each must have SUCCEEDED, each tree must be at the destination as it
is at the source, no task may have had two workers at once, and no submission may have made two tasks. What was sent again is bounded by the
promise for resume: AGAIN_SECONDS of the rate of each task that ran when a node or its worker was killed. As root all runs in a network
namespace of its own, whose loopback interface counts what really went between the processes. It ends with 1 where anything is otherwise.
"""
import collections
import filecmp
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed

ENDED = {"SUCCEEDED", "PARTIAL", "FAILED", "CANCELLED"}
# Of each task: it has to last long enough to be killed.
RATE = 1_000_000
# SPEC.md: what landed in the last second or so, and what is in flight, is sent again after a crash.
AGAIN_SECONDS = 2
# Beside the content of files: names, acknowledgements, TLS records, TCP headers, and all that the service asks.
OVERHEAD = 0.03


def make_tree(top, files, dice):
    """`files` files, most of them small, in directories of 100."""
    total = 0
    for number in range(files):
        directory = top / f"d{number // 100}"
        directory.mkdir(parents=True, exist_ok=True)
        size = dice.choice([0, 100, 4096, 70_000]) if number else 8 << 20
        total += size
        (directory / f"f{number}").write_bytes(dice.randbytes(size))
    return total


def differences(left, right):
    """Paths that differ between two trees."""
    found, stack = [], [filecmp.dircmp(left, right, ignore=[])]
    while stack:
        here = stack.pop()
        wrong = filecmp.cmpfiles(here.left, here.right, here.common_files, shallow=False)
        found += here.left_only + here.right_only + wrong[1] + wrong[2]
        stack += here.subdirs.values()
    return found


def is_leftover(name):
    """Part files that a killed node has left: `carrack gc` removes them."""
    return name.startswith(".") and name.endswith(".part") and ".carrack-" in name


def twice_at_work(service, seen):
    """Notes workers by their tasks; tasks that two living processes hold at once."""
    by_task = collections.defaultdict(list)
    for process in service.workers():
        try:
            for entry in os.listdir(f"/proc/{process}/fd"):
                target = os.readlink(f"/proc/{process}/fd/{entry}")
                if target.endswith("/lock") and "/tasks/" in target:
                    by_task[target.split("/")[-2]].append(process)
        except OSError:
            continue
    seen.update(by_task)
    return [task for task, processes in by_task.items() if len(processes) > 1 and all(holds(task, one) for one in processes)]


def interfaces():
    """Bytes that each network interface of this namespace has received."""
    lines = pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]
    return {line.split(":")[0].strip(): int(line.split(":")[1].split()[0]) for line in lines}


def enter_own_network():
    """As root: runs this script once more where no other process uses loopback, so that its counters are ours alone."""
    if set(interfaces()) != {"lo"} and os.geteuid() == 0:
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$0" "$@"', sys.executable, *sys.argv])
    return set(interfaces()) == {"lo"}


def holds(task, process):
    """Whether the kernel says that a process has a lock (a second one may have the file open and wait for it)."""
    locks = pathlib.Path("/proc/locks").read_text()
    return any(line.split()[1] in ("FLOCK", "OFDLCK") and line.split()[4] == str(process) for line in locks.splitlines() if len(line.split()) > 5)


def main():
    parser = managed.parser(__doc__)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--minutes", type=float, default=20, help="gives up after this time")
    args = parser.parse_args()
    alone = enter_own_network()
    dice = random.Random(args.seed)
    print(f"seed {args.seed}", flush=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-kills.", dir="/dev/shm"))
    carrack = args.carrack
    service = managed.Server(carrack, work, "service")
    nodes = [managed.Server(carrack, work, name, "--node-only") for name in ("source", "destination")]
    wrong = []
    try:
        for server in (service, *nodes):
            server.start()
        for node in nodes:
            service.run("endpoint", "add", node.name, node.location(), "--token-file", node.token_file())
        sizes, tasks, payload, at_risk = {}, {}, 0, 0
        for number in range(args.tasks):
            files = max(1, round(1000 ** (number / max(1, args.tasks - 1))))
            payload += make_tree(nodes[0].root / f"t{number}", files, dice)
            sizes[number] = files
        carried = interfaces()["lo"]
        for number in sizes:
            made = {submit(service, number) for _ in range(3)}
            if len(made) != 1:
                wrong.append(f"submission {number} made the tasks {made}")
            tasks[number] = made.pop()
        began, counts, seen = time.monotonic(), collections.Counter(), {}
        while sum(counts.values()) < args.kills and time.monotonic() - began < args.minutes * 60:
            time.sleep(dice.uniform(0.05, 0.6))  # moments of the kills are what is drawn, not a wait for something
            wrong += [f"task {task} has two workers" for task in twice_at_work(service, seen)]
            victim = dice.choice(["service", "worker", "worker", "source", "destination"])
            workers = service.workers()
            if victim == "worker":
                if not workers:
                    if all(row["state"] in ENDED for row in service.json("task", "list", "--limit", "1000")):
                        wrong.append(f"all tasks had ended after {sum(counts.values())} kills")
                        break
                    continue
                try:
                    os.kill(dice.choice(workers), signal.SIGKILL)
                except ProcessLookupError:
                    continue
            else:
                server = {"service": service, "source": nodes[0], "destination": nodes[1]}[victim]
                server.kill()
                server.start()
            counts[victim] += 1
            at_risk += {"service": 0, "worker": 1}.get(victim, len(workers))
            if sum(counts.values()) % 7 == 0:
                again = dice.choice(list(tasks))
                if submit(service, again) != tasks[again]:
                    wrong.append(f"submission {again} made another task")
        print(f"kills: {dict(counts)} in {time.monotonic() - began:.0f} s", flush=True)
        deadline = time.monotonic() + args.minutes * 60
        while True:
            rows = {row["id"]: row for row in service.json("task", "list", "--limit", "1000") if "id" in row}
            states = collections.Counter(row["state"] for row in rows.values())
            if not set(states) - ENDED or time.monotonic() > deadline:
                break
            time.sleep(1)
        print(f"states: {dict(states)}; ended {time.monotonic() - began:.0f} s after the first kill")
        leftovers = 0
        if len(rows) != len(tasks):
            wrong.append(f"{len(rows)} tasks of {len(tasks)} submissions")
        for number, task in tasks.items():
            if rows[task]["state"] != "SUCCEEDED":
                wrong.append(f"task {task} (t{number}, {sizes[number]} files): {rows[task]['state']}: {rows[task].get('failure')}")
            else:
                found = differences(nodes[0].root / f"t{number}", nodes[1].root / f"t{number}")
                leftovers += sum(map(is_leftover, found))
                if any(not is_leftover(name) for name in found):
                    wrong.append(f"task {task}: {[name for name in found if not is_leftover(name)][:3]} differ")
        sent_again = sum(row["progress"]["bytes_resent"] for row in rows.values())
        promise = at_risk * AGAIN_SECONDS * RATE
        print(f"content {payload / 1e6:.0f} MB, {sent_again / 1e6:.1f} MB had landed and were sent again as told by the tasks, promised at most {promise / 1e6:.0f} MB;"
              f" {leftovers} part files left by killed nodes")
        carried = interfaces()["lo"] - carried if alone else payload + sent_again
        if alone:
            print(f"loopback carried {carried / 1e6:.1f} MB, which is {carried / payload:.3f} of the content")
        if max(carried - payload * (1 + OVERHEAD), sent_again) > promise:
            wrong.append(f"{carried - payload} bytes more than the content were carried, {promise} promised at most")
    finally:
        for server in (service, *nodes):
            server.end()
        for process in service.workers():
            os.kill(process, signal.SIGTERM)
        if wrong:
            print(f"kept: {work}")
        else:
            shutil.rmtree(work)
    print("\n".join(wrong) if wrong else "nothing wrong")
    return 1 if wrong else 0


def submit(service, number):
    """Submits a task; the same one as before, if it was before."""
    rows = service.json("task", "submit", f"@source:/t{number}", "@destination:/", "--submission-id", f"kills-{number}", "--label", f"t{number}",
                        "--bwlimit", f"{RATE}B")
    return rows[-1]["id"]


if __name__ == "__main__":
    sys.exit(main())
