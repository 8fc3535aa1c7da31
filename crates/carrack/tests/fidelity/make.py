#!/usr/bin/env python3
"""Makes a tree in which everything differs that a copy may lose: names, kinds, sizes, holes, modes, times, owners,
extended attributes, access control lists, names of one file, FIFOs, sockets and devices.

    make.py DIRECTORY SEED [--longest-value BYTES] [--years] [--plain]

Needs root, but with --plain, which leaves out what only root can make. --years: times that ext4, XFS and Btrfs keep, but
not each of their older formats. The same seed makes the same tree. Nothing here is shared with the program that copies.
"""

import argparse
import errno
import os
import random
import socket
import stat
import struct

SIZES = [0, 1, 511, 4095, 4096, 4097, 16383, 16384, 65535, 65536, 65537, 1048575, 1048576, 1048577, 4194305]
NAMES = [b"plain", b"with space", b" leading", b"trailing ", b"new\nline", b"tab\t", b"-rf", b"--delete", b"*", b"?", b"[a]",
         b"'quote", b'"double', b"back\\slash", b"\xff\xfe", b"\xc3\xa9", b"e\xcc\x81", "日本語".encode(), b"~", b"#hash",
         b"$HOME", b"%41", b"x" * 255, b".hidden", b"...", b"a:b", b"COM1", b"\x01control"]
OWNERS = [0, 1, 2, 1000, 12345, 65534]
USER, GROUP = 2, 8


def access(generator, directory):
    """A list in the kernel's form: at least one named user or group, and a mask."""
    bits = lambda: generator.randrange(8)
    entries = [(1, 7 if directory else generator.choice([6, 7]), 0xFFFFFFFF)]
    entries += [(USER, bits(), uid) for uid in sorted(generator.sample([1, 2, 33, 1000, 54321], generator.randrange(0, 3)))]
    entries += [(4, bits(), 0xFFFFFFFF)]
    entries += [(GROUP, bits(), gid) for gid in sorted(generator.sample([1, 4, 33, 1000, 54321], generator.randrange(1, 3)))]
    entries += [(16, bits() | (4 if directory else 0), 0xFFFFFFFF), (32, bits(), 0xFFFFFFFF)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


class Maker:
    def __init__(self, top, seed, longest, years, plain):
        self.top, self.random, self.longest, self.years, self.plain = os.fsencode(top), random.Random(seed), longest, years, plain
        self.made = []

    def at(self, *names):
        return os.path.join(self.top, *names)

    def file(self, path, size, holes=False):
        with open(path, "wb") as file:
            if holes:
                file.truncate(size)
                for _ in range(self.random.randrange(0, 4)):
                    file.seek(self.random.randrange(0, max(1, size - 5000)))
                    file.write(self.random.randbytes(min(size, self.random.randrange(1, 5000))))
            else:
                file.write(self.random.randbytes(size))
        self.made.append(path)

    def content(self):
        for number, size in enumerate(SIZES):
            self.file(self.at(b"sizes", b"%d" % size), size)
        for name in NAMES:
            self.file(self.at(b"names", name), self.random.randrange(2000))
            directory = self.at(b"names", b"d-" + name[:200])
            os.mkdir(directory)
            self.made.append(directory)
            self.file(os.path.join(directory, name), 10)
        deep = self.at(b"deep")
        for level in range(30):
            deep = os.path.join(deep, b"%d" % level)
            os.mkdir(deep)
            self.made.append(deep)
        self.file(os.path.join(deep, b"bottom"), 100)
        for number in range(400):
            self.file(self.at(b"wide", b"f%d" % number), self.random.randrange(300))
        for number, size in enumerate([4096, 1 << 20, (5 << 20) + 1, 20 << 20]):
            self.file(self.at(b"sparse", b"s%d" % number), size, holes=True)
        for number, target in enumerate([b"../sizes/1", b"nowhere", b"/etc/passwd", b"x" * 1000, b".", b"\xff\xff", b"a\nb"]):
            link = self.at(b"links", b"l%d" % number)
            os.symlink(target, link)
            self.made.append(link)

    def specials(self):
        for number in range(6):
            path = self.at(b"special", b"fifo%d" % number)
            os.mkfifo(path, self.random.randrange(0o1000))
            self.made.append(path)
        here = os.getcwd()
        os.chdir(self.at(b"special"))
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(b"socket")
        os.chdir(here)
        self.made.append(self.at(b"special", b"socket"))
        for number, (kind, device) in enumerate([(stat.S_IFCHR, (1, 3)), (stat.S_IFBLK, (7, 200)), (stat.S_IFCHR, (511, 262143))]):
            if not self.plain:
                path = self.at(b"special", b"device%d" % number)
                os.mknod(path, kind | self.random.randrange(0o1000), os.makedev(*device))
                self.made.append(path)

    def further_names(self):
        """Names of one file: in one directory and in several, of all that may have some, two and many."""
        firsts = [path for path in self.made if not os.path.isdir(path) or os.path.islink(path)]
        directories = [self.at(b"same"), self.at(b"same", b"below"), self.at(b"aaa"), self.at(b"names")]
        chosen = self.random.sample(firsts, len(firsts) // 5) + [self.at(b"sizes", b"4194305"), self.at(b"sparse", b"s3")]
        chosen += [self.at(b"special", b"fifo0"), self.at(b"links", b"l0"), self.at(b"sizes", b"0")]
        for number, first in enumerate(sorted(set(chosen))):
            for count in range(self.random.choice([1, 1, 1, 2, 3, 40 if number % 20 == 0 else 5])):
                name = os.path.join(self.random.choice(directories), b"n%d-%d" % (number, count))
                os.link(first, name, follow_symlinks=False)

    def modes(self):
        for mode in list(range(0, 0o1000, 7)) + ([] if self.plain else [0o4755, 0o2755, 0o6711, 0o1777, 0o7777, 0o4000]):
            mode = mode | 0o400 if self.plain else mode
            path = self.at(b"modes", b"%04o" % mode)
            if not os.path.lexists(path):
                self.file(path, 10)
                os.chmod(path, mode)
        for mode in [0o700, 0o755, 0o2775, 0o1777, 0o3770, 0o500, 0o711]:
            path = self.at(b"modes", b"d%04o" % mode)
            os.mkdir(path)
            self.file(os.path.join(path, b"in"), 10)
            os.chmod(path, mode)

    def owners(self):
        for path in self.made:
            if self.random.random() < 0.3:
                mode = os.lstat(path).st_mode & 0o7777
                os.chown(path, self.random.choice(OWNERS), self.random.choice(OWNERS), follow_symlinks=False)
                if not os.path.islink(path):
                    os.chmod(path, mode)

    def extended(self):
        longest = min(self.longest, 65000)
        for number, length in enumerate([0, 1, 31, 32, 33, 255, 1000, longest]):
            path = self.at(b"xattrs", b"v%d" % number)
            self.file(path, 100)
            os.setxattr(path, b"user.one", self.random.randbytes(length))
        path = self.at(b"xattrs", b"many")
        self.file(path, 3 << 20)
        for number in range(20):
            os.setxattr(path, b"user.n%d \xff=" % number, self.random.randbytes(20))
        for path in self.made:
            if os.path.islink(path) or self.random.random() > 0.1:
                continue
            names = [b"user.a", b"user.mime_type", b"user." + b"long" * 40]
            if not self.plain:
                names += [b"trusted.a"]
                if os.path.isfile(path) and self.random.random() < 0.3:
                    os.setxattr(path, b"security.capability", struct.pack("<IIIII", 0x02000001, 1 << self.random.randrange(30), 0, 0, 0))
            for name in self.random.sample(names, self.random.randrange(1, len(names) + 1)):
                os.setxattr(path, name, self.random.randbytes(self.random.randrange(60)))

    def lists(self):
        for path in self.made:
            if os.path.islink(path) or self.random.random() > 0.15:
                continue
            directory = os.path.isdir(path)
            special = os.lstat(path).st_mode & 0o7000
            os.setxattr(path, b"system.posix_acl_access", access(self.random, directory))
            if special:
                os.chmod(path, os.lstat(path).st_mode & 0o777 | special)
            if directory and self.random.random() < 0.7:
                os.setxattr(path, b"system.posix_acl_default", access(self.random, directory))

    def times(self):
        moments = [0, 1, 10**9, 1234567890123456789, 2**31 * 10**9 - 1, 1700000000000000001]
        if self.years:
            moments += [-1, -10**9, -2147483648 * 10**9, 2**31 * 10**9, 4102444800 * 10**9 + 7]
        # What is below first: it changes the time of what it is in.
        for path in sorted(self.made, key=len, reverse=True):
            moment = self.random.choice(moments) if self.random.random() < 0.2 else self.random.randrange(10**18, 17 * 10**17)
            os.utime(path, ns=(moment, moment), follow_symlinks=False)

    def make(self):
        os.makedirs(self.top, exist_ok=True)
        for name in [b"sizes", b"names", b"deep", b"wide", b"sparse", b"links", b"modes", b"xattrs", b"special", b"same", b"aaa"]:
            os.mkdir(self.at(name))
            self.made.append(self.at(name))
        os.mkdir(self.at(b"same", b"below"))
        self.made.append(self.at(b"same", b"below"))
        self.content()
        self.extended()
        self.modes()
        if not self.plain:
            self.owners()
        self.lists()
        self.specials()
        self.further_names()
        self.times()


parser = argparse.ArgumentParser()
parser.add_argument("directory")
parser.add_argument("seed", type=int)
parser.add_argument("--longest-value", type=int, default=2500)
parser.add_argument("--years", action="store_true")
parser.add_argument("--plain", action="store_true")
given = parser.parse_args()
Maker(given.directory, given.seed, given.longest_value, given.years, given.plain).make()
