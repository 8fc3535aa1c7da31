"""A file at an endpoint that is written as a stream. It gets its name when it is closed, whole and verified.

The API takes uploads of files whose size and digests are known before. So little is kept in memory and uploaded at the
end, and what is longer goes through the program's standard input. That is a socket in which one byte is never read:
where this process dies, however it dies, the kernel tells the program of a broken connection and not of the end of the
file. So a file that was not closed is never taken for a whole one.
"""

from __future__ import annotations

import collections
import io
import os
import pathlib
import shutil
import socket
import sys
import tempfile
import threading
import warnings
from typing import TYPE_CHECKING, Any

from .errors import NotFound
from .model import UploadExisting
from .program import Run

if TYPE_CHECKING:
    from .files import Files


class Writer(io.RawIOBase):
    """A file that grows. `close` publishes it, `discard` drops it; so does an exception within `with`."""

    def __init__(self, files: Files, path: str, existing: UploadExisting, memory: int) -> None:
        self._files, self._path, self._existing, self._memory = files, path, existing, memory
        self._kept = bytearray()
        self._stream: _Stream | None = None
        self._length = 0
        self._is_over = False
        self._handled = sys.exc_info()[1]
        self._process = os.getpid()
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, content: Any) -> int:
        """Takes all of it, or raises; memory stays bounded."""
        with self._lock, memoryview(content).cast("B") as piece:
            if self._is_over:
                raise ValueError("the file is closed")
            if self._stream is None and len(self._kept) + len(piece) <= self._memory:
                self._kept += piece
            else:
                try:
                    (self._stream or self._begin()).send(piece)
                except BaseException:
                    # What may have taken a part of a piece takes no more.
                    self._drop()
                    raise
            self._length += len(piece)
            return len(piece)

    def _begin(self) -> _Stream:
        """Has the program take what comes."""
        try:
            kind = self._files.stat(self._path).kind
        except NotFound:
            pass
        else:
            if kind == "directory":
                raise IsADirectoryError(f"{self._files.location(self._path)} is a directory")
            if self._existing == "fail":
                raise FileExistsError(f"{self._files.location(self._path)} exists")
        self._stream = _Stream(self._files, self._path, self._existing)
        self._stream.send(self._kept)
        self._kept = bytearray()
        return self._stream

    def close(self) -> None:
        """Publishes the file: when this returns it is there, whole, verified and durable.

        Libraries close their files also when they fail. So while an exception is on its way that was not when the file
        was opened, the file is dropped.
        """
        with self._lock:
            if self._is_over:
                return
            if sys.exc_info()[1] not in (None, self._handled):
                warnings.warn(f"{self._path} is dropped: an exception keeps it from being whole", stacklevel=2)
                self._drop()
                return
            self._is_over = True
            try:
                if self._stream is None and self._memory > 0:
                    self._files.write(self._path, bytes(self._kept), existing=self._existing)
                    return
                (self._stream or self._begin()).end()
            finally:
                self._kept = bytearray()
                super().close()

    def discard(self) -> None:
        """Drops what was written: nothing of it stays, and what had the name before still has it."""
        with self._lock:
            if self._is_over:
                return
            self._drop()

    def _drop(self) -> None:
        self._is_over = True
        if self._stream is not None:
            self._stream.drop()
        self._kept = bytearray()
        super().close()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # Nobody said that it is whole. To a process that was forked it does not belong.
        if not getattr(self, "_is_over", True) and self._process == os.getpid():
            warnings.warn(f"{self._path} was not closed: it is dropped", ResourceWarning, stacklevel=2)
            self.discard()


class _Stream:
    """The program, which copies its standard input to an endpoint."""

    def __init__(self, files: Files, path: str, existing: UploadExisting) -> None:
        client, self.kept = files.client, None
        environment = {}
        if client.token is not None:
            # Where `carrack login` would keep it. It is read before the first line is written, and then removed.
            self.kept = tempfile.mkdtemp(prefix="carrack-")
            place = pathlib.Path(self.kept, "carrack/services")
            place.mkdir(parents=True)
            with open(os.open(place / client.target.known_as, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(client.token)
            environment["XDG_CONFIG_HOME"] = self.kept
        service = str(client.target) + (f"#{client.target.pin}" if client.target.pin else "")
        clobber = ["--no-clobber"] if existing == "fail" else []
        self.socket, theirs = socket.socketpair()
        theirs.send(b"\0")
        try:
            words = [
                "copy",
                f"--service={service}",
                "--stats=0",
                *clobber,
                "--",
                "-",
                f"@{files.endpoint}:/{path.strip('/')}",
            ]
            self.run = Run(words, theirs, environment)
        except BaseException:
            self.socket.close()
            self._forget()
            raise
        finally:
            theirs.close()
        lines = self.run.lines()
        next(lines, None)
        self._forget()
        # What the program says is read as it comes: it waits for its reader.
        self.reader = threading.Thread(target=collections.deque, args=(lines, 0), daemon=True)
        self.reader.start()

    def _forget(self) -> None:
        if self.kept is not None:
            shutil.rmtree(self.kept, ignore_errors=True)
            self.kept = None

    def send(self, piece: bytearray | memoryview) -> None:
        try:
            self.socket.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            self.finish()
            raise

    def end(self) -> None:
        """All has come: the byte that marks an unfinished file is taken away."""
        self.socket.recv(1)
        self.finish()

    def finish(self) -> None:
        self.socket.close()
        with self.run:
            self.reader.join()
        report = self.run.report(check=True)
        if report.files_kept:
            raise FileExistsError(f"{report.targets[0]} exists")

    def drop(self) -> None:
        if self.run.process.returncode is not None:
            return
        self.socket.close()
        self.run.process.terminate()
        with self.run:
            self.reader.join()
