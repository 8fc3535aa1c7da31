#!/usr/bin/env python3
"""Tests the API of a running service against the description that it serves.

    cargo build -p carrack && python3 tests/api_schema.py

Schemathesis makes requests from the served OpenAPI document, good and bad ones, as an admin, as a user and as a viewer.
It fails on answers with a status of 500 and above, on answers that the description does not have, on bad requests that
are taken, and on routes that open without a token. Two checks are this script's own: no answer shows anything of another
user, and everybody can still do their work afterwards.

Requests are invented, and an admin may name any path and any host. So the service runs in namespaces of its own: the
network is an empty loopback, and everything but the work directory is read-only. Its program is removed once it runs,
so no task of an invented request ever gets a worker.

Needs root, or user namespaces; Python's venv, and PyPI the first time (target/schemathesis keeps what was installed).
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
TREE = HERE.parent.parent
SCHEMATHESIS = "schemathesis==4.32.5"
# The user whose data nobody else may see, and a word in all of it.
OWNER, CANARY = "ann", "canary7d1f"
# Not `positive_data_acceptance`: many strings have a form that JSON Schema does not tell (cron lines, locations).
EXCLUDED = "positive_data_acceptance"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=pathlib.Path, default=TREE / "target/debug/carrack")
    parser.add_argument("--seconds", type=int, default=60, help="of each of the three runs [default: 60]")
    parser.add_argument("--schemathesis", type=pathlib.Path, help="an installed one [default: installed into target/]")
    parser.add_argument("--seed", type=int, default=None, help="the same requests again")
    parser.add_argument("--as", dest="role", choices=["admin", "user", "viewer"], help="only this run")
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        sys.exit(inside(options))
    schemathesis = options.schemathesis or installed()
    seed = options.seed if options.seed is not None else random.randrange(1 << 31)
    with tempfile.TemporaryDirectory(prefix="carrack-api-") as work:
        own = ["--program", options.program.resolve(), "--seconds", options.seconds, "--seed", seed]
        own += ["--schemathesis", schemathesis, "--inside", work] + (["--as", options.role] if options.role else [])
        namespaces = ["--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child"]
        namespaces += [] if os.geteuid() == 0 else ["--map-root-user"]
        done = subprocess.run(["unshare", *namespaces, sys.executable, HERE, *map(str, own)])
    if done.returncode:
        print(f"the same again: tests/api_schema.py --seed {seed}", file=sys.stderr)
    sys.exit(done.returncode)


def installed():
    """Schemathesis in a virtual environment below target/."""
    home = TREE / "target/schemathesis"
    program = home / "bin/schemathesis"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([home / "bin/pip", "install", "--quiet", SCHEMATHESIS], check=True)
    return program


def confine(work):
    """Makes everything read-only but the work directory."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "--bind", work, work], check=True)
    with open("/proc/self/mountinfo") as lines:
        points = [line.split(" ")[4].encode().decode("unicode_escape") for line in lines]
    for point in points:
        if point != str(work):
            subprocess.run(["mount", "-o", "remount,bind,ro", point], stderr=subprocess.DEVNULL)
    for place in [TREE, pathlib.Path.home(), pathlib.Path("/tmp")]:
        try:
            (place / f".{CANARY}").touch()
        except OSError:
            continue
        (place / f".{CANARY}").unlink()
        sys.exit(f"{place} can still be written to: nothing is tested where requests could do harm")


class Service:
    """A service of this script's own."""

    def __init__(self, program, work):
        self.home = work / "home"
        self.home.mkdir()
        self.program = work / "carrack"
        shutil.copy(program, self.program)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(work)}
        self.log = open(work / "service.log", "wb")
        serve = [self.program, "serve", "--listen", "127.0.0.1:0"]
        self.child = subprocess.Popen(
            serve, env=self.environment, stdout=subprocess.PIPE, stderr=self.log, text=True, cwd=work
        )
        for line in self.child.stdout:
            if line.startswith("listening on "):
                self.port = int(line.rsplit(":", 1)[1])
            if line.startswith("to submit a task: "):
                break
        else:
            sys.exit(f"the service ended: {pathlib.Path(self.log.name).read_text()}")

    def carrack(self, *words):
        """Runs a verb as whoever runs the service; what it prints."""
        command = [self.program, *map(str, words)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, cwd=self.home)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout

    def end(self):
        self.child.terminate()
        self.child.wait(30)


def prepare(service, work):
    """Users, and one's data; the token of each role."""
    files = work / "files"
    files.mkdir()
    (files / f"{CANARY}.txt").write_text("content")
    tokens = {}
    for name, role in [("adm", "admin"), (OWNER, "user"), ("bob", "user"), ("vera", "viewer")]:
        service.carrack("service", "user", "add", name, "--role", role)
        made = service.carrack("service", "token", "create", "--user", name, "--label", f"test of {name}")
        tokens[name] = next(word for word in made.split() if word.startswith("carrack_"))
    kept = [token.split("_")[1] for token in tokens.values()]

    def call(user, method, path, document=None):
        status, answer = request(service.port, tokens[user], method, path, document)
        if status >= 300:
            sys.exit(f"{method} {path}: {status} {answer}")
        return json.loads(answer)

    local = {"kind": "local", "root": str(files)}
    endpoint = {"name": f"{CANARY}-lab", "location": local, "description": CANARY}
    status, _ = request(service.port, tokens[OWNER], "POST", "/endpoints", endpoint)
    if status != 201:
        # A place of this host is an admin's to give.
        call("adm", "POST", "/endpoints", {**endpoint, "users": [OWNER]})
    at = f"@{CANARY}-lab:/"
    pair = {"source": f"{at}{CANARY}.txt", "destination": f"{at}copy-{CANARY}.txt"}
    task = call(OWNER, "POST", "/tasks", {"pairs": [pair], "label": CANARY})
    service.carrack("task", "wait", task["id"], "--timeout", "60s")
    schedule = {"every_seconds": 86400, "start": "2100-01-01T00:00:00Z"}
    timer = call(OWNER, "POST", "/timers", {"label": CANARY, "schedule": schedule, "task": {"pairs": [pair]}})
    token = call(OWNER, "POST", "/tokens", {"label": CANARY})
    shared = {"name": "shared", "location": local, "users": ["bob", "vera"]}
    call("adm", "POST", "/endpoints", shared)
    own = call("bob", "POST", "/tasks", {"pairs": [{"source": "@shared:/x", "destination": "@shared:/y"}]})
    known = {
        "id": [task["id"], timer["id"], token["row"]["id"], own["id"]],
        "name": [f"{CANARY}-lab", "shared", OWNER, "bob", "vera"],
        # Whoever tests is still to be let in afterwards.
        "kept": [*kept, *tokens],
    }
    (work / "known.json").write_text(json.dumps(known))
    return tokens


def request(port, token, method, path, document=None):
    """One request; its status and its body."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {token}"}
    body = None
    if document is not None:
        headers["Content-Type"], body = "application/json", json.dumps(document)
    connection.request(method, f"/api/v1{path}", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def inside(options):
    """Runs in the namespaces: the service, then Schemathesis as each of the users."""
    work = options.inside
    confine(work)
    service = Service(options.program, work)
    failed = []
    try:
        tokens = prepare(service, work)
        service.program.unlink()
        for role, user in [("viewer", "vera"), ("user", "bob"), ("admin", "adm")]:
            if options.role and role != options.role:
                continue
            print(f"== as {role}", flush=True)
            began = time.monotonic()
            code = run(options, service, tokens[user], user, work)
            print(f"== as {role}: exit code {code} after {time.monotonic() - began:.0f} s", flush=True)
            status, _ = request(service.port, tokens[user], "GET", "/whoami")
            statuses = json.loads((work / f"statuses-{user}.json").read_text())
            print(f"== as {role}: answers by status: {statuses}", flush=True)
            # Otherwise nothing was tested but the door.
            is_vacuous = sum(count for status, count in statuses.items() if status.startswith("2")) < 100
            if code or status != 200 or is_vacuous or service.child.poll() is not None:
                failed.append(f"as {role} (whoami: {status})")
        service.end()
    finally:
        service.child.kill()
    log = pathlib.Path(service.log.name).read_text(errors="replace")
    faults = [line for line in log.splitlines() if " ERROR " in line or "panicked" in line]
    if faults:
        failed.append("the log tells of faults")
        print("\n".join(faults[:20]))
    print("failed: " + ", ".join(failed) if failed else "passed", flush=True)
    return 1 if failed else 0


def run(options, service, token, user, work):
    """Schemathesis, once."""
    environment = {
        **service.environment,
        "PYTHONPATH": str(HERE.parent),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCHEMATHESIS_HOOKS": HERE.stem,
        "API_SCHEMA_USER": user,
        "API_SCHEMA_KNOWN": str(work / "known.json"),
        "API_SCHEMA_STATUSES": str(work / f"statuses-{user}.json"),
    }
    command = [options.schemathesis, "run", f"http://127.0.0.1:{service.port}/api/v1/openapi.json"]
    command += ["--header", f"Authorization: Bearer {token}", "--checks", "all", "--exclude-checks", EXCLUDED]
    command += ["--max-time", options.seconds, "--seed", options.seed, "--continue-on-failure", "--no-color"]
    command += ["--request-timeout", "30", "--generation-database", "none", "--warnings", "off", "--no-shrink"]
    return subprocess.run(list(map(str, command)), env=environment, cwd=work).returncode


# What follows runs in Schemathesis, which loads this file as its hooks.
if "API_SCHEMA_USER" in os.environ:
    import atexit
    import collections

    import schemathesis

    USER = os.environ["API_SCHEMA_USER"]
    KNOWN = json.loads(pathlib.Path(os.environ["API_SCHEMA_KNOWN"]).read_text())

    # Of an admin nothing is another's.
    OTHERS = {*KNOWN["id"][:3], f"{CANARY}-lab", OWNER} if USER != "adm" else set()
    STATUSES = collections.Counter()

    @atexit.register
    def keep_statuses():
        pathlib.Path(os.environ["API_SCHEMA_STATUSES"]).write_text(json.dumps(dict(sorted(STATUSES.items()))))

    @schemathesis.hook
    def map_path_parameters(context, path_parameters):
        """Every other path names something that there is, of oneself or of another."""
        for name, value in (path_parameters or {}).items():
            known, seed = KNOWN.get(name), sum(str(value).encode())
            if known and seed % 2:
                path_parameters[name] = known[seed // 2 % len(known)]
        return path_parameters

    @schemathesis.hook
    def before_call(context, case, kwargs):
        """Nobody removes what this test itself needs."""
        for name, value in (case.path_parameters or {}).items():
            if value in KNOWN["kept"] and case.method.upper() in ("PATCH", "DELETE"):
                case.path_parameters[name] = "absent"

    @schemathesis.check
    def shows_nothing_of_others(context, response, case):
        """What is another's is in no answer to somebody who is no admin."""
        STATUSES[str(response.status_code)] += 1
        sent = json.dumps([case.path_parameters, case.query, case.body], default=str)
        if OTHERS and CANARY in response.text and CANARY not in sent:
            raise AssertionError(f"the answer shows something of {OWNER}: {response.text[:500]}")

    @schemathesis.check
    def opens_nothing_of_others(context, response, case):
        """What another has is not there for somebody who is no admin."""
        named = [value for value in (case.path_parameters or {}).values() if value in OTHERS]
        if named and response.status_code < 300:
            raise AssertionError(f"{named} is not {USER}'s, and the answer is {response.status_code}")

if __name__ == "__main__":
    main()
