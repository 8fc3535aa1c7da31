"""Files with a tag of their state, and files without one: what is read is of one state, and never a mixture."""

from __future__ import annotations

import io
import mmap
import os
import pathlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy
import pandas
import pytest
from support import OneFile

from carrack import Client, Files, errors
from carrack.files import WHOLE
from carrack.filesystem import CarrackFileSystem

SIZE = 4 << 20
# Where an answer is cut: behind several pieces.
CUT = 1_500_000


def letters(letter: bytes, size: int = SIZE) -> bytes:
    return letter * size


@pytest.fixture
def opened() -> Iterator[Callable[[OneFile], Files]]:
    clients: list[Client] = []

    def files_of(service: OneFile, patience: float = 30.0) -> Files:
        clients.append(Client(service.url, token="carrack_none", patience=patience))
        return clients[-1].files("lab")

    yield files_of
    for client in clients:
        client.close()


def file_system(service: OneFile) -> CarrackFileSystem:
    return CarrackFileSystem(service.url, token="carrack_none", skip_instance_cache=True)


def changes_and_cuts(service: OneFile, cut: int = CUT) -> None:
    """Has the first answer cut, and the file another content behind it."""

    def before_answer(n: int) -> int | None:
        if n == 1:
            return cut
        service.content = letters(b"b")
        return None

    service.before_answer = before_answer


def cuts(service: OneFile) -> None:
    """Has the first answer cut."""
    service.before_answer = lambda n: CUT if n == 1 else None


def test_stream_without_a_tag_ends_with_the_connection(opened: Callable[[OneFile], Files]) -> None:
    with OneFile(letters(b"a"), has_tag=False) as service:
        changes_and_cuts(service)
        seen = b""
        with pytest.raises(errors.CannotResume, match="has changed") as told:
            for piece in opened(service).stream("/f"):
                seen += piece
        assert isinstance(told.value, ConnectionError) and told.value.hints
        assert seen and set(seen) == set(b"a")
        assert len(service.ranges) == 1


def test_stream_with_a_tag_goes_on_in_the_same_state(opened: Callable[[OneFile], Files]) -> None:
    with OneFile(letters(b"a"), has_tag=True) as service:
        cuts(service)
        assert b"".join(opened(service).stream("/f")) == letters(b"a")
        assert [condition for _, condition in service.ranges] == [None, OneFile.tag_of(service.content)]
    with OneFile(letters(b"a"), has_tag=True) as service:
        changes_and_cuts(service)
        with pytest.raises(errors.Changed):
            list(opened(service).stream("/f"))


@pytest.mark.parametrize("has_tag", [False, True])
def test_stream_that_gave_nothing_out_begins_anew(opened: Callable[[OneFile], Files], has_tag: bool) -> None:
    with OneFile(letters(b"a"), has_tag=has_tag) as service:
        changes_and_cuts(service, cut=0)
        assert b"".join(opened(service).stream("/f")) == letters(b"b")


def test_tag_of_each_answer_is_compared(opened: Callable[[OneFile], Files]) -> None:
    with OneFile(letters(b"a"), has_tag=True) as service:
        files = opened(service)
        _, tag = files.size("/f")
        service.content, service.heeds_conditions = letters(b"b"), False
        with pytest.raises(errors.Changed):
            files.read("/f", 5, 10, tag=tag)


def test_read_without_a_tag_begins_anew(opened: Callable[[OneFile], Files]) -> None:
    with OneFile(letters(b"a"), has_tag=False) as service:
        changes_and_cuts(service)
        assert opened(service).read("/f") == letters(b"b")
        assert [asked for asked, _ in service.ranges] == ["bytes=0-", "bytes=0-"]


def test_read_of_a_file_of_another_size_is_refused(opened: Callable[[OneFile], Files]) -> None:
    with OneFile(b"12345", has_tag=False) as service:
        files = opened(service)
        assert files.read("/f", 1, 3, size=5) == b"23" and files.read("/f", 5, size=5) == b""
        for size in (4, 6):
            with pytest.raises(errors.Changed):
                files.read("/f", 1, 3, size=size)
        with pytest.raises(errors.Changed):
            files.read("/f", 6, 7, size=8)


def test_download_without_a_tag_begins_anew(opened: Callable[[OneFile], Files], tmp_path: pathlib.Path) -> None:
    with OneFile(letters(b"a"), has_tag=False) as service:
        changes_and_cuts(service)
        counts: list[int] = []
        opened(service).download("/f", tmp_path / "here", progress=counts.append)
        assert (tmp_path / "here").read_bytes() == letters(b"b")
        assert sum(counts) == SIZE and min(counts) < 0
        assert os.listdir(tmp_path) == ["here"]


def test_download_without_a_tag_is_given_up_after_the_patience(
    opened: Callable[..., Files], tmp_path: pathlib.Path
) -> None:
    with OneFile(letters(b"a"), has_tag=False, before_answer=lambda n: CUT) as service:
        (tmp_path / "here").write_bytes(b"before")
        with pytest.raises(errors.CannotResume):
            opened(service, patience=1).download("/f", tmp_path / "here")
        assert len(service.ranges) > 1
        assert (tmp_path / "here").read_bytes() == b"before"
        assert os.listdir(tmp_path) == ["here"]


def test_open_file_without_a_tag_is_of_one_state() -> None:
    with OneFile(letters(b"a"), has_tag=False) as service, file_system(service).open("lab/f") as file:
        first = file.read(10)
        service.content = letters(b"b")
        file.seek(SIZE // 2)
        assert first + file.read() == letters(b"a", 10 + SIZE // 2)
        assert len(service.ranges) == 1


def test_open_file_without_a_tag_begins_anew_before_its_first_read() -> None:
    with OneFile(letters(b"a"), has_tag=False) as service, file_system(service).open("lab/f") as file:
        changes_and_cuts(service)
        assert file.read(10) + file.read() == letters(b"b")


def test_open_file_without_a_tag_that_has_another_size_is_refused() -> None:
    for now in (letters(b"b", SIZE + 1), letters(b"b", SIZE - 1), b""):
        with OneFile(letters(b"a"), has_tag=False) as service, file_system(service).open("lab/f") as file:
            service.content = now
            with pytest.raises(errors.Changed):
                file.read(10)


def test_open_file_with_a_tag_is_read_by_ranges() -> None:
    with OneFile(letters(b"a"), has_tag=True) as service, file_system(service).open("lab/f") as file:
        file.seek(SIZE - 10)
        assert file.read() == b"a" * 10
        assert service.ranges == [(f"bytes={SIZE - 10}-{SIZE - 1}", OneFile.tag_of(service.content))]
        service.content = letters(b"b")
        file.seek(0)
        with pytest.raises(errors.Changed):
            file.read(10)


def test_open_file_without_a_tag_is_read_by_many_threads() -> None:
    content = os.urandom(SIZE)
    with OneFile(content, has_tag=False) as service, file_system(service).open("lab/f") as file:
        with ThreadPoolExecutor(8) as lanes:
            starts = range(0, SIZE, 1 << 18)
            pieces = list(lanes.map(lambda start: file._fetch_range(start, start + (1 << 18)), starts))
        assert b"".join(pieces) == content
        assert len(service.ranges) == 1


def test_large_file_without_a_tag_is_kept_in_a_temporary_file() -> None:
    content = os.urandom(WHOLE + 1)
    with OneFile(content, has_tag=False) as service:
        file = file_system(service).open("lab/f")
        file.seek(WHOLE - 1)
        assert file.read() == content[-2:] and isinstance(file._whole, mmap.mmap)
        file.seek(5)
        assert file.read(5) == content[5:10]
        file.close()
        assert file._whole is None


def test_parquet_without_a_tag_is_read() -> None:
    frame = pandas.DataFrame({f"column{n}": numpy.random.default_rng(n).random(100_000) for n in range(4)})
    parquet = io.BytesIO()
    frame.to_parquet(parquet)
    with OneFile(parquet.getvalue(), has_tag=False) as service:
        with file_system(service).open("lab/f.parquet") as file:
            column = pandas.read_parquet(file, columns=["column3"])
        assert column.column3.equals(frame.column3)
        assert len(service.ranges) == 1


def test_end_of_a_file_without_a_tag_is_that_of_its_size() -> None:
    def grows(n: int) -> None:
        if n == 2:
            service.content += b"6"

    with OneFile(b"12345", has_tag=False, before_answer=grows) as service:
        fs = file_system(service)
        assert fs.cat_file("lab/f", start=-2) == b"45"
        with pytest.raises(errors.Changed):
            fs.cat_file("lab/f", start=-2)


def test_caches_do_not_take_two_states_without_a_tag_for_one() -> None:
    with OneFile(b"1", has_tag=False) as service:
        fs = file_system(service)
        assert fs.ukey("lab/f") != fs.ukey("lab/f")
        service.has_tag = True
        assert fs.ukey("lab/f") == fs.ukey("lab/f") == OneFile.tag_of(b"1")


def test_download_writes_into_no_file_that_stands_there(
    opened: Callable[[OneFile], Files], tmp_path: pathlib.Path
) -> None:
    (tmp_path / "victim").write_bytes(b"kept")
    (tmp_path / "download").mkdir()
    (tmp_path / f"download/here.{os.getpid()}.part").symlink_to(tmp_path / "victim")
    parts: set[str] = set()
    with OneFile(b"1", has_tag=True) as service:
        files = opened(service)
        for _ in range(2):
            files.download(
                "/f", tmp_path / "download/here", progress=lambda _: parts.update(os.listdir(tmp_path / "download"))
            )
    assert (tmp_path / "victim").read_bytes() == b"kept"
    assert not (tmp_path / "download/here").is_symlink() and (tmp_path / "download/here").read_bytes() == b"1"
    assert len(parts) == 4, "the two parts have names of their own"


def test_download_has_the_mode_of_a_new_file(opened: Callable[[OneFile], Files], tmp_path: pathlib.Path) -> None:
    with OneFile(b"1", has_tag=True) as service:
        before = os.umask(0o027)
        try:
            opened(service).download("/f", tmp_path / "here")
        finally:
            os.umask(before)
    assert (tmp_path / "here").stat().st_mode & 0o777 == 0o640


def test_download_is_on_disk_before_it_has_its_name(
    opened: Callable[[OneFile], Files], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    sync, replace = os.fsync, os.replace

    def synced(file: int) -> None:
        done.append(("fsync", os.fstat(file).st_size))
        sync(file)

    def replaced(old: str, new: str) -> None:
        done.append(("replace", os.stat(old).st_size))
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    with OneFile(letters(b"a"), has_tag=True) as service:
        opened(service).download("/f", tmp_path / "here")
    assert done == [("fsync", SIZE), ("replace", SIZE)]


def test_download_to_one_name_by_two_threads_succeeds_twice(
    opened: Callable[[OneFile], Files], tmp_path: pathlib.Path
) -> None:
    content = os.urandom(SIZE)
    meet = threading.Barrier(2)
    with OneFile(content, has_tag=True) as service, ThreadPoolExecutor(2) as lanes:
        files = opened(service)

        def download(_: int) -> None:
            began = False

            def progress(_: int) -> None:
                nonlocal began
                if not began:
                    began = True
                    meet.wait(30)

            files.download("/f", tmp_path / "here", progress=progress)

        list(lanes.map(download, range(2)))
    assert (tmp_path / "here").read_bytes() == content
    assert os.listdir(tmp_path) == ["here"]


def test_download_that_fails_leaves_nothing(opened: Callable[[OneFile], Files], tmp_path: pathlib.Path) -> None:
    (tmp_path / "directory").mkdir()
    with OneFile(b"1", has_tag=True) as service:
        with pytest.raises(IsADirectoryError):
            opened(service).download("/f", tmp_path / "directory")

        def stop(_: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            opened(service).download("/f", tmp_path / "here", progress=stop)
    assert os.listdir(tmp_path) == ["directory"]
