"""What is said on stderr while a start is waited for: each phase as it comes, and at times that nothing is stuck."""

from kvguard.cli.standard_streams import say
from kvguard.render.start_facts import PHASE_WORDS
from kvguard.slo.verdict import Verdict
from kvguard.startup.report import SETTLED, Phase
from kvguard.units import format_seconds

HEARTBEAT_S = 30.0
"""Between two lines while nothing changes: a pipeline must not take a silent step for a stuck one."""


_WORDS = {
    **PHASE_WORDS,
    Phase.NONE: "waiting for the first line of a start",
    Phase.LOADING: "loading",
    Phase.PROFILING: "profiling",
}


class Progress:
    """Talks of one start.

    Args:
        quiet: say nothing.
        last_ready: seconds that the last recorded start took to get ready, where that is known.
    """

    def __init__(self, quiet: bool, last_ready: float | None = None) -> None:
        self._quiet = quiet
        self._last_ready = last_ready
        self._phase: Phase | None = None
        self._words = ""
        self._since = 0.0
        self._spoke = 0.0

    def __call__(self, verdict: Verdict, seconds: float, awaited: str | None = None) -> None:
        """Tell of the verdict after so many seconds, where there is something to tell.

        Args:
            verdict: what is known now.
            seconds: since the wait began.
            awaited: what a log still misses of which nothing could be read.
        """
        start = verdict.report.start
        self._phase = start.phase if start else Phase.NONE
        words = awaited if awaited and self._phase in (Phase.NONE, *SETTLED) else _WORDS[self._phase]
        if words != self._words:
            self._words, self._since = words, seconds
            self._say(words, seconds)
        elif seconds - self._spoke >= HEARTBEAT_S:
            self._say(f"{words} for {format_seconds(seconds - self._since)}", seconds)

    def _expectation(self) -> str:
        if self._last_ready is None or self._phase in SETTLED:
            return ""
        return f" (the last start was ready {format_seconds(self._last_ready)} after its first line)"

    def _say(self, text: str, seconds: float) -> None:
        self._spoke = seconds
        if not self._quiet:
            say(f"kvguard: {format_seconds(seconds)}: {text}{self._expectation()}")
