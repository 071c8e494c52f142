"""Attend a command: listen to it until it has ended, and end it once the answer is there or the time has run out."""

import signal
import time
from collections.abc import Callable, Sequence

from kvguard.cli.following import LONGEST_WAIT_S, Following, Talk
from kvguard.cli.standard_streams import beside
from kvguard.cli.wait_flags import Until
from kvguard.guard import Guard
from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Verdict
from kvguard.slotted import dataclass
from kvguard.sources.child.command import ChildSource
from kvguard.sources.child.signals import ForwardedSignals

_ASK_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Attendance:
    """What came of a command."""

    verdict: Verdict
    """That of the moment of the answer, or of the command's end: what it prints while we end it does not count."""
    status_of_command: int
    """As a shell gives it: 128 + the signal that ended it."""
    timed_out: bool
    signalled: int | None
    """The signal by way of us that ended the command."""


class _Relay:
    """Hands signals on to the command, and keeps them in mind."""

    def __init__(self, child: ChildSource) -> None:
        self._child = child
        self._sent: list[int] = []

    def send(self, number: int) -> None:
        self._sent.append(number)
        self._child.send(number)

    def ended_by(self, status: int) -> int | None:
        """The signal that asked us to end, or any other that the command, by its exit status, did not survive."""
        return next((number for number in self._sent if number in _ASK_TO_END or status == 128 + number), None)


def attend(
    command: Sequence[str],
    slo: Slo,
    talk: Talk,
    *,
    formats: tuple[LineFormat, ...] = FORMATS,
    gate: Until | None = None,
    timeout: float | None = None,
    on_answer: Callable[[Verdict], object] = lambda verdict: None,
) -> Attendance:
    """Run a command and judge its start; no process of it is left when this returns or raises.

    What is said on stderr from then on begins on a line of its own (`beside`).

    Args:
        command: the program and its arguments.
        slo: what is asked of its start.
        talk: told of the verdict after each look, with the seconds that have passed, until the answer is there.
        formats: the table of wordings.
        gate: what is waited for before the command is ended; `None` lets it run until it ends by itself.
        timeout: seconds until it is ended without an answer.
        on_answer: without a gate, told of the verdict once: when the server is ready, or when the command has ended.

    Raises:
        SourceError: the command cannot be started.
    """
    with ForwardedSignals() as signals:
        child = ChildSource(command)
        beside(child.break_line)
        try:
            relay = _Relay(child)
            signals.to(relay)
            guard = Guard(slo, child.status.name, formats)
            following = Following([child], [guard], slo, gate or Until.READY)
            verdict, timed_out = _listen(child, following, talk, gate, timeout, on_answer)
            status = child.exit_status or 0
            return Attendance(verdict, status, timed_out, relay.ended_by(status))
        finally:
            child.close()


def _listen(
    child: ChildSource,
    following: Following,
    talk: Talk,
    gate: Until | None,
    timeout: float | None,
    on_answer: Callable[[Verdict], object],
) -> tuple[Verdict, bool]:
    began = time.monotonic()
    answer: Verdict | None = None
    timed_out = False
    while True:
        now = time.monotonic()
        verdict = following.look(now)
        if answer is None:
            talk(verdict, now - began, None)
            overdue = timeout is not None and now - began >= timeout
            timed_out = overdue and not following.answered
            if overdue or following.has_settled(verdict, now):
                answer = verdict
                if gate is None:
                    on_answer(answer)
                else:
                    child.end()
        if following.has_ended():
            break
        left = LONGEST_WAIT_S if timeout is None or answer is not None else began + timeout - now
        following.wait(max(0.0, min(left, LONGEST_WAIT_S)), now)
    if answer is None:
        answer = following.end(time.monotonic(), child.exit_status)
        on_answer(answer)
    return answer, timed_out
