"""A long log is read by two processes, and the answer is that of one: whatever becomes of the other."""

import os
import signal
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.lines import scouting
from kvguard.lines.scouting import Scout, Stretch
from kvguard.sources import ahead
from kvguard.startup.report import CapacityReport
from tests.lines.serving import ACCESS, PID, PLAIN, STATS, report, without_counts

ACCESSES = f"{ACCESS}\n".encode() * 40


@pytest.fixture(autouse=True)
def small_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred kibibytes are a long log."""
    monkeypatch.setattr(scouting, "PART_BYTES", 8192)
    monkeypatch.setattr(scouting, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(scouting, "SHORTEST_BYTES", 1024)
    monkeypatch.setattr(ahead, "PART_BYTES", 8192)
    monkeypatch.setattr(ahead, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(ahead, "WORTH_BYTES", 16384)
    monkeypatch.setattr(ahead, "_processors", lambda: 2)
    content = ahead.content
    monkeypatch.setattr(ahead, "content", lambda name, descriptor: content(name, descriptor, 4096))


def stats(running: int) -> bytes:
    line = STATS.format(pid=PID, minute=1, engine=0, running=running, waiting=0, usage=f"{running}.5", part="")
    return f"{line}\n".encode()


SERVED = b"".join(ACCESSES + stats(number) for number in range(30))


class Taken:
    """What a guard took unread, and how many scouts were sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes = self.refused = self.scouts = 0
        pass_over, send = Guard.pass_over, ahead._sent

        def noted(guard: Guard, stretch: Stretch, scout: Scout) -> bool:
            taken = pass_over(guard, stretch, scout)
            self.bytes += taken * (stretch.end - stretch.begin)
            self.refused += not taken
            return taken

        def counted(scout: Scout, descriptor: int, parts: range) -> object:
            self.scouts += 1
            return send(scout, descriptor, parts)

        monkeypatch.setattr(Guard, "pass_over", noted)
        monkeypatch.setattr(ahead, "_sent", counted)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    return Taken(monkeypatch)


def fed(path: Path, data: bytes) -> CapacityReport:
    path.write_bytes(data)
    guard = Guard()
    ahead.feed_whole(guard, str(path))
    guard.end()
    return without_counts(guard.report)


def test_nearly_half_of_a_serving_log_is_read_by_the_other_process(tmp_path: Path, taken: Taken) -> None:
    data = PLAIN + SERVED

    assert fed(tmp_path / "log", data) == report(data)
    assert 0.3 < taken.bytes / len(SERVED) < 0.6
    assert (taken.scouts, taken.refused) == (1, 0)


@pytest.mark.parametrize("again", [0, 11, 29], ids=["early", "in the middle", "at the end"])
def test_a_restart_is_found_wherever_it_stands(again: int, tmp_path: Path, taken: Taken) -> None:
    parts = [ACCESSES + stats(number) for number in range(30)]
    behind = PLAIN + b"".join(parts[again:])
    data = PLAIN + b"".join(parts[:again]) + behind.replace(b"pid=", b"pid=9")

    found = fed(tmp_path / "log", data)

    assert found == report(data)
    assert found.starts == 2
    assert taken.bytes > 0


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(*_: object) -> None:
    raise RuntimeError("a fault in the scout")


@pytest.mark.parametrize("end", [die, fail])
def test_a_scout_that_dies_costs_nothing_but_time(
    end: object, tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Scout, "part", end)
    data = PLAIN + SERVED

    assert fed(tmp_path / "log", data) == report(data)
    assert (taken.bytes, taken.scouts) == (0, ahead.MAX_SCOUTS)
    assert capfd.readouterr() == ("", "")


def test_a_scout_that_stands_still_is_not_waited_for(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scout, "part", lambda *_: os.kill(os.getpid(), signal.SIGSTOP))
    monkeypatch.setattr(ahead, "PATIENCE_S", 0.001)
    data = PLAIN + SERVED

    assert fed(tmp_path / "log", data) == report(data)
    assert taken.bytes == 0


def test_a_scout_that_dies_in_the_middle_of_a_word_is_done_without(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(scout: Scout, descriptor: int, parts: range, sending: int) -> None:
        os.write(sending, (100).to_bytes(8, "big") + b"\x80\x04\x95")
        os._exit(0)

    monkeypatch.setattr(ahead, "_look", half)
    data = PLAIN + SERVED

    assert fed(tmp_path / "log", data) == report(data)
    assert taken.bytes == 0


def test_where_lines_must_be_read_everywhere_scouts_are_called_back(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    feed_to = ahead._feed_to
    monkeypatch.setattr(ahead, "_feed_to", lambda there, *rest: (looked.append(there), feed_to(there, *rest))[1])
    odd = b"(APIServer pid=1) WARNING 11-29 18:00:00 [serving.py:1] something else\n"
    data = PLAIN + (ACCESSES[:700] + odd) * 300

    assert fed(tmp_path / "log", data) == report(data)
    assert taken.bytes == 0
    assert len(looked) == ahead.MAX_POOR * taken.scouts == ahead.MAX_POOR * ahead.MAX_SCOUTS


def test_the_copy_holds_no_stream_of_the_readers(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Scout, "part", lambda *_: os.write(1, b"heard") and ())

    fed(tmp_path / "log", PLAIN + SERVED)

    assert taken.scouts > 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("missing", ["fork", "pipe"])
def test_without_a_process_to_be_had_the_log_is_read_alone(
    missing: str, tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, missing, refuse)
    data = PLAIN + SERVED

    assert fed(tmp_path / "log", data) == report(data)
    assert taken.bytes == 0


def test_no_scout_is_sent_whose_end_the_kernel_would_hide(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)

    fed(tmp_path / "log", PLAIN + SERVED)

    assert taken.scouts == 0


def test_a_log_that_is_cut_while_it_is_read_ends_where_it_was_cut(
    tmp_path: Path, taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kept = tmp_path / "log", len(PLAIN) + len(SERVED) // 3
    feed = Guard.feed

    def cut(guard: Guard, data: bytes) -> None:
        os.truncate(path, kept)
        feed(guard, data)

    monkeypatch.setattr(Guard, "feed", cut)

    fed(path, PLAIN + SERVED)

    assert path.stat().st_size == kept


@pytest.mark.parametrize("before", [b"\x1f\x8b", b"\0\0"])
def test_only_a_file_that_is_plain_from_here_on_is_looked_at_ahead(before: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(before + PLAIN)

    with path.open("rb") as plain:
        plain.read(2)
        behind = ahead.is_plain_file(plain.fileno())
        os.lseek(plain.fileno(), 0, os.SEEK_SET)
        assert (ahead.is_plain_file(plain.fileno()), behind) == (False, True)


def test_no_scout_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork, sent = os.fork, []

    def noted() -> int:
        sent.append(fork())
        return sent[-1]

    monkeypatch.setattr(os, "fork", noted)

    fed(tmp_path / "log", PLAIN + SERVED)

    (scout,) = sent
    with pytest.raises(ProcessLookupError):
        os.kill(scout, 0)
