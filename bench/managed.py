"""A service, and nodes beside it, each with a state directory of its own: what the scripts about managed transfers start."""
import argparse
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

START_SECONDS = 30


def free_port():
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def parser(about):
    """The command line of a script: its text, and the program that it measures."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("carrack", nargs="?", default="target/release/carrack", type=lambda path: pathlib.Path(path).resolve())
    return made


def timed(runs, work):
    """The times of several runs in seconds, and what the last of them gave."""
    times, gave = [], None
    for _ in range(runs):
        began = time.perf_counter()
        gave = work()
        times.append(time.perf_counter() - began)
    return times, gave


class Server:
    """`carrack serve`, started again on the same port with the same state as often as it is killed."""

    def __init__(self, carrack, directory, name, *flags):
        self.carrack, self.name, self.flags = str(carrack), name, flags
        self.directory = pathlib.Path(directory) / name
        self.state, self.root, self.port = self.directory / "state", self.directory / "root", free_port()
        self.root.mkdir(parents=True)
        self.state.mkdir()
        self.log = self.directory / "log"
        self.environment = {**os.environ, "XDG_STATE_HOME": str(self.state)}
        self.process, self.starts, self.said = None, 0, {}

    def start(self):
        """Starts it, and waits until it says that it serves."""
        self.starts += 1
        out = self.directory / f"out.{self.starts}"
        command = [self.carrack, "serve", "--root", str(self.root), "--listen", f"127.0.0.1:{self.port}", "--json", *self.flags]
        with out.open("wb") as said, self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=log, env=self.environment, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            for line in out.read_text().splitlines():
                if line.startswith("{") and json.loads(line).get("type") == "serving":
                    self.said = json.loads(line)
                    return self
            time.sleep(0.01)
        raise SystemExit(f"{self.name} did not start: {self.log.read_text()[-2000:]}")

    def kill(self):
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Asks it to end."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def token_file(self):
        """Where the node keeps its token."""
        return self.state / "carrack/node.token"

    def location(self):
        """The node's address with its key."""
        return f"carrack://127.0.0.1:{self.port}/#{self.said['fingerprint']}"

    def run(self, *arguments, check=True, stdin=None):
        """A command line of the account that runs this service; what it printed."""
        done = subprocess.run([self.carrack, *map(str, arguments)], env=self.environment, capture_output=True, text=True, input=stdin,
                              stdin=None if stdin is not None else subprocess.DEVNULL, check=False)
        if check and done.returncode != 0:
            raise SystemExit(f"carrack {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def json(self, *arguments, **more):
        """The same with --json: a list of what it printed."""
        return [json.loads(line) for line in self.run(*arguments, "--json", **more).stdout.splitlines() if line.startswith("{")]

    def workers(self):
        """Processes of the workers of this service: they have its state directory in their environment or their lock open."""
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                words = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
                if b"worker" in words and str(self.state).encode() in pathlib.Path("/proc", entry, "environ").read_bytes():
                    found.append(int(entry))
            except OSError:
                continue
        return found


def bytes_received(server):
    """Bytes that the process of a server has received over all its sockets' life are not kept by the kernel: what it has read in all is."""
    fields = dict(line.split(": ") for line in pathlib.Path("/proc", str(server.process.pid), "io").read_text().splitlines())
    return int(fields["rchar"])
