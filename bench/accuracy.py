#!/usr/bin/env python3
"""Compares rows of `carrack bench disk` and `bench cpu` with what dd, bonnie++, openssl, b3sum, xxhsum say of it.

    make program
    python3 bench/accuracy.py                          fifteen pairs of each row, about 25 minutes; as root
    python3 bench/accuracy.py --only dd --pairs 3      the rows of one program

dd and bonnie++ run on ext4 in an image in memory (a loop device, so no disk's noise is measured), each pair in turn, on
one processor as in disk_fio.py. bonnie++ prints no rate of what took less than half a second, so its file has 4 GiB. With -D
only its first write passes by the page cache, so its rewrite and read are left out.
openssl runs a second time without AVX-512 (OPENSSL_ia32cap), which Carrack's ciphers do not use.
A row whose medians are further apart than 10 % is printed in bold; docs/measure.md has the reasons. Of some rows a
virtual machine has two rates, by chance (page cache above a loop device): so what a quarter of the runs reach is compared
as well. The host must be quiet.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import string
import subprocess
import sys
import tempfile
import time

import disk_fio

ROOT = pathlib.Path(__file__).resolve().parent.parent
DD_MIB, BONNIE_MIB, IMAGE_MIB, FILES_KI = 1024, 4096, 9216, 128
MOST = 0.10
# What bonnie++ writes in its line, by place: version 1.98 of the format.
PUT_BLOCK, SEQ_CREATE, SEQ_DELETE = 11, 26, 30
NO_AVX512 = {**os.environ, "OPENSSL_ia32cap": ":~0xd0230000"}


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options)


def carrack(given, *words):
    """The rows of one measurement."""
    said = run([given.carrack, "bench", *words, "--json", "--no-keep"]).stdout
    return [line for line in map(json.loads, said.splitlines()) if line["type"] == "row"]


def disk_row(given, place, op, mode):
    words = [f"--op={op}", f"--mode={mode}", "--record=1M", f"--size={DD_MIB}M", "--time=0"]
    return carrack(given, "disk", place, *words)[0]["values"]["bytes_per_second"]


def dd(*words):
    """Bytes a second, as dd says it: it rounds to three digits, so its bytes and seconds are taken."""
    said = run(["dd", "bs=1M", f"count={DD_MIB}", *words]).stderr.splitlines()[-1]
    count, seconds = re.match(r"(\d+) bytes .* copied, ([\d.e-]+) s", said).groups()
    return int(count) / float(seconds)


def dd_write(place, *words):
    name = os.path.join(place, "dd.dat")
    try:
        return dd("if=/dev/zero", f"of={name}", *words)
    finally:
        os.unlink(name)


def dd_read(place, *words):
    name = os.path.join(place, "dd.dat")
    disk_fio.lay(name, DD_MIB)
    try:
        return dd(f"if={name}", "of=/dev/null", *words)
    finally:
        os.unlink(name)


# The row, carrack's operation and mode, dd's words.
DD = [("write cached", "write", "cached", ()), ("write fdatasync", "write", "fdatasync", ("conv=fdatasync",)),
      ("write dsync", "write", "dsync", ("oflag=dsync",)), ("write direct", "write", "direct", ("oflag=direct",)),
      ("read cached", "read", "cached", ()), ("read direct", "read", "direct", ("iflag=direct",))]


def dd_sets(given, place):
    for name, op, mode, words in DD:
        other = dd_write if op == "write" else dd_read
        yield ([(name, "MB/s", "dd")], lambda o=op, m=mode: [disk_row(given, place, o, m)],
               lambda f=other, w=words: [f(place, *w)])


def bonnie_ours(given, place):
    rows = carrack(given, "disk", place, "--op=write,files", "--mode=direct", "--record=1M",
                   f"--size={BONNIE_MIB}M", f"--files={FILES_KI << 10}", "--time=0")
    first = {}
    for row in rows:
        first.setdefault(row["name"], row["values"])
    return [first["write"]["bytes_per_second"],
            first["file-create"]["operations_per_second"], first["file-delete"]["operations_per_second"]]


def bonnie_theirs(place):
    words = ["bonnie++", "-d", place, "-m", "host", "-s", f"{BONNIE_MIB}:{1 << 20}", "-r", str(BONNIE_MIB // 2),
             "-n", str(FILES_KI), "-f", "-q", "-D", "-u", "root"]
    line = run(words).stdout.splitlines()[-1].split(",")
    values = [line[at] for at in (PUT_BLOCK, SEQ_CREATE, SEQ_DELETE)]
    if "+++++" in values:
        sys.exit(f"bonnie++ took too short a time for a rate: {line}")
    put, create, delete = map(float, values)
    return [put * 1024, create, delete]


BONNIE = [("write direct", "MB/s", "bonnie++ -D"), ("files made", "1/s", "bonnie++"),
          ("files deleted", "1/s", "bonnie++")]


def bonnie_set(given, place):
    yield BONNIE, lambda: bonnie_ours(given, place), lambda: bonnie_theirs(place)


def openssl(cipher, env):
    said = run(["openssl", "speed", "-mr", "-seconds", "1", "-bytes", "16384", "-evp", cipher], env=env).stdout
    return float(next(line for line in said.splitlines() if line.startswith("+F:")).split(":")[3])


def b3sum(place):
    name = os.path.join(place, "b3.dat")
    with open(name, "wb") as file:
        file.write(bytes(1 << 30))
    try:
        before = time.monotonic()
        run(["b3sum", "--num-threads", "1", name])
        return (1 << 30) / (time.monotonic() - before)
    finally:
        os.unlink(name)


def xxhsum():
    said = run(["xxhsum", "-b11", "-B1M", "-i3"])
    rate = re.findall(r"it/s \(\s*([\d.]+) MB/s", said.stdout + said.stderr)[-1]
    return float(rate) * (1 << 20)


def make_files(place, names):
    """Files that a plain loop makes a second in a new directory, by these names."""
    directory = os.path.join(place, "names")
    os.mkdir(directory)
    opened = os.open(directory, os.O_RDONLY)
    began = time.monotonic()
    for name in names:
        os.close(os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=opened))
    rate = len(names) / (time.monotonic() - began)
    os.close(opened)
    shutil.rmtree(directory)
    return rate


def names_set(_, place):
    """What the names alone are worth to the file system: Carrack's beside such as bonnie++ makes."""
    chance, count = random.Random(1), FILES_KI << 10
    plain = [f"{number:08x}" for number in range(count)]
    longer = [f"{number:010x}" + "".join(chance.choices(string.ascii_letters, k=chance.randrange(13)))
              for number in range(count)]
    yield ([("one loop, its names", "1/s", "the same loop, bonnie++'s names")],
           lambda: [make_files(place, plain)], lambda: [make_files(place, longer)])


CIPHERS = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305"]
PROCESSOR = [*((cipher, "MB/s", program) for cipher in CIPHERS for program in ("openssl", "openssl without AVX-512")),
             ("blake3", "MB/s", "b3sum, with reading"), ("xxh128", "MB/s", "xxhsum")]


def processor_ours(given):
    rows = carrack(given, "cpu", "--time=500ms")
    of = {row["name"]: row["values"]["bytes_per_second"] for row in rows if row["conditions"]["processors"] == "one"}
    return [of[name] for name, _, _ in PROCESSOR]


def processor_theirs(place):
    ciphers = [openssl(cipher, env) for cipher in CIPHERS for env in (os.environ, NO_AVX512)]
    return [*ciphers, b3sum(place), xxhsum()]


def processor_set(given, place):
    yield PROCESSOR, lambda: processor_ours(given), lambda: processor_theirs(place)


def compare(given, names, ours, theirs):
    """Lines of the table. The two take turns; the first pair warms up memory and file system, and does not count."""
    mine, others = [], []
    for pair in range(given.pairs + 1):
        measure = [lambda: mine.append(ours()), lambda: others.append(theirs())]
        for one in measure if pair % 2 == 0 else reversed(measure):
            one()
    for at, name in enumerate(names):
        print(line(*name, [one[at] for one in mine[1:]], [one[at] for one in others[1:]]), flush=True)


def line(name, unit, program, ours, theirs):
    ratio = statistics.median(ours) / statistics.median(theirs)
    shown = f"**{ratio:.2f}**" if abs(ratio - 1) > MOST else f"{ratio:.2f}"
    scale = 1e6 if unit == "MB/s" else 1
    return (f"| {name}, {unit} | {spread(ours, scale)} | {program} | {spread(theirs, scale)} | {shown} | "
            f"{upper(ours) / upper(theirs):.2f} |")


def spread(rates, scale):
    """The median, and between which rates the middle half lies."""
    ordered = sorted(rates)
    low, high = ordered[len(ordered) // 4], upper(rates)
    return f"{statistics.median(rates) / scale:,.0f} ({low / scale:,.0f} to {high / scale:,.0f})"


def upper(rates):
    """A rate that a quarter of the runs reach."""
    return sorted(rates)[-1 - len(rates) // 4]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carrack", default=ROOT / "target/release/carrack", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", nargs="*", choices=["dd", "bonnie++", "names", "cpu"])
    given = parser.parse_args()
    given.only = given.only or ["dd", "bonnie++", "cpu"]
    needed = ["dd", "bonnie++", "openssl", "b3sum", "xxhsum", "mkfs.ext4"]
    missing = [program for program in needed if not shutil.which(program)]
    if missing or os.geteuid() != 0:
        sys.exit(f"needs root, and these programs: {' '.join(missing) or 'all are there'}")
    # What is mounted is unmounted, also after a signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print("| row | carrack | beside it | | ratio | of upper quarters |\n|---|--:|---|--:|--:|--:|", flush=True)
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="carrack-accuracy-", dir="/dev/shm"))
        if {"dd", "bonnie++", "names"} & set(given.only):
            place, remove = disk_fio.image(home, "ext4", IMAGE_MIB)
            stack.callback(remove)
            with disk_fio.OneProcessor():
                sets = {"dd": dd_sets, "bonnie++": bonnie_set, "names": names_set}
                for program in [program for program in sets if program in given.only]:
                    for one in sets[program](given, place):
                        compare(given, *one)
        if "cpu" in given.only:
            for one in processor_set(given, home):
                compare(given, *one)


if __name__ == "__main__":
    main()
