#!/usr/bin/env python3
"""A short copy over a long link, its start included: without an option, with fixed numbers of streams, and by globus-url-copy.

    python3 bench/far_start.py                    2 GiB over 80 ms at 2.5 Gbit/s, tmpfs to tmpfs, in the clear
    python3 bench/far_start.py --runs 1 --fixed 16 --size 1073741824
    python3 bench/far_start.py --rtt-ms 90 --runs 9 --fixed '' --before OLD --carrack NEW     two builds in turn

The time is that of the whole command, from its start to its end, and the share is of what the link carries, packet headers included.
The far host shows another boot than this one, as another host does: on one host a copy is first
compared with its source, which takes a round trip. Copies take turns, and the median of each counts. It ends with 1 if no option reaches less than 0.85 of the link, or less than 0.95 of
the best fixed number. Needs root, `ip`, and target/release/carrack with carrack-link beside it.
"""
import argparse
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEAST_OF_LINK = 0.85
LEAST_OF_BEST = 0.95
GRIDFTP_STREAMS = 16


class Link:
    def __init__(self, args, home):
        command = [args.bin / "carrack-link", "--name", f"carrack-far-{os.getpid()}", "--rate", f"{args.gbit}gbit",
                   "--rtt-ms", str(args.rtt_ms), "--cc", args.cc]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.near, _ = self.process.stdout.readline().split()
        self.far, self.address = self.process.stdout.readline().split()
        # GridFTP asks for the host's own name, and nothing answers there but this.
        self.names = home / "hosts"
        self.names.write_text(f"127.0.0.1 localhost\n{self.address} {os.uname().nodename}\n")
        self.boot = home / "boot"
        self.boot.write_text(f"{uuid.uuid4()}\n")

    def on(self, host, command, **options):
        """`ip netns exec` has mounts of its own, which end with the program."""
        boot = f"mount --bind {self.boot} /proc/sys/kernel/random/boot_id && " if host == self.far else ""
        command = f"{boot}mount --bind {self.names} /etc/hosts && exec {shlex.join(map(str, command))}"
        return subprocess.Popen(["ip", "netns", "exec", host, "sh", "-c", command], stdin=subprocess.DEVNULL, **options)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def node(program, link, home, env):
    command = [program, "serve", "--node-only", "--anonymous", "--root", home, "--listen", f"{link.address}:0"]
    server = link.on(link.far, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    return server, server.stdout.readline().split()[-1]


def gridftp(link, home):
    """The port is free: nothing else listens in this network."""
    server = link.on(link.far, ["globus-gridftp-server", "-aa", "-anonymous-user", "root", "-allow-root", "-no-detach", "-c", "/dev/null",
                                "-p", 2811, "-control-interface", link.address, "-data-interface", link.address, "-home-dir", home],
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    listens = lambda: f":{2811:04X} " in subprocess.run(["ip", "netns", "exec", link.far, "cat", "/proc/net/tcp"],
                                                         capture_output=True, text=True).stdout
    while not listens():
        if server.poll() is not None:
            sys.exit("globus-gridftp-server did not start")
        time.sleep(0.05)
    return server


def timed(link, command, env, target):
    start = time.monotonic()
    run = link.on(link.near, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    said, _ = run.communicate()
    seconds = time.monotonic() - start
    if run.returncode:
        sys.exit(f"{command}: {said}")
    target.unlink()
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release", help="where carrack and carrack-link are [%(default)s]")
    parser.add_argument("--carrack", type=pathlib.Path, help="the binary, if it is another")
    parser.add_argument("--before", type=pathlib.Path, metavar="FILE", help="an earlier one, which copies as well, to a node of its own")
    parser.add_argument("--rtt-ms", type=float, default=80)
    parser.add_argument("--gbit", type=float, default=2.5, help="of the link [%(default)s]")
    parser.add_argument("--cc", default="cubic", help="congestion control of both hosts [%(default)s]")
    parser.add_argument("--size", type=int, default=2 << 30, help="bytes to copy [%(default)s]")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--fixed", default="8,16,32,64", help="numbers of streams to copy with as well [%(default)s]")
    parser.add_argument("--dir", default="/dev/shm", help="where the files are [%(default)s]")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.dir) as home:
        home = pathlib.Path(home)
        env = {**os.environ, "HOME": str(home), "XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
        source, target = home / "source", home / "there" / "source"
        target.parent.mkdir()
        fill(source, args.size)
        link, servers = Link(args, home), []
        try:
            ways = {}
            program = args.carrack or args.bin / "carrack"
            for name, build in {"no option, before": args.before, "no option": program}.items():
                if build:
                    server, address = node(build, link, home, env)
                    servers.append(server)
                    ways[name] = [build, "-q", "--encrypt", "none", source, f"carrack://{address}/there/"]
            copy = [program, "-q", "--encrypt", "none"]
            for streams in filter(None, args.fixed.split(",")):
                ways[f"--streams {streams}"] = [*copy, "--streams", streams, source, f"carrack://{address}/there/"]
            if shutil.which("globus-url-copy") and shutil.which("globus-gridftp-server"):
                servers.append(gridftp(link, home))
                ways[f"globus-url-copy -p {GRIDFTP_STREAMS}"] = ["globus-url-copy", "-fast", "-p", GRIDFTP_STREAMS, f"file://{source}",
                                                                f"ftp://{link.address}:2811{target}"]
            else:
                print("globus-url-copy is not installed")
            times = {name: [] for name in ways}
            for _ in range(args.runs):
                for name, command in ways.items():
                    times[name].append(timed(link, command, env, target))
        finally:
            for server in servers:
                server.terminate()
                server.wait()
            link.close()
    return show(args, times)


def fill(path, size):
    """With bytes that nothing can compress."""
    with open(path, "wb") as file:
        while size:
            size -= file.write(os.urandom(min(size, 16 << 20)))


def show(args, times):
    shares = {}
    print(f"| {args.size / (1 << 30):g} GiB, {args.rtt_ms:g} ms, {args.gbit:g} Gbit/s, {args.cc} | seconds (median of {args.runs}) | GB/s | of the link |")
    print("|---|--:|--:|--:|")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        shares[name] = args.size / median / (args.gbit * 1e9 / 8)
        print(f"| {name} | {median:.2f} ({min(seconds):.2f} to {max(seconds):.2f}) | {args.size / median / 1e9:.3f} | {shares[name]:.2f} |")
    best = max((share for name, share in shares.items() if name.startswith("--streams")), default=0)
    return int(shares["no option"] < LEAST_OF_LINK or shares["no option"] < LEAST_OF_BEST * best)


if __name__ == "__main__":
    sys.exit(main())
