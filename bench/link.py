"""Two hosts with a long way between them: the network namespaces that `carrack-link` makes and joins."""
import os
import pathlib
import shutil
import subprocess

import workloads

CLOSE_SECONDS = 10
ALLOWED = pathlib.Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


class Link:
    """The link's own processor time is outside the cgroup of a measurement, and so counts as that of others."""

    def __init__(self, program, log, rtt_ms=workloads.RTT_MS):
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise OSError("a link between network namespaces needs root and ip (package iproute2)")
        command = [program, "--name", f"carrack-bench-{os.getpid()}", "--rtt-ms", str(rtt_ms), "--rate", "1gbit"]
        with open(log, "wb") as said:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True)
        try:
            self.near, self.near_address = self.process.stdout.readline().split()
            self.far, self.address = self.process.stdout.readline().split()
        except ValueError:
            self.close()
            raise OSError(f"carrack-link: {log.read_text(errors='replace').strip()}") from None
        # A namespace takes only what the host allows to everybody; put back at the end.
        self.allowed = ALLOWED.read_text()

    def set(self, cell):
        """The kernel takes the congestion control for each connection as it is made, on either side."""
        if cell.congestion not in ALLOWED.read_text().split():
            ALLOWED.write_text(f"{self.allowed.strip()} {cell.congestion}")
        for host in (self.near, self.far):
            choose = f"echo {cell.congestion} > /proc/sys/net/ipv4/tcp_congestion_control"
            subprocess.run(["ip", "netns", "exec", host, "sh", "-c", choose], check=True)
        self.process.stdin.write(f"rate {cell.gbit}gbit\nloss {cell.loss}\n")
        self.process.stdin.flush()

    def close(self):
        if hasattr(self, "allowed") and ALLOWED.read_text() != self.allowed:
            ALLOWED.write_text(self.allowed)
        self.process.stdin.close()  # asks it to end
        try:
            self.process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
