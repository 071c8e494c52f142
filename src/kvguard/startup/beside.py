"""Servers that start at the same time and write into one log: whose line is it?

A process that goes on speaking after another server has announced itself was not replaced by it. Its lines are its own
start's, told apart by the pids in their tags; releases that print none cannot be told apart.
"""

from kvguard.events import ArgumentsGiven, EngineConfigured, Event, Role, ServerAnnounced
from kvguard.startup.boundaries import announcement_kind
from kvguard.startup.report import SETTLED
from kvguard.startup.state import StartState

MAX_ASIDE = 8
"""Starts that are remembered; further ones are taken for replaced."""
_OPTIONS = {"model": "model", "max_seq_len": "max_model_len", "kv_cache_dtype": "kv_cache_dtype"}
"""Keys of an engine's banner, and the facts of its server's arguments that must be alike."""


class Beside:
    """The starts that were under way when another one began."""

    def __init__(self) -> None:
        self._aside: list[StartState] = []
        self._alive: set[int] = set()

    @property
    def alive(self) -> list[StartState]:
        """Those that have spoken since: their servers run beside the newest."""
        return [state for state in self._aside if state.index in self._alive]

    def set_aside(self, old: StartState, event: Event) -> None:
        """Another start begins with this event: the old one may go on, if both servers name their processes."""
        another = event.origin.pid is not None and event.origin.pid not in old.pids
        if another and not old.server_unnamed and old.phase not in SETTLED:
            self._aside = [*self._aside, old][-MAX_ASIDE:]

    def forget(self) -> None:
        """None of them goes on: the source says that a new process writes, or they were forged."""
        self._aside, self._alive = [], set()

    def owner(self, event: Event, newest: StartState | None) -> StartState | None:
        """The start that the event is of, if it is one of these."""
        pid = event.origin.pid
        if newest is None or pid is None or pid in newest.pids:
            return None
        self._aside = [state for state in self._aside if not (pid in state.pids and _announces_anew(state, event))]
        found = next((state for state in self._aside if pid in state.pids), None)
        if found is None and isinstance(event, EngineConfigured):
            found = self._server_of(event, newest)
        if found is not None:
            self._alive.add(found.index)
        return found

    def _server_of(self, event: EngineConfigured, newest: StartState) -> StartState | None:
        """Whose engine it is, if not the newest start's: the likeliest server's that has none yet, of equals the first
        that is known to live."""
        waiting = [state for state in self._aside if _likeness(state, event) >= 0]
        best = max(waiting, key=lambda state: (_likeness(state, event), state.index in self._alive), default=None)
        if best is None or _likeness(best, event) < _likeness(newest, event):
            return None
        equal = _likeness(best, event) == _likeness(newest, event)
        return None if equal and best.index not in self._alive else best

    def is_anybodys(self, event: Event, newest: StartState | None) -> bool:
        """Whether it is a worker's that no line ties to one of several servers."""
        origin = event.origin
        unknown = newest is not None and origin.pid is not None and origin.pid not in newest.pids
        return unknown and origin.role is Role.WORKER and bool(self.alive)


def _announces_anew(state: StartState, event: Event) -> bool:
    """Whether a process of that start has been replaced by one with its pid: each announces itself once."""
    if isinstance(event, EngineConfigured):
        return state.banner_line is not None
    return isinstance(event, ServerAnnounced | ArgumentsGiven) and announcement_kind(event) in state.announced


def _likeness(state: StartState, event: EngineConfigured) -> int:
    """In how much the engine is configured as this server was told; less than nothing if it cannot be its engine."""
    asked = {key: state.arguments.get(name) for key, name in _OPTIONS.items()}
    pairs = [(value, event.config.get(key)) for key, value in asked.items() if value not in (None, "auto")]
    if state.banner_line is not None or any(told not in (None, value) for value, told in pairs):
        return -1
    return sum(told == value for value, told in pairs)
