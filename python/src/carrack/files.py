"""Files of an endpoint, through its service: listed, read by ranges, written, renamed, removed.

Bytes pass through the service. For much data, `Client.submit` has them go straight from place to place, and
`carrack.copy` moves them to and from this host.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import mmap
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

from ._decode import decode
from ._http import Patience, escape
from .errors import BadAnswer, CannotResume, Changed, Conflict, NotFound, ServiceError, Unreachable
from .model import (
    FileEntry,
    FileFailure,
    FileListing,
    FileProperties,
    FileWindow,
    Problem,
    ProblemCode,
    Upload,
    UploadExisting,
)
from .writing import Writer

if TYPE_CHECKING:
    from .client import Client

# Of the API: bytes of a block of an upload, and entries of one window.
BLOCK, WINDOW = 4 << 20, 1000
# Blocks of one file that are sent at once.
LANES = 3
# Bytes of a whole file that are kept in memory. A longer one is kept in a temporary file.
WHOLE = 4 * BLOCK
# Between two looks at a directory that is being read, in seconds.
LOOK = 0.05


def spelled(path: str) -> str:
    """A path as the API writes it, from the root: bytes that are no text, and % itself, as %HH."""
    return quote("/" + path.strip("/"), safe="/", errors="surrogateescape")


def plain(text: str) -> str:
    """What the API writes, as Python has names of files."""
    return unquote(text, errors="surrogateescape")


class Files:
    """The files of one endpoint. Paths begin at its root."""

    def __init__(self, client: Client, endpoint: str) -> None:
        self.client, self.endpoint = client, endpoint
        self._http, self._at = client._http, f"/endpoints/{escape(endpoint)}"
        self._takes_uploads: bool | None = None

    def location(self, path: str = "/") -> str:
        """A path as tasks take it: `@ENDPOINT:/PATH`."""
        return f"@{self.endpoint}:{spelled(path)}"

    def ls(self, path: str = "/") -> list[FileEntry]:
        """All entries of a directory, by name. Their names are as Python has them."""
        patience = Patience(self._http.patience)
        # The service keeps eight listings of a caller: a ninth drops the first, which then begins anew.
        with self._http.listings:
            while (entries := self._listed(path)) is None:
                told = Unreachable(f"{self.location(path)}: you list more at once than the service keeps")
                if not patience.pause(told):
                    raise told
        for entry in entries:
            _named(entry)
        return entries

    def _listed(self, path: str) -> list[FileEntry] | None:
        """The same, as the service names them; None: the listing was dropped meanwhile."""
        body = {"endpoint": self.endpoint, "path": spelled(path)}
        listing = self.client._ask(FileListing, "POST", "/listings", body=body, may_repeat=True)
        entries: list[FileEntry] = []
        try:
            while True:
                query = {"offset": len(entries), "limit": WINDOW, "hidden": True}
                window = self.client._ask(FileWindow, "GET", f"/listings/{escape(listing.id)}", query=query)
                if window.state == "reading":
                    time.sleep(LOOK)
                    continue
                entries += window.entries
                if window.failure is not None or len(entries) >= window.count or not window.entries:
                    break
        except NotFound:
            return None
        with contextlib.suppress(NotFound):
            self._http.call("DELETE", f"/listings/{escape(listing.id)}")
        if window.failure is not None:
            raise _failed(window.failure)
        return entries

    def stat(self, path: str) -> FileProperties:
        """What a path is. A symbolic link is not followed."""
        told = self.client._ask(FileProperties, "GET", f"{self._at}/files/properties", query={"path": spelled(path)})
        _named(told)
        return told

    def size(self, path: str) -> tuple[int, str | None]:
        """Bytes of a file, and the tag of its present state; None: its endpoint cannot tell one state from another. A
        symbolic link is followed.
        """
        try:
            answer = self._http.call("HEAD", f"{self._at}/files/content", query={"path": spelled(path)})
        except ServiceError:
            self.read(path, 0, 1)  # says in words why: an answer to HEAD has none
            raise
        return int(answer.headers.get("Content-Length", "0")), answer.headers.get("ETag")

    def read(
        self, path: str, start: int = 0, end: int | None = None, *, tag: str | None = None, size: int | None = None
    ) -> bytes:
        """Bytes of a file in one state, from `start` to before `end`. `tag`, `size`: only of a file that still has
        these, else `Changed` is raised.
        """
        with io.BytesIO() as kept:
            self._fetch(path, kept, start, end, tag=tag, size=size)
            return kept.getvalue()

    def stream(
        self, path: str, start: int = 0, end: int | None = None, *, tag: str | None = None, size: int | None = None
    ) -> Iterator[bytes]:
        """The same in pieces, in bounded memory. Where the connection ends it goes on, in the same state of the file.
        Where that state has no tag, it raises `CannotResume` instead.
        """
        patience = Patience(self._http.patience)
        is_begun = False
        while end is None or start < end:
            try:
                answer = self._content(path, start, end, tag, size)
                if answer is None:
                    return
                found = answer.headers.get("ETag")
                for piece in self._http.pieces(answer):
                    tag, is_begun = tag or found, True
                    start, patience = start + len(piece), Patience(self._http.patience)
                    yield piece
                return
            except Unreachable as error:
                if is_begun and tag is None:
                    raise CannotResume(
                        f"{self.location(path)}: the connection ended, and the endpoint cannot tell whether the file"
                        f" has changed since: it cannot be read on from byte {start}",
                        hints=["read it again from the beginning"],
                    ) from error
                if not patience.pause(error):
                    raise

    def _content(self, path: str, start: int, end: int | None, tag: str | None, size: int | None) -> Any:
        """The answer with a range; None: the file ends before it."""
        changed = Changed(f"{self.location(path)} changed while it was read", hints=["open it again"])
        last = "" if end is None else str(end - 1)
        headers = {"Range": f"bytes={start}-{last}"} | ({"If-Range": tag} if tag else {})
        query = {"path": spelled(path)}
        try:
            answer = self._http.call("GET", f"{self._at}/files/content", query=query, headers=headers, is_stream=True)
        except ServiceError as error:
            if error.status != 416:
                raise
            if size is not None and start < size:
                raise changed from None
            return None
        if (tag and answer.headers.get("ETag") != tag) or (size is not None and _size(answer) != size):
            answer.close()
            raise changed
        if answer.status == 200 and start > 0:
            answer.close()
            raise BadAnswer(f"{self.location(path)}: the service sent all of it, where a range was asked for")
        return answer

    def whole(self, path: str, size: int) -> bytes | mmap.mmap:
        """All bytes of a file of this size, in one state: in memory, or in a temporary file without a name."""
        if size <= WHOLE:
            return self.read(path, size=size)
        with tempfile.TemporaryFile() as kept:
            self._fetch(path, kept, size=size)
            kept.flush()
            return mmap.mmap(kept.fileno(), size, access=mmap.ACCESS_READ)

    def _fetch(
        self,
        path: str,
        kept: IO[bytes],
        start: int = 0,
        end: int | None = None,
        *,
        tag: str | None = None,
        size: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Writes bytes of one state of a file into `kept`, which is empty. Where the connection ends and the state has
        no tag, it begins anew. It gives up when attempts get no further for `patience` seconds.
        """
        patience, furthest = Patience(self._http.patience), 0
        while True:
            try:
                for piece in self.stream(path, start, end, tag=tag, size=size):
                    kept.write(piece)
                    if progress:
                        progress(len(piece))
                return
            except CannotResume as error:
                if kept.tell() > furthest:
                    patience, furthest = Patience(self._http.patience), kept.tell()
                if not patience.pause(error):
                    raise
                if progress:
                    progress(-kept.tell())
                kept.seek(0)
                kept.truncate()

    def open(self, path: str, *, existing: UploadExisting = "replace", memory: int = 4 * BLOCK) -> Writer:
        """A file to write into, as a stream: it gets its name when it is closed, whole and verified.

        Up to `memory` bytes are kept and sent by an upload. What is longer goes through the program `carrack`, which
        has no bound. A writer that is discarded, or dies, leaves nothing.
        """
        return Writer(self, path, existing, memory if self.takes_uploads() else 0)

    def write(self, path: str, content: bytes, *, existing: UploadExisting = "replace") -> None:
        """Writes a file that is in memory. Its name appears when it is whole and verified."""
        if not self.takes_uploads():
            with self.open(path, existing=existing) as file:
                file.write(content)
            return
        pieces = [memoryview(content)[at : at + BLOCK] for at in range(0, len(content), BLOCK)]
        self._upload(path, len(content), [_digest(piece) for piece in pieces], lambda n: bytes(pieces[n]), existing)

    def upload(
        self,
        local: str | os.PathLike[str],
        path: str,
        *,
        existing: UploadExisting = "replace",
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Sends a file of this host. What an earlier attempt has sent is not sent again. `progress` is called with the
        bytes of each block.
        """
        with open(local, "rb") as file:
            if not self.takes_uploads():
                with self.open(path, existing=existing) as remote:
                    while piece := file.read(BLOCK):
                        remote.write(piece)
                        if progress:
                            progress(len(piece))
                return
            digests = []
            while piece := file.read(BLOCK):
                digests.append(_digest(piece))
            told = os.fstat(file.fileno())

            def block(n: int) -> bytes:
                return os.pread(file.fileno(), BLOCK, n * BLOCK)

            modified = datetime.fromtimestamp(told.st_mtime, UTC)
            self._upload(path, told.st_size, digests, block, existing, modified, progress)

    def _upload(
        self,
        path: str,
        size: int,
        digests: list[str],
        block: Callable[[int], bytes],
        existing: UploadExisting,
        modified: datetime | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        body = {"path": spelled(path), "size": size, "block_bytes": BLOCK, "blocks": digests, "existing": existing}
        body |= {"modified": modified} if modified else {}
        patience = Patience(self._http.patience)
        while True:
            # The same file for the same path is the same upload, however often it is begun.
            upload = self.client._ask(Upload, "POST", f"{self._at}/uploads", body=body, may_repeat=True)
            try:
                upload = self._publish(upload, block, progress)
            except (NotFound, Conflict) as error:
                # Somebody else uploads the same at this moment, and began it anew.
                if not patience.pause(Unreachable(str(error))):
                    raise
                continue
            if upload.state == "published":
                return
            if upload.state == "failed" and upload.failure is not None:
                with contextlib.suppress(NotFound):
                    self._http.call("DELETE", f"/uploads/{escape(upload.id)}")
                raise _failed(upload.failure)

    def _publish(self, upload: Upload, block: Callable[[int], bytes], progress: Callable[[int], None] | None) -> Upload:
        """Sends the blocks that are missing, and has the file published: how that ended."""

        def send(n: int) -> None:
            piece = block(n)
            headers = {"Content-Type": "application/octet-stream"}
            self._http.call("PUT", f"/uploads/{escape(upload.id)}/blocks/{n}", body=piece, headers=headers)
            if progress:
                progress(len(piece))

        missing = [n for first, last in upload.missing for n in range(first, last + 1)]
        if len(missing) == 1:
            send(missing[0])
        elif missing:
            lanes = ThreadPoolExecutor(LANES)
            try:
                for _ in lanes.map(send, missing):
                    pass
            finally:
                lanes.shutdown(cancel_futures=True)
        now = upload
        if now.state != "published":
            now = self.client._ask(Upload, "POST", f"/uploads/{escape(upload.id)}/publish", may_repeat=True)
        while now.state == "publishing":
            now = self.client._ask(Upload, "GET", f"/uploads/{escape(upload.id)}", query={"wait": "published"})
        return now

    def download(
        self, path: str, local: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
    ) -> None:
        """Brings a file to this host. Its name appears when it is whole, and on disk. `progress` is called with the
        bytes of each piece. Where the download begins anew, it is called with minus the bytes that came before.
        """
        # Nobody can foresee the name, and "x" opens nothing that stands there, links included. In contrast to mkstemp,
        # the mode is that of any new file.
        part = os.path.join(os.path.dirname(local), f".carrack-download-{secrets.token_hex(8)}.part")
        with open(part, "xb") as file:
            try:
                self._fetch(path, file, progress=progress)
                file.flush()
                os.fsync(file.fileno())
                os.replace(part, local)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
                raise

    def takes_uploads(self) -> bool:
        """Whether the endpoint takes uploads through the service."""
        if self._takes_uploads is None:
            self._takes_uploads = self.client.endpoint(self.endpoint).uploads
        return self._takes_uploads

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        """Makes a directory. `parents`: those above it, too; one that is there already is no error then."""
        self._http.call("POST", f"{self._at}/files/mkdir", body={"path": spelled(path), "parents": parents})

    def rename(self, old: str, new: str, *, replace: bool = False) -> None:
        """Gives something another path at the endpoint."""
        body = {"from": spelled(old), "to": spelled(new), "replace": replace}
        self._http.call("POST", f"{self._at}/files/rename", body=body)

    def remove(self, *paths: str, timeout: float | None = None) -> None:
        """Removes files, and directories with all that is in them, by one task that it waits for."""
        task = self.client.submit([self.location(path) for path in paths], kind="delete")
        self.client.wait(task.id, timeout=timeout)

    def sum(self, path: str) -> str:
        """The BLAKE3 digest of a file, computed where it is."""
        return str(self._lines(f"{self._at}/files/sum", {"path": spelled(path)})["digest"])

    def usage(self, *paths: str) -> dict[str, Any]:
        """What paths and everything below them take: `files`, `directories`, `bytes` and others."""
        return self._lines(f"{self._at}/files/du", {"paths": [spelled(path) for path in paths]})

    def _lines(self, path: str, body: Any) -> dict[str, Any]:
        """The last line of an answer that says how far it is."""
        answer = self._http.call(
            "POST", path, body=body, accept="application/x-ndjson", is_stream=True, may_repeat=True
        )
        line: dict[str, Any] = json.loads(b"".join(self._http.pieces(answer)).splitlines()[-1])
        if line.get("failure"):
            raise _failed(decode(FileFailure, line["failure"]))
        return line


def _size(answer: Any) -> int | None:
    """Bytes of the whole file of which an answer has a part."""
    told = answer.headers.get("Content-Length" if answer.status == 200 else "Content-Range", "").rpartition("/")[2]
    return int(told) if told.isdecimal() else None


def _digest(piece: bytes | memoryview) -> str:
    return hashlib.sha256(piece).hexdigest()


def _named(entry: FileEntry | FileProperties) -> None:
    """Gives an entry its names as Python has them."""
    for field in ("name", "link_target", "path"):
        if getattr(entry, field, None):
            object.__setattr__(entry, field, plain(getattr(entry, field)))


# Codes of failures that problems of the service have other words for.
WORDS = {"already-exists": "exists", "permission-denied": "denied", "no-space": "storage-full"}


def _failed(failure: FileFailure) -> ServiceError:
    code = WORDS.get(failure.code, failure.code)
    return ServiceError.of(
        Problem(
            code=cast(ProblemCode, code if code in ServiceError.by_code else "files-failed"),
            detail=failure.message,
            status=409,
            title="Conflict",
            type="about:blank",
            hints=failure.hints,
        )
    )
