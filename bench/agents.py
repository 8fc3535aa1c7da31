#!/usr/bin/env python3
"""Two agents at the far side of ssh, in turn: CPU time of all processes first, then time.

    python3 bench/agents.py CLIENT OLD NEW              9 pairs of file, small and startup: about five minutes; as root
    python3 bench/agents.py CLIENT OLD NEW --pairs 3 --only small

CLIENT copies; OLD and NEW are what it finds at the far side, an sshd on loopback (`--remote-path`). file: 1 GiB from tmpfs to
tmpfs. small: 20,000 files of 1 KiB. startup: one file of 1 byte, 20 times. The order changes from pair to pair; a first
pair does not count. Ends with 1 if the median of the pairs' ratios, new by old, is above 1.02 in CPU time or in time.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import accounting
import paired
from small_pairs import make_tree


class Sshd:
    """An sshd on loopback, with keys of its own."""

    def __init__(self, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        at = lambda name: os.path.join(directory, name)
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at(key)], check=True)
        with open(at("sshd_config"), "w") as file:
            file.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {at('host_key')}\nUsePAM no\nPidFile none\n"
                       f"AuthorizedKeysFile {at('user_key.pub')}\nStrictModes no\nPermitRootLogin prohibit-password\n")
        self.ssh = (f"ssh -F none -p {port} -i {at('user_key')} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no "
                    f"-o UserKnownHostsFile={at('known_hosts')} -o LogLevel=ERROR")
        self.child = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", at("sshd_config")])
        for _ in range(200):
            if subprocess.run(self.ssh.split() + ["127.0.0.1", "true"], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit("sshd does not let anybody in")

    def end(self):
        self.child.terminate()
        self.child.wait()


def run(client, agent, kind, work, sshd, group):
    """One copy, or 20 of startup: CPU seconds of all processes, and seconds."""
    target = os.path.join(work, "to")
    environment = {**os.environ, "XDG_STATE_HOME": os.path.join(work, "state")}
    shutil.rmtree(target, ignore_errors=True)
    before, start = sum(group.cpu()), time.monotonic()
    for _ in range(20 if kind == "startup" else 1):
        command = [client, "-e", sshd.ssh, "--remote-path", agent, os.path.join(work, kind) + "/", f"127.0.0.1:{target}"]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True)
        if ended.returncode != 0:
            sys.exit(f"{kind}: {ended.stderr}")
    seconds = time.monotonic() - start
    return sum(group.cpu()) - before, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("client", "old", "new"):
        parser.add_argument(name)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--only", help="kinds whose names contain this")
    given = parser.parse_args()
    client, *agents = [os.path.abspath(path) for path in (given.client, given.old, given.new)]
    kinds = [kind for kind in ("file", "small", "startup") if not given.only or given.only in kind]
    group = accounting.Cgroup()
    group.join()
    work = tempfile.mkdtemp(dir="/dev/shm", prefix="carrack-agents-")
    sshd, slower = Sshd(work), False
    try:
        for kind in ("file", "startup"):
            os.mkdir(os.path.join(work, kind))
        with open(os.path.join(work, "file", "large"), "wb") as file:
            for _ in range(1024):
                file.write(os.urandom(1 << 20))
        with open(os.path.join(work, "startup", "byte"), "wb") as file:
            file.write(b"x")
        make_tree(os.path.join(work, "small"), 20_000)
        slower = paired.table("kind", kinds, given.pairs, (1.02, 1.02),
                              lambda kind, which: run(client, agents[which], kind, work, sshd, group))
    finally:
        sshd.end()
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
