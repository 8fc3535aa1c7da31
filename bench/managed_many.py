#!/usr/bin/env python3
"""One task of very many files, and very many tasks: how much memory and disk the service takes, and how soon it answers.

    python3 bench/managed_many.py [target/release/carrack]                10,000,000 files, 10,000 tasks: about half an hour; as root
    python3 bench/managed_many.py CARRACK --files 100000 --tasks 1000

The files stand nowhere: a FUSE file system makes them up (cargo build --release -p carrack-faults --bin carrack-invented), and the task
copies them to `null:`. Every hundred-thousandth cannot be opened. It ends with 1 where the service took 256 MB or more, its worker 512 MB,
its ledger 64 MiB, where a failed item is not listed, or where 10,000 tasks took 100 ms or more to list.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFUSED = 100_000
MIB = 1 << 20


def resident(process):
    """The most memory that a process has had, in bytes; 0 if it is gone."""
    try:
        for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def main():
    parser = managed.parser(__doc__)
    parser.add_argument("--files", type=int, default=10_000_000)
    parser.add_argument("--tasks", type=int, default=10_000)
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-many."))
    at = work / "invented"
    at.mkdir()
    tree = subprocess.Popen([ROOT / "target/release/carrack-invented", at, "--files", str(args.files), "--refused", str(REFUSED)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if tree.stdout.readline().strip() != "mounted":
        raise SystemExit("carrack-invented did not mount; it needs root")
    service = managed.Server(args.carrack, work, "service")
    wrong = []

    def judge(what, value, most, unit):
        print(f"{what}: {value:.1f} {unit} (below {most} {unit})", flush=True)
        if value >= most:
            wrong.append(what)

    try:
        service.start()
        began = time.monotonic()
        task = service.json("task", "submit", str(at) + "/", "null:", "--verify", "none")[-1]["id"]
        worker_most, row, told = 0, {}, 0
        while True:
            worker_most = max([worker_most, *map(resident, service.workers())])
            row = service.json("task", "show", task)[-1]
            if row["state"] not in ("QUEUED", "ACTIVE"):
                break
            if time.monotonic() - told > 30:
                told = time.monotonic()
                print(f"  {row['progress']['items_done']} items after {told - began:.0f} s", flush=True)
            time.sleep(0.5)
        seconds = time.monotonic() - began
        progress = row["progress"]
        print(f"{row['state']}: {progress['items_done']} done, {progress['items_failed']} failed in {seconds:.0f} s")
        times, failed = managed.timed(3, lambda: service.json("task", "items", task, "--state", "failed"))
        failed = [item for item in failed if item.get("state") == "failed"]
        judge(f"{len(failed)} failed items listed in", min(times), 1, "s")
        if len(failed) != args.files // REFUSED or progress["items_failed"] != len(failed):
            wrong.append(f"{len(failed)} failed items listed, {progress['items_failed']} counted, {args.files // REFUSED} refused")
        state = service.state / "carrack/service"
        journal = (state / "tasks" / task / "journal").stat().st_size
        print(f"journal: {journal / max(1, args.files):.0f} bytes an item, with its path")
        for number in range(args.tasks):
            if number % 500 == 0:
                print(f"  {number} tasks submitted", flush=True)
            service.run("task", "submit", "zero:1", "null:", "--label", f"many {number}")
        times, rows = managed.timed(3, lambda: service.json("task", "list", "--limit", "10000"))
        judge(f"{sum('id' in row for row in rows)} tasks listed by the command line in", min(times) * 1000, 1000, "ms")
        judge("service, most memory", resident(service.process.pid) / 1e6, 256, "MB")
        judge("worker, most memory", worker_most / 1e6, 512, "MB")
        judge("ledger", sum(file.stat().st_size for file in state.glob("ledger.db*")) / MIB, 64, "MiB")
    finally:
        service.end()
        for process in service.workers():
            os.kill(process, 15)
        tree.stdin.close()
        tree.wait()
        shutil.rmtree(work, ignore_errors=True)
    print("\n".join(wrong) if wrong else "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
