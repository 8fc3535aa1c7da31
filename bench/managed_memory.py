#!/usr/bin/env python3
"""Memory and answers under hostile strangers, users and nodes.

    python3 bench/managed_memory.py [target/release/carrack]     five minutes; as root, so that a stranger's account can be taken

Each attack lasts for SECONDS. Meanwhile an honest user asks ten times a second, by turns who they are, for their tasks and for a small
directory. Shown are the slowest of these answers, and the highest resident memory (VmHWM) of each kind of process in the attack. Exit code
1 where a bound of SECURITY.md is passed: service 256 MiB, file worker 256, node 512, agent 128, an honest answer 1 s.
"""
import collections
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed
from managed_load import exchange

SECONDS = 15
MIB = 1 << 20
BOUNDS = {"service": 256, "file worker": 256, "worker": 256, "node": 512, "agent": 128}
STRANGER = 54321
NAMES = 300_000


def kind(pid, service, node):
    """What a process of this run is."""
    if pid == service:
        return "service"
    if pid == node:
        return "node"
    try:
        words = pathlib.Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    if b"worker" in words:
        return "file worker" if b"--files" in words else "worker"
    return "agent" if b"agent" in words else None


def peaks(service, node, into):
    """Notes the highest resident memory of each kind of process."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (what := kind(int(entry), service, node)):
            try:
                status = pathlib.Path("/proc", entry, "status").read_text()
                memory = next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM"))
                into[what] = max(into.get(what, 0), memory)
            except (OSError, StopIteration):
                continue


def forget(service, node):
    """Has the kernel begin anew with the highest memory of these."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and kind(int(entry), service, node):
            try:
                pathlib.Path("/proc", entry, "clear_refs").write_text("5")
            except OSError:
                continue


def flood(connect, head, body_bytes, until):
    """One connection after the other: a head, and a body of this length, as fast as it is taken."""
    chunk = b" " * 65536
    while time.monotonic() < until:
        try:
            with connect() as link:
                link.settimeout(2)
                link.sendall(head)
                sent = 0
                while sent < body_bytes and time.monotonic() < until:
                    link.sendall(chunk)
                    sent += len(chunk)
                # Held as long as the other side does: what it has taken stays where it is.
                link.settimeout(max(0.1, until - time.monotonic()))
                link.recv(4096)
        except OSError:
            time.sleep(0.01)


def side_by_side(work, arguments, longest):
    """Threads that do the same with these arguments each, and then the end of this process."""
    threads = [threading.Thread(target=work, args=each, daemon=True) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(longest)
    os._exit(0)


def floods(account, count, make, head, body_bytes):
    """`count` of them in a process of this account."""
    if account:
        os.setgid(account)
        os.setuid(account)
    until = time.monotonic() + SECONDS
    side_by_side(flood, [(make, head, body_bytes, until)] * count, SECONDS + 5)


def by_tcp(port):
    """Makes a connection to the service's port."""
    return lambda: socket.create_connection(("127.0.0.1", port), timeout=2)


def by_socket(path):
    """Makes a connection to the service's socket."""
    def make():
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(2)
        link.connect(path)
        return link
    return make


def head(method, path, length, token=None):
    """The head of a request."""
    proof = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{proof}\r\n".encode()


def asks(path, token, requests, until):
    """The same requests again and again; answers are not read to their end."""
    while time.monotonic() < until:
        for method, at, body in requests:
            try:
                with by_socket(path)() as link:
                    link.settimeout(5)
                    data = json.dumps(body).encode() if body is not None else b""
                    link.sendall(head(method, at, len(data), token) + data)
                    link.recv(1024)
                    if method == "GET":
                        time.sleep(1)
            except OSError:
                time.sleep(0.01)


def users(path, token, requests, count):
    """`count` threads of such a user, in a process."""
    until = time.monotonic() + SECONDS
    side_by_side(asks, [(path, token, requests, until)] * count, SECONDS + 8)


def commands(carrack, environment, lists):
    """Commands that run again and again, side by side."""
    until = time.monotonic() + SECONDS
    def run(words):
        while time.monotonic() < until:
            subprocess.run([str(carrack), *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=SECONDS * 8)
    side_by_side(run, [(words,) for words in lists], SECONDS * 8)


def honest(path, token, until, out):
    """The slowest answer to somebody who means well, and how many there were."""
    slowest, count, failed = 0.0, 0, []
    asked = [("GET", "/api/v1/whoami", None), ("GET", "/api/v1/tasks?limit=20", None),
             ("POST", "/api/v1/endpoints/small/files/du", {"paths": ["/"]})]
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            with by_socket(path)() as link:
                link.settimeout(30)
                status, _ = exchange(link, *asked[count % len(asked)][:2], token, asked[count % len(asked)][2])
            if status != 200:
                failed.append(status)
        except OSError as error:
            failed.append(str(error))
        count += 1
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.1)
    out.put((slowest, count, failed))


def attack(name, processes, service, node, good, wrong):
    """One attack, and what it came to."""
    pids = (service.process.pid, node.process.pid)
    forget(*pids)
    out, found = multiprocessing.Queue(), {}
    until = time.monotonic() + SECONDS
    watcher = multiprocessing.Process(target=honest, args=(*good, until, out))
    for process in (watcher, *processes):
        process.start()
    while time.monotonic() < until or any(process.is_alive() for process in processes):
        peaks(*pids, found)
        time.sleep(0.05)
    slowest, count, failed = out.get(timeout=60)
    watcher.join()
    told = f" {dict(collections.Counter(failed))}" if failed else ""
    memory = ", ".join(f"{what} {found[what]} MiB" for what in sorted(found))
    print(f"{name:<58} {memory}; honest: {count} answers, {len(failed)} failed{told}, slowest {slowest:.2f} s", flush=True)
    wrong += [f"{name}: {what} {found[what]} MiB" for what in found if found[what] > BOUNDS[what]]
    if failed or slowest > 1.0:
        wrong.append(f"{name}: {len(failed)} honest requests failed{told}, the slowest took {slowest:.2f} s")


def main():
    """All attacks."""
    parser = managed.parser(__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="only attacks whose name has this word")
    asked = parser.parse_args()
    carrack = asked.carrack
    process, wrong = multiprocessing.Process, []
    with tempfile.TemporaryDirectory(prefix="carrack-memory-") as directory:
        os.chmod(directory, 0o755)
        service = managed.Server(carrack, directory, "service").start()
        node = managed.Server(carrack, directory, "node", "--node-only").start()
        try:
            many = node.root / "many"
            many.mkdir()
            for number in range(NAMES):
                (many / f"{number:06}{'n' * 240}").touch()
            (service.root / "small").mkdir()
            (service.root / "small/file").write_text("small")
            (service.root / "large").write_bytes(os.urandom(256 * MIB))
            path = str(service.state / "carrack/service/service.sock")
            subprocess.run(["chmod", "-R", "a+rX", str(service.state)], check=True)
            tokens = {}
            for user, role in (("good", "user"), ("evil", "user"), ("looks", "viewer")):
                service.run("service", "user", "add", user, "--role", role)
                tokens[user] = service.run("service", "token", "create", "--user", user, "--label", "memory").stdout.strip()
            service.run("endpoint", "add", "small", str(service.root / "small"), "--users", "*")
            service.run("endpoint", "add", "here", str(service.root), "--users", "*", "--uploads")
            service.run("endpoint", "add", "many", str(many), "--users", "*")
            service.run("endpoint", "add", "far", node.location(), "--token-file", node.token_file(), "--users", "*")
            good = (path, tokens["good"])
            login = head("POST", "/api/v1/login", 16 * MIB)
            tasks = head("POST", "/api/v1/tasks", 16 * MIB, tokens["looks"])
            mine = head("POST", "/api/v1/tasks", 16 * MIB, tokens["evil"])
            listing = [("POST", "/api/v1/listings", {"endpoint": "many", "path": "/"}), ("POST", "/api/v1/listings", {"endpoint": "far", "path": "/many"})]
            usage = [("POST", f"/api/v1/endpoints/{name}/files/du", {"paths": ["/"]}) for name in ("many", "far")]
            reads = [("GET", "/api/v1/endpoints/here/files/content?path=/large", None), ("GET", "/api/v1/endpoints/far/files/archive?path=/many", None),
                     ("GET", "/api/v1/events", None)]
            at_node = node.location().replace("/#", "/many#")
            node_command = [["ls", at_node, "--token-file", str(node.token_file())]] * 6 + [["sum", at_node, "--token-file", str(node.token_file())]] * 4
            rsh = pathlib.Path(directory) / "rsh"
            rsh.write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
            rsh.chmod(0o755)
            by_agent = [["ls", "-e", str(rsh), f"far:{many}"], ["sum", "-e", str(rsh), f"far:{many}"],
                        ["-e", str(rsh), f"far:{many}", f"{directory}/copied/", "--existing=skip"]]
            environment = {**os.environ, "XDG_STATE_HOME": f"{directory}/mine", "XDG_CACHE_HOME": f"{directory}/cache"}
            port = service.port
            def each(name, *processes):
                if asked.only in name:
                    attack(name, processes, service, node, good, wrong)
            each("nobody")
            each("strangers: logins of 16 MiB, 200 by TCP, 200 by the socket",
                 process(target=floods, args=(0, 200, by_tcp(port), login, 16 * MIB)),
                 process(target=floods, args=(STRANGER, 200, by_socket(path), login, 16 * MIB)))
            each("strangers: 400 connections that say garbage, 200 at the node",
                 process(target=floods, args=(0, 400, by_tcp(port), os.urandom(64), 4 * MIB)),
                 process(target=floods, args=(0, 200, by_tcp(node.port), os.urandom(64), 4 * MIB)))
            each("a viewer: tasks of 16 MiB, 200 at once", process(target=floods, args=(STRANGER, 200, by_socket(path), tasks, 16 * MIB)))
            each("a user: tasks of 16 MiB, 200 at once", process(target=floods, args=(STRANGER, 200, by_socket(path), mine, 16 * MIB)))
            each(f"a user: listings of {NAMES} long names, 16 at once", process(target=users, args=(path, tokens["evil"], listing, 16)))
            each("a user: du of the same, 16 at once", process(target=users, args=(path, tokens["evil"], usage, 16)))
            each("a user: 64 downloads, archives and streams, unread", process(target=users, args=(path, tokens["evil"], reads, 64)))
            each("clients of the node: ls and sum of the same, 10 at once", process(target=commands, args=(carrack, environment, node_command)))
            each("an agent: ls, sum and copy of the same", process(target=commands, args=(carrack, environment, by_agent)))
        finally:
            for server in (service, node):
                server.end()
            for pid in service.workers():
                os.kill(pid, signal.SIGKILL)
    if wrong:
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
