"""How long a start took, and its parts: from lines that tell it, never from what they leave open."""

import re

import pytest

from kvguard import Guard
from tests.startup.lines import BOOT, READY, SIZED, STATS, log, start_of

COMPILED = "(EngineCore_DP0 pid=130) INFO 12-08 10:15:10 [monitor.py:34] torch.compile takes {seconds} s in total\n"


@pytest.mark.parametrize(("total", "of_init", "seconds"), [("33.07", "7.28", 33.07), ("2.23", "18.86", 18.86)])
def test_compilation_took_as_long_as_the_longest_line_says(total: str, of_init: str, seconds: float) -> None:
    """The engine's own figure leaves out what a cache or a worker did; a rank's is of one part of the model."""
    sized = SIZED.replace("took 33.52 seconds", f"took 33.52 s (compilation: {of_init} s)")

    assert start_of(log(BOOT) + COMPILED.format(seconds=total) + log(sized, READY)).timings.compile == seconds


def test_a_start_whose_stamps_are_all_the_same_took_an_unknown_time() -> None:
    """A shipper has stamped the lines when it sent them."""
    start = start_of(re.sub(r"(?<=12-08 )[\d:]+", "10:00:00", log(BOOT, SIZED, READY)))

    assert start.timings.ready is None


def test_lines_that_come_at_once_tell_no_time() -> None:
    unstamped = re.sub(r"12-08 [\d:]+ ", "", log(BOOT, SIZED, READY))
    guard = Guard()
    guard.feed(unstamped.encode(), 100.0)

    assert guard.report.start is not None
    assert (guard.report.start.phase.value, guard.report.start.timings.ready) == ("ready", None)


def test_a_clock_that_goes_back_while_the_server_serves_takes_no_time_away() -> None:
    first, later = log(STATS, hour=18), log(STATS, hour=11)

    assert start_of(log(BOOT, SIZED, READY) + first + later + first).timings.ready == 103.0


def test_a_clock_that_goes_back_behind_a_lost_head_moves_no_beginning() -> None:
    """However many of the statistics' lines are told: of those that are skimmed only the last is."""
    tail = log(READY, STATS, hour=18)

    assert start_of(tail + log(STATS, hour=11)).began == start_of(tail).began
