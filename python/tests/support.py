"""A service of a test's own, a relay before it that counts bytes and makes faults, and a service of one file."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("CARRACK_TEST_PROGRAM") or str(TREE / "target/debug/carrack")


def until(holds: Callable[[], Any], patience: float = 30.0) -> None:
    """Waits until something holds."""
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end, "it does not come to hold"
        time.sleep(0.02)


class Service:
    """`carrack serve` with a state of its own. It keeps its port when it is started again."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory, self.port = directory, 0
        self.data = directory / "data"
        self.data.mkdir(parents=True)
        for part in ("state", "config", "root"):
            (directory / part).mkdir()
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("CARRACK_")},
            "XDG_STATE_HOME": str(directory / "state"),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "HOME": str(directory),
        }
        self.socket = str(directory / "state/carrack/service/service.sock")
        self.said: dict[str, Any] = {}
        self.start()
        self.run("endpoint", "add", "lab", str(self.data), "--uploads")

    def start(self) -> None:
        """Starts it, and returns when it serves."""
        listen = f"127.0.0.1:{self.port}"
        command = [PROGRAM, "serve", "--root", str(self.directory / "root"), "--listen", listen, "--json"]
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=self.environment
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, (self.directory / "log").read_text()[-2000:]
        self.said = json.loads(line)
        self.port = self.said["port"]

    def kill(self) -> None:
        """kill -9: its workers go on."""
        self.process.send_signal(signal.SIGKILL)
        self._reap()

    def end(self) -> None:
        """Asks it to end."""
        self.process.terminate()
        self._reap()

    def _reap(self) -> None:
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()

    def run(self, *words: str) -> str:
        """A command line of the account that runs this service: what it printed."""
        done = subprocess.run(
            [PROGRAM, *words], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self, *verbs: str) -> tuple[str, str]:
        """A token for these verbs at the endpoint, and its identifier."""
        said = self.run(
            "service", "token", "create", "--label", "test", "--verbs", ",".join(verbs), "--endpoint", "lab", "--json"
        )
        made = json.loads(said.splitlines()[-1])
        return made["token"], made["id"]

    @property
    def url(self) -> str:
        """By TLS, with the fingerprint."""
        return f"https://127.0.0.1:{self.port}#{self.said['service']['fingerprint']}"

    @property
    def clear(self) -> str:
        """In the clear, from this host."""
        return f"http://127.0.0.1:{self.port}"


class Relay:
    """A relay before a service's port. `on_request(n, head)` may say `cut` (the request arrives, its answer does not)
    or `hold` (nothing is answered any more); `received` counts the bytes that came back.
    """

    def __init__(self, port: int, on_request: Callable[[int, bytes], str | None] = lambda n, head: None) -> None:
        self.port_behind, self.on_request = port, on_request
        self.received, self.requests = 0, 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends it, with all its connections."""
        self.listener.close()
        self.cut()
        for one in self.open:
            one.close()

    def cut(self) -> None:
        """Cuts all connections."""
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.port_behind))
            except OSError:
                return
            self.open += [near, far]
            fate = {"now": ""}
            threading.Thread(target=self._forth, args=(near, far, fate), daemon=True).start()
            threading.Thread(target=self._back, args=(near, far, fate), daemon=True).start()

    def _forth(self, near: socket.socket, far: socket.socket, fate: dict[str, str]) -> None:
        try:
            while piece := near.recv(1 << 16):
                if b" HTTP/1.1\r\n" in piece:
                    with self.lock:
                        self.requests += 1
                        fate["now"] = self.on_request(self.requests, piece) or ""
                far.sendall(piece)
            far.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _back(self, near: socket.socket, far: socket.socket, fate: dict[str, str]) -> None:
        try:
            while piece := far.recv(1 << 16):
                if fate["now"] == "cut":
                    near.shutdown(socket.SHUT_RDWR)
                    return
                if fate["now"] != "hold":
                    with self.lock:
                        self.received += len(piece)
                    near.sendall(piece)
            near.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class OneFile:
    """Answers as a service whose endpoints have one file at every path. `content` may be replaced at any time. The file
    has a tag only where `has_tag`; its modification time is always the same, as of a change that shows nowhere. Without
    `heeds_conditions` it is a service behind a proxy that drops `If-Range`.

    `before_answer(n)` runs before the n-th answer with bytes, and says after how many of them the connection is cut;
    None: the answer comes whole. `ranges` has the `Range` and the `If-Range` of each such request.
    """

    def __init__(
        self, content: bytes, *, has_tag: bool, before_answer: Callable[[int], int | None] = lambda n: None
    ) -> None:
        self.content, self.has_tag, self.before_answer = content, has_tag, before_answer
        self.heeds_conditions = True
        self.ranges: list[tuple[str | None, str | None]] = []
        self.lock = threading.Lock()
        one_file = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                one_file._head(self, 200, len(one_file.content), one_file.content)

            def do_GET(self) -> None:
                one_file._get(self)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def __enter__(self) -> OneFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def tag_of(content: bytes) -> str:
        """The tag of a file with this content."""
        return f'"{hashlib.sha256(content).hexdigest()[:32]}"'

    def _head(
        self, to: http.server.BaseHTTPRequestHandler, status: int, length: int, content: bytes, **more: str
    ) -> None:
        to.send_response(status)
        to.send_header("Content-Length", str(length))
        to.send_header("Last-Modified", "Sun, 09 Sep 2001 01:46:40 GMT")
        if self.has_tag:
            to.send_header("ETag", self.tag_of(content))
        for name, value in more.items():
            to.send_header(name.replace("_", "-"), value)
        to.end_headers()

    def _get(self, to: http.server.BaseHTTPRequestHandler) -> None:
        asked, condition = to.headers["Range"], to.headers["If-Range"]
        with self.lock:
            self.ranges.append((asked, condition))
            cut = self.before_answer(len(self.ranges))
            content = self.content
        bounds = re.fullmatch(r"bytes=(\d+)-(\d*)", asked or "")
        is_same = condition is None or not self.heeds_conditions or (self.has_tag and condition == self.tag_of(content))
        if bounds is None or not is_same:
            part = content
            self._head(to, 200, len(part), content)
        else:
            start = int(bounds[1])
            part = content[start : int(bounds[2]) + 1 if bounds[2] else None]
            if not part:
                problem = json.dumps({"code": "malformed", "detail": "the file ends before the range"}).encode()
                self._head(to, 416, len(problem), content, Content_Range=f"bytes */{len(content)}")
                to.wfile.write(problem)
                return
            where = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
            self._head(to, 206, len(part), content, Content_Range=where)
        to.wfile.write(part if cut is None else part[:cut])
        if cut is not None:
            to.wfile.flush()
            to.close_connection = True
            to.connection.shutdown(socket.SHUT_RDWR)
