"""Copies by the program: report, progress, failures, and what stops them."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from support import TREE, Service

from carrack import CopyFailed, CopyProgress, Failure, Report, copy, errors
from carrack.program import Option, flags_of


def test_copy_gives_its_report(shared: Service, tmp_path: pathlib.Path) -> None:
    (tmp_path / "one").write_bytes(b"1" * 1000)
    (tmp_path / "two").write_bytes(b"2" * 2000)
    report = copy([tmp_path / "one", tmp_path / "two"], "@lab:/copied/", verify="disk", service=shared.socket)
    assert (report.exit_code, report.files, report.bytes, report.durable, report.verify) == (0, 2, 3000, True, "disk")
    assert report.raw["type"] == "summary" and len(report.targets) == 2 and report.failures == []
    assert (shared.data / "copied/two").read_bytes() == b"2" * 2000


def test_progress_is_called_and_an_exception_in_it_stops_the_copy(tmp_path: pathlib.Path) -> None:
    told: list[CopyProgress] = []

    class Enough(Exception):
        pass

    def progress(now: CopyProgress) -> None:
        told.append(now)
        if now.bytes_done > 0:
            raise Enough

    with pytest.raises(Enough):
        copy("random:10G", tmp_path / "stopped", bwlimit="20MB", progress=progress, every=0.1)
    assert 0 < told[-1].bytes_done < 10 << 30
    assert not (tmp_path / "stopped").exists()


def test_interrupt_stops_the_copy_and_it_goes_on_afterwards(tmp_path: pathlib.Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(60 << 20))
    script = f"""
import carrack
def progress(now):
    if now.bytes_done > 20 << 20:
        print("now", flush=True)
carrack.copy({str(tmp_path / "large")!r}, {str(tmp_path / "to")!r}, bwlimit="20MB", progress=progress, every=0.1,
             reflink="never")
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as python:
        assert python.stdout is not None and python.stderr is not None
        assert python.stdout.readline() == b"now\n"
        python.send_signal(signal.SIGINT)
        assert python.wait() != 0
        assert b"KeyboardInterrupt" in python.stderr.read()
    assert not (tmp_path / "to").exists()
    report = copy(tmp_path / "large", tmp_path / "to")
    assert report.bytes_resumed > 0
    assert (tmp_path / "to").read_bytes() == (tmp_path / "large").read_bytes()


def test_failures_have_side_path_code_and_hints(tmp_path: pathlib.Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/good").write_bytes(b"1")
    os.mkfifo(tmp_path / "from/pipe")
    with pytest.raises(CopyFailed) as failed:
        copy(tmp_path / "from", tmp_path / "to")
    error = failed.value
    assert (error.exit_code, error.side, error.path, error.code) == (23, "source", "from/pipe", "special-file")
    assert error.report is not None and error.report.files == 1 and error.failures == error.report.failures
    report = copy(tmp_path / "from", tmp_path / "to", check=False)
    assert [failure.path for failure in report.failures] == ["from/pipe"]


def test_copy_that_cannot_begin_is_an_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CopyFailed) as failed:
        copy(tmp_path / "none", tmp_path / "to", check=False)
    assert (failed.value.exit_code, failed.value.code, failed.value.side) == (11, "not-found", "source")
    assert failed.value.path == str(tmp_path / "none")
    with pytest.raises(CopyFailed, match="--no-such-flag") as failed:
        copy("a", "b", no_such_flag=True)
    assert (failed.value.exit_code, failed.value.code) == (2, "usage")
    with pytest.raises(CopyFailed, match="no service answers") as failed:
        copy("random:1", "@lab:/x", service=str(tmp_path / "no.sock"))
    assert failed.value.exit_code == 10 and failed.value.hints
    monkeypatch.setenv("CARRACK_PROGRAM", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(errors.ProgramMissing):
        copy("a", "b")


def test_paths_that_begin_with_a_dash_are_paths(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-rf").write_bytes(b"1")
    assert copy("./-rf", tmp_path / "to").files == 1


def test_path_objects_are_paths_of_this_host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("2026-11-30T10:00", "no-such-host:x", "-", "@lab:", "~", "null:"):
        (tmp_path / name).write_bytes(name.encode())
        assert copy(pathlib.Path(name), pathlib.Path(f"to:{name}")).files == 1
        assert (tmp_path / f"to:{name}").read_bytes() == name.encode()
    (tmp_path / "all").mkdir()
    assert copy([pathlib.Path("-"), pathlib.Path("@lab:")], pathlib.Path("all")).files == 2
    with pytest.raises(CopyFailed, match="no-such-host"):
        copy("no-such-host:x", tmp_path / "host")


def test_options_are_flags() -> None:
    options: dict[str, Option] = {
        "verify": "disk",
        "dry_run": True,
        "streams": 4,
        "exclude": ["*.tmp", "x"],
        "delete": False,
        "only": None,
    }
    assert flags_of(options) == ["--verify=disk", "--dry-run", "--streams=4", "--exclude=*.tmp", "--exclude=x"]


def test_report_and_failure_have_the_keys_of_the_schema() -> None:
    schema = json.loads((TREE / "docs/json.schema.json").read_text())["$defs"]
    own = {"targets", "notes", "raw"}
    assert set(Report.__dataclass_fields__) - own <= set(schema["copy_summary"]["properties"])
    assert set(CopyProgress.__dataclass_fields__) <= set(schema["progress"]["properties"])
    assert set(Failure.__dataclass_fields__) - {"path"} <= set(schema["failure"]["properties"])
