"""A log that grows faster than the sidecar reads it: it says so, loses nothing, and catches up."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvguard.guard import Guard
from kvguard.serve.sidecar import Clocks, Sidecar
from kvguard.serve.snapshot import Snapshot
from kvguard.slo.verdict import Outcome
from kvguard.sources.file import LOOK_S, FileSource
from kvguard.sources.source import READ_BYTES
from tests.serve.driven import NOON, READY, EditedSlo, ask_snapshot, slo
from tests.sources.following import copytruncate, rotate

ACCESS = b'INFO:     10.0.0.7:50000 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
SURPLUS = 64 * 1024
"""What is left of each block that is written between two pieces of reading."""
BLOCK = ACCESS * ((READ_BYTES + SURPLUS) // len(ACCESS))


class Race:
    """A sidecar, and a server that writes more between any two of its looks than a look reads."""

    def __init__(self, log: Path) -> None:
        self.log, self.now, self.written = log, 100.0, 0
        asked = slo(min_concurrency=2.5)
        self.source = FileSource(log)
        clocks = Clocks(lambda: self.now, lambda: NOON + self.now)
        self.sidecar = Sidecar(self.source, Guard(asked, str(log)), EditedSlo(asked), clocks)

    @property
    def snapshot(self) -> Snapshot:
        return self.sidecar.snapshot

    def write(self, data: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(data)
        self.written += len(data)

    def run(self, turns: int, meanwhile: Callable[[int], object] = lambda turn: None) -> None:
        for turn in range(turns):
            self.write(b"block %d of this log\n" % self.written + BLOCK)
            meanwhile(turn)
            self.now += 0.1
            self.sidecar.turn()

    def catch_up(self) -> None:
        """Until some looks in a row have found nothing more."""
        idle = 0
        while idle < 5:
            self.now += LOOK_S
            idle = idle + 1 if self.sidecar.turn() > 0 else 0


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    race = Race(tmp_path / "vllm.log")
    race.write(READY)
    yield race
    race.source.close()


def told_by_metrics(snapshot: Snapshot) -> float:
    lines = ask_snapshot(snapshot, "/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("kvguard_log_unread_bytes "))


def test_from_the_beginning_the_gate_waits_and_says_how_much_is_left(race: Race) -> None:
    race.run(20)

    told = ask_snapshot(race.snapshot, "/readyz")
    assert (told.status, race.snapshot.verdict.outcome) == (503, Outcome.UNKNOWN)
    assert "gate: the log is still being read from its beginning" in told.text
    assert "MiB still to be read\n" in told.text
    assert race.source.status.unread == race.written - race.source.status.bytes_read > 19 * SURPLUS
    assert told_by_metrics(race.snapshot) == race.source.status.unread

    race.catch_up()
    assert ask_snapshot(race.snapshot, "/readyz").status == 200
    assert race.source.status.bytes_read == race.written
    assert "still to be read" not in ask_snapshot(race.snapshot, "/readyz?verbose").text


def test_once_it_has_passed_it_stays_and_says_how_far_behind_it_is(race: Race) -> None:
    race.catch_up()
    race.run(20)

    assert ask_snapshot(race.snapshot, "/readyz").status == 200
    assert "MiB still to be read" in ask_snapshot(race.snapshot, "/readyz?verbose").text
    assert "MiB still to be read" in ask_snapshot(race.snapshot, "/").text


@pytest.mark.parametrize("turn_over", [rotate, copytruncate], ids=["rotated", "copied and cut"])
@pytest.mark.parametrize("times", [1, 3])
def test_what_is_turned_over_meanwhile_is_read_in_its_order(
    race: Race, times: int, turn_over: Callable[[Path], object]
) -> None:
    """The newest start is behind it all, and another server has died in between."""
    race.catch_up()
    names = iter(f".{number}" for number in range(9, 0, -1))  # copytruncate moves nothing: the oldest has the last name

    def meanwhile(turn: int) -> None:
        if turn % 4 == 1 and turn // 4 < times:
            race.write(READY)
            turn_over(race.log, *((next(names),) if turn_over is copytruncate else ()))

    race.run(16, meanwhile)
    race.catch_up()

    status = race.source.status
    assert (status.bytes_read, status.unread, status.read_errors) == (race.written, 0, 0)
    assert race.snapshot.verdict.report.starts == times + 1
    assert race.snapshot.gate.open
