"""How long a start took, and its parts: from lines that tell it, never from what they leave open."""

import pytest

from tests.startup.lines import BOOT, READY, SIZED, log, start_of

COMPILED = "(EngineCore_DP0 pid=130) INFO 12-08 10:15:10 [monitor.py:34] torch.compile takes {seconds} s in total\n"


@pytest.mark.parametrize(("total", "of_init", "seconds"), [("33.07", "7.28", 33.07), ("2.23", "18.86", 18.86)])
def test_compilation_took_as_long_as_the_longest_line_says(total: str, of_init: str, seconds: float) -> None:
    """The engine's own figure leaves out what a cache or a worker did; a rank's is of one part of the model."""
    sized = SIZED.replace("took 33.52 seconds", f"took 33.52 s (compilation: {of_init} s)")

    assert start_of(log(BOOT) + COMPILED.format(seconds=total) + log(sized, READY)).timings.compile == seconds
