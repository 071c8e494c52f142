"""Logs to guards, followed until the answer is there."""

import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kvguard.cli.reading import joined, only_once
from kvguard.cli.wait_flags import Until
from kvguard.errors import SourceError
from kvguard.guard import Guard
from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat
from kvguard.render.start_facts import EMPTY_LOG, said_live
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Outcome, Reason, Verdict
from kvguard.slotted import dataclass, replace
from kvguard.sources.blocks import describe_os_error
from kvguard.sources.feed import feed
from kvguard.sources.opening import followed, hold_open
from kvguard.sources.source import Source, State
from kvguard.sources.wait import wait
from kvguard.startup.report import SETTLED, Phase

SILENCE_S = 0.3
"""How long a log must be silent behind the answer: what was written before it was followed comes in bursts."""
SILENCE_AFTER_FAILURE_S = 1.0
"""The same of a failed start, whose cause may stand under the line that says that it failed."""
LONGEST_SETTLING_S = 3.0
"""A server that serves is never silent."""
LONGEST_WAIT_S = 1.0
"""Between two looks at the time-out."""
_ALL_OR_LONGER = "name only logs that are written, or wait longer (--timeout)"

Clock = Callable[[], float]
Talk = Callable[[Verdict, float, str | None], None]


_REACHED = {
    Until.CAPACITY: frozenset({Phase.ALLOCATED, *SETTLED}),
    Until.READY: frozenset(SETTLED),
}


@dataclass(frozen=True, slots=True)
class Waited:
    """How a followed start ended: the last verdict, and whether the time ran out before."""

    verdict: Verdict
    timed_out: bool


def follow(
    names: Sequence[str],
    slo: Slo,
    until: Until,
    timeout: float | None,
    talk: Talk,
    formats: tuple[LineFormat, ...] = FORMATS,
    clock: Clock = time.monotonic,
) -> Waited:
    """Judge logs as they grow, until the answer is there, every log has ended, or the time has run out.

    Args:
        names: files, which may appear later, pods' logs (`pod:…`), named pipes, or `-`.
        slo: what is asked; until `ready`, a start that is not ready yet is not known to be good.
        until: what is waited for; an objective that is missed already ends it as well.
        timeout: in seconds; `None` waits for ever.
        talk: told of the verdict after each look, with the seconds that have passed, and of what a log still misses.
        formats: the table of wordings.
        clock: a steady clock, in seconds.

    Raises:
        SourceError: a log cannot be opened, and will not mend itself, or they are more than may be open at once.
        ConfigError: stdin is named twice, or a pod's log cannot be meant.
    """
    only_once(names)
    hold_open(len(names))
    asked = replace(slo, require_ready=True) if until is Until.READY else slo
    guards = [Guard(asked, name, formats) for name in names]
    sources = [_source(name) for name in names]
    try:
        return _follow(Following(sources, guards, asked, until), timeout, talk, clock)
    finally:
        for source in sources:
            source.close()


class Following:
    """Several sources feeding their guards, and whether the answer has settled.

    Args:
        sources: where the bytes come from; closed by the caller.
        guards: one a source.
        slo: what is asked of all of them together.
        until: what is waited for.
    """

    def __init__(self, sources: Sequence[Source], guards: Sequence[Guard], slo: Slo, until: Until) -> None:
        self.sources, self.guards, self._slo, self._until = sources, guards, slo, until
        self._last_chunk = 0.0
        self._answered_since: float | None = None

    def look(self, now: float, is_overdue: Callable[[], bool] = lambda: False) -> Verdict:
        """Read what has come, and judge; of many logs those are left out that are reached when it is overdue."""
        for place, (source, guard) in enumerate(zip(self.sources, self.guards, strict=True)):
            if place and is_overdue():
                break
            if feed(guard, source.poll(now), now):
                self._last_chunk = now
            guard.tick(now)
        verdict = joined(self.guards, self._slo, now)
        waits = verdict.outcome is not Outcome.FAIL and any(map(_never_read, self.sources))
        if waits or not is_answered(verdict, self._until):
            self._answered_since = None
        elif self._answered_since is None:
            self._answered_since = now
        return verdict

    def end(self, now: float, exit_status: int | None = None) -> Verdict:
        """Nothing more will come: the last lines need no newline; the status is that of a command of ours."""
        for guard in self.guards:
            guard.end(now, exit_status)
        return joined(self.guards, self._slo, now)

    def has_ended(self) -> bool:
        """Whether nothing more can come."""
        return all(source.status.state is State.ENDED for source in self.sources)

    @property
    def answered(self) -> bool:
        """Whether the last look found the answer, settled or not."""
        return self._answered_since is not None

    @property
    def awaited(self) -> str | None:
        """What the first log misses of those that were looked at and of which nothing could be read."""
        looked_at = (one for one in self.sources if one.status.since is not None)
        return next((one.status.message for one in looked_at if _never_read(one)), None)

    def has_settled(self, verdict: Verdict, now: float) -> bool:
        """Whether the answer is there and the log has fallen silent behind it: an old log may hold more starts."""
        if self._answered_since is None:
            return False
        failed = verdict.report.start is not None and verdict.report.start.phase is Phase.FAILED
        silent = now - self._last_chunk >= (SILENCE_AFTER_FAILURE_S if failed else SILENCE_S)
        return silent or now - self._answered_since >= LONGEST_SETTLING_S

    def wait(self, longest: float, now: float) -> None:
        """Sleep until another look is of use."""
        if self._answered_since is not None:
            longest = min(longest, SILENCE_S)
        open_ones = [source for source in self.sources if source.status.state is not State.ENDED]
        if len(open_ones) == 1:
            wait(open_ones[0], longest, now)
        else:  # several: none may keep the others waiting
            shortest = min((source.delay(now) for source in open_ones), default=0.0)
            time.sleep(max(0.0, min(shortest, longest, SILENCE_S)))


def _follow(following: Following, timeout: float | None, talk: Talk, clock: Clock) -> Waited:
    began = clock()

    def is_overdue() -> bool:
        return timeout is not None and clock() - began > timeout + LONGEST_SETTLING_S

    while True:
        now = clock()
        verdict = following.look(now, is_overdue)
        talk(verdict, now - began, following.awaited)
        if following.has_ended():
            return Waited(following.end(now), timed_out=False)
        if following.has_settled(verdict, now):
            return Waited(verdict, timed_out=False)
        left = LONGEST_WAIT_S if timeout is None else began + timeout - now
        # what stands in a log already is read, however short the time
        behind = any(source.status.unread for source in following.sources) and left > -LONGEST_SETTLING_S
        if left <= 0 and not behind:
            return _timed_out(verdict, following)
        following.wait(max(0.0, min(left, LONGEST_WAIT_S)), now)


def _timed_out(verdict: Verdict, following: Following) -> Waited:
    """What is known when the time has run out: a log of which nothing was read may be there, and may tell of a miss."""
    if following.answered:
        return Waited(verdict, timed_out=False)
    awaited = following.awaited
    if verdict.outcome is Outcome.PASS and any(map(_never_read, following.sources)):
        unread = Reason(EMPTY_LOG, awaited or "there was no time to look at every log", None, _ALL_OR_LONGER)
        verdict = replace(verdict, outcome=Outcome.UNKNOWN, reasons=(unread,))
    reasons = tuple(
        replace(reason, message=awaited or said_live(reason)) if reason.code == EMPTY_LOG else reason
        for reason in verdict.reasons
    )
    return Waited(replace(verdict, reasons=reasons), timed_out=True)


def _never_read(source: Source) -> bool:
    """Whether its log is still to come: no file, no container, nobody at the other end of a pipe."""
    return source.status.state in (State.WAITING, State.FAILING) and not source.status.bytes_read


def is_answered(verdict: Verdict, until: Until) -> bool:
    """Whether more of this start's lines can't change the answer that is waited for."""
    if verdict.outcome is Outcome.FAIL:
        return True
    phase = verdict.report.start.phase if verdict.report.start else Phase.NONE
    # capacity is told by several lines: the first of them proves the phase, the others settle what is unknown yet
    settled = phase is not Phase.ALLOCATED or verdict.outcome is Outcome.PASS
    return phase in _REACHED[until] and settled


def _source(name: str) -> Source:
    path = Path(name)
    if path.is_file() and not os.access(path, os.R_OK):  # nobody will mend that while a pipeline waits
        raise SourceError(describe_os_error(name, PermissionError(errno.EACCES, "")))
    return followed(name)
