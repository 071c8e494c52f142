"""Lines that stand twice in a log: a logger writes no line again in the same second of its past.

A guide repeats the telling lines below the whole log, a log is put together from overlapping pieces. What is only
repeated is no start.
"""

from kvguard.events import ArgumentsGiven, Event, ServerAnnounced
from kvguard.slotted import dataclass
from kvguard.startup.report import StartSummary
from kvguard.startup.state import StartState

MAX_TOLD = 512
"""Lines of a start that are known again."""


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
