"""Files of endpoints for fsspec: `carrack://ENDPOINT/PATH`. So pandas, pyarrow, zarr, dask and xarray read and write
through a service.

Options (`storage_options`): `service`, `token`, `timeout`, `patience`, as `carrack.Client` has them. Nothing is cached:
what is listed and read is what is there now.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import threading
import uuid
from collections import Counter
from typing import Any

from fsspec.caching import BaseCache, register_cache
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from .client import Client
from .errors import Exists, ServiceError
from .files import Files
from .model import FileEntry

# Files of copies under way, which get another name when they are whole.
OWN = re.compile(r"\..*\.carrack-[0-9a-f]{8}(-\w+)?\.part|\.carrack-[0-9a-f]{16}(-\d)?\.marker", re.DOTALL)
KINDS = {"file": "file", "directory": "directory", "symlink": "other", "special": "other"}


class AheadCache(BaseCache):  # type: ignore[misc]
    """Reads what is asked for and no more, until reading goes on in order: then ahead, each time twice as far."""

    name = "carrack"
    least, most = 1 << 16, 8 << 20

    def __init__(self, blocksize: int, fetcher: Any, size: int) -> None:
        super().__init__(blocksize, fetcher, size)
        self.start, self.kept, self.ahead = 0, b"", 0

    def _fetch(self, start: int | None, end: int | None) -> bytes:
        start = start or 0
        end = min(self.size if end is None else end, self.size)
        if start >= end:
            return b""
        kept_end = self.start + len(self.kept)
        if not self.start <= start <= kept_end or (start == kept_end and not self.kept):
            self.start, self.kept, self.ahead = start, b"", 0
        elif end > kept_end:
            self.ahead = min(max(self.least, 2 * self.ahead), self.most)
            self.start, self.kept = start, self.kept[start - self.start :]
        kept_end = self.start + len(self.kept)
        if end > kept_end:
            self.kept += self.fetcher(kept_end, min(end + self.ahead, self.size))
        return self.kept[start - self.start : end - self.start]


register_cache(AheadCache, clobber=True)


class CarrackFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read in one state of it, by ranges; if it changes meanwhile, reading raises `errors.Changed`.

    Where the state has no tag, nothing tells whether two ranges are of one state. The first read then brings the whole
    file by one answer, and later reads take their bytes from there.
    """

    def __init__(self, fs: CarrackFileSystem, path: str, size: int, tag: str | None, **more: Any) -> None:
        self.tag = tag
        self._whole: bytes | mmap.mmap | None = None
        # Some caches of fsspec read ahead in threads of their own.
        self._lock = threading.Lock()
        super().__init__(fs, path, "rb", size=size, **more)

    def _fetch_range(self, start: int, end: int) -> bytes:
        files, path = self.fs.place(self.path)
        if self.tag is not None:
            return bytes(files.read(path, start, end, tag=self.tag))
        with self._lock:
            if self._whole is None:
                self._whole = files.whole(path, self.size)
            return self._whole[start:end]

    def close(self) -> None:
        super().close()
        if self.closed:
            self._whole = None


class CarrackFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Endpoints of a service. The root has the endpoints that you may use."""

    protocol = "carrack"
    root_marker = ""
    cachable = True

    def __init__(
        self,
        service: str | None = None,
        token: str | None = None,
        timeout: float = 60.0,
        patience: float = 60.0,
        **more: Any,
    ) -> None:
        super().__init__(use_listings_cache=False, **more)
        self.client = Client(service, token=token, timeout=timeout, patience=patience)
        self._places: dict[str, Files] = {}

    @property
    def fsid(self) -> str:
        """The service."""
        return f"carrack-{self.client.target}"

    def place(self, path: str) -> tuple[Files, str]:
        """The endpoint of a path, and the path there."""
        endpoint, _, below = self._strip_protocol(path).partition("/")
        if not endpoint:
            raise IsADirectoryError("the root has endpoints, and no files: carrack://ENDPOINT/PATH")
        if endpoint not in self._places:
            self._places[endpoint] = self.client.files(endpoint)
        return self._places[endpoint], "/" + below

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return os.fspath(path).removeprefix("carrack://").strip("/")

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        stripped = self._strip_protocol(path)
        if not stripped:
            rows = [{"name": one.name, "size": 0, "type": "directory"} for one in self.client.endpoints()]
        else:
            files, below = self.place(stripped)
            try:
                entries = [entry for entry in files.ls(below) if not OWN.fullmatch(entry.name)]
                rows = [self._row(f"{stripped}/{entry.name}", entry) for entry in entries]
            except ServiceError as error:
                found = self.info(path)  # raises what is worse
                if found["type"] == "directory":
                    raise error from None
                rows = [found]
        return rows if detail else [row["name"] for row in rows]

    def walk(
        self, path: str, maxdepth: int | None = None, topdown: bool = True, on_error: Any = "omit", **more: Any
    ) -> Any:
        """As `os.walk`: a link to a directory is one of the directories, and is not followed."""

        # What cannot be listed is no empty directory.
        def omit(error: Exception) -> None:
            if not isinstance(error, FileNotFoundError):
                raise error

        is_detailed, follows = more.pop("detail", False), more.pop("links", False)
        one, told = 1 if maxdepth is None else min(1, maxdepth), omit if on_error == "omit" else on_error
        for root, rows, files in super().walk(path, one, True, told, detail=True, **more):
            directories = rows if is_detailed else list(rows)
            level = (root, directories, files if is_detailed else list(files))
            if topdown:
                yield level
            # Without those that the caller has taken out.
            for name in directories if maxdepth is None or maxdepth > 1 else []:
                if follows or not rows[name].get("islink"):
                    left, below = maxdepth and maxdepth - 1, rows[name]["name"]
                    yield from self.walk(below, left, topdown, on_error, detail=is_detailed, links=follows, **more)
            if not topdown:
                yield level

    def glob(self, path: str, maxdepth: int | None = None, **more: Any) -> Any:
        """As a shell: links to directories are followed, but by `**`."""
        return super().glob(path, maxdepth=maxdepth, **more, links="**" not in path)

    def exists(self, path: str, **more: Any) -> bool:
        return self._kind(path) is not None

    def isdir(self, path: str) -> bool:
        return self._kind(path) == "directory"

    def isfile(self, path: str) -> bool:
        return self._kind(path) == "file"

    def _kind(self, path: str) -> str | None:
        """What a path is; None: there is nothing. Other failures are not taken for that."""
        try:
            return str(self.info(path)["type"])
        except FileNotFoundError:
            return None

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        stripped = self._strip_protocol(path)
        if "/" not in stripped:
            if stripped:
                self.client.endpoint(stripped)
            return {"name": stripped, "size": 0, "type": "directory"}
        files, below = self.place(stripped)
        return self._row(stripped, files.stat(below))

    def _row(self, path: str, entry: Any) -> dict[str, Any]:
        told: FileEntry = entry
        size = told.size if told.kind == "file" else 0
        row = {"name": path, "size": size, "type": KINDS[told.kind], "mtime": told.modified, "mode": told.mode}
        if told.kind == "symlink":
            row |= {"islink": True, "destination": told.link_target}
            files, below = self.place(path)
            try:
                row |= {"size": files.size(below)[0], "type": "file"}
            except ServiceError:
                row["type"] = "directory" if self._is_directory(files, below) else "other"
        return row

    @staticmethod
    def _is_directory(files: Files, path: str) -> bool:
        try:
            files.ls(path)
        except ServiceError:
            return False
        return True

    def created(self, path: str) -> Any:
        raise NotImplementedError("an endpoint does not tell when a file was made")

    def modified(self, path: str) -> Any:
        return self.info(path)["mtime"]

    def ukey(self, path: str) -> str:
        files, below = self.place(path)
        # Without a tag nothing that was read before can be taken for what is there now.
        return files.size(below)[1] or uuid.uuid4().hex

    def checksum(self, path: str) -> int:
        files, below = self.place(path)
        return int(files.sum(below)[:16], 16)

    def _open(self, path: str, mode: str = "rb", block_size: Any = None, **more: Any) -> Any:
        files, below = self.place(path)
        if more.get("autocommit") is False:
            raise NotImplementedError("there are no transactions: each file appears when it is closed, whole")
        if mode == "rb":
            size, tag = files.size(below)
            wanted = {key: more[key] for key in ("cache_type", "cache_options") if key in more}
            cache = {"cache_type": AheadCache.name} | wanted
            return CarrackFile(self, path, size, tag, block_size=block_size or "default", **cache)
        if mode not in ("wb", "xb"):
            raise ValueError(f"{path}: files of endpoints are read (rb) or written anew (wb, xb), not opened as {mode}")
        return files.open(below, existing="fail" if mode == "xb" else "replace")

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        files, below = self.place(path)
        if (start or 0) < 0 or (end or 0) < 0:
            size, tag = files.size(below)
            bounds = [size + one if one is not None and one < 0 else one for one in (start, end)]
            return files.read(below, max(0, bounds[0] or 0), bounds[1], tag=tag, size=size)
        return files.read(below, start or 0, end)

    def cat_ranges(
        self, paths: Any, starts: Any, ends: Any, max_gap: Any = None, on_error: str = "return", **_: Any
    ) -> list[Any]:
        """Ranges of files. Those of one file are of one state of it, or raise `errors.Changed`."""
        if max_gap is not None:
            raise NotImplementedError("max_gap")
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        bounds = [one if isinstance(one, list) else [one] * len(paths) for one in (starts, ends)]
        names = [self._strip_protocol(path) for path in paths]
        often = Counter(names)
        states: dict[str, tuple[int, str | None]] = {}
        out: list[Any] = []
        for name, start, end in zip(names, *bounds, strict=True):
            try:
                if often[name] == 1:
                    out.append(self.cat_file(name, start, end))
                    continue
                files, below = self.place(name)
                size, tag = states[name] if name in states else states.setdefault(name, files.size(below))
                first, last = (size + one if one is not None and one < 0 else one for one in (start, end))
                out.append(files.read(below, max(0, first or 0), last, tag=tag, size=size))
            except Exception as error:
                if on_error != "return":
                    raise
                out.append(error)
        return out

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        files, below = self.place(path)
        files.write(below, bytes(value), existing="fail" if mode == "create" else "replace")

    def put_file(self, lpath: Any, rpath: str, callback: Any = None, mode: str = "overwrite", **_: Any) -> None:
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
            return
        files, below = self.place(rpath)
        if "/" in below.strip("/"):
            files.mkdir(below.rsplit("/", 1)[0], parents=True)
        if callback is not None:
            callback.set_size(os.path.getsize(lpath))
        told = None if callback is None else callback.relative_update
        files.upload(lpath, below, existing="fail" if mode == "create" else "replace", progress=told)

    def get_file(self, rpath: str, lpath: Any, callback: Any = None, outfile: Any = None, **_: Any) -> None:
        if self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
            return
        files, below = self.place(rpath)
        told = None if callback is None else callback.relative_update
        if outfile is not None:
            for piece in files.stream(below):
                outfile.write(piece)
            return
        os.makedirs(os.path.dirname(os.path.abspath(lpath)), exist_ok=True)
        files.download(below, lpath, progress=told)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        files, below = self.place(path)
        if below == "/":
            raise FileExistsError(f"{path} is an endpoint")
        if create_parents and self.exists(path):
            raise FileExistsError(path)
        files.mkdir(below, parents=create_parents)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        files, below = self.place(path)
        if below != "/":
            if not exist_ok and self.exists(path):
                raise FileExistsError(path)
            files.mkdir(below, parents=True)

    def rmdir(self, path: str) -> None:
        row = self.info(path)
        if row["type"] != "directory" or row.get("islink"):
            raise NotADirectoryError(path)
        if not self._is_empty(path):
            raise OSError(errno.ENOTEMPTY, "it is not empty", path)
        self._remove([path])

    def _is_empty(self, path: str) -> bool:
        """Whether a directory has nothing at all, not even what `ls` leaves out: files of copies under way."""
        files, below = self.place(path)
        return not files.ls(below)

    def rm_file(self, path: str) -> None:
        self._remove([path])

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes by one task, however many paths there are."""
        paths = [path] if isinstance(path, str) else list(path)
        whole = [one for one in paths for one in (self.glob(one) if "*" in one else [one])]
        if maxdepth is not None:
            super().rm(path, recursive=recursive, maxdepth=maxdepth)
            return
        for one in whole if not recursive else []:
            if self.info(one)["type"] == "directory" and not self._is_empty(one):
                raise IsADirectoryError(f"{one} is a directory: rm(…, recursive=True) removes it with what is in it")
        self._remove(whole)

    def _remove(self, paths: list[str]) -> None:
        by_endpoint: dict[Files, list[str]] = {}
        for path in paths:
            files, below = self.place(path)
            if below == "/":
                raise PermissionError(f"{path} is an endpoint: its root is not removed")
            files.stat(below)  # what is not there is told, as fsspec has it
            by_endpoint.setdefault(files, []).append(below)
        for files, below_all in by_endpoint.items():
            files.remove(*below_all)

    def mv_file(self, path1: str, path2: str, **_: Any) -> None:
        (old, below), (new, to) = self.place(path1), self.place(path2)
        if old is new:
            try:
                old.rename(below, to)
            except Exists:  # to replace it takes a right more
                old.rename(below, to, replace=True)
            return
        task = self.client.submit(old.location(below), new.location(to), kind="move")
        self.client.wait(task.id)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **_: Any) -> None:
        self.mv_file(path1, path2)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copies by a task: the bytes go from place to place, and not through this host."""
        (old, below), (new, to) = self.place(path1), self.place(path2)
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
            return
        task = self.client.submit(old.location(below), new.location(to))
        self.client.wait(task.id)
