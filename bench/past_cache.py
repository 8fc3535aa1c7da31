#!/usr/bin/env python3
"""Writes and reads a file by the page cache's ordinary way and with RWF_DONTCACHE (Linux 6.14): GB/s, and CPU-seconds per GB.

    python3 bench/past_cache.py [FILE [GIB]]       FILE is made and removed; it should be on the disk in question
"""
import os
import resource
import sys
import time

WAYS = {"buffered": 0, "RWF_DONTCACHE": 0x80}
SLICE = 256 << 10


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(what, size, work):
    start, used = time.monotonic(), cpu()
    work()
    print(f"{what:<24} {size / 1e9 / (time.monotonic() - start):6.2f} GB/s {(cpu() - used) / (size / 1e9):6.2f} CPU-s/GB")


def main(path="target/past_cache.bin", gib="2"):
    size, content, room = int(gib) << 30, os.urandom(SLICE), bytearray(SLICE)
    for way, flags in WAYS.items():
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
        try:
            os.posix_fallocate(file, 0, size)

            def write():
                for offset in range(0, size, SLICE):
                    os.pwritev(file, [content], offset, flags)
                os.fdatasync(file)

            def read():
                for offset in range(0, size, SLICE):
                    os.preadv(file, [room], offset, flags)

            measure(f"write, {way}", size, write)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            measure(f"read, {way}", size, read)
        except OSError as error:
            print(f"{way}: {error}")
        finally:
            os.close(file)
            os.unlink(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
