"""Looking ahead changes nothing: the same report as reading on, and most of a serving log is looked at ahead."""

import copy
import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvguard import Guard
from kvguard.events import Event, StatsLogged
from kvguard.lines import scouting
from kvguard.lines.scouting import Scout, Stretch
from tests.lines.serving import ACCESS, FORMS, PID, PLAIN, STATS, other_lines, report, stats_lines, without_counts


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kibibyte is a long log."""
    monkeypatch.setattr(scouting, "PART_BYTES", 2000)
    monkeypatch.setattr(scouting, "BLOCK_BYTES", 900)
    monkeypatch.setattr(scouting, "SHORTEST_BYTES", 1)


def stretches(scout: Scout, data: bytes, begin: int = 0) -> list[Stretch]:
    ahead = copy.deepcopy(scout)
    parts = scouting.parts_ahead(begin, len(data))
    looked = (ahead.part(lambda place, size: data[place : place + size], first, len(data)) for first in parts)
    return [stretch for part in looked for stretch in part]


def looked_ahead(data: bytes, begin: int) -> tuple[Guard, int]:
    """A guard that was fed a log, with a scout sent at a place; and how many bytes it took unread."""
    guard = Guard()
    guard.feed(data[:begin])
    scout, here, unread = guard.scout(), begin, 0
    for stretch in stretches(scout, data, begin) if scout else ():
        guard.feed(data[here : stretch.begin])
        here = stretch.begin
        if guard.pass_over(stretch, scout):
            unread += stretch.end - here
            here = stretch.end
    guard.feed(data[here:])
    guard.end()
    return guard, unread


def serving_guard() -> Guard:
    guard = Guard()
    guard.feed(PLAIN + f"{stats()}\n{ACCESS}\n".encode())
    return guard


def stats(running: int = 1, usage: float = 1.0, minute: int = 1) -> str:
    return STATS.format(pid=PID, minute=minute, engine=0, running=running, waiting=0, usage=usage, part="")


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(stats_lines | other_lines, max_size=80), portion=st.integers(0, 100))
def test_the_report_is_the_same_as_without(form: str, lines: list[str], portion: int) -> None:
    start, written = FORMS[form]
    data = start + "".join(f"{written(line)}\n" for line in lines).encode()
    begin = len(start) + (len(data) - len(start)) * portion // 100

    guard, _ = looked_ahead(data, begin)

    assert without_counts(guard.report) == report(data)


def test_half_of_a_serving_log_is_taken_unread() -> None:
    served = "".join(f"{stats(n % 7, n % 90 + 0.5)}\n{ACCESS}\n{ACCESS}\n" for n in range(200)).encode()
    data = PLAIN + served

    guard, unread = looked_ahead(data, len(PLAIN) + 2000)

    assert 0.4 < unread / len(served) < 0.6
    assert guard.report.start is not None
    assert (guard.report.start.runtime.samples, guard.report.start.runtime.peak_kv_cache_usage) == (200, 0.895)


def test_a_stretch_holds_whole_lines_and_numbers_them_from_its_own_first() -> None:
    scout = serving_guard().scout()
    assert scout is not None
    data = b"".join(f"{ACCESS}\n".encode() * 9 + f"{stats(n, n + 0.5)}\n".encode() for n in range(8))

    first = stretches(scout, data)[0]

    told = data[first.begin : first.end]
    assert data[first.begin - 1 : first.begin] == b"\n" == told[-1:]
    assert first.lines == told.count(b"\n")
    (event,) = first.events
    assert event.samples == told.count(b"generation throughput") > 0
    last = told.splitlines()[event.origin.line - 1]
    assert f"Running: {event.running} reqs".encode() in last
    (behind,) = first.events_behind(1000)
    assert (behind.origin.line, behind.peak_line) == (event.origin.line + 1000, (event.peak_line or 0) + 1000)


def test_a_line_that_must_be_read_stands_in_no_stretch() -> None:
    scout = serving_guard().scout()
    assert scout is not None
    odd = b"(APIServer pid=1) ERROR 11-29 18:00:00 [serving.py:1] something else\n"
    data = (f"{ACCESS}\n".encode() * 30 + odd) * 20

    found = stretches(scout, data)

    assert found
    assert all(odd not in data[each.begin : each.end] for each in found)


def test_no_scout_is_sent_before_the_server_serves() -> None:
    guard = Guard()
    guard.feed(PLAIN.partition(b"KV cache size")[0])

    assert guard.scout() is None


def test_no_scout_is_sent_into_a_log_that_is_decoded_first() -> None:
    guard = Guard()
    guard.feed(b"\xff\xfe" + (PLAIN + f"{stats()}\n{ACCESS}\n".encode()).decode().encode("utf-16-le"))

    assert guard.scout() is None


def test_a_stretch_is_refused_inside_a_line_and_while_a_start_goes_on() -> None:
    guard = serving_guard()
    scout = guard.scout()
    assert scout is not None
    stretch = Stretch(begin=0, end=100, lines=2, events=())

    guard.feed(b"INFO:     the beginning of a")
    inside = guard.pass_over(stretch, scout)
    guard.feed(b" line\n")
    behind = guard.pass_over(stretch, scout)
    guard.feed(PLAIN.replace(b"pid=", b"pid=9").partition(b"KV cache size")[0])
    starting = guard.pass_over(stretch, scout)

    assert (inside, behind, starting) == (False, True, False)


def test_stats_read_before_a_stretch_are_told_before_its_own() -> None:
    told: list[Event] = []
    guard = Guard(witness=told.append)
    guard.feed(PLAIN + f"{stats()}\n{ACCESS}\n".encode())
    told.clear()
    scout = guard.scout()
    assert scout is not None
    guard.feed(f"{stats(minute=2)}\n".encode())
    data = f"{ACCESS}\n{stats(minute=3)}\n".encode() * 20
    event = stretches(scout, data)[0].events[0]

    guard.pass_over(Stretch(begin=0, end=100, lines=2, events=(dataclasses.replace(event, samples=5),)), scout)

    assert [each.samples for each in told if isinstance(each, StatsLogged)] == [1, 5]
