"""The servers of a place: each on a free port, with keys and configuration of its own, started when first needed."""
import getpass
import os
import pathlib
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time

LOOPBACK = "127.0.0.1"
STARTUP_SECONDS = 10
STOP_SECONDS = 3
LISTENING = "0A"  # a state in /proc/PID/net/tcp
# What a server needs; whatever else a peer names is itself a program.
PROGRAMS = {
    "sshd": ("sshd", "ssh", "ssh-keygen"), "rsyncd": ("rsync",), "node": (), "gridftp": ("globus-gridftp-server", "globus-url-copy"),
    "xrootd": ("xrootd", "xrdcp"), "iperf3": ("iperf3",),
}


def missing(need):
    return [program for program in PROGRAMS.get(need, (need,)) if not shutil.which(program)]


class Place:
    """Where a copy is made: clients on one side, servers on the other, and data below `data`, which both sides see."""

    def __init__(self, bench, name, data, link=None):
        self.bench, self.name, self.data, self.link = bench, name, data, link
        self.out, self.directory = data / "out", bench.work / name
        self.directory.mkdir(mode=0o711)
        self.address = link.address if link else LOOPBACK
        self.processes, self.ready, self.node, self.foreign_writer, self.made_run_sshd = {}, {}, None, False, False
        config = self.directory / "ssh_config"
        self.fields = {
            "carrack": bench.carrack, "host": self.address, "ssh_config": config, "ssh": f"ssh -F {config}", "token": self.directory / "token",
            "user": getpass.getuser(), "user_key": self.directory / "user_key", "known_hosts": self.directory / "known_hosts",
            "scratch": self.out / "scratch",
        }

    def available(self, need):
        """Whether a program is installed, or a server is up."""
        if need not in self.ready:
            start = getattr(self, f"start_{need}", None) if need in PROGRAMS else None
            self.ready[need] = not missing(need) and (start is None or start())
        return self.ready[need]

    def serve(self, name, command, is_ready):
        log = self.bench.logs / f"{self.name}-{name}"
        process = self.processes[name] = self.bench.spawn("exec " + command, log, self.link and self.link.far)
        deadline = time.monotonic() + STARTUP_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if is_ready(log.read_text(errors="replace")):
                return True
            time.sleep(0.02)
        print(f"note: {name} did not start: {log.read_text(errors='replace').strip()[-300:]}", file=sys.stderr)
        return False

    def listen(self, name, command, port):
        return self.serve(name, command, lambda _: listens(self.processes[name].pid, port))

    def start_sshd(self):
        directory = self.directory
        if os.geteuid() == 0 and not os.path.exists("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)  # where sshd separates its privileges; the package makes it at boot
            self.made_run_sshd = True
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", directory / key], check=True)
        port = self.fields["port"] = free_port()
        # SHLVL: bash reads ~/.bashrc for a command over ssh, however long that takes, unless it is an inner shell.
        keep = {"SHLVL": "2", **{k: v for k, v in self.bench.environment.items() if k == "PATH" or k.startswith("XDG_")}}
        (directory / "sshd_config").write_text(f"""Port {port}
ListenAddress {self.address}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/user_key.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
UseDNS no
PidFile none
Subsystem sftp internal-sftp
SetEnv {' '.join(f'"{k}={v}"' for k, v in keep.items())}
""")
        (directory / "known_hosts").write_text(f"[{self.address}]:{port} {(directory / 'host_key.pub').read_text()}")
        (directory / "ssh_config").write_text(f"""Host *
Port {port}
User {getpass.getuser()}
IdentityFile {directory}/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile {directory}/known_hosts
GlobalKnownHostsFile none
StrictHostKeyChecking yes
""")
        return self.listen("sshd", f"{shutil.which('sshd')} -D -e -f {directory}/sshd_config", port)

    def start_rsyncd(self):
        port, directory = free_port(), self.directory
        write_private(directory / "rsyncd.secrets", f"bench:{self.bench.environment['RSYNC_PASSWORD']}\n")
        user = f"uid = {os.getuid()}\ngid = {os.getgid()}\n" if os.geteuid() == 0 else ""
        (directory / "rsyncd.conf").write_text(f"""{user}use chroot = no
reverse lookup = no
[data]
path = {self.data}
read only = no
auth users = bench
secrets file = {directory}/rsyncd.secrets
""")
        self.fields["rsyncd_dst"] = f"rsync://bench@{self.address}:{port}/data/out/copy"
        command = f"rsync --daemon --no-detach --address={self.address} --port={port} --config={directory}/rsyncd.conf"
        return self.listen("rsyncd", command, port)

    def start_node(self):
        """Two: one for the data, and one whose root is /dev, for the bit bucket there."""
        write_private(self.fields["token"], secrets.token_hex(32) + "\n")
        self.node, null = self.serve_node("node", self.data), self.serve_node("null-node", "/dev")
        if not self.node or not null:
            return False
        self.fields.update(node_dst=self.node("out/copy"), node_null=null("null"))
        return True

    def serve_node(self, name, root):
        said = {}

        def is_ready(log):
            said.update(re.findall(r"^(listening on|fingerprint) (\S+)\n", log, re.M))
            return len(said) == 2

        files = f"--token-file {self.fields['token']} --key-file {self.directory}/{name}-key"
        if not self.serve(name, f"{self.bench.carrack} serve --node-only --root {root} {files} --listen {self.address}:0", is_ready):
            return None
        return lambda path: f"carrack://{said['listening on']}/{path}{said['fingerprint']}"

    def start_gridftp(self):
        port = free_port()
        user = "-anonymous-user root -allow-root" if os.geteuid() == 0 else ""
        # Without the name it fails where nobody knows the name of this host.
        command = (f"env GLOBUS_HOSTNAME={self.address} globus-gridftp-server -aa {user} -no-detach -c /dev/null -p {port} "
                   f"-control-interface {self.address} -data-interface {self.address} -home-dir {self.data}")
        self.fields["gridftp"] = f"ftp://{self.address}:{port}"
        self.fields["gridftp_dst"] = f"{self.fields['gridftp']}{self.out}/copy"
        return self.listen("gridftp", command, port)

    def start_xrootd(self):
        """It refuses to be root, and then runs as somebody else, who must be able to reach the data."""
        port, own = free_port(), self.directory / "xrootd"
        own.mkdir()
        other = ""
        if os.geteuid() == 0:
            other = "-R nobody"
            shutil.chown(own, "nobody")
            for path in (self.bench.work, self.data.parent, self.data):
                path.chmod(0o711)
        self.foreign_writer = bool(other)
        (own / "config").write_text(f"""all.export {self.data}
all.adminpath {own}
all.pidpath {own}
xrd.port {port}
xrd.network nodnr
xrootd.chksum crc32c
""")
        self.fields["xrootd"] = f"root://{self.address}:{port}/"
        self.fields["xrootd_dst"] = f"{self.fields['xrootd']}{self.out}/copy"
        return self.listen("xrootd", f"xrootd {other} -I v4 -c {own}/config -l {own}/log", port)

    def start_iperf3(self):
        port = self.fields["iperf3_port"] = free_port()
        return self.listen("iperf3", f"iperf3 -s -B {self.address} -p {port}", port)

    def servers(self):
        return {process.pid for process in self.processes.values() if process.poll() is None}

    def close(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self.made_run_sshd:
            os.rmdir("/run/sshd")


def free_port():
    """Free on this host; the far end of a link is empty anyway."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def listens(pid, port):
    """Whether something listens on a port in the network namespace of a process."""
    try:
        lines = [line.split() for name in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/{pid}/net/{name}").read_text().splitlines()]
    except OSError:
        return False  # it has just ended
    return any(fields[3] == LISTENING and fields[1].endswith(f":{port:04X}") for fields in lines)


def write_private(path, text):
    path.touch(mode=0o600)
    path.write_text(text)
