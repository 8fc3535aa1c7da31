"""What slows a copy down, for limited.py: slow file systems, throttled disks and processors, links, relays."""
import contextlib
import errno
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
BURN = "while True: pass"
CLOSE_SECONDS = 5
COPY_SECONDS = 120
IMAGE_BYTES = 512 << 20
GROUPS = pathlib.Path("/sys/fs/cgroup")


def files(directory, count, size):
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (directory / f"f{number}").write_bytes(os.urandom(size))


def over(machine, size, *options, change=lambda near, far: None, **link):
    """Copies so many random bytes from the near host to the far one."""
    near, far, address = machine.link(**link)
    change(near, far)
    node = machine.node(prefix=far, listen=f"{address}:0")
    return machine.copy(f"random:{size}", node + "/", *options, prefix=near)


class Machine:
    """What one copy needs, and what slows it down. All of it goes when `stack` is closed."""

    def __init__(self, programs):
        self.programs, self.stack = programs.resolve(), contextlib.ExitStack()
        base = "/dev/shm" if os.path.isdir("/dev/shm") else None
        home = tempfile.TemporaryDirectory(prefix="carrack-limited-", dir=base)
        self.home = pathlib.Path(self.stack.enter_context(home))
        self.timeline = self.home / "timeline"
        # When the copy began and what slows it down changed; what the report said of the limit.
        self.began = self.changed = self.limit = None
        self.env = {**os.environ, "HOME": str(self.home),
                    "XDG_STATE_HOME": f"{self.home}/state", "XDG_CONFIG_HOME": f"{self.home}/config"}
        (self.home / "root").mkdir()

    def run(self, *command):
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)

    def start(self, *command, until=None):
        """Starts a program that is ended with `stack`; waits for a line with `until` in it, and gives the line."""
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, env=self.env)
        self.stack.callback(self.end, process)
        if until is None:
            return process, ""
        line = process.stdout.readline()
        if until not in line:
            sys.exit(f"{command}: {line!r}")
        return process, line.strip()

    @staticmethod
    def end(process):
        process.stdin.close()
        if os.path.basename(process.args[0]) in ("carrack-link", "carrack-slow", "carrack-relay"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLOSE_SECONDS)
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(CLOSE_SECONDS)
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()

    def node(self, prefix=(), listen="127.0.0.1:0", root=None):
        """Starts a node, and gives its address."""
        serve = [self.programs / "carrack", "serve", "--node-only", "--anonymous", "--listen", listen]
        _, line = self.start(*prefix, *serve, "--root", root or self.home / "root", until="listening")
        return f"carrack://{line.split()[-1]}"

    def ssh(self, prefix=()):
        """The option by which `here:` is this host, reached as ssh does it: by a shell that runs a line there."""
        script = self.home / "rsh"
        words = " ".join(f"'{word}'" for word in map(str, prefix))
        script.write_text(f'#!/bin/sh\nPATH={self.programs}:$PATH\nexec {words} sh -c "$2"\n')
        script.chmod(0o755)
        return f"--rsh={script}"

    def copy(self, source, destination, *options, prefix=(), ends=None):
        """Copies, and gives the stage that the report names."""
        process = self.begin(source, destination, *options, prefix=prefix)
        return self.named(process, ends)

    def begin(self, source, destination, *options, prefix=(), stdin=subprocess.DEVNULL):
        """Starts a copy."""
        self.began = time.monotonic()
        carrack = [*prefix, self.programs / "carrack", "--json", "--timeline", self.timeline]
        command = [*carrack, *options, source, destination]
        return subprocess.Popen([str(word) for word in command], stdin=stdin, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.env)

    def changes(self, line=None):
        """What slows the copy down changes now, by a line for the link."""
        self.changed = time.monotonic() - self.began
        if line:
            self.tell(line)

    def tell(self, line):
        """A line for the link."""
        self.linked.stdin.write(f"{line}\n")
        self.linked.stdin.flush()

    def slows(self, line):
        """A line for the file system that was mounted last: the change that slows the copy down."""
        self.changes()
        self.slowed.stdin.write(f"{line}\n")
        self.slowed.stdin.flush()

    def fell_late(self):
        """Seconds between the change and the first moment for which the timeline says that the rate fell."""
        with open(self.timeline, encoding="utf-8") as lines:
            events = [event for event in map(json.loads, lines) if event["type"] == "rate-fell"]
        # It is told some time later.
        fell = [event["at_us"] / 1e6 - event["over_seconds"] for event in events]
        return None if self.changed is None else min((at - self.changed for at in fell), key=abs, default=None)

    def named(self, process, ends=None):
        """Waits for the end of a copy, and gives the stage that its report names; "failed" for one that failed."""
        said, errors = process.communicate(timeout=COPY_SECONDS)
        if process.returncode != 0:
            if ends != "failed":
                print(f"{process.args}: {errors}", file=sys.stderr)
            return "failed"
        self.limit = limit = json.loads(said.splitlines()[-1])["limited_by"]
        return limit["stage"] if limit else "nothing"

    def slow(self, name, **delays):
        """A directory, and where it is seen through a file system whose calls take so many milliseconds longer."""
        backing, at = self.home / f"{name}-backing", self.home / name
        backing.mkdir()
        at.mkdir()
        options = [word for key, ms in delays.items() for word in (f"--{key}", ms)]
        self.slowed, _ = self.start(self.programs / "carrack-slow", backing, at, *options, until="mounted")
        return backing, at

    def disk(self, *mkfs, kind="ext4"):
        return Disk(self, kind, mkfs)

    def link(self, **options):
        """Two hosts with a way between them: words that run a program on each, and the far one's address."""
        words = [word for key, value in options.items() for word in (f"--{key.replace('_', '-')}", value)]
        name = f"limited{os.getpid()}"
        process, near = self.start(self.programs / "carrack-link", "--name", name, *words, until=name)
        far, address = process.stdout.readline().split()
        self.linked = process
        return self.on(near.split()[0]), self.on(far), address

    @staticmethod
    def on(host):
        return ["ip", "netns", "exec", host]

    def relay(self, node, rate):
        """The address of a node behind a relay that passes on so many bytes a second."""
        address = node.split("/")[2]
        _, relay = self.start(self.programs / "carrack-relay", "--rate", rate, address, until=":")
        return node.replace(address, relay)

    def group(self, share):
        """Words that run a program in a control group that gets this share of a processor."""
        group, words = self.new_group()
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text(str(int(share * 100_000)))
        return words

    def group_of_shares(self, shares):
        """Words that run a program in a control group of so many shares; others have 1024 each."""
        group, words = self.new_group()
        (group / "cpu.shares").write_text(str(shares))
        return words

    def new_group(self):
        group = GROUPS / "cpu" / f"carrack-limited-{os.getpid()}"
        group.mkdir()
        self.stack.callback(self.remove_group, group)
        return group, ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]

    @staticmethod
    def remove_group(group):
        """Removes a control group: agents that ssh started end a little after the command, and are killed if not."""
        until = time.monotonic() + CLOSE_SECONDS
        while True:
            left = (group / "cgroup.procs").read_text().split()
            try:
                return group.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY or time.monotonic() > until + CLOSE_SECONDS:
                    raise OSError(error.errno, f"{group} keeps processes {left}") from error
            if time.monotonic() > until:
                for process in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(process), signal.SIGKILL)
            time.sleep(0.05)

    @staticmethod
    def traced(calls, ms):
        """Words that run a program in which each of these system calls takes so many milliseconds longer."""
        listed = ",".join(calls)
        return ["strace", "-f", "--seccomp-bpf", "-qqq", "-o", "/dev/null", "-e", f"trace={listed}",
                "-e", f"inject={listed}:delay_exit={ms * 1000}"]

    @staticmethod
    def on_processor(number):
        return ["taskset", "-c", number]

    def burners(self, count):
        """Words that run a program on one processor, beside so many others that use all of it."""
        for _ in range(count):
            self.start(*self.on_processor(0), sys.executable, "-c", BURN)
        return self.on_processor(0)


class Disk:
    """A file system on a loop device that a control group holds back. Its image lies in memory."""

    def __init__(self, machine, kind, mkfs):
        self.machine, self.at, image = machine, machine.home / "disk", machine.home / "image"
        with open(image, "wb") as file:
            file.truncate(IMAGE_BYTES)
        options = ["-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"] if kind == "ext4" else []
        machine.run(f"mkfs.{kind}", "-q", *options, *mkfs, image)
        self.at.mkdir()
        made = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True)
        self.device = made.stdout.strip()
        machine.stack.callback(machine.run, "losetup", "-d", self.device)
        machine.run("mount", self.device, self.at)
        machine.stack.callback(machine.run, "umount", self.at)
        self.number = pathlib.Path(f"/sys/block/{os.path.basename(self.device)}/dev").read_text().strip()

    def write(self, name, size):
        (self.at / name).write_bytes(os.urandom(size))

    def limit(self, **limits):
        """From now on, with nothing of it in memory. What the kernel writes later belongs to the group of all."""
        self.machine.run("umount", self.at)
        self.machine.run("sync", self.device)
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        self.machine.run("mount", self.device, self.at)
        self.change(**limits)

    def change(self, **limits):
        for name, limit in limits.items():
            control = GROUPS / "blkio" / f"blkio.throttle.{name}_device"
            control.write_text(f"{self.number} {limit}")
            self.machine.stack.callback(control.write_text, f"{self.number} 0")
