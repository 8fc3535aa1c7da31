"""Copies by the program `carrack`: the fast way, over as many connections as the path is worth, verified."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .errors import CopyFailed, ProgramMissing

Place: TypeAlias = "str | os.PathLike[str]"
Option: TypeAlias = "str | int | float | bool | None | Sequence[str]"


@dataclass(frozen=True)
class CopyProgress:
    """How far a copy is. What was found still grows until `scan_complete`."""

    files_done: int
    bytes_done: int
    files_found: int
    bytes_found: int
    scan_complete: bool
    files_failed: int


@dataclass(frozen=True)
class Failure:
    """Why an item failed, or a whole copy: at which side, which path, a word for programs, words for people."""

    code: str
    side: str
    message: str
    path: str | None = None
    retryable: str = "no"
    reason: str | None = None
    hints: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """What a copy did. `raw` has every key of the program's summary (docs/json.schema.json)."""

    exit_code: int
    files: int
    symlinks: int
    directories: int
    bytes: int
    files_failed: int
    files_kept: int
    files_same: int
    files_verified: int
    files_resumed: int
    bytes_resumed: int
    elapsed_seconds: float
    durable: bool
    verify: str | None
    digest: str | None
    encrypt: str | None
    limited_by: dict[str, Any] | None
    targets: list[str]
    failures: list[Failure]
    notes: list[str]
    raw: dict[str, Any]


def program() -> str:
    """The program: `CARRACK_PROGRAM`, else `carrack` on the PATH or beside this Python."""
    beside = os.path.join(os.path.dirname(sys.executable), "carrack")
    found = os.environ.get("CARRACK_PROGRAM") or shutil.which("carrack") or shutil.which(beside)
    if not found or not shutil.which(found):
        hints = ["put the program carrack on your PATH, or name it by CARRACK_PROGRAM"]
        raise ProgramMissing(f"there is no program {found or 'carrack'}", hints=hints)
    return found


def copy(
    source: Place | Sequence[Place],
    destination: Place,
    *,
    progress: Callable[[CopyProgress], None] | None = None,
    every: float = 1.0,
    check: bool = True,
    **options: Option,
) -> Report:
    """Copies by the program: between paths, `host:path`, `carrack://node/path` and `@endpoint:/path`. A `Path` is
    one of this host, whatever it looks like.

    `options` are the flags of `carrack copy`: `verify="disk"` is `--verify disk`, `dry_run=True` is `--dry-run`, and a
    list gives a flag several times. `progress` is called each `every` seconds.

    Raises `CopyFailed` where anything failed; with `check=False` only where the program came to no report. An exception
    in `progress`, and Ctrl-C, stop the copy; the same call goes on where it stood.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    flags = [f"--stats={round(every * 1000)}ms", *flags_of(options)]
    run = Run(["copy", *flags, "--", *map(typed, [*sources, destination])], subprocess.DEVNULL)
    with run:
        run.places = {
            "source": os.fspath(sources[0]) if len(sources) == 1 else None,
            "destination": os.fspath(destination),
        }
        for told in run.lines():
            if progress and told["type"] == "progress":
                progress(CopyProgress(**{key: told[key] for key in CopyProgress.__dataclass_fields__}))
    return run.report(check)


def typed(place: Place) -> str:
    """A place as the command line takes it: `-`, and what stands before a colon, have no meaning in a path object."""
    text = os.fspath(place)
    return text if isinstance(place, str) or os.path.isabs(text) else os.path.join(".", text)


class Run:
    """The program at work: its lines of JSON, and what it came to."""

    def __init__(self, arguments: Sequence[str], stdin: Any, environment: dict[str, str] | None = None) -> None:
        words = [program(), arguments[0], "--json", *arguments[1:]]
        more = {key: value for key, value in os.environ.items() if key != "CARRACK_PROGRAM"} | (environment or {})
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        # A session of its own: Ctrl-C reaches Python alone, which stops the program.
        self.process = subprocess.Popen(
            words, stdin=stdin, stdout=subprocess.PIPE, stderr=self._errors, env=more, start_new_session=True
        )
        self.said = ""
        self.summary: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.targets: list[str] = []
        # The paths that were given: an error that ends a copy is of one of them.
        self.places: dict[str, str | None] = {}
        self.notes: list[str] = []

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.process.terminate()
        if self.process.stdout:
            self.process.stdout.close()
        self.process.wait()
        with self._errors as errors:
            errors.seek(0)
            self.said = errors.read().decode(errors="replace").strip()

    def lines(self) -> Iterator[dict[str, Any]]:
        """Each line, as it comes."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            told: dict[str, Any] = json.loads(line)
            match told["type"]:
                case "summary":
                    self.summary = told
                case "error":
                    self.error = told
                case "resolved":
                    self.targets = told["targets"]
                case "note":
                    self.notes.append(told["message"])
            yield told

    def report(self, check: bool) -> Report:
        """What it came to, once it has ended."""
        code = self.process.returncode
        report = self._report() if self.summary else None
        if report is not None and (code == 0 or not (check or self.error)):
            return report
        if self.error:
            failure = failure_of(self.error)
            failure = replace(failure, path=failure.path or self.places.get(failure.side))
            raise CopyFailed(failure, code, report)
        if report and report.failures:
            raise CopyFailed(report.failures[0], code, report)
        why = self.said[-2000:] or f"carrack ended with {code}, and without a word"
        raise CopyFailed(Failure("usage" if code == 2 else "other", "command", why), code, report)

    def _report(self) -> Report:
        assert self.summary is not None
        known = [key for key in Report.__dataclass_fields__ if key in self.summary]
        given = {key: self.summary[key] for key in known} | {"targets": self.targets, "notes": self.notes}
        given["failures"] = [failure_of(item) for item in self.summary["failures"]]
        return Report(**given, raw=self.summary)


def failure_of(told: dict[str, Any]) -> Failure:
    """A failure out of an error, or out of an item that failed."""
    why = told.get("error") or told
    path = told.get("path")
    if "path_b64" in told:
        path = os.fsdecode(base64.b64decode(told["path_b64"]))
    plain = {key: why[key] for key in ("code", "side", "message", "retryable", "reason", "hints") if why.get(key)}
    return Failure(**plain, path=path)


def flags_of(options: dict[str, Option]) -> list[str]:
    """Options as flags of the command line."""
    flags = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not None and value is not False:
            several = [value] if isinstance(value, str | int | float) else value
            flags += [f"{flag}={one}" for one in several]
    return flags
