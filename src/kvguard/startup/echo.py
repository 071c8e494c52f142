"""Lines that stand twice in a log, or newest first: a logger writes no line again in the same second of its past.

A guide repeats the telling lines below the whole log, a log is put together from overlapping pieces. What is only
repeated is no start.
"""

from kvguard.events import ArgumentsGiven, Event, Origin, ServerAnnounced
from kvguard.lines.stamps import elapsed
from kvguard.slotted import dataclass
from kvguard.startup.report import StartSummary
from kvguard.startup.state import StartState

MAX_TOLD = 512
"""Lines of a start that are known again."""
STEPS_BACK = 3
"""By which a log shows that its newest line stands first; an excerpt may show its beginning last."""


@dataclass(frozen=True, slots=True)
class Echo:
    """What to show as long as the newest start has told nothing that this one had not.

    Two replicas that start in the same second begin with the same lines: what they tell then differs.
    """

    old: StartState
    starts: int
    history: tuple[StartSummary, ...]

    def is_heard_in(self, event: Event) -> bool:
        """Whether the event is another repetition."""
        return mark_of(event) in self.old.told


@dataclass(slots=True)
class Order:
    """Which way a log's stamps run: viewers of log stores and `journalctl -r` give the newest line first."""

    latest: float | None = None
    back: int = 0
    forth: int = 0

    def follow(self, origin: Origin) -> None:
        """Take the next line that told something."""
        if origin.stamp is None:
            return
        step = 0.0 if self.latest is None else elapsed(self.latest, origin.stamp)
        self.back += step < 0
        self.forth += step > 0
        self.latest = origin.stamp

    @property
    def newest_first(self) -> bool:
        """Whether they run backwards and nowhere forwards: what stands behind was before."""
        return self.back >= STEPS_BACK and not self.forth


def mark_of(event: Event) -> int | None:
    """Whatever tells a line from any other of its start: when it was printed, by whom, and its words."""
    origin = event.origin
    if origin.stamp is None or origin.text is None:
        return None
    return hash((origin.stamp, origin.tag, origin.pid, event.format, origin.text))


def is_repeated(state: StartState, event: Event) -> bool:
    """Whether the log is told once more from its beginning, before the start has come to anything: a digest stands
    above it, or the same file behind it. What it has told already tells no more."""
    mark = mark_of(event)
    if isinstance(event, ServerAnnounced | ArgumentsGiven) and mark in state.told and not state.repeated:
        state.repeated = frozenset(state.told)
    return mark in state.repeated


def remember(state: StartState, event: Event) -> None:
    """Keep the event's line to know it again."""
    mark = mark_of(event)
    if mark is not None and len(state.told) < MAX_TOLD:
        state.told.add(mark)
