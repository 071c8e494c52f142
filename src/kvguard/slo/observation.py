"""What a report says of one indicator: a figure as printed, a computed interval, or why it is not known."""

from kvguard.slo.verdict import CheckKind
from kvguard.slotted import dataclass
from kvguard.startup.report import Place
from kvguard.units import Interval


@dataclass(frozen=True, slots=True)
class Observation:
    """One indicator, in its objective's unit. `value` is `None` where only an interval, or nothing, is known."""

    subject: str
    """What was looked at, as a sentence begins: "maximum concurrency at 16,384 tokens"."""
    kind: CheckKind
    value: float | str | None = None
    interval: Interval | None = None
    """Where the figure lies; of a printed one only where its exact value is known better than its digits."""
    place: Place | None = None
    note: str | None = None
    """How a computed figure came about, or what bounds its worth."""
    worst_end_decides: bool = False
    """Whether the pessimistic end of the interval is the judge, so that the other end cannot leave it open."""
    missing: str | None = None
    """Why nothing is known."""
    settles: str | None = None
    """What would make it known, or known better."""
    says: str = "{subject} is {observed}"
    """The sentence that tells the figure."""


def printed(
    subject: str, value: float | str, place: Place | None, *, exact: Interval | None = None, note: str | None = None
) -> Observation:
    """A figure that vLLM printed: its digits decide; `exact` is what is known of the value behind them."""
    return Observation(subject, CheckKind.PRINTED, value, exact, place, note)


def computed(
    subject: str,
    interval: Interval,
    place: Place | None,
    *,
    value: float | None = None,
    note: str | None = None,
    worst_end_decides: bool = False,
    settles: str | None = None,
    says: str = "{subject} is {observed}",
) -> Observation:
    """A figure that kvguard computed: its interval decides; `value` is the best single figure, if there is one."""
    best = interval.low if interval.is_exact else value
    kind = CheckKind.COMPUTED
    return Observation(subject, kind, best, interval, place, note, worst_end_decides, settles=settles, says=says)


def unknown(
    subject: str, missing: str, settles: str | None = None, *, kind: CheckKind = CheckKind.PRINTED
) -> Observation:
    """Nothing is known: why, and what would make it known."""
    return Observation(subject, kind, missing=missing, settles=settles)
