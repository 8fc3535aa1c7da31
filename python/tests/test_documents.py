"""docs/python.md, typed line by line: what stands behind `>>>` must give what the page says."""

from __future__ import annotations

import doctest
import os
import pathlib
import re
import tomllib

import pytest
from support import TREE, Service

from carrack import errors

PAGE = TREE / "docs/python.md"


def test_page_is_typed_and_gives_what_it_says(
    own: Service, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(key, own.environment[key])
    monkeypatch.chdir(tmp_path)
    for where in (tmp_path, own.data):
        (where / "run42").mkdir()
        (where / "run42/one").write_bytes(b"1" * 1_000_000)
        (where / "run42/two").write_bytes(b"2" * 2_000_000)
    (tmp_path / "backup").mkdir()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    told: list[str] = []
    examples = doctest.DocTestParser().get_doctest(PAGE.read_text(), {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 20
    failed = doctest.DocTestRunner(optionflags=flags).run(examples, out=told.append, clear_globs=False)
    assert failed.failed == 0, "".join(told)
    assert sorted(os.listdir(tmp_path / "backup/run42")) == ["one", "two"]


def test_page_installs_what_there_is() -> None:
    project = tomllib.loads((TREE / "python/pyproject.toml").read_text())["project"]
    [(name, extra)] = re.findall(r"\$ pip install '(\w+)\[(\w+)\]'", PAGE.read_text())
    assert name == project["name"] and extra in project["optional-dependencies"]
    assert project["requires-python"] == ">=3.11" and "Python 3.11 or newer" in PAGE.read_text()


def test_page_names_exceptions_that_there_are() -> None:
    import carrack

    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*)\|", PAGE.read_text().split("## Errors")[1], re.MULTILINE)
    assert len(rows) > 8
    for names, also in rows:
        for name in re.findall(r"`(?:errors\.)?(\w+)`", names):
            kind = getattr(errors, name)
            assert issubclass(kind, carrack.CarrackError)
            for other in re.findall(r"`(\w+)`", also):
                assert issubclass(kind, getattr(__builtins__, other, None) or __builtins__[other])  # type: ignore[index]
