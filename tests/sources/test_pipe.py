"""Bytes piped in, and waiting for them."""

import os
import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard.errors import SourceError
from kvguard.sources.pipe import PipeSource
from kvguard.sources.source import BoundaryKind, Chunk, SourceEvent, State, StateChange
from tests.sources.following import arrivals


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.fixture
def source(fifo: Path) -> Iterator[PipeSource]:
    source = PipeSource(str(fifo))
    yield source
    source.close()


def text(events: list[SourceEvent]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Chunk))


def test_a_pipe_without_a_writer_waits(source: PipeSource) -> None:
    assert [event.state for event in source.poll(1.0)] == [State.WAITING]
    assert source.poll(2.0) == []
    assert source.status.since == 1.0


def test_a_pipe_is_read_as_it_comes_and_ends_with_its_writer(source: PipeSource, fifo: Path) -> None:
    with fifo.open("wb", buffering=0) as writer:
        writer.write(b"one\ntw")
        assert text(list(source.poll(1.0))) == b"one\ntw"
        assert source.poll(2.0) == ()
        writer.write(b"o\n")
        assert text(list(source.poll(3.0))) == b"o\n"
    assert [event.state for event in source.poll(4.0)] == [State.ENDED]
    assert source.poll(5.0) == ()
    assert (source.status.bytes_read, source.status.last_read) == (8, 3.0)


def test_a_pipe_that_is_read_for_ever_has_a_next_writer(fifo: Path) -> None:
    source = PipeSource(str(fifo), for_ever=True)
    for moment, word in ((1.0, b"one\n"), (5.0, b"two\n")):
        with fifo.open("wb", buffering=0) as writer:
            writer.write(word)
            assert text(list(source.poll(moment))) == word
        boundary, change = source.poll(moment + 1)
        assert (boundary.kind, boundary.new_process) == (BoundaryKind.NEW_FILE, None)
        assert change == StateChange(State.WAITING, f"{fifo} was closed by its writer: waiting for the next one")
        assert source.poll(moment + 2) == []
        assert not select.select([source.fileno()], [], [], 0)[0]  # who waits for it is not woken again and again
    with fifo.open("wb", buffering=0) as writer:
        writer.write(b"x" * 60_000)
        assert len(text(list(source.poll(9.0)))) == 60_000
    assert source.status.rotations == 2
    source.close()


@pytest.mark.parametrize("stands", [None, "a file"])
def test_a_pipe_that_has_been_taken_away_ends(fifo: Path, stands: str | None) -> None:
    source = PipeSource(str(fifo), for_ever=True)
    with fifo.open("wb", buffering=0) as writer:
        writer.write(b"one\n")
        source.poll(1.0)
        fifo.unlink()
        if stands:
            fifo.write_text(stands)
    assert source.poll(2.0) == [StateChange(State.ENDED, f"{fifo} has ended")]
    source.close()


def test_it_is_left_blocking_for_the_others_who_share_it(source: PipeSource) -> None:
    reader, writer = os.pipe()
    saved = os.dup(0)
    os.dup2(reader, 0)
    shared = PipeSource()
    assert os.get_blocking(0)
    shared.close()
    os.dup2(saved, 0)
    for descriptor in (reader, writer, saved):
        os.close(descriptor)


def test_a_pipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file"):
        PipeSource(str(tmp_path / "none"))


def test_a_device_without_an_end_at_stdin() -> None:
    saved = os.dup(0)
    with Path("/dev/zero").open("rb") as zeros:
        os.dup2(zeros.fileno(), 0)
    with pytest.raises(SourceError, match=r"^stdin: is a device: name the log file$"):
        PipeSource()
    os.dup2(saved, 0)
    os.close(saved)


def test_driving_it_to_its_end(source: PipeSource, fifo: Path) -> None:
    with fifo.open("wb", buffering=0) as writer:
        steps = arrivals(source)
        writer.write(b"one\n")
        assert text(list(next(steps))) == b"one\n"
        writer.write(b"two\n")
        assert text(list(next(steps))) == b"two\n"
    assert [event.state for event in next(steps)] == [State.ENDED]
    with pytest.raises(StopIteration):
        next(steps)


@pytest.mark.parametrize("place", ["file", "/dev/null"])
def test_what_cannot_be_waited_for_is_read_at_once(tmp_path: Path, place: str) -> None:
    path = tmp_path / "redirected"
    path.write_bytes(b"one\n")
    source = PipeSource(str(path) if place == "file" else place)
    assert source.fileno() is None
    told = text([event for events in arrivals(source) for event in events])
    assert told == (b"one\n" if place == "file" else b"")
    source.close()
