"""`carrack://` for fsspec, and what stands on it: pandas, pyarrow, zarr, dask, xarray."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from typing import Any

import fsspec
import numpy
import pandas
import pytest
import xarray
import zarr
from dask import array as dask_array
from support import PROGRAM, Relay, Service, until

from carrack import Client, errors
from carrack.filesystem import AheadCache, CarrackFileSystem


@pytest.fixture
def fs(shared: Service) -> CarrackFileSystem:
    return CarrackFileSystem(shared.socket)


def options(service: Service) -> dict[str, Any]:
    return {"service": service.socket}


def test_one_column_of_a_parquet_moves_less_than_twice_its_bytes(shared: Service) -> None:
    frame = pandas.DataFrame({f"column{n}": numpy.random.default_rng(n).random(200_000) for n in range(12)})
    place = "carrack://lab/wide.parquet"
    frame.to_parquet(place, storage_options=options(shared), row_group_size=50_000)
    assert os.path.getsize(shared.data / "wide.parquet") > 10 * frame.column3.nbytes
    token, _ = shared.token("read", "view")
    relay = Relay(shared.port)
    column = pandas.read_parquet(place, columns=["column3"], storage_options={"service": relay.url, "token": token})
    relay.close()
    assert column.column3.equals(frame.column3)
    assert frame.column3.nbytes < relay.received < 2 * frame.column3.nbytes


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="there is no tmpfs")
def test_file_of_an_endpoint_in_memory_is_read_in_one_state(shared: Service, client: Client) -> None:
    frame = pandas.DataFrame({f"column{n}": numpy.random.default_rng(n).random(200_000) for n in range(12)})
    with tempfile.TemporaryDirectory(dir="/dev/shm") as root:
        client.add_endpoint(name="memory", location={"kind": "local", "root": root})
        frame.to_parquet(f"{root}/wide.parquet", row_group_size=50_000)
        fs = CarrackFileSystem(shared.socket)
        assert client.files("memory").size("/wide.parquet")[1] is None, "tmpfs shows no changes"
        with fs.open("memory/wide.parquet") as file:
            start = file.read(4)
            with open(f"{root}/wide.parquet", "r+b") as writer:
                writer.write(bytes(file.size))
            file.seek(0)
            assert start == b"PAR1"
            assert pandas.read_parquet(file, columns=["column3"]).column3.equals(frame.column3)
        assert fs.cat_file("memory/wide.parquet", start=-4) == bytes(4)
        client.remove_endpoint("memory")


def test_pandas_reads_and_writes_text(shared: Service) -> None:
    frame = pandas.DataFrame({"one": [1, 2, 3], "two": ["a", "b", "c"]})
    frame.to_csv("carrack://lab/table.csv.gz", index=False, storage_options=options(shared))
    assert pandas.read_csv("carrack://lab/table.csv.gz", storage_options=options(shared)).equals(frame)


def test_zarr_dask_and_xarray_write_arrays_and_read_them(shared: Service) -> None:
    whole = numpy.random.default_rng(1).random((600, 600))
    array = zarr.create_array(
        "carrack://lab/z.zarr", shape=(600, 600), chunks=(200, 200), dtype="f8", storage_options=options(shared)
    )
    array[:] = whole
    assert (zarr.open_array("carrack://lab/z.zarr", mode="r", storage_options=options(shared))[:] == whole).all()
    lazy = dask_array.from_array(whole, chunks=(300, 300))
    lazy.to_zarr("carrack://lab/d.zarr", storage_options=options(shared))
    assert (dask_array.from_zarr("carrack://lab/d.zarr", storage_options=options(shared)).compute() == whole).all()
    data = xarray.Dataset({"heat": (("x", "y"), whole)})
    data.to_zarr("carrack://lab/x.zarr", storage_options=options(shared), consolidated=False)
    opened = xarray.open_zarr("carrack://lab/x.zarr", storage_options=options(shared), consolidated=False)
    assert opened.heat.mean() == data.heat.mean()


WRITERS = {
    "zarr": """
import numpy, zarr
array = zarr.create_array(place, shape=(1000, 131072), chunks=(1, 131072), dtype="f8", compressors=None,
                          storage_options=options)
for row in range(1000):
    array[row] = numpy.arange(131072) + row * 131072
""",
    "dask": """
from dask import array
lazy = array.arange(1000 * 131072, dtype="f8", chunks=131072).reshape(1000, 131072)
lazy.to_zarr(place, storage_options=options)
""",
}


@pytest.mark.parametrize("writer", sorted(WRITERS))
def test_array_that_is_killed_half_way_has_only_whole_chunks(shared: Service, writer: str) -> None:
    name = f"{writer}.killed"
    script = f"options, place = {{'service': {shared.socket!r}}}, 'carrack://lab/{name}'\n" + WRITERS[writer]
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as process:
        chunks = shared.data / name / "c"
        until(lambda: chunks.exists() and len(os.listdir(chunks)) > 5)
        process.kill()
        assert process.wait() == -signal.SIGKILL

    def found() -> list[pathlib.Path]:
        return [path for path in (shared.data / name).rglob("*") if path.is_file()]

    # The service ends by itself what it was publishing.
    until(lambda: not [path for path in found() if path.name.startswith(".")])
    assert 5 < len(found()) < 1000
    array = zarr.open_array(f"carrack://lab/{name}", mode="r", storage_options=options(shared))
    for row in (int(path.parent.name) for path in found() if path.name != "zarr.json"):
        assert (array[row] == numpy.arange(131072) + row * 131072).all()


@pytest.mark.parametrize("rows", [1, 40])
def test_table_that_is_killed_half_way_is_not_there(shared: Service, rows: int) -> None:
    script = f"""
import fsspec, numpy, pyarrow, pyarrow.parquet, sys
with fsspec.open("carrack://lab/half.parquet", "wb", service={shared.socket!r}) as file:
    table = pyarrow.table({{"x": numpy.random.rand(131072)}})
    with pyarrow.parquet.ParquetWriter(file, table.schema, compression="none") as writer:
        for _ in range({rows}):
            writer.write_table(table)
        print("half", flush=True)
        sys.stdin.read()
"""
    env = {**os.environ, "CARRACK_PROGRAM": PROGRAM}
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"half\n"
        writer.kill()
        writer.wait()
    until(lambda: not [name for name in os.listdir(shared.data) if "half.parquet" in name])


def test_trees_are_put_found_got_moved_copied_and_removed(
    fs: CarrackFileSystem, shared: Service, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "tree/deep").mkdir(parents=True)
    (tmp_path / "tree/one").write_bytes(b"1")
    (tmp_path / "tree/deep/two").write_bytes(b"22")
    fs.put(str(tmp_path / "tree"), "carrack://lab/", recursive=True)
    assert fs.find("lab/tree") == ["lab/tree/deep/two", "lab/tree/one"]
    assert fs.du("lab/tree") == 3 and fs.isdir("lab/tree/deep") and fs.isfile("carrack://lab/tree/one")
    assert "lab" in fs.ls("", detail=False)
    fs.get("lab/tree", str(tmp_path / "back"), recursive=True)
    assert (tmp_path / "back/deep/two").read_bytes() == b"22"
    fs.mv("lab/tree/one", "lab/tree/first")
    fs.cp("lab/tree", "lab/twin", recursive=True)
    assert fs.cat("lab/twin/first") == b"1" and fs.cat_file("lab/twin/deep/two", start=-1) == b"2"
    assert fs.checksum("lab/twin/first") == fs.checksum("lab/tree/first")
    assert fs.ukey("lab/twin/first") and fs.modified("lab/twin/first")
    with pytest.raises(IsADirectoryError):
        fs.rm("lab/tree")
    fs.rm("lab/tree/*", recursive=True)
    fs.rmdir("lab/tree")
    fs.rm("lab/twin", recursive=True)
    assert not fs.exists("lab/tree") and not fs.exists("lab/twin")


def test_links_are_what_they_lead_to(fs: CarrackFileSystem, shared: Service) -> None:
    (shared.data / "linked").mkdir()
    (shared.data / "linked/file").write_bytes(b"123")
    (shared.data / "linked/to-file").symlink_to("file")
    (shared.data / "linked/to-directory").symlink_to("../linked")
    (shared.data / "linked/to-nothing").symlink_to("nothing")
    rows = {row["name"].rsplit("/")[-1]: (row["type"], row["size"]) for row in fs.ls("lab/linked")}
    assert rows["to-file"] == ("file", 3) and rows["file"] == ("file", 3)
    assert rows["to-directory"][0] == "directory" and rows["to-nothing"][0] == "other"
    assert fs.cat("lab/linked/to-file") == b"123"


def test_links_to_directories_are_not_followed_from_above(
    fs: CarrackFileSystem, shared: Service, tmp_path: pathlib.Path
) -> None:
    tree = shared.data / "looped"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep/file").write_bytes(b"123")
    for name, target in (("up", ".."), ("here", "."), ("out", "../../looped")):
        (tree / "deep" / name).symlink_to(target)
    found = ["lab/looped/deep/file"]
    assert fs.find("lab/looped") == found and fs.du("lab/looped") == 3
    assert fs.glob("lab/looped/**/file") == found
    assert sorted(fs.find("lab/looped", withdirs=True)) == sorted(
        ["lab/looped", "lab/looped/deep", *found, *(f"lab/looped/deep/{name}" for name in ("up", "here", "out"))]
    )
    levels = [("lab/looped", ["deep"], []), ("lab/looped/deep", ["here", "out", "up"], ["file"])]
    assert [(root, sorted(names), files) for root, names, files in fs.walk("lab/looped")] == levels
    assert [root for root, _, _ in fs.walk("lab/looped", topdown=False)] == ["lab/looped/deep", "lab/looped"]
    assert [root for root, _, _ in fs.walk("lab/looped", maxdepth=1)] == ["lab/looped"]
    for root, names, _ in fs.walk("lab/looped"):
        assert root == "lab/looped"
        names.clear()
    fs.get("lab/looped", str(tmp_path / "got"), recursive=True)
    assert (tmp_path / "got/deep/file").read_bytes() == b"123"
    # As in a shell: as deep as the pattern says.
    (tree / "beside").symlink_to("deep")
    assert fs.glob("lab/looped/*/file") == ["lab/looped/beside/file", "lab/looped/deep/file"]
    (tree / "beside").unlink()
    # A link that is named itself leads where it leads.
    assert fs.find("lab/looped/deep/up") == ["lab/looped/deep/up/deep/file"]


def test_ranges_of_a_file_are_of_one_state(
    fs: CarrackFileSystem, shared: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared.data / "ranges").write_bytes(b"0123456789")
    paths = ["lab/ranges", "lab/ranges", "lab/no-such", "lab/ranges"]
    first, second, absent, last = fs.cat_ranges(paths, [0, 4, 0, -3], [2, 6, 1, None])
    assert (first, second, last) == (b"01", b"45", b"789") and isinstance(absent, FileNotFoundError)
    files, _ = fs.place("lab/ranges")
    read = files.read

    def changing(*given: Any, **more: Any) -> bytes:
        told = read(*given, **more)
        (shared.data / "ranges").write_bytes(b"abcdefghij")
        return told

    monkeypatch.setattr(files, "read", changing)
    with pytest.raises(errors.Changed):
        fs.cat_ranges(["lab/ranges", "lab/ranges"], [0, 4], [2, 6], on_error="raise")


def test_failures_are_those_that_fsspec_has(fs: CarrackFileSystem) -> None:
    for ask in (fs.info, fs.ls, fs.cat_file, fs.rm, fs.open):
        with pytest.raises(FileNotFoundError):
            ask("lab/no-such")
    with pytest.raises(FileNotFoundError):
        fs.info("no-such-endpoint/x")
    fs.pipe("lab/taken", b"1")
    with pytest.raises(FileExistsError):
        fs.open("lab/taken", "xb").close()
    with pytest.raises(FileExistsError):
        fs.mkdir("lab/taken")
    fs.makedirs("lab/made/deep", exist_ok=True)
    fs.makedirs("lab/made/deep", exist_ok=True)
    with pytest.raises(FileExistsError):
        fs.makedirs("lab/made/deep")
    with pytest.raises(ValueError, match="opened as ab"):
        fs.open("lab/taken", "ab")
    with pytest.raises(PermissionError):
        fs.rm("lab", recursive=True)


def test_what_cannot_be_asked_is_not_taken_for_absent(tmp_path: pathlib.Path) -> None:
    fs = CarrackFileSystem(str(tmp_path / "none.sock"), patience=0.01)
    for ask in (fs.exists, fs.isdir, fs.isfile, fs.find, fs.glob, fs.du):
        with pytest.raises(ConnectionError):
            ask("lab/x")


def test_table_whose_writing_fails_is_not_there(shared: Service) -> None:
    class Failing:
        def __str__(self) -> str:
            raise OverflowError

    frame = pandas.DataFrame({"x": [*range(200_000), Failing()]})
    with pytest.raises(OverflowError), pytest.warns(UserWarning, match="is dropped"):
        frame.to_csv("carrack://lab/failing.csv", chunksize=1000, storage_options=options(shared))
    assert not (shared.data / "failing.csv").exists()


def test_files_of_copies_under_way_are_not_listed(fs: CarrackFileSystem, shared: Service) -> None:
    names = [".x.carrack-0a1b2c3d-1.part", ".carrack-0123456789abcdef.marker", ".x.part", "x"]
    (shared.data / "under-way").mkdir()
    for name in names:
        (shared.data / "under-way" / name).touch()
    assert fs.ls("lab/under-way", detail=False) == ["lab/under-way/.x.part", "lab/under-way/x"]


def test_directory_that_has_only_files_of_a_copy_under_way_is_not_empty(fs: CarrackFileSystem, shared: Service) -> None:
    (shared.data / "receiving").mkdir()
    part = shared.data / "receiving/.x.carrack-0a1b2c3d-1.part"
    part.write_bytes(b"1")
    assert fs.ls("lab/receiving") == []
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir("lab/receiving")
    with pytest.raises(IsADirectoryError):
        fs.rm("lab/receiving")
    assert part.exists()
    part.unlink()
    (shared.data / "to-receiving").symlink_to("receiving")
    for path in ("lab/to-receiving", "lab/taken-by-a-file"):
        fs.pipe("lab/taken-by-a-file", b"1")
        with pytest.raises(NotADirectoryError):
            fs.rmdir(path)
    fs.rmdir("lab/receiving")
    assert not fs.exists("lab/receiving")


def test_processes_that_fork_share_no_connection(fs: CarrackFileSystem, shared: Service) -> None:
    fs.pipe("lab/forked", b"1" * 100_000)
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            whole = all(fs.client.files("lab").read("/forked") == b"1" * 100_000 for _ in range(10))
            os._exit(0 if whole else 1)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0, 0]
    assert fs.cat("lab/forked") == b"1" * 100_000


def test_text_is_read_line_by_line_by_few_requests(shared: Service) -> None:
    lines = [f"{n:08}" for n in range(200_000)]
    (shared.data / "lines").write_text("\n".join(lines))
    token, _ = shared.token("read", "view")
    relay = Relay(shared.port)
    with fsspec.open("carrack://lab/lines", "rt", service=relay.url, token=token) as file:
        assert [line.rstrip("\n") for line in file] == lines
    relay.close()
    assert relay.requests < 12


def test_cache_gives_what_the_file_has() -> None:
    content = bytes(range(256)) * 4096
    asked: list[tuple[int, int]] = []

    def fetch(start: int, end: int) -> bytes:
        asked.append((start, end))
        return content[start:end]

    cache = AheadCache(0, fetch, len(content))
    random = numpy.random.default_rng(7)
    at = 0
    for _ in range(500):
        at = int(random.integers(0, len(content))) if random.random() < 0.3 else at
        end = at + int(random.integers(0, 100_000))
        assert cache._fetch(at, end) == content[at:end]
        at = min(end, len(content) - 1)
    asked.clear()
    assert cache._fetch(5, 10) == content[5:10]
    assert asked in ([(5, 10)], [])
