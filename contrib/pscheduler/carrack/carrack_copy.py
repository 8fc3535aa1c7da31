"""The test disk-to-disk: a copy."""
import json
import os
import time

from carrack_tool import OVERHEAD_SECONDS, RSH, SAID_MOST, carrack, duration, seconds, sleep_until, why_failed

# The version of the test's specification and result.
SCHEMA = 1
# What pScheduler's own disk-to-disk tools take where a task names no limit.
TIMEOUT = "PT10S"


def location(text):
    """A source or destination as carrack names it; ValueError if carrack has no such kind."""
    if not isinstance(text, str) or not text or text.startswith("-"):
        raise ValueError(f"{text!r} is no source or destination")
    if text.startswith("file://"):
        path = text[len("file://"):]
        if not path.startswith("/"):
            raise ValueError(f"{text}: a file of this host is file:///PATH")
        return path
    scheme = text.partition("://")[0] if "://" in text else "carrack"
    if scheme != "carrack":
        raise ValueError(f"{text}: carrack speaks no {scheme}; name a node (carrack://HOST/PATH), HOST:PATH or a file")
    return text


def wanted_of(spec):
    """Source, destination and limits of a task; ValueError says what this tool cannot do."""
    missing = [name for name in ("source", "dest") if name not in spec]
    if missing:
        raise ValueError(f"Missing {' and '.join(missing)}")
    parallel = spec.get("parallel", 1)
    if not isinstance(parallel, int) or parallel < 1:
        raise ValueError(f"parallel {parallel!r} is no number of streams")
    return {
        "source": location(spec["source"]),
        "dest": location(spec["dest"]),
        # 1 is what the command line of the test fills in, and refuses as a choice: carrack then finds the number.
        "streams": parallel if parallel > 1 else None,
        "timeout": seconds(spec.get("timeout", TIMEOUT)),
        "cleanup": spec.get("cleanup", True) is not False,
    }


def seconds_of(wanted):
    """How long a run may take."""
    return wanted["timeout"] + OVERHEAD_SECONDS


def target(wanted):
    """What the copy makes: the destination, or what is called as the source in a directory that is there."""
    stat = carrack(["stat", "--rsh", RSH, "--json", "--", wanted["dest"]])
    found = [line for line in map(json.loads, stat[1].splitlines()) if line["type"] == "entry"] if stat[0] == 0 else []
    is_directory = bool(found) and found[0]["kind"] == "directory"
    if not is_directory:
        return wanted["dest"], bool(found)
    name = os.path.basename(wanted["source"].partition("#")[0].rstrip("/"))
    before, mark, pin = wanted["dest"].partition("#")
    inside = f"{before.rstrip('/')}/{name}{mark}{pin}"
    return inside, carrack(["stat", "-q", "--rsh", RSH, "--", inside])[0] == 0


def keeps_nothing(wanted):
    return wanted["dest"] == "null:"


def summary(out):
    """The last line of --json; what an end without one leaves open stays open."""
    try:
        last = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        return {}
    return last if last.get("type") == "summary" else {}


def run(wanted, start):
    """Makes a copy at the time that the schedule names, and tells what came of it."""
    made, was_there = (None, True) if keeps_nothing(wanted) or not wanted["cleanup"] else target(wanted)
    sleep_until(start)
    # What an earlier run has left is no part of this one's rate.
    words = ["copy", "--json", "--no-progress", "--no-resume", "--rsh", RSH]
    if wanted["streams"]:
        words += ["--streams", str(wanted["streams"])]
    began = time.monotonic()
    code, out, said = carrack([*words, "--", wanted["source"], wanted["dest"]], wanted["timeout"])
    took = time.monotonic() - began
    copied = summary(out)
    error = "" if code == 0 else why_failed(code, wanted["timeout"], said)
    result = {"schema": SCHEMA, "succeeded": code == 0, "time": duration(took)}
    if copied.get("bytes") and took > 0:
        result["bytes-sent"] = copied["bytes"]
        # In bits, of the whole command: its login is in the time, too.
        result["throughput"] = copied["bytes"] * 8 / took
    if error:
        result["error"] = error
    # What was there before this run is nobody's to remove.
    if made and not was_there:
        carrack(["rm", "-r", "-q", "--rsh", RSH, "--", made])
    diags = out[-SAID_MOST:] if code == 0 else said[-SAID_MOST:]
    return {"succeeded": code == 0, "error": error, "diags": diags, "result": result}
