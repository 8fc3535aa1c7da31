#!/usr/bin/env python3
"""The service under load: many users' tasks at once, and many requests beside a transfer.

    python3 bench/managed_load.py [target/release/carrack]                both parts: about five minutes
    python3 bench/managed_load.py CARRACK --only crowd|requests

crowd: 200 tasks by 20 users at once, where the endpoint carries four transfers at a time. All must SUCCEED, none may be refused, and the
users' shares (work done while every user still had some to do) must be fair: Jain's index of 0.95 or more.
requests: 1,000 requests a second for a minute, over the local socket, while a transfer runs at 1 Gbit/s; the same transfer without them
before and after. The 99th percentile of the answers, from the moment that each was due, must be below 100 ms, and the transfer not more
than 3 % slower.
"""
import collections
import json
import multiprocessing
import os
import pathlib
import shutil
import socket
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
import managed

USERS, EACH = 20, 10
RATE, SECONDS, SENDERS = 1000, 60, 2
GIGABIT = 125_000_000


def jain(values):
    """1: all have the same; 1/n: one has all."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def crowd(service, node, wrong):
    """Each user submits ten tasks; the order in which they end says how the slots were shared."""
    source = service.root / "crowd"
    source.mkdir()
    for number in range(50):
        (source / f"f{number}").write_bytes(os.urandom(100_000))
    tokens = {}
    for number in range(USERS):
        user = f"user{number:02}"
        service.run("service", "user", "add", user, "--role", "user")
        tokens[user] = service.run("service", "token", "create", "--user", user, "--label", "load").stdout.strip()
    service.run("endpoint", "add", "here", str(service.root), "--users", "*", "--transfers", "4")
    service.run("endpoint", "add", "there", node.location(), "--token-file", node.token_file(), "--users", "*", "--transfers", "4")
    began = time.monotonic()
    for turn in range(EACH):
        for user, token in tokens.items():
            body = {"pairs": [{"source": "@here:/crowd", "destination": f"@there:/{user}-{turn}/"}], "label": f"{user} {turn}"}
            status, answer = request(service, "POST", "/api/v1/tasks", token, body)
            if status != 201:
                wrong.append(f"{user}: {status} {answer}")
    print(f"{USERS * EACH} tasks of {USERS} users submitted in {time.monotonic() - began:.1f} s", flush=True)
    while True:
        rows = [row for row in service.json("task", "list", "--limit", "1000") if row.get("owner") in tokens]
        states = collections.Counter(row["state"] for row in rows)
        if not set(states) & {"QUEUED", "ACTIVE"} or time.monotonic() - began > 600:
            break
        time.sleep(1)
    seconds = time.monotonic() - began
    ends = sorted((row["ended"], row["owner"]) for row in rows if row["ended"])
    # While every user still has tasks: up to the first user's last one.
    last = {user: max(end for end, owner in ends if owner == user) for user in tokens}
    shares = collections.Counter(owner for end, owner in ends if end <= min(last.values()))
    index = jain([shares[user] for user in tokens])
    print(f"crowd: {dict(states)} in {seconds:.0f} s; Jain {index:.3f} over {sum(shares.values())} tasks")
    if states != {"SUCCEEDED": USERS * EACH}:
        wrong.append(f"crowd: {dict(states)}")
    if index < 0.95:
        wrong.append(f"Jain {index:.3f}")


def request(service, method, path, token, body=None):
    """One request over the local socket."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(service.state / "carrack/service/service.sock"))
        return exchange(link, method, path, token, body)


def exchange(link, method, path, token, body=None):
    """One request on a connection; status and body."""
    data = json.dumps(body).encode() if body is not None else b""
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}"]
    head += ["Content-Type: application/json"] if data else []
    head += [f"Authorization: Bearer {token}"] if token else []
    link.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + data)
    said = b""
    while b"\r\n\r\n" not in said:
        more = link.recv(65536)
        if not more:
            raise ConnectionError("closed")
        said += more
    head, said = said.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    fields = {line.split(":")[0].lower(): line.split(":", 1)[1].strip() for line in lines[1:]}
    if "content-length" in fields:
        while len(said) < int(fields["content-length"]):
            said += link.recv(65536)
    else:
        while not said.endswith(b"0\r\n\r\n"):
            said += link.recv(65536)
    return int(lines[0].split()[1]), said


def send(service, task, rate, seconds, out):
    """Requests at a fixed rate, each timed from when it was due."""
    paths = ["/api/v1/tasks?limit=20", f"/api/v1/tasks/{task}", "/api/v1/endpoints", "/api/v1/whoami", "/healthz"]
    times, failed = [], 0
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(service.state / "carrack/service/service.sock"))
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        due = began + number / rate
        pause = due - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        status, _ = exchange(link, "GET", paths[number % len(paths)], None)
        failed += status != 200
        times.append(time.monotonic() - due)
    out.put((times, failed))


def transfer(service):
    """A transfer of SECONDS at 1 Gbit/s; its task."""
    size = GIGABIT * SECONDS
    return service.json("task", "submit", f"zero:{size}", "@there:/zeros", "--bwlimit", f"{GIGABIT}B")[-1]["id"]


def finish(service, task):
    """Waits for a task; seconds from its start to its end."""
    service.run("task", "wait", task)
    from datetime import datetime
    row = service.json("task", "show", task)[-1]
    moments = [datetime.fromisoformat(row[name].replace("Z", "+00:00")) for name in ("started", "ended")]
    return (moments[1] - moments[0]).total_seconds()


def requests(service, wrong):
    """Requests beside a transfer."""
    alone = [finish(service, transfer(service))]
    task = transfer(service)
    out = multiprocessing.Queue()
    senders = [multiprocessing.Process(target=send, args=(service, task, RATE / SENDERS, SECONDS, out)) for _ in range(SENDERS)]
    [sender.start() for sender in senders]
    answers = [out.get() for _ in senders]
    [sender.join() for sender in senders]
    beside = finish(service, task)
    alone.append(finish(service, transfer(service)))
    times = sorted(value for each, _ in answers for value in each)
    failed = sum(count for _, count in answers)
    p50, p99 = (1000 * times[int(len(times) * share)] for share in (0.50, 0.99))
    slower = beside / statistics.mean(alone)
    print(f"requests: {len(times)} answered, {failed} failed; median {p50:.1f} ms, 99 % {p99:.1f} ms")
    print(f"transfer at 1 Gbit/s: {beside:.1f} s beside them, {alone[0]:.1f} and {alone[1]:.1f} s alone: {slower:.3f}")
    if failed or p99 >= 100:
        wrong.append(f"requests: {failed} failed, 99 % {p99:.1f} ms")
    if slower > 1.03:
        wrong.append(f"transfer: {slower:.3f}")


def main():
    parser = managed.parser(__doc__)
    parser.add_argument("--only", choices=["crowd", "requests"])
    args = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="carrack-load.", dir="/dev/shm"))
    carrack = args.carrack
    service, node = managed.Server(carrack, work, "service"), managed.Server(carrack, work, "node", "--node-only")
    wrong = []
    try:
        service.start()
        node.start()
        if args.only != "requests":
            crowd(service, node, wrong)
        if args.only != "crowd":
            if args.only:
                service.run("endpoint", "add", "there", node.location(), "--token-file", node.token_file())
            requests(service, wrong)
    finally:
        service.end()
        node.end()
        for process in service.workers():
            os.kill(process, 15)
        shutil.rmtree(work, ignore_errors=True)
    print("\n".join(wrong) if wrong else "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
