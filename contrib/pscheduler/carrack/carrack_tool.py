"""What the methods of this tool share. Nothing but Python's own library is needed, not pScheduler's either.

pScheduler runs each method as a program: JSON comes on standard input, an answer in JSON goes to standard output, and a
method that cannot answer writes why to standard error and ends with 1.
"""
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

# For starting, and for removing a copy.
OVERHEAD_SECONDS = 5
# What carrack may take to end in good order.
ENDS_SECONDS = 2
# Where the program is if it is not on the PATH of pScheduler's processes.
USUAL = ("/usr/local/bin/carrack", "/usr/bin/carrack")
# Nobody can be asked for a password.
RSH = "ssh -o BatchMode=yes"
SAID_MOST = 4000

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
    """Seconds of an ISO 8601 duration; ValueError if it is none. pScheduler has neither months nor years."""
    is_text = isinstance(duration, str) and len(duration) > 1 and not duration.endswith("T")
    found = is_text and DURATION.fullmatch(duration)
    if not found:
        raise ValueError(f"{duration!r} is no ISO 8601 duration")
    return sum(float(number) * unit for number, unit in zip(found.groups(), SECONDS) if number)


def duration(total):
    """An ISO 8601 duration of so many seconds."""
    return f"PT{total:.6f}".rstrip("0").rstrip(".") + "S"


def sleep_until(start):
    """Waits for a time as pScheduler writes it; one that has passed is now."""
    then = datetime.datetime.fromisoformat(start[:-1] + "+00:00" if start.endswith("Z") else start)
    if then.tzinfo is None:
        then = then.astimezone()
    time.sleep(max(0, then.timestamp() - time.time()))


def started(words):
    """A running command of carrack, which ends with this process."""
    process = subprocess.Popen(
        [program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def stop(number, _):
        process.terminate()
        process.wait()
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    return process


def ended(process, wait=None):
    """Ends a command early, and gives the rest of its output and its messages, or what `wait` gives."""
    wait = wait or process.communicate
    process.terminate()
    try:
        return wait(timeout=ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return wait()


def carrack(words, limit=None):
    """Exit code, output and messages of a command; -1 after the limit."""
    process = started(words)
    try:
        out, said = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return (-1, *ended(process))
    return process.returncode, out, said


def why_failed(code, limit, said):
    """One text about a command that has failed."""
    error = f"stopped after {limit:g} s" if code == -1 else f"carrack ended with {code}"
    return f"{error}: {said.strip()[-SAID_MOST:]}" if said.strip() else error
