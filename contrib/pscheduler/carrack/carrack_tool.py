"""What the methods of this tool share. Nothing but Python's own library is needed, not pScheduler's either.

pScheduler runs each method as a program: JSON comes on standard input, an answer in JSON goes to standard output, and a
method that cannot answer writes why to standard error and ends with 1.
"""
import json
import os
import re
import shutil
import sys

TEST = "disk-to-disk"
# The version of the test's specification and result.
SCHEMA = 1
# What pScheduler's own disk-to-disk tools take where a task names no limit.
TIMEOUT = "PT10S"
# For starting, and for removing the copy.
OVERHEAD_SECONDS = 5
# Where the program is if it is not on the PATH of pScheduler's processes.
USUAL = ("/usr/local/bin/carrack", "/usr/bin/carrack")

DURATION = re.compile(r"P(?:([\d.]+)W)?(?:([\d.]+)D)?(?:T(?:([\d.]+)H)?(?:([\d.]+)M)?(?:([\d.]+)S)?)?")
SECONDS = (7 * 86400, 86400, 3600, 60, 1)


def asked():
    """The JSON on standard input."""
    try:
        return json.load(sys.stdin)
    except ValueError as error:
        fail(f"the input is no JSON: {error}")


def answer(value):
    json.dump(value, sys.stdout)
    print()
    sys.exit(0)


def fail(why):
    print(why, file=sys.stderr)
    sys.exit(1)


def program():
    """The path of carrack; None if there is none."""
    return shutil.which("carrack") or next((path for path in USUAL if os.access(path, os.X_OK)), None)


def seconds(duration):
    """Seconds of an ISO 8601 duration; ValueError if it is none. Months and years are inexact, and pScheduler has none."""
    found = isinstance(duration, str) and len(duration) > 1 and not duration.endswith("T") and DURATION.fullmatch(duration)
    if not found:
        raise ValueError(f"{duration!r} is no ISO 8601 duration")
    return sum(float(number) * unit for number, unit in zip(found.groups(), SECONDS) if number)


def duration(total):
    """An ISO 8601 duration of so many seconds."""
    return f"PT{total:.6f}".rstrip("0").rstrip(".") + "S"


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


def spec_of(task):
    """Source, destination and limits of a task; ValueError says what this tool cannot do."""
    if task.get("type") != TEST:
        raise ValueError("Unsupported test type" if "type" in task else "Missing test type")
    spec = task.get("spec")
    if not isinstance(spec, dict):
        raise ValueError("Missing test specification")
    schema = spec.get("schema", 1)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise ValueError(f"Schema {schema!r} is not supported (highest is {SCHEMA})")
    missing = [name for name in ("source", "dest") if name not in spec]
    if missing:
        raise ValueError(f"Missing {' and '.join(missing)}")
    parallel = spec.get("parallel", 1)
    if not isinstance(parallel, int) or parallel < 1:
        raise ValueError(f"parallel {parallel!r} is no number of streams")
    return {
        "source": location(spec["source"]),
        "dest": location(spec["dest"]),
        # 1 is what the command line of the test fills in, and refuses as a choice: carrack then finds the number itself.
        "streams": parallel if parallel > 1 else None,
        "timeout": seconds(spec.get("timeout", TIMEOUT)),
        "cleanup": spec.get("cleanup", True) is not False,
    }
