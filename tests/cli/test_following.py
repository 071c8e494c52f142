"""When a followed log has given its answer: by a clock of the test's own, from sources that speak on cue."""

from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from kvguard.cli.following import Following, _follow
from kvguard.cli.wait_flags import Until
from kvguard.guard import Guard
from kvguard.slo.objectives import KINDS, Objective, Slo
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.sources.source import Chunk, SourceEvent, State
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
        return [] if said is None else [Chunk(said)]

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


@pytest.mark.parametrize("until", Until)
def test_every_end_of_a_start_is_an_answer_to_both(until: Until) -> None:
    from kvguard.cli.following import _REACHED

    assert {Phase.READY, Phase.FAILED, Phase.STOPPED} <= _REACHED[until]
