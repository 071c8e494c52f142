"""The file system under a log goes away and comes back: told, tried again, and read on, no line lost or doubled."""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvguard.sources.file import FileSource
from kvguard.sources.source import State
from tests.sources.following import Following, boundaries

CALLS = ("stat", "open", "fstat", "pread", "scandir")
GONE = {
    "a disk that fails": errno.EIO,
    "an NFS handle that is stale": errno.ESTALE,
    "a FUSE program that died": errno.ENOTCONN,
    "a device that was pulled": errno.ENODEV,
    "an NFS server that times out": errno.ETIMEDOUT,
}


class Disk:
    """System calls on one folder, which fail while `error` stands."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = None
        self._folder = str(folder)
        for name in CALLS:
            monkeypatch.setattr(os, name, self._failing(getattr(os, name)))

    def _failing(self, call: Callable[..., object]) -> Callable[..., object]:
        def failing(where: object, *arguments: object, **named: object) -> object:
            if self.error is not None and (isinstance(where, int) or str(where).startswith(self._folder)):
                raise OSError(self.error, os.strerror(self.error), str(where))
            return call(where, *arguments, **named)

        return failing


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs/vllm.log"


@pytest.fixture
def following(log: Path) -> Iterator[Following]:
    source = FileSource(str(log))
    yield Following(source)
    source.close()


@pytest.mark.parametrize("error", GONE.values(), ids=GONE.keys())
def test_every_call_fails_for_a_while(
    error: int, log: Path, following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_text("one\n")
    following.look()
    disk = Disk(log.parent, monkeypatch)
    with log.open("a") as file:
        file.write("two\n")

    disk.error = error
    assert following.read(times=20) == ""
    status = following.source.status
    assert (status.state, status.read_errors > 0) == (State.FAILING, True)
    assert os.strerror(error).lower() in status.message.lower()

    disk.error = None
    assert following.read(times=3) == "two\n"
    assert following.source.status.state is State.READING


def test_a_folder_that_is_taken_away_and_put_back(log: Path, following: Following) -> None:
    """As a volume that is unmounted: the file that is open is read on, and nothing is read twice afterwards."""
    log.write_text("one\n")
    following.look()
    away = log.parent.with_name("away")

    log.parent.rename(away)
    assert following.read(times=3) == ""
    with (away / log.name).open("a") as file:
        file.write("two\n")
    meanwhile = following.read(times=3)
    away.rename(log.parent)
    with log.open("a") as file:
        file.write("three\n")
    assert meanwhile + following.read(times=3) == "two\nthree\n"


def test_a_folder_that_is_removed_and_made_anew(log: Path, following: Following) -> None:
    log.write_text("one\n")
    following.look()

    shutil.rmtree(log.parent)
    assert following.read(times=30) == ""
    log.parent.mkdir()
    log.write_text("two\n")
    events = following.look(times=30)

    assert boundaries(events) == ["new-file"]
    assert following.source.status.bytes_read == len("one\ntwo\n")
