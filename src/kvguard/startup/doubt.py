"""A start behind one that serves, of which only the log's own words tell: what refutes it, and what settles it.

Whoever can print raw lines into the log can print a whole start. What nobody can print is time, and the silence of a
server that lives: it answers requests and tells its statistics, which one that is only starting cannot.
"""

from kvguard.events import EngineConfigured, Event, ProcessSpoke
from kvguard.lines.stamps import elapsed
from kvguard.slotted import dataclass, replace
from kvguard.startup.boundaries import AMENDING
from kvguard.startup.report import Phase, StartSummary
from kvguard.startup.state import StartState

SHORTEST_START = 5.0
"""Seconds from the first line to ready: vLLM's imports alone take about as long, tiny models on a CPU 14 s."""
MAX_DOUBTS = 8
"""Starts behind one another that are in doubt."""
_JUDGED = (Phase.ALLOCATED, Phase.READY, Phase.STOPPED)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What to go back to if the newest start was forged."""

    old: StartState
    starts: int
    history: tuple[StartSummary, ...]
    earlier: "Doubt | None" = None
    """Another one that nothing has settled: the old start may have been forged as well."""

    def refuted_by(self, event: Event, new: StartState) -> "Doubt | None":
        """This doubt or the nearest earlier one whose old server the event shows to live."""
        doubt: Doubt | None = self
        while doubt is not None and not doubt.is_refuted_by(event, new):
            doubt = doubt.earlier
        return doubt

    def bounded(self) -> "Doubt":
        """The same, without the earlier ones where they are too many: a log of many restarts needs no more memory."""
        depth, doubt = 1, self
        while doubt.earlier is not None:
            depth, doubt = depth + 1, doubt.earlier
        return self if depth < MAX_DOUBTS else replace(self, earlier=None)

    def asks_who_speaks(self, new: StartState) -> bool:
        """Whether a line that tells nothing can still refute it, by its process alone."""
        return new.phase is not Phase.READY or (bool(self.old.pids) and not self._repeats(new))

    def is_refuted_by(self, event: Event, new: StartState) -> bool:
        """Whether the event shows that the old server lives on."""
        pids = {event.origin.pid, event.origin.writer} - {None}
        of_old = bool(pids & self.old.pids)
        if isinstance(event, ProcessSpoke) and not event.answers:
            # where pids repeat, as in a container that is started again, it says nothing that one of them speaks; nor
            # where the log has lost the old start's head, and with it the pid that its server had
            return of_old and not self._repeats(new) and self.old.shows_beginning
        if not isinstance(event, (ProcessSpoke, *AMENDING)):
            return False
        return (of_old or not pids) and not self._may_serve(new)

    def is_of_old(self, event: Event, new: StartState) -> bool:
        """Whether a process of the old start says it, which the new one has no part in."""
        pid = event.origin.pid
        again = isinstance(event, EngineConfigured) and not self.old.shows_beginning
        return pid in self.old.pids and pid not in new.pids and not (again or self._repeats(new))

    def is_refuted_by_time(self, new: StartState) -> bool:
        """Whether a clock that saw the old start take its time shows that this one took none: it was printed."""
        old_took, new_took = _took(self.old), _took(new)
        return old_took is not None and new_took is not None and new_took < SHORTEST_START <= old_took

    def is_settled(self, new: StartState) -> bool:
        """Whether a clock that no client can set has seen the new start take its time, the old server silent."""
        if new.phase is not Phase.READY or not self._repeats(new):
            return False
        arrived = _difference(new.began_clock, new.ready_clock)
        stamped = _took(new) if self.old.by_outer_stamp else None  # a runtime stamps every line or none
        return max(arrived or 0.0, stamped or 0.0) >= SHORTEST_START

    def is_contested(self, new: StartState) -> bool:
        """Whether nothing but words that anybody may have printed tells which of the two serves.

        A process that the log had not seen before vouches for the new one. A log that names none has no better words.
        """
        vouched = not new.pids <= self.old.pids and (self.old.shows_beginning or not self._repeats(new))
        return bool(self.old.pids) and not vouched and new.phase in _JUDGED

    def _repeats(self, new: StartState) -> bool:
        return bool(new.pids & self.old.pids)

    def _may_serve(self, new: StartState) -> bool:
        """Whether the new start has come as far as the old one: then it may be the one that answers."""
        return new.phase is not Phase.FAILED and (new.reported or (new.phase is Phase.READY and not self.old.reported))


def _took(state: StartState) -> float | None:
    """Seconds to ready by the stamps that a runtime put before the lines; `None` where it put none."""
    return _difference(state.began, state.ready_stamp) if state.by_outer_stamp else None


def _difference(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else elapsed(first, last)
