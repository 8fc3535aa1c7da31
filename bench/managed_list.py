#!/usr/bin/env python3
"""How soon 10,000 tasks are listed: the median and the 99th percentile of many lists, by the API and by the command line.

    python3 bench/managed_list.py [target/release/carrack]             about two minutes
    python3 bench/managed_list.py CARRACK --tasks 1000 --lists 50

All tasks wait: the rate of their endpoint is 0 at every hour, so each row also has its place in the queue and why it waits. It ends with 1
where a median or a 99th percentile of a page of 100, or of all tasks by pages of 1000, is 100 ms or more.
"""
import http.client
import json
import pathlib
import shutil
import socket
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed

MOST_MS = 100


class Socket(http.client.HTTPConnection):
    """HTTP over the service's Unix socket, one connection for all requests."""

    def __init__(self, path):
        super().__init__("localhost")
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, path, document=None):
        """The status and the bytes of an answer."""
        body = None if document is None else json.dumps(document)
        self.request(method, "/api/v1" + path, body, {"Content-Type": "application/json"} if body else {})
        answer = self.getresponse()
        return answer.status, answer.read()


def submit(api, count):
    """That many tasks, all of which wait."""
    closed = [{"from": "00:00", "until": "12:00", "rate": 0}, {"from": "12:00", "until": "00:00", "rate": 0}]
    endpoint = {"name": "closed", "location": {"kind": "local", "root": "/"}, "limits": {"timetable": closed}}
    status, answer = api.ask("POST", "/endpoints", endpoint)
    if status != 201:
        raise SystemExit(f"the endpoint: {status} {answer}")
    for number in range(count):
        pairs = [{"source": f"@closed:/data/run-{number:05}/raw", "destination": f"@closed:/archive/2026/run-{number:05}"}]
        status, answer = api.ask("POST", "/tasks", {"pairs": pairs, "label": f"run {number}"})
        if status >= 300:
            raise SystemExit(f"task {number}: {status} {answer}")


def page(api, cursor=None, limit=1000, more=""):
    """Time, rows and the next cursor of one page; reading the document is the reader's own time."""
    (took,), (status, answer) = managed.timed(1, lambda: api.ask("GET", f"/tasks?limit={limit}{more}" + (f"&cursor={cursor}" if cursor else "")))
    if status != 200:
        raise SystemExit(f"{status} {answer}")
    listed = json.loads(answer)
    return took, len(listed["items"]), listed.get("next")


def all_pages(api):
    """Time and rows of all tasks."""
    took, rows, cursor = page(api)
    while cursor:
        more, count, cursor = page(api, cursor)
        took, rows = took + more, rows + count
    return took, rows


def main():
    parser = managed.parser(__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--lists", type=int, default=200)
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-list."))
    service = managed.Server(args.carrack, work, "service")
    wrong = []

    def judge(what, times, percentiles):
        times = sorted(time * 1000 for time in times)
        at = {"median": times[len(times) // 2], "p99": times[min(len(times) - 1, int(len(times) * 0.99))]}
        told = ", ".join(f"{name} {value:.1f} ms" for name, value in at.items())
        print(f"{what}: {told} ({len(times)} times; below {MOST_MS} ms: {', '.join(percentiles) or 'not asked'})", flush=True)
        wrong.extend(f"{what}: {name}" for name in percentiles if at[name] >= MOST_MS)

    try:
        service.start()
        api = Socket(service.state / "carrack/service/service.sock")
        began = time.monotonic()
        submit(api, args.tasks)
        print(f"{args.tasks} tasks submitted in {time.monotonic() - began:.1f} s", flush=True)
        rows = all_pages(api)[1]
        if rows != args.tasks:
            wrong.append(f"{rows} of {args.tasks} tasks are listed")
        judge("a page of 100", [page(api, limit=100)[0] for _ in range(args.lists)], ["median", "p99"])
        judge("a page of 100 by a label", [page(api, limit=100, more="&label=run%209")[0] for _ in range(args.lists)], ["median", "p99"])
        judge(f"all {rows} in pages of 1000", [all_pages(api)[0] for _ in range(max(10, args.lists // 4))], ["median", "p99"])
        lists, _ = managed.timed(max(5, args.lists // 20), lambda: service.run("task", "list", "--limit", args.tasks))
        judge("carrack task list of all, its start and its table included", lists, [])
    finally:
        service.end()
        shutil.rmtree(work, ignore_errors=True)
    print("\n".join(wrong) if wrong else "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
