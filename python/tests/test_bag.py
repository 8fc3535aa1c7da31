"""A bag that `carrack receipt bag` makes, as another program for bags sees it."""

from __future__ import annotations

import pathlib
import subprocess

import bagit
import pytest
from support import PROGRAM


def run(*words: str, at: pathlib.Path) -> None:
    subprocess.run([PROGRAM, *words], cwd=at, check=True, capture_output=True)


def test_bag_is_valid_until_something_in_it_changes(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source"
    (source / "dir").mkdir(parents=True)
    # Percent signs are written as the specification says, which bagit-python does not read.
    for name in ("a", "dir/b c", "dir/new\nline", "dir/ü", "empty"):
        (source / name).write_text("" if name == "empty" else name)
    run("copy", "--receipt", "r", "source/", "bag/data/", at=tmp_path)
    run("receipt", "bag", "r", "bag", at=tmp_path)
    bag = bagit.Bag(str(tmp_path / "bag"))
    assert bag.validate()
    assert len(list(bag.payload_files())) == 5
    assert bag.info["Payload-Oxum"].endswith(".5")
    for name in ("data/a", "carrack-receipt.jsonl", "bag-info.txt"):
        path = tmp_path / "bag" / name
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(bagit.BagError):
            bagit.Bag(str(tmp_path / "bag")).validate()
        path.write_bytes(content)
    assert bagit.Bag(str(tmp_path / "bag")).validate()
