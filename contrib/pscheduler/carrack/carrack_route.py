"""The test trace: the way that `carrack bench net --only-path` looks for."""
import json
import socket
import threading
import time

from carrack_hosts import NAME, bind, host, needed, place, version
from carrack_tool import OVERHEAD_SECONDS, RSH, SAID_MOST, carrack, duration, sleep_until, why_failed

# The highest version of the test's specification, and the one of its result.
SCHEMA = 2
RESULT_SCHEMA = 1
# A login, and a search that takes 25 seconds at most.
LIMIT_SECONDS = 30
# For the names of all routers together.
NAMES_SECONDS = 2

TAKEN = {
    "schema", "source", "source-node", "dest", "ip-version", "hops", "hostnames", "as", "probe-type", "queries",
    "fragment",
}
REFUSED = {
    "algorithm": "carrack has one way to look for routers",
    "dest-port": "carrack chooses the ports of its probes",
    "first-ttl": "carrack begins with the first router",
    "flow-label": "carrack does not mark packets",
    "ip-tos": "carrack does not mark packets",
    "length": "carrack chooses the size of its probes",
    "sendwait": "carrack chooses the times of its probes",
    "wait": "carrack chooses how long it waits for answers",
}


def refused(spec):
    """Why this tool cannot do what a specification asks for, a sentence for each reason."""
    asked = [name for name, value in spec.items() if name not in TAKEN and value is not None]
    reasons = [f"{name}: {REFUSED.get(name, 'carrack does not know this option')}" for name in asked]
    if spec.get("probe-type", "udp") != "udp":
        reasons.append("probe-type: carrack sends UDP probes only")
    if spec.get("queries", 1) != 1:
        reasons.append("queries: carrack tells one answer of each router")
    if spec.get("fragment"):
        reasons.append("fragment: carrack sends packets that may not be cut")
    if spec.get("as"):
        reasons.append("as: carrack does not look up autonomous systems")
    return reasons


def wanted_of(spec):
    """Which way to look for; ValueError says what this tool cannot do."""
    reasons = refused(spec)
    if reasons:
        raise ValueError(*reasons)
    far = needed(spec, "dest")
    hops = spec.get("hops")
    if hops is not None and (not isinstance(hops, int) or hops < 1):
        raise ValueError(f"hops {hops!r} is no number of routers")
    return {
        "dest": far,
        "own": host(spec, "source"),
        "version": version(spec),
        "hops": hops,
        "names": spec.get("hostnames", True) is not False,
    }


def seconds_of(wanted):
    """How long a run may take."""
    return LIMIT_SECONDS + (NAMES_SECONDS if wanted["names"] else 0) + OVERHEAD_SECONDS


def words_of(wanted):
    """The command; ValueError if a host has no such address."""
    words = ["bench", "net", "--json", "--no-keep", "--only-path"]
    words += bind(wanted["dest"], wanted["own"], wanted["version"])
    return [*words, "--rsh", RSH, "--", place(wanted["dest"])]


def searched(words):
    """The row of the way there, or None; and why there is none."""
    code, out, said = carrack(words, LIMIT_SECONDS)
    row = next((told for told in map(object_of, out.splitlines()) if told.get("name") == "path there"), None)
    if row is None:
        return None, why_failed(code, LIMIT_SECONDS, said)
    return row, "" if "route" in row else row.get("error", "carrack tells no way")


def object_of(line):
    """A line of --json."""
    try:
        return json.loads(line)
    except ValueError:
        return {}


def hop_of(hop):
    """A router; empty if nobody answered in time. pScheduler shows no hop without a round trip."""
    if hop["address"] is None or hop["rtt_us"] is None:
        return {}
    return {"ip": hop["address"], "rtt": duration(hop["rtt_us"] / 1e6)}


def hops_of(row, most):
    """The routers, and the host itself: what nobody answers is an empty hop, as it is to traceroute."""
    route = row["route"]
    hops = [hop_of(hop) for hop in route["hops"]]
    mtu = row["values"].get("mtu_bytes")
    if not route["reached"]:
        hops.append({})
    elif route["is_mtu_proved"] and mtu and hops and hops[-1]:
        # Of the way as a whole: carrack does not tell it router by router.
        hops[-1]["mtu"] = int(mtu)
    return hops[:most]


def put_names(hops):
    """Gives hops the names that are found in time."""
    def look_up(hop):
        try:
            name = socket.gethostbyaddr(hop["ip"])[0]
        except OSError:
            return
        found[hop["ip"]] = name

    found = {}
    threads = [threading.Thread(target=look_up, args=(hop,), daemon=True) for hop in hops if hop]
    until = time.monotonic() + NAMES_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))
    for hop in hops:
        name = found.get(hop.get("ip"))
        # pScheduler refuses the whole result for one odd name.
        if name and NAME.fullmatch(name):
            hop["hostname"] = name


def run(wanted, start):
    """Looks for the way at the time that the schedule names, and tells what came of it."""
    row, diags = None, ""
    try:
        words = words_of(wanted)
        diags = f"carrack {' '.join(words)}\n"
        sleep_until(start)
        row, error = searched(words)
        diags += json.dumps(row)[-SAID_MOST:] if row else ""
    except ValueError as why:
        error = str(why)
    hops = [] if error else hops_of(row, wanted["hops"])
    if wanted["names"]:
        put_names(hops)
    result = {"schema": RESULT_SCHEMA, "succeeded": not error, "diags": diags, "paths": [hops] if hops else []}
    if error:
        result["error"] = error
    return {"succeeded": not error, "error": error, "diags": diags, "result": result}
