"""Servers that start at the same time and write into one log: whose line is it?

A process that goes on speaking after another server has announced itself was not replaced by it. Its lines are its own
start's, told apart by the pids in their tags. Servers that print none are told apart only by what one of them cannot
say: after a refusal the other one goes on, and where one serves the other one was refused.
"""

from kvguard.events import ArgumentsGiven, EngineConfigured, Event, Role, ServerAnnounced, ServerReady, Trust
from kvguard.startup.boundaries import TROUBLE, announcement_kind
from kvguard.startup.failures import is_refusal
from kvguard.startup.report import SETTLED, Phase
from kvguard.startup.state import StartState

MAX_ASIDE = 8
"""Starts that are remembered; further ones are taken for replaced."""
_SERVED = (Phase.READY, Phase.STOPPED)
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
        """Another start begins with this event: the old one may go on, if both name their processes or neither does."""
        if old.phase in SETTLED:
            self._aside = [state for state in self._aside if not state.server_unnamed or state.index in self._alive]
            return
        pid = event.origin.pid
        another = bool(old.announced) if pid is None else pid not in old.pids
        if another and old.server_unnamed is (pid is None):
            self._aside = [*self._aside, old][-MAX_ASIDE:]

    def forget(self) -> None:
        """None of them goes on: the source says that a new process writes, or they were forged."""
        self._aside, self._alive = [], set()

    def take_in(self, state: StartState) -> StartState:
        """Keep a start that is known to be beside the newest."""
        self._aside = [*self._aside, state][-MAX_ASIDE:]
        self._alive.add(state.index)
        return state

    def owner(self, event: Event, newest: StartState | None) -> StartState | None:
        """The start that the event is of, if it is one of these."""
        pid = event.origin.pid
        if newest is None or pid in newest.pids:
            return None
        if pid is None:
            found = self._unnamed_owner(event, newest)
        else:
            self._aside = [state for state in self._aside if not (pid in state.pids and _announces_anew(state, event))]
            # where only workers have pids, a container that is started again gives them the same
            found = next((state for state in self._aside if pid in state.pids and not state.server_unnamed), None)
            if found is None and isinstance(event, EngineConfigured):
                found = self._server_of(event, newest)
        if found is not None:
            self._alive.add(found.index)
        return found

    def _unnamed_owner(self, event: Event, newest: StartState) -> StartState | None:
        """Whose a line without a pid is, if the newest start cannot have printed it."""
        if _is_ready_too_soon(newest, event):
            return next((state for state in reversed(self._aside) if state.phase is Phase.ALLOCATED), None)
        unnamed = [state for state in reversed(self._aside) if state.server_unnamed]
        if _goes_on_behind(newest, event):
            return next((state for state in unnamed if state.phase is not Phase.FAILED), None)
        if refutes_service(newest, event):
            return next((state for state in unnamed if state.phase not in _SERVED), None)
        return None

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
        """Whether it is a worker's that no line ties to one of several servers, or nothing that the newest start can
        have printed."""
        if newest is None or event.origin.pid in newest.pids:
            return False
        if event.origin.pid is None:
            return _goes_on_behind(newest, event) or (bool(self.alive) and _is_ready_too_soon(newest, event))
        return event.origin.role is Role.WORKER and bool(self.alive)


def _is_ready_too_soon(newest: StartState, event: Event) -> bool:
    return isinstance(event, ServerReady) and newest.phase not in (Phase.ALLOCATED, *SETTLED)


def refutes_service(newest: StartState, event: Event) -> bool:
    """Whether a server without a pid says that it was refused, behind one that has served: it is another one."""
    told = event.origin.pid is None and event.origin.trust is Trust.RECORD and is_refusal(event)
    return told and newest.phase in _SERVED and newest.died is None and newest.behind_server and newest.server_unnamed


def _goes_on_behind(newest: StartState, event: Event) -> bool:
    """Whether it tells of progress behind a server's refusal without another one's announcement: of another server."""
    refused = newest.phase is Phase.FAILED and newest.failure is not None and not newest.failure.soft
    return refused and newest.behind_server and not isinstance(event, (ServerAnnounced, ArgumentsGiven, *TROUBLE))


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
