"""Clocks that jump: what is waited for is counted by the steady clock, and stamps of a log never run backwards."""

import ast
import re
from pathlib import Path

import pytest

import kvguard
from kvguard.guard import Guard
from kvguard.serve.sidecar import Clocks, Sidecar
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Outcome
from tests.scripted import ScriptedSource
from tests.serve.driven import LOADING, READY, EditedSlo

HOUR = 3600.0
SOURCE = Path(kvguard.__file__).parent
STAMP = re.compile(rb"(\d\d-\d\d) (\d\d):(\d\d:\d\d) ")
ASKS_WHAT_TIME_IT_IS = {
    "cli/serve.py",  # the time in its log's lines, of the record, of the Kubernetes events
    "cli/records.py",  # the time of a record
}


def test_only_what_is_dated_for_people_asks_the_wall_clock() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and ast.unparse(node) in ("time.time", "time.time_ns", "datetime.now", "datetime.utcnow", "date.today")
    }
    assert found == ASKS_WHAT_TIME_IT_IS


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -30 * 365 * 24 * HOUR], ids=["back", "forward", "to 1995"])
def test_a_wall_clock_that_jumps_decides_nothing(jump: float) -> None:
    """`ready_within` counts on, the log is read on, and the gate opens when it would have."""
    now, wall = 100.0, [1_764_400_000.0]
    slo = Slo(require_ready=True, ready_within=600.0)
    source = ScriptedSource()
    clocks = Clocks(lambda: now, lambda: wall[0])
    sidecar = Sidecar(source, Guard(slo, "vllm.log"), EditedSlo(slo), clocks)

    def turn(data: bytes, seconds: float) -> Outcome:
        nonlocal now
        now += seconds
        source.coming.extend([source.record.chunk(data, now)] if data else [])
        while sidecar.turn() == 0.0:
            pass
        return sidecar.snapshot.verdict.outcome

    assert turn(LOADING, 1.0) is Outcome.UNKNOWN
    wall[0] += jump
    assert turn(b"", 300.0) is Outcome.UNKNOWN
    assert turn(READY[len(LOADING) :], 1.0) is Outcome.PASS
    assert sidecar.snapshot.gate.open


def moved(log: bytes, hours: int, behind: bytes) -> bytes:
    """The log with the clock moved from a line on."""
    cut = log.index(behind)

    def move(stamp: "re.Match[bytes]") -> bytes:
        return b"%s %02d:%s " % (stamp[1], (int(stamp[2]) + hours) % 24, stamp[3])

    return log[:cut] + STAMP.sub(move, log[cut:])


def ready_after(log: bytes) -> float | None:
    guard = Guard(Slo(), "vllm.log")
    guard.feed(log)
    assert guard.report.start is not None
    return guard.report.start.timings.ready


def test_a_log_whose_clock_is_set_back_gives_no_time_below_nothing() -> None:
    real = ready_after(READY)
    assert real is not None
    back = ready_after(moved(READY, -1, b"(EngineCore"))
    assert back is None or 0 <= back <= real
