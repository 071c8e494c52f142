"""The token's file: which word of it is in force, whatever becomes of it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kvguard.serve.access import TokenFile, may_enter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("old\n")
    return tmp_path / "token"


def test_another_word_counts_once_it_has_been_read(path: Path) -> None:
    token = TokenFile(path)
    path.write_text("new\n")
    assert token() == "old"
    token.renew()
    assert token() == "new"


SPOILT: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda path: path.write_text(""),
    "no text": lambda path: path.write_bytes(b"\xff\xfe\xfd"),
    "a pipe that nobody writes into": lambda path: (path.unlink(), os.mkfifo(path)),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_spoilt_file_leaves_the_last_good_word_in_force(spoil: Callable[[Path], object], path: Path) -> None:
    token = TokenFile(path)
    spoil(path)
    token.renew()
    assert may_enter("Bearer old", token)
