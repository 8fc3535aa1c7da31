"""The test throughput: `carrack bench net` in the clear, over TCP, one way."""
import itertools
import json

from carrack_hosts import bind, host, needed, place, version
from carrack_tool import OVERHEAD_SECONDS, RSH, SAID_MOST, carrack, seconds, sleep_until, why_failed

# The highest version of the test's specification, and the one of its result.
SCHEMA = 7
RESULT_SCHEMA = 1
# What pScheduler's own tools take where a task names none.
TIME = "PT10S"
LINK_RTT = "PT0.2S"
# The bounds of `carrack bench net`.
TIME_MOST = 240
OMIT_MOST = 30
STREAMS_MOST = 256
# From the start of the command to the first byte: programs start, and messages go back and forth.
SETUP_SECONDS = 3
SETUP_ROUND_TRIPS = 20

TAKEN = {
    "schema", "source", "source-node", "dest", "dest-node", "local-address", "ip-version", "duration", "omit",
    "interval", "link-rtt", "parallel", "congestion", "no-delay", "reverse", "reverse-connections", "single-ended",
    "single-ended-port",
}
REFUSED = {
    "udp": "carrack measures TCP only",
    "bandwidth": "carrack sends as fast as the path takes it",
    "bandwidth-strict": "carrack sends as fast as the path takes it",
    "burst-size": "carrack sends as fast as the path takes it",
    "fq-rate": "carrack sends as fast as the path takes it",
    "window-size": "carrack leaves the size of the TCP window to the kernel",
    "mss": "carrack leaves the size of segments to the kernel",
    "buffer-length": "carrack reads and writes as much at a time as a copy does",
    "ip-tos": "carrack does not mark packets",
    "flow-label": "carrack does not mark packets",
    "zero-copy": "carrack sends as a copy does, and a copy has no such mode",
    "client-cpu-affinity": "carrack leaves the choice of processors to the kernel",
    "server-cpu-affinity": "carrack leaves the choice of processors to the kernel",
    "loopback": "carrack measures the path between two hosts",
}


def refused(spec):
    """Why this tool cannot do what a specification asks for, a sentence for each reason."""
    # What a task switches off it does not ask for.
    asked = [name for name, value in spec.items() if name not in TAKEN and value is not False and value is not None]
    return [f"{name}: {REFUSED.get(name, 'carrack does not know this option')}" for name in asked]


def whole_seconds(spec, name, usual, least, most):
    """A duration in whole seconds; ValueError if it is out of bounds."""
    text = spec.get(name) or usual
    found = seconds(text)
    if found != int(found) or not least <= found <= most:
        raise ValueError(f"{name} {text}: carrack takes whole seconds from {least} to {most}")
    return int(found)


def wanted_of(spec):
    """What to measure; ValueError says what this tool cannot do."""
    reasons = refused(spec)
    if reasons:
        raise ValueError(*reasons)
    far = needed(spec, "dest")
    streams = spec.get("parallel", 1)
    if not isinstance(streams, int) or not 1 <= streams <= STREAMS_MOST:
        raise ValueError(f"parallel {streams!r}: carrack takes from 1 to {STREAMS_MOST} streams")
    port = spec.get("single-ended-port")
    if port is not None and (not isinstance(port, int) or not 1 <= port <= 65535):
        raise ValueError(f"single-ended-port {port!r} is no port")
    congestion = spec.get("congestion")
    if congestion is not None and (not isinstance(congestion, str) or not congestion):
        raise ValueError(f"congestion {congestion!r} is no name")
    return {
        "dest": far,
        "port": port,
        "own": host(spec, "local-address") or host(spec, "source"),
        "version": version(spec),
        "time": whole_seconds(spec, "duration", TIME, 1, TIME_MOST),
        "omit": whole_seconds(spec, "omit", "PT0S", 0, OMIT_MOST),
        "interval": whole_seconds(spec, "interval", "PT1S", 1, TIME_MOST),
        "setup": SETUP_SECONDS + SETUP_ROUND_TRIPS * seconds(spec.get("link-rtt") or LINK_RTT),
        "streams": streams,
        "congestion": congestion,
        "reverse": bool(spec.get("reverse")),
        "reverse-connections": bool(spec.get("reverse-connections")),
    }


def limit_of(wanted):
    return wanted["setup"] + wanted["omit"] + wanted["time"]


def seconds_of(wanted):
    """How long a run may take."""
    return limit_of(wanted) + OVERHEAD_SECONDS


def words_of(wanted):
    """The command; ValueError if a host has no such address."""
    words = ["bench", "net", "--format=iperf3", "--no-keep", "--mode=clear", f"--streams={wanted['streams']}"]
    words += [f"--time={wanted['time']}s", f"--omit={wanted['omit']}s"]
    words += ["--way=back" if wanted["reverse"] else "--way=there"]
    words += [f"--congestion={wanted['congestion']}"] if wanted["congestion"] else []
    words += ["--link=reverse"] if wanted["reverse-connections"] else []
    words += bind(wanted["dest"], wanted["own"], wanted["version"])
    return [*words, "--rsh", RSH, "--", place(wanted["dest"], wanted["port"])]


def data(counted, **more):
    """Numbers of an interval or of all, of a connection or of all."""
    # The keys are rates by their description in pScheduler. Bytes are what its tools put there, and what it shows.
    return {
        "start": counted["start"],
        "end": counted["end"],
        "throughput-bits": counted["bits_per_second"],
        "throughput-bytes": counted["bytes"],
        "retransmits": counted["retransmits"],
        **more,
    }


def stream_data(counted):
    """A connection in an interval. The round trip is in microseconds, as iperf3 has it; what is not known is 0."""
    known = {"rtt": counted["rtt"] or None, "tcp-window-size": counted["snd_cwnd"] or None}
    return data(counted, omitted=counted["omitted"], **{"stream-id": counted["socket"]}, **known)


def joined(parts):
    """Several intervals of one connection, or of all, as one."""
    first, last = parts[0], parts[-1]
    total = sum(part["bytes"] for part in parts)
    resent = sum(part["retransmits"] for part in parts)
    rate = total * 8 / (last["end"] - first["start"])
    return {**last, "start": first["start"], "bytes": total, "retransmits": resent, "bits_per_second": rate}


def intervals_of(document, every):
    """The intervals, each of so many seconds: carrack has one for each second."""
    told = []
    for _, alike in itertools.groupby(document["intervals"], lambda one: one["sum"]["omitted"]):
        alike = list(alike)
        for at in range(0, len(alike), every):
            parts = alike[at:at + every]
            of_each = {}
            for stream in itertools.chain.from_iterable(part["streams"] for part in parts):
                of_each.setdefault(stream["socket"], []).append(stream)
            whole = joined([part["sum"] for part in parts])
            streams = [stream_data(joined(of_one)) for of_one in of_each.values()]
            told.append({"streams": streams, "summary": data(whole, omitted=whole["omitted"])})
    return told


def result_of(document, every):
    """The result of a measurement, from what carrack prints of it."""
    end = document["end"]
    senders = [stream["sender"] for stream in end["streams"]]
    streams = [data(one, **{"stream-id": one["socket"], "rtt": one["mean_rtt"] or None}) for one in senders]
    received = {"receiver-throughput-bits": end["sum_received"]["bits_per_second"]}
    result = {
        "intervals": intervals_of(document, every),
        "summary": {"streams": streams, "summary": data(end["sum_sent"], **received)},
    }
    packets = [stream["pmtu"] for one in document["intervals"] for stream in one["streams"]]
    sizes = {"mtu": max(packets, default=0), "mss": document["start"]["tcp_mss_default"]}
    result.update({name: size for name, size in sizes.items() if size > 0})
    return result


def run(wanted, start):
    """Measures at the time that the schedule names, and tells what came of it."""
    limit = limit_of(wanted)
    document, error, diags = {}, "", ""
    try:
        words = words_of(wanted)
        diags = f"carrack {' '.join(words)}\n"
        sleep_until(start)
        code, out, said = carrack(words, limit)
        diags += said[-SAID_MOST:]
        document = json.loads(out) if out.strip() else {}
        if code != 0:
            error = why_failed(code, limit, document.get("error") or said)
    except ValueError as why:
        error = str(why)
    told = {"intervals": [], "summary": {}} if error else result_of(document, wanted["interval"])
    result = {"schema": RESULT_SCHEMA, "succeeded": not error, "diags": diags, **told}
    if error:
        result["error"] = error
    return {"succeeded": not error, "error": error, "diags": diags, "result": result}
