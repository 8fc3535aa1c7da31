#!/usr/bin/env python3
"""Runs the lines of crates/carrack/tests/golden/old-names.txt by bbcp and globus-url-copy themselves, and writes what
came of each into its `recorded` line.

    record.py --bbcp PATH --guc PATH --gridftp-ssh PATH --gridftp-server PATH

The programs are not Carrack's: bbcp is built from its source (14.04), the others are Debian's (globus-gass-copy-progs
and globus-gridftp-server-progs; LD_LIBRARY_PATH, where they were only unpacked). It needs root, sshd and ssh-keygen. It
starts an sshd on loopback, and puts gridftp-ssh where globus-url-copy looks for it if nothing is there."""

import argparse
import os
import pathlib
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time

TABLE = pathlib.Path(__file__).parents[2] / "crates/carrack/tests/golden/old-names.txt"
GRIDFTP_SSH = pathlib.Path("/usr/share/globus/gridftp-ssh")
# In February 2001.
THEN = 981173106
CONTENTS = {"a": "hello\n", "b": "world\n", "c": "third\n", "x": "x\n", "y": "y\n"}


def sources(root):
    """What every line finds."""
    (root / "tree/sub").mkdir(parents=True)
    (root / "tree/empty").mkdir()
    (root / "out").mkdir()
    (root / "state").mkdir()
    for name, path in [("a", "a"), ("b", "b"), ("c", "c"), ("x", "tree/x"), ("y", "tree/sub/y")]:
        (root / path).write_text(CONTENTS[name])
    (root / "a").chmod(0o640)
    (root / "tree/link").symlink_to("x")
    (root / "l").symlink_to("a")
    for path in ["a", "b", "c", "tree/x", "tree/sub/y"]:
        os.utime(root / path, (THEN, THEN))


def before(root, text):
    """`PATH=CONTENT`, of an older time if ` 1999` stands behind it; the content of a source by its name."""
    path, content = text.split("=", 1)
    old = content.endswith(" 1999")
    content = content.removesuffix(" 1999").replace("\\n", "\n").replace("@", str(root))
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    known = CONTENTS.get(content)
    target.write_text(known if known else content if "\n" in content else content + "\n")
    if old:
        os.utime(target, (930000000, 930000000))


def effects(root):
    """What is below out/."""
    names = {content: name for name, content in CONTENTS.items()}
    found = []
    for path in sorted((root / "out").rglob("*")):
        name = str(path.relative_to(root))
        mode = f"{path.lstat().st_mode & 0o7777:o}"
        if path.is_symlink():
            found.append(f"{name} -> {os.readlink(path)}")
        elif path.is_dir():
            found.append(f"{name}/ {mode}")
        else:
            when = "then" if int(path.stat().st_mtime) == THEN else "now"
            content = path.read_text().replace("\0", "")
            found.append(f"{name} {mode} {when} {names.get(content, content.strip().partition(chr(10))[0])}")
    return "; ".join(found)


class Host:
    """An sshd on loopback, and the ssh that reaches it."""

    def __init__(self, work, options):
        self.work = work
        for name in ["bin", "far", "home"]:
            (work / name).mkdir()
        for key in ["host_key", "user_key"]:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", work / key], check=True)
        shutil.copy(work / "user_key.pub", work / "authorized_keys")
        (work / "known_hosts").write_text("recorded " + (work / "host_key.pub").read_text())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        libraries = os.environ.get("LD_LIBRARY_PATH", "")
        (work / "far/bbcp").symlink_to(options.bbcp)
        server = f"{options.gridftp_server} -ssh -aa -allow-root -anonymous-user root -data-interface 127.0.0.1"
        self.script(work / "far/sshftp", f"exec {server} 2>/dev/null")
        (work / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {work}/host_key\n"
            f"AuthorizedKeysFile {work}/authorized_keys\n"
            f"SetEnv PATH={work}/far:/usr/bin:/bin LD_LIBRARY_PATH={libraries}\n"
            "StrictModes no\nPidFile none\nUsePAM no\n"
            "UseDNS no\nPermitRootLogin yes\nPasswordAuthentication no\n")
        (work / "ssh_config").write_text(
            f"Host *\n HostName 127.0.0.1\n Port {port}\n IdentityFile {work}/user_key\n HostKeyAlias recorded\n"
            f" UserKnownHostsFile {work}/known_hosts\n BatchMode yes\n")
        # globus-url-copy names port 22 where its place names none.
        self.script(work / "bin/ssh", f'[ "$1 $2" = "-p 22" ] && shift 2\nexec /usr/bin/ssh -F {work}/ssh_config "$@"')
        self.script(work / "bin/globus-url-copy",
                    f'export GLOBUS_REMOTE_SSHFTP={work}/far/sshftp\nexec {options.guc} "$@"')
        (work / "bin/bbcp").symlink_to(options.bbcp)
        os.makedirs("/run/sshd", exist_ok=True)
        self.server = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", work / "sshd_config"])
        self.environment = {"PATH": f"{work}/bin:{os.environ['PATH']}", "HOME": str(work / "home"), "LC_ALL": "C",
                            "LD_LIBRARY_PATH": libraries}
        while subprocess.run(["ssh", "h", "true"], env=self.environment, capture_output=True).returncode:
            if self.server.poll() is not None:
                sys.exit("sshd has ended")
            time.sleep(0.1)

    @staticmethod
    def script(path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, block):
        """Answers with the line to record."""
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            sources(root)
            shutil.copy(self.work / "user_key", root / "key")
            for text in block.get("before", []):
                before(root, text)
            far = str(self.work / "far/bbcp")
            line = block["line"][0].replace("@bbcp", far).replace("@", directory)
            ran = subprocess.run(shlex.split(line), cwd=root, env=self.environment, capture_output=True, timeout=60,
                                 stdin=subprocess.DEVNULL)
            said = (ran.stdout + ran.stderr).decode(errors="replace")
            for text in block.get("says", []):
                if text.replace("@", directory) not in said:
                    print(f"{block['name']}: {text!r} is not in {said!r}", file=sys.stderr)
            return f"{ran.returncode} | {effects(root)}".strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["bbcp", "guc", "gridftp-ssh", "gridftp-server"]:
        parser.add_argument(f"--{name}", required=True, type=lambda path: pathlib.Path(path).resolve())
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp())
    host = Host(work, options)
    lent = not GRIDFTP_SSH.exists()
    if lent:
        GRIDFTP_SSH.parent.mkdir(parents=True, exist_ok=True)
        GRIDFTP_SSH.write_text(options.gridftp_ssh.read_text().replace("/usr/bin/ssh", str(work / "bin/ssh")))
        GRIDFTP_SSH.chmod(0o755)
    try:
        blocks = TABLE.read_text().split("\n\n")
        for index, text in enumerate(blocks):
            lines = text.strip().split("\n")
            if not lines[0].startswith("["):
                continue
            block = {"name": lines[0]}
            for line in lines[1:]:
                key, _, value = line.partition(": ")
                block.setdefault(key.rstrip(":"), []).append(value)
            kept = [line for line in lines if not line.startswith("recorded:")]
            at = next(at for at, line in enumerate(kept) if line.startswith("line:")) + 1
            blocks[index] = "\n".join(kept[:at] + [f"recorded: {host.run(block)}"] + kept[at:])
        TABLE.write_text("\n\n".join(block.rstrip("\n") for block in blocks) + "\n")
    finally:
        host.server.terminate()
        host.server.wait()
        if lent:
            GRIDFTP_SSH.unlink()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
