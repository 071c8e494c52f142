"""Lines that stand twice in a log begin no start, and no rank speaks by them."""

import itertools
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import Phase
from tests.startup.lines import BOOT, READY, SIZED, log, read

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
SHAPES = LOGS / "shapes"
WHOLE = log(BOOT, SIZED, READY)


def telling(text: str) -> str:
    """The lines that a guide repeats below a log: arguments, weights, memory and what fits."""
    words = ("non-default args", "Model loading took", "Available KV", "KV cache size", "Maximum concurrency")
    return "".join(line for line in text.splitlines(True) if any(word in line for word in words))


def test_a_digest_below_the_log_is_no_second_start() -> None:
    report = read(WHOLE + telling(WHOLE))

    assert report.start is not None
    assert (report.starts, report.start.phase, report.start.vllm_version) == (1, Phase.READY, "0.12.0")


def test_another_start_in_the_same_second_is_one() -> None:
    """Two replicas that were started together, one log behind the other: their first lines are alike, the rest not."""
    report = read(WHOLE + log(BOOT, SIZED, READY, concurrency="26.85"))

    assert report.start is not None
    assert (report.starts, report.start.capacity.weakest.max_concurrency) == (2, 26.85)


@pytest.mark.parametrize("name, missing", [("tp4-one-rank-missing", 1), ("tp4-ranks-differ", 0)])
def test_a_log_with_each_line_twice_tells_what_it_tells_once(name: str, missing: int) -> None:
    lines = (SHAPES / f"{name}.log").read_text().splitlines(True)

    once = read("".join(lines)).start
    twice = read("".join(itertools.chain.from_iterable(zip(lines, lines, strict=True)))).start

    assert once is not None
    assert twice is not None
    assert len(once.missing) == len(twice.missing) == missing
    assert twice.capacity == once.capacity
    assert twice.phase is once.phase


NEWEST_FIRST = [
    "public/v064-no-backticks.log",
    "public/tpu-crash-in-sampling.log",
    "runs/vllm-0.32.0-cpu-base/server.log",
]


@pytest.mark.parametrize("log", NEWEST_FIRST)
def test_a_log_that_is_newest_first_tells_nothing_but_that(log: str) -> None:
    lines = (LOGS / log).read_text(encoding="utf-8").splitlines()
    guard = Guard()
    guard.feed("\n".join(reversed(lines)).encode())
    guard.end()

    assert guard.verdict.outcome is Outcome.UNKNOWN
    assert guard.report.start is not None
    assert guard.report.start.phase is Phase.NONE
    assert [warning.code for warning in guard.report.start.warnings] == ["log-without-start"]
    assert "turn it over" in guard.report.start.warnings[0].message
