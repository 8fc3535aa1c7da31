#!/usr/bin/env python3
"""How soon a directory of a million entries is looked at through the API: the first window, all of it, a new order, a filter.

    python3 bench/managed_listing.py [target/release/carrack]          about two minutes
    python3 bench/managed_listing.py CARRACK --entries 100000 --directory /dev/shm

The entries are empty files in a memory file system. Each time is that of the whole request over the service's Unix socket. It ends with 1
where the first window takes 300 ms or more, a new order 1.5 s, or a filter 0.5 s, and prints what the file worker has of memory at the end.
"""
import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
import urllib.parse

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed
from managed_list import Socket

FIRST_SECONDS, ORDER_SECONDS, FILTER_SECONDS = 0.3, 1.5, 0.5


def timed(api, method, path, document=None):
    """Seconds and document of an answer."""
    began = time.monotonic()
    status, answer = api.ask(method, path, document)
    seconds = time.monotonic() - began
    if status >= 300:
        raise SystemExit(f"{method} {path}: {status} {answer}")
    return seconds, json.loads(answer)


def resident_bytes(process):
    """What a process has in memory."""
    fields = dict(line.split(":", 1) for line in pathlib.Path("/proc", str(process), "status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def measure(server, root, entries):
    """Prints each time; whether all are what they should be."""
    api = Socket(server.state / "carrack/service/service.sock")
    timed(api, "POST", "/endpoints", {"name": "here", "location": {"kind": "local", "root": str(root)}})
    begun = time.monotonic()
    opened, listing = timed(api, "POST", "/listings", {"endpoint": "here", "path": "/many"})
    path = f"/listings/{listing['id']}"
    first, window = timed(api, "GET", path)
    print(f"{'first window':40} {(opened + first) * 1000:8.0f} ms   {window['count']} entries so far, {window['state']}")
    fine, slowest = opened + first < FIRST_SECONDS, 0
    while window["state"] == "reading":
        seconds, window = timed(api, "GET", path)
        slowest = max(slowest, seconds)
        time.sleep(0.1)
    print(f"{'all was read after':40} {(time.monotonic() - begun) * 1000:8.0f} ms   slowest window until then {slowest * 1000:.0f} ms")
    if (window["state"], window["count"]) != ("complete", entries):
        raise SystemExit(f"not all was read: {window['state']}, {window['count']} entries: {window.get('failure')}")
    asked = [(f"order: {sort}", {"sort": sort}, ORDER_SECONDS) for sort in ("name", "-name", "size", "modified", "-kind", "name")]
    asked += [(f"filter: {text}", {"filter": text}, FILTER_SECONDS) for text in ("77", "RUN", "*9?1.dat", "nothing")]
    asked += [("a window in the middle", {"offset": entries // 2}, FILTER_SECONDS), ("around a name", {"around": "run-5"}, FILTER_SECONDS)]
    for name, query, most in asked:
        seconds, window = timed(api, "GET", f"{path}?{urllib.parse.urlencode(query)}")
        fine = fine and seconds < most
        print(f"{name:40} {seconds * 1000:8.0f} ms   {window['total']} entries")
    began = time.monotonic()
    _, names = api.ask("GET", f"{path}/names")
    print(f"{'all names':40} {(time.monotonic() - began) * 1000:8.0f} ms   {len(names)} bytes")
    for worker in server.workers():
        print(f"{'memory of the file worker':40} {resident_bytes(worker) / entries:8.0f} bytes an entry")
    return fine


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("carrack", nargs="?", default="target/release/carrack")
    words.add_argument("--entries", type=int, default=1_000_000)
    words.add_argument("--directory", default="/dev/shm", help="where the files are made, and removed")
    chosen = words.parse_args()
    program = pathlib.Path(chosen.carrack).resolve()
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="carrack-listing-", dir=chosen.directory))
    server = None
    try:
        many = scratch / "root/many"
        many.mkdir(parents=True)
        for number in range(chosen.entries):
            # In no order.
            os.close(os.open(many / f"run-{number * 7919 % chosen.entries:06}.dat", os.O_CREAT | os.O_WRONLY))
        server = managed.Server(program, scratch, "service").start()
        return 0 if measure(server, scratch / "root", chosen.entries) else 1
    finally:
        if server:
            server.end()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
