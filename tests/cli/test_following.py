"""When a followed log has given its answer: by a clock of the test's own, from sources that speak on cue."""

from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from kvguard.cli.following import Following, _follow
from kvguard.cli.wait_flags import Until
from kvguard.guard import Guard
from kvguard.slo.objectives import KINDS, Objective, Slo
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.sources.source import SourceEvent, State
from kvguard.startup.report import Phase
from tests.scripted import ScriptedSource
from tests.serve.driven import READY

ALLOCATED = READY[: READY.index(b"\n", READY.index(b"KV cache size: ")) + 1]
ACCESS = b'INFO:     10.0.0.1:5 - "GET /health HTTP/1.1" 200 OK\n'
SLO = Slo(objectives=(Objective(KINDS["min_concurrency"], 2),))


class Script(ScriptedSource):
    """A source that says one thing a poll, the last of them again and again; `None` says nothing."""

    def __init__(self, *says: bytes | None, ends: bool = False) -> None:
        super().__init__("script")
        self._says = iter(says)
        self._last = says[-1] if not ends else None
        self._ends = ends

    def poll(self, now: float) -> Sequence[SourceEvent]:
        try:
            said = next(self._says)
        except StopIteration:
            if self._ends:
                return self.record.change(State.ENDED, "ended", now)
            said = self._last
        return [] if said is None else [self.record.chunk(said, now)]

    def delay(self, now: float) -> float:
        return 0.0


def clock() -> Iterator[float]:
    return (tick / 8 for tick in count())  # eighths: exact in binary


def outcome(source: Script, until: Until, timeout: float | None = 30.0) -> tuple[Outcome, bool, float]:
    """The outcome, whether the time ran out, and the seconds it took."""
    ticks, told = clock(), list[float]()

    def talk(verdict: Verdict, seconds: float, awaited: str | None) -> None:
        told.append(seconds)

    following = Following([source], [Guard(SLO, "script")], SLO, until)
    waited = _follow(following, timeout, talk, lambda: next(ticks))
    return waited.verdict.outcome, waited.timed_out, told[-1]


def test_an_answer_is_taken_once_the_log_is_silent_behind_it() -> None:
    assert outcome(Script(READY, None), Until.READY) == (Outcome.PASS, False, 0.5)


def test_a_server_that_is_never_silent_is_waited_for_no_longer_than_some_seconds() -> None:
    assert outcome(Script(READY, ACCESS), Until.READY) == (Outcome.PASS, False, 3.125)


def test_an_answer_that_has_not_settled_in_time_is_an_answer() -> None:
    assert outcome(Script(READY, ACCESS), Until.READY, timeout=1.0) == (Outcome.PASS, False, 1.0)


def test_the_capacity_alone_is_no_answer_to_ready() -> None:
    assert outcome(Script(ALLOCATED, None), Until.READY, timeout=2.0)[1:] == (True, 2.0)
    assert outcome(Script(ALLOCATED, None), Until.CAPACITY, timeout=2.0) == (Outcome.PASS, False, 0.5)


def test_a_new_start_behind_the_answer_takes_it_back() -> None:
    restarted = READY.replace(b"pid=1", b"pid=9")
    script = Script(READY, restarted[: restarted.index(b"KV cache size: ") - 200], None)

    assert outcome(script, Until.READY, timeout=2.0)[1:] == (True, 2.0)


def test_an_end_is_an_end() -> None:
    assert outcome(Script(ALLOCATED[:-200], ends=True), Until.READY, timeout=None)[:2] == (Outcome.UNKNOWN, False)
    assert outcome(Script(READY, ends=True), Until.READY, timeout=None)[:2] == (Outcome.PASS, False)


def both(second: ScriptedSource, timeout: float | None = 4.0) -> tuple[Verdict, bool]:
    """What is known of a deployment whose first node is ready, and whether the time ran out."""
    ticks = clock()
    following = Following([Script(READY, None), second], [Guard(SLO, "one"), Guard(SLO, "two")], SLO, Until.READY)
    waited = _follow(following, timeout, lambda *told: None, lambda: next(ticks))
    return waited.verdict, waited.timed_out


def test_a_node_whose_log_is_not_there_yet_is_waited_for() -> None:
    missing = ScriptedSource("two")
    missing.record.change(State.WAITING, "two does not exist yet: waiting for it", 0.0)

    verdict, timed_out = both(missing)

    assert (verdict.outcome, timed_out) == (Outcome.UNKNOWN, True)
    assert [reason.message for reason in verdict.reasons] == ["two does not exist yet: waiting for it"]


def test_a_node_that_prints_nothing_keeps_nobody_waiting() -> None:
    silent = ScriptedSource("two")
    silent.record.change(State.READING, "reading two", 0.0)

    verdict, timed_out = both(silent)

    assert (verdict.outcome, timed_out) == (Outcome.PASS, False)


def test_of_many_logs_no_more_are_read_once_the_time_is_long_over() -> None:
    clock, read = 0.0, list[str]()

    class Slow(Script):
        """A log that takes two seconds to be looked at."""

        def poll(self, now: float) -> Sequence[SourceEvent]:
            nonlocal clock
            clock += 2.0
            read.append(self.status.name)
            return super().poll(now)

    sources = [Slow(READY) for _ in range(20)]
    following = Following(sources, [Guard(SLO, f"node{place}") for place in range(20)], SLO, Until.READY)
    waited = _follow(following, 1.0, lambda *told: None, lambda: clock)

    assert (waited.verdict.outcome, waited.timed_out, len(read)) == (Outcome.UNKNOWN, True, 4)


@pytest.mark.parametrize("until", Until)
def test_every_end_of_a_start_is_an_answer_to_both(until: Until) -> None:
    from kvguard.cli.following import _REACHED

    assert {Phase.READY, Phase.FAILED, Phase.STOPPED} <= _REACHED[until]
