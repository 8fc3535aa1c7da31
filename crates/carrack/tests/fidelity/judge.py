#!/usr/bin/env python3
"""Says in what two trees differ: a line for each difference, and exit code 1 where there is any.

    judge.py ONE OTHER [--but KIND,...]

Kinds: names, kind, content, holes, mode, owner, group, time, link, acl, default-acl, user, trusted, capability,
hard-links. Nothing here is shared with the program that copies.
"""

import argparse
import hashlib
import os
import stat
import struct
import sys

KEPT_BY_FILE_SYSTEMS = (b"trusted.SGI_", b"trusted.overlay.")


def digest(path):
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            hasher.update(piece)
    return hasher.hexdigest()


def has_holes(path, found):
    """Whether half of it or more takes no room."""
    return found.st_size > 1 << 16 and found.st_blocks * 512 * 2 <= found.st_size


def access_list(value):
    entries = [struct.unpack("<HHI", value[at:at + 8]) for at in range(4, len(value), 8)]
    return sorted((tag, number if tag in (2, 8) else 0, bits) for tag, bits, number in entries)


def facts(path):
    found = os.lstat(path)
    told = {"kind": stat.S_IFMT(found.st_mode), "owner": found.st_uid, "group": found.st_gid, "time": found.st_mtime_ns}
    if stat.S_ISLNK(found.st_mode):
        return told | {"link": os.readlink(path)}
    told["mode"] = stat.S_IMODE(found.st_mode)
    if stat.S_ISREG(found.st_mode):
        told |= {"content": (found.st_size, digest(path)), "holes": has_holes(path, found)}
    if stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode):
        told["content"] = found.st_rdev
    for name in sorted(map(os.fsencode, os.listxattr(path, follow_symlinks=False))):
        value = os.getxattr(path, name, follow_symlinks=False)
        if name.startswith(KEPT_BY_FILE_SYSTEMS):
            continue
        if name == b"system.posix_acl_access":
            told["acl"] = access_list(value)
        elif name == b"system.posix_acl_default":
            told["default-acl"] = access_list(value)
        elif name == b"security.capability":
            told["capability"] = value
        elif name.split(b".")[0] in (b"user", b"trusted"):
            told.setdefault(name.split(b".")[0].decode(), {})[name] = value
    return told


def below(top):
    """Paths of all items, and for each file with several names the first of them."""
    paths, files = [b""], {}
    for directory, directories, names in os.walk(top):
        for name in directories + names:
            paths.append(os.path.relpath(os.path.join(directory, name), top))
    paths.sort()
    firsts = {}
    for path in paths:
        found = os.lstat(os.path.join(top, path))
        if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
            firsts[path] = files.setdefault((found.st_dev, found.st_ino), path)
    return paths, firsts


def differences(one, other):
    (ours, firsts), (theirs, other_firsts) = below(one), below(other)
    for path in sorted(set(ours) ^ set(theirs)):
        yield "names", path, "only in one" if path in set(ours) else "only in the other"
    for path in sorted(set(ours) & set(theirs)):
        mine, its = facts(os.path.join(one, path)), facts(os.path.join(other, path))
        for kind in sorted(set(mine) | set(its)):
            if mine.get(kind) != its.get(kind):
                yield kind, path, f"{mine.get(kind)!r:.200} and {its.get(kind)!r:.200}"
        if firsts.get(path) != other_firsts.get(path):
            yield "hard-links", path, f"{firsts.get(path)} and {other_firsts.get(path)}"


parser = argparse.ArgumentParser()
parser.add_argument("one")
parser.add_argument("other")
parser.add_argument("--but", default="")
given = parser.parse_args()
left_out = set(filter(None, given.but.split(",")))
count = 0
for kind, path, what in differences(os.fsencode(given.one), os.fsencode(given.other)):
    if kind not in left_out:
        count += 1
        if count <= 40:
            print(f"{kind}: {path!r}: {what}")
sys.exit(1 if count else 0)
