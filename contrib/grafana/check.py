#!/usr/bin/env python3
"""Whether the dashboard shows what it promises: each of its queries is run against a Prometheus that has scraped a service at work.

    python3 contrib/grafana/check.py [target/release/carrack]          about half a minute; needs prometheus (Debian: apt-get install prometheus)

It starts a service, a node and a Prometheus of its own, in a directory of its own. Tasks succeed, fail in part, wait and are cancelled;
somebody is refused, somebody types a wrong password. Then every query must give numbers, every metric that the service shows must be in the
dashboard, and the dashboard may name no other. It ends with 1 otherwise, and prints each query with what it gave.
"""
import argparse
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True  # no __pycache__ in the source tree
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))
import managed

DASHBOARD = HERE / "carrack.json"
SCRAPE_SECONDS = 1
# Scrapes that the rates of the dashboard are taken over.
WINDOW = "15s"
PATIENCE_SECONDS = 90
NODE_BYTES = 3_000_000
# Where nothing is what a healthy service shows.
MAY_BE_NOTHING = {"Open tasks: recovered faults", "Tasks of the last day with a fault", "Answers that are the service's fault"}


def get(url, token=None, body=None):
    """Status and text of an answer."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Prometheus:
    """A Prometheus that scrapes one service, with a token, as docs/operations.md says."""

    def __init__(self, directory, service, token):
        self.port = managed.free_port()
        directory.mkdir()
        secret = directory / "token"
        secret.touch(mode=0o600)
        secret.write_text(token)
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"},
            "scrape_configs": [{
                "job_name": "carrack", "scheme": "https", "tls_config": {"insecure_skip_verify": True},
                "authorization": {"credentials_file": str(secret)},
                "static_configs": [{"targets": [f"127.0.0.1:{service.port}"]}],
            }],
        }))
        self.log = (directory / "log").open("wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}", f"--web.listen-address=127.0.0.1:{self.port}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def query(self, expression):
        """The series of an instant query."""
        status, text = get(f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        answer = json.loads(text)
        if status != 200 or answer["status"] != "success":
            raise ValueError(f"{expression}: {answer.get('error', text)}")
        return answer["data"]["result"]

    def end(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


def wait(what, is_so):
    """Asks until it is so; the answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            found = is_so()
        except (OSError, ValueError):
            found = None
        if found:
            return found
        time.sleep(0.1)
    raise SystemExit(f"{what}: not within {PATIENCE_SECONDS} s")


def expressions(dashboard):
    """(panel, query), as Grafana would send them."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"].replace("$instance", ".*").replace("$__rate_interval", WINDOW).replace("$__range", "5m")


def names_in(text):
    """Metrics of Carrack's that are named in a query, histograms by their own name."""
    found = set(re.findall(r"\bcarrack_[a-z_]+", text))
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in found}


def shape(dashboard):
    """What Grafana would stumble over."""
    wrong = []
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        wrong.append("two panels have one id")
    taken = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24 or not panel["title"] or not panel["targets"]:
            wrong.append(f"panel {panel['id']} has no title, no query or no place")
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                other = taken.setdefault((x, y), panel["title"])
                if other != panel["title"]:
                    wrong.append(f"{panel['title']} lies over {other}")
                    break
        for target in panel["targets"]:
            if target["datasource"]["uid"] != "${datasource}":
                wrong.append(f"{panel['title']}: a query names a data source of its own")
    return sorted(set(wrong))


def values(series):
    """The numbers of an instant query."""
    return [float(one["value"][1]) for one in series]


def says_something(title, numbers):
    """Whether a panel would show more than an empty plot."""
    return bool(numbers) and (sum(numbers) > 0 or title in MAY_BE_NOTHING)


def work(service, turn):
    """Tasks of every end, between directories of the service's host."""
    run = service.run
    done = run("task", "submit", "@here:/data", f"@here:/out-{turn}/", "--wait", "--timeout", "60s", check=False)
    partial = run("task", "submit", "@here:/data", "@here:/absent", f"@here:/part-{turn}/", "--wait", "--timeout", "60s", check=False)
    failed = run("task", "submit", "@here:/absent", f"@here:/none-{turn}/", "--wait", "--timeout", "60s", check=False)
    cancelled = run("task", "submit", "random:1T", "null:", "--bwlimit", "1MB").stdout.strip()
    run("task", "cancel", cancelled)
    run("task", "wait", cancelled, "--timeout", "60s", check=False)
    codes = [done.returncode, partial.returncode, failed.returncode]
    if codes != [0, 23, 1]:
        raise SystemExit(f"tasks ended with {codes}: {done.stderr}{partial.stderr}{failed.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("carrack", nargs="?", default="target/release/carrack")
    arguments = parser.parse_args()
    if not shutil.which("prometheus"):
        raise SystemExit("prometheus is not installed")
    dashboard = json.loads(DASHBOARD.read_text())
    wrong = shape(dashboard)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="carrack-grafana."))
    service = managed.Server(pathlib.Path(arguments.carrack).resolve(), directory, "service")
    node = managed.Server(pathlib.Path(arguments.carrack).resolve(), directory, "node", "--node-only")
    prometheus = None
    try:
        service.start()
        node.start()
        (service.root / "data").write_bytes(bytes(NODE_BYTES))
        service.run("endpoint", "add", "here", service.root)
        service.run("endpoint", "add", "there", node.location(), "--token-file", node.token_file(), "--transfers", "1")
        service.run("timer", "create", "--every", "1h", "--label", "hourly", "random:1K", "@here:/timed/")
        service.run("service", "user", "add", "ada", "--role", "viewer")
        viewer = service.run("service", "token", "create", "--user", "ada").stdout.strip()
        token = service.run("service", "token", "create", "--label", "prometheus", "--verbs", "metrics").stdout.strip()
        prometheus = Prometheus(directory / "prometheus", service, token)
        wait("Prometheus scrapes", lambda: prometheus.query("carrack_build_info"))
        # Two tasks that last: one at work, one that waits for the endpoint's only place.
        for number in range(2):
            service.run("task", "submit", "random:1G", f"@there:/long-{number}", "--bwlimit", "5MB", "--label", "long")
        api = f"http://127.0.0.1:{service.port}/api/v1"
        work_at = {"turn": 0}

        def all_answer():
            work_at["turn"] += 1
            work(service, work_at["turn"])
            refused, _ = get(f"{api}/tasks", viewer, b'{"pairs":[{"source":"@here:/a","destination":"@here:/b"}]}')
            login, _ = get(f"{api}/login", None, b'{"user":"nobody","password":"wrong"}')
            if refused != 403 or login not in (401, 429):
                raise SystemExit(f"a viewer's task: {refused}; a wrong password: {login}")
            return all(says_something(title, values(prometheus.query(query))) for title, query in expressions(dashboard))

        wait("every query gives something", all_answer)
        for title, query in expressions(dashboard):
            series = prometheus.query(query)
            numbers = values(series)
            shown = ", ".join(f"{'/'.join(v for k, v in one['metric'].items() if not k.startswith('__') and k not in ('job', 'instance')) or '-'}={float(one['value'][1]):.4g}" for one in series)
            print(f"{title}: {query}\n    {shown or 'NOTHING'}")
            if not says_something(title, numbers) or not all(math.isfinite(number) and number >= 0 for number in numbers):
                wrong.append(f"{title}: {query} gives {numbers}")
        _, shown = get(f"http://127.0.0.1:{service.port}/metrics", token)
        served = set(re.findall(r"^# TYPE (\S+)", shown, re.M))
        named = set().union(*(names_in(query) for _, query in expressions(dashboard)))
        wrong += [f"the dashboard does not show {name}" for name in sorted(served - named)]
        wrong += [f"the service has no metric {name}" for name in sorted(named - served)]
    finally:
        if prometheus:
            prometheus.end()
        if service.process and service.process.poll() is None:
            service.run("task", "cancel", "--all", check=False)
            service.end()
        node.end()
        shutil.rmtree(directory, ignore_errors=True)
    for what in wrong:
        print(f"WRONG: {what}")
    print(f"{sum(1 for _ in expressions(dashboard))} queries, {len(served)} metrics, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
