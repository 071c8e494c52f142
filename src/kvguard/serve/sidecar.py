"""`Sidecar`: the one thing that changes while the sidecar runs. It moves bytes from the source into the guard, looks
after the SLO file, and publishes a `Snapshot` whenever something is new.

One thread alone calls `turn`; everybody else reads `snapshot`, which is replaced whole, and so needs no lock. Time is
handed in by clocks of the caller: a test turns it by hand.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kvguard.guard import Guard
from kvguard.serve.gate import CLOSED_BEFORE_READING, WHILE_CATCHING_UP, answer
from kvguard.serve.let_through import LetThrough
from kvguard.serve.slo_file import SloFile
from kvguard.serve.snapshot import Snapshot
from kvguard.serve.testimony import amended
from kvguard.slo.evaluate import evaluate
from kvguard.slo.verdict import Verdict
from kvguard.slotted import dataclass, replace
from kvguard.sources.feed import feed
from kvguard.sources.source import Source, State
from kvguard.sources.vllm.answers import VllmAnswer

PUBLISH_S = 0.05
"""A log that grows without a pause is judged at most this often: judging costs more than skimming access lines."""
TICK_S = 1.0
"""A log that rests is judged this often: time may pass for `ready_within`."""


class Witness(Protocol):
    """Whoever asks vLLM."""

    @property
    def name(self) -> str:
        """The address that is asked."""

    @property
    def answer(self) -> VllmAnswer | None:
        """The newest answer; another object each time."""


Sink = Callable[[Snapshot | None, Snapshot], None]
"""Told of every new snapshot with the one before it; `None` at the first."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds of a steady clock, and seconds since 1970, which may jump."""

    steady: Callable[[], float]
    wall: Callable[[], float]


class Sidecar:
    """Follow one source with one guard.

    Args:
        source: where the log comes from.
        guard: judges it; nobody else feeds it.
        slo_file: what is asked.
        clocks: what time it is.
        sinks: told of each snapshot, in this thread: they must be quick.
        witness: what vLLM says of itself, beside its log.
        let_through: the start that a process of kvguard before this one has let through.
    """

    def __init__(
        self,
        source: Source,
        guard: Guard,
        slo_file: SloFile,
        clocks: Clocks,
        sinks: Sequence[Sink] = (),
        witness: Witness | None = None,
        let_through: LetThrough | None = None,
    ) -> None:
        self.source, self._guard, self._slo_file = source, guard, slo_file
        self._clocks, self._sinks, self._witness = clocks, sinks, witness
        self._heard: VllmAnswer | None = None
        self._published = clocks.steady()
        self._news = True
        self._since: tuple[State | None, float | None] = (None, None)
        self._read_at: float | None = None
        self._looked_at: float | None = None
        self._shown: object = None
        self._caught_up = False
        self._nothing_read = guard.verdict
        self.snapshot = Snapshot(
            verdict=guard.verdict,
            gate=replace(CLOSED_BEFORE_READING, kept=let_through),
            rules=guard.slo.gate,
            source=source.status,
            slo=slo_file.status,
            source_since=None,
            read_at=None,
            looked_at=None,
            heard=None,
            revision=0,
        )

    def turn(self) -> float:
        """Do one bounded piece of work; the seconds until another one is of use."""
        now = self._clocks.steady()
        news = self._read(now)
        if self._slo_file.poll(now):
            self._guard.set_slo(self._slo_file.slo)
            news = True
        if self._witness is not None and self._witness.answer is not self._heard:
            self._heard = self._witness.answer
            news = True
        pause = self.source.delay(now)
        self._caught_up |= pause > 0 and not self.source.status.behind
        self._news |= news
        if now - self._published >= (PUBLISH_S if self._news else TICK_S) or (news and pause > 0):
            self._guard.tick(now)
            self._publish(now)
        return pause

    def _read(self, now: float) -> bool:
        """Take what the source has; whether there was anything."""
        wall = self._clocks.wall()
        events = self.source.poll(now)
        if feed(self._guard, events, now):
            self._read_at = wall
        status = self.source.status
        if status.state is State.ENDED and self._since[0] is not State.ENDED:
            self._guard.end(now)
        if status.state is not self._since[0]:
            self._since = (status.state, wall)
        if status.state is not State.FAILING:
            self._looked_at = wall
        return bool(events)

    def _judged(self, now: float) -> Verdict:
        """The verdict on the log, or on what log and second witness tell together.

        While a long log is read for the first time an old start is the newest one known, and would be let through.
        """
        if not self._caught_up:
            return self._nothing_read
        if self._heard is None or self._witness is None:
            return self._guard.verdict
        report = amended(self._guard.report, self._heard, self._witness.name)
        return self._guard.verdict if report is self._guard.report else evaluate(report, self._guard.slo, now)

    def _publish(self, now: float) -> None:
        """Replace the snapshot; its revision grows only if a person could see a difference."""
        before, self._published, self._news = self.snapshot, now, False
        verdict = self._judged(now)
        gone = self._heard is not None and self._heard.gone
        gate = answer(verdict, self._guard.slo.gate, before.gate.kept, gone)
        if not self._caught_up and not gate.open:
            gate = replace(gate, why=WHILE_CATCHING_UP)
        status = self.source.status
        shown = (*_visible(verdict), gate, status.state, status.message, self._slo_file.status)
        changed, self._shown = shown != self._shown, shown
        self.snapshot = Snapshot(
            verdict=verdict,
            gate=gate,
            rules=self._guard.slo.gate,
            source=status,
            slo=self._slo_file.status,
            source_since=self._since[1],
            read_at=self._read_at,
            looked_at=self._looked_at,
            heard=self._heard,
            revision=before.revision + changed,
        )
        if changed:
            for sink in self._sinks:
                sink(before if before.revision else None, self.snapshot)


def _visible(verdict: Verdict) -> tuple[object, ...]:
    """What a person sees of a verdict: all but the report's counters, which grow with every line."""
    report = verdict.report
    told = (report.starts, report.start, report.unrecognized)
    return (*told, verdict.outcome, verdict.reasons, verdict.checks, verdict.warnings)
