"""Files of an endpoint: listed, read by ranges, written as uploads and as streams, renamed, removed."""

from __future__ import annotations

import fcntl
import os
import pathlib
import signal
import subprocess
import sys
import termios
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support import PROGRAM, Relay, Service, until

from carrack import Client, CopyFailed, Files, errors

NAMES = ["a b", "é", "100%", "%41", "a\nb", "x" * 200, "\udcff", "?#&+"]


def test_names_of_any_kind_are_written_listed_read_and_removed(files: Files, shared: Service) -> None:
    files.mkdir("/odd")
    for name in NAMES:
        files.write(f"/odd/{name}", name.encode(errors="surrogateescape"))
    assert {entry.name for entry in files.ls("/odd")} == set(NAMES)
    assert set(os.listdir(shared.data / "odd")) == set(NAMES)
    for name in NAMES:
        assert files.read(f"/odd/{name}") == name.encode(errors="surrogateescape")
        assert files.stat(f"/odd/{name}").path == f"/odd/{name}"
    files.rename("/odd/é", "/odd/è %")
    files.remove(*(f"/odd/{entry.name}" for entry in files.ls("/odd")))
    assert files.ls("/odd") == []


def test_directory_of_many_windows_is_listed_whole(files: Files, shared: Service) -> None:
    (shared.data / "many").mkdir()
    for n in range(2500):
        (shared.data / "many" / f".{n}").touch()
    assert len({entry.name for entry in files.ls("/many")}) == 2500


def test_failures_of_files_are_pythons_own(files: Files) -> None:
    files.write("/there", b"1")
    for ask in (files.stat, files.read, files.ls, files.sum, files.size):
        with pytest.raises(FileNotFoundError, match="no-such"):
            ask("/no-such")
    with pytest.raises(FileExistsError):
        files.mkdir("/there")
    with pytest.raises(FileExistsError):
        files.write("/there", b"2", existing="fail")
    files.write("/other", b"2")
    with pytest.raises(FileExistsError):
        files.rename("/other", "/there")
    files.rename("/other", "/there", replace=True)
    assert files.read("/there") == b"2"
    with pytest.raises(errors.FilesFailed):
        files.mkdir("/there/below")


def test_ranges_are_those_of_the_file(files: Files, shared: Service) -> None:
    content = os.urandom(1 << 20)
    (shared.data / "ranges").write_bytes(content)
    for start, end in [(0, None), (5, 10), (1 << 19, None), (1 << 20, None), (7, 7), ((1 << 20) - 1, 1 << 30)]:
        assert files.read("/ranges", start, end) == content[start:end]
    assert files.usage("/ranges")["bytes"] == 1 << 20
    files.write("/empty", b"")
    assert files.read("/empty") == b"" and files.size("/empty")[0] == 0


def test_file_that_changes_is_never_read_as_a_mixture(files: Files, shared: Service) -> None:
    files.write("/changing", b"a" * 100)
    _, tag = files.size("/changing")
    files.write("/changing", b"b" * 100)
    with pytest.raises(errors.Changed) as changed:
        files.read("/changing", 10, 20, tag=tag)
    assert isinstance(changed.value, OSError)


def test_download_goes_on_where_the_connection_broke_off(shared: Service, tmp_path: pathlib.Path) -> None:
    content = os.urandom(8 << 20)
    (shared.data / "cut").write_bytes(content)
    token, _ = shared.token("read", "view")
    relay = Relay(shared.port)
    cuts: list[int] = []

    def cut(n: int) -> None:
        if not cuts:
            cuts.append(n)
            relay.cut()

    with Client(relay.url, token=token) as client:
        client.files("lab").download("/cut", tmp_path / "here", progress=cut)
    relay.close()
    assert (tmp_path / "here").read_bytes() == content
    assert relay.requests == 2
    assert os.listdir(tmp_path) == ["here"]


def test_upload_sends_only_what_is_missing(files: Files, shared: Service, tmp_path: pathlib.Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(41 << 20))
    os.utime(tmp_path / "large", (1e9, 1e9))
    sent: list[int] = []

    class Stop(Exception):
        pass

    def one(n: int) -> None:
        sent.append(n)
        raise Stop

    with pytest.raises(Stop):
        files.upload(tmp_path / "large", "/large", progress=one)
    more: list[int] = []
    files.upload(tmp_path / "large", "/large", progress=more.append)
    assert len(sent) >= 1 and 0 < sum(more) < 41 << 20
    assert (shared.data / "large").read_bytes() == (tmp_path / "large").read_bytes()
    assert (shared.data / "large").stat().st_mtime == 1e9


def test_stream_is_whole_and_has_no_temporary_copy(
    files: Files, shared: Service, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def kept() -> int:
        """Bytes of all that the service keeps."""
        return sum(path.stat().st_size for path in (shared.directory / "state").rglob("*") if path.is_file())

    before = kept()
    pieces = [os.urandom(1 << 20) for _ in range(20)]
    with files.open("/stream", memory=4 << 20) as file:
        for piece in pieces:
            assert file.write(piece) == 1 << 20
        assert file.tell() == 20 << 20
        assert os.listdir(tmp_path) == [] and kept() < before + (1 << 20)
        assert not (shared.data / "stream").exists()
    assert (shared.data / "stream").read_bytes() == b"".join(pieces)
    with files.open("/stream", memory=0) as file:
        file.write(b"short")
    assert (shared.data / "stream").read_bytes() == b"short"


def test_what_the_program_says_of_a_stream_is_read_while_it_runs(files: Files, shared: Service) -> None:
    with files.open("/said", memory=0) as file:
        file.write(b"1" * (8 << 20))
        until(lambda: [name for name in os.listdir(shared.data) if name.startswith(".said.")])
        assert file._stream is not None and file._stream.run.process.stdout is not None
        said = file._stream.run.process.stdout.fileno()
        until(lambda: fcntl.ioctl(said, termios.FIONREAD, bytes(4)) == bytes(4))
    assert (shared.data / "said").stat().st_size == 8 << 20


def test_process_that_forks_ends_no_stream_of_its_parent(files: Files, shared: Service) -> None:
    with files.open("/parent", memory=0) as file:
        file.write(b"1" * 100)
        child = os.fork()
        if child == 0:
            file.__del__()
            os._exit(0)
        os.waitpid(child, 0)
        file.write(b"2" * 100)
    assert (shared.data / "parent").read_bytes() == b"1" * 100 + b"2" * 100


def test_stream_by_a_token_leaves_no_token_behind(
    shared: Service, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, _ = shared.token("read", "write", "view")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for service in (shared.url, shared.clear):
        with Client(service, token=token) as client, client.files("lab").open("/by-token", memory=0) as file:
            file.write(b"1" * 1000)
            assert os.listdir(tmp_path) == []
        assert (shared.data / "by-token").read_bytes() == b"1" * 1000


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("memory", [0, 4 << 20])
def test_file_that_is_given_up_leaves_nothing_and_replaces_nothing(files: Files, shared: Service, memory: int) -> None:
    (shared.data / "kept").write_bytes(b"before")
    with pytest.raises(KeyError), files.open("/kept", memory=memory) as file:
        file.write(b"half")
        raise KeyError
    with pytest.warns(ResourceWarning, match="not closed"):
        files.open("/kept", memory=memory).write(b"half")
    assert (shared.data / "kept").read_bytes() == b"before"
    assert [name for name in os.listdir(shared.data) if "kept" in name] == ["kept"]


@pytest.mark.parametrize("memory", [0, 4 << 20])
def test_library_that_closes_its_file_when_it_fails_publishes_nothing(
    files: Files, shared: Service, memory: int
) -> None:
    def library() -> None:
        file = files.open("/failed", memory=memory)
        try:
            file.write(b"half")
            raise KeyError
        finally:
            file.close()

    with pytest.raises(KeyError), pytest.warns(UserWarning, match="is dropped"):
        library()
    assert not (shared.data / "failed").exists()
    try:
        raise KeyError
    except KeyError:  # one that was handled before the file was opened is no reason
        file = files.open("/recovered", memory=memory)
        file.write(b"whole")
        file.close()
    assert (shared.data / "recovered").read_bytes() == b"whole"


@pytest.mark.parametrize("memory", [0, 64 << 20])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_writer_leaves_nothing(shared: Service, how: signal.Signals, memory: int) -> None:
    script = f"""
import carrack, os, sys
file = carrack.Client({shared.socket!r}).files("lab").open("/killed", memory={memory})
for _ in range(8):
    file.write(os.urandom(1 << 20))
print("half", flush=True)
sys.stdin.read()
"""
    env: dict[str, Any] = {**os.environ, "CARRACK_PROGRAM": PROGRAM}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"half\n"
        running = [pid for pid in processes("@lab:/killed")]
        assert len(running) == (1 if memory == 0 else 0)
        writer.send_signal(how)
        assert writer.wait() != 0
    until(lambda: not processes("@lab:/killed"))
    assert [name for name in os.listdir(shared.data) if "killed" in name] == []


def test_many_threads_list_read_and_write_at_once(shared: Service) -> None:
    with Client(shared.socket) as client, ThreadPoolExecutor(32) as lanes:
        files = client.files("lab")
        for n in range(32):
            (shared.data / f"at-once-{n}/deep").mkdir(parents=True)

        def one(n: int) -> tuple[list[str], bytes]:
            path = f"/at-once-{n % 4}/same"
            files.write(path, b"1" * 100_000)
            return [entry.name for entry in files.ls(f"/at-once-{n}")], files.read(path)

        for n, (names, content) in enumerate(lanes.map(one, range(32))):
            assert "deep" in names and content == b"1" * 100_000, n


def test_process_that_serves_the_files_may_be_killed(own: Service) -> None:
    with Client(own.socket) as client:
        files = client.files("lab")
        files.write("/there", b"1")
        for _ in range(3):
            threads = pathlib.Path(f"/proc/{own.process.pid}/task").glob("*/children")
            children = " ".join(thread.read_text() for thread in threads).split()
            assert children
            for child in children:
                os.kill(int(child), signal.SIGKILL)
            assert files.read("/there") == b"1"
            assert [entry.name for entry in files.ls("/")] == ["there"]


def processes(word: str) -> list[int]:
    """Processes with a word in their command line."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(int(entry.parent.name))
    return found


def test_stream_that_the_endpoint_refuses_is_an_error(shared: Service, client: Client) -> None:
    client.add_endpoint(name="closed", location={"kind": "local", "root": str(shared.data)}, read_only=True)
    with pytest.raises((CopyFailed, OSError)) as refused, client.files("closed").open("/no") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
    assert "closed" in str(refused.value)
    client.remove_endpoint("closed")
    (shared.data / "directory").mkdir()
    with pytest.raises(IsADirectoryError), client.files("lab").open("/directory", memory=0) as file:
        file.write(b"1")
    assert os.listdir(shared.data / "directory") == []
    with (
        pytest.raises(FileExistsError),
        client.files("lab").open("/there", existing="fail", memory=0) as file,
    ):
        file.write(b"1")


def test_endpoint_without_uploads_is_written_by_the_program(
    shared: Service, client: Client, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "local").write_bytes(b"content")
    root = shared.directory / "plain"
    root.mkdir()
    client.add_endpoint(name="plain", location={"kind": "local", "root": str(root)})
    files = client.files("plain")
    files.write("/one", b"1")
    files.upload(tmp_path / "local", "/two")
    assert (root / "one").read_bytes() == b"1" and (root / "two").read_bytes() == b"content"
    client.remove_endpoint("plain")


def test_stream_says_that_the_program_is_missing(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARRACK_PROGRAM", "/no/such/program")
    with pytest.raises(errors.ProgramMissing, match="/no/such/program"), files.open("/never", memory=0) as file:
        file.write(b"1")
