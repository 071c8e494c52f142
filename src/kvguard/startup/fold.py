"""`StartupFold`: events in, the newest start's state kept, earlier starts in short; the report on demand.

A start ends the one before it. A boundary behind a serving start that only the log's words vouch for stays in doubt
(`doubt`): what shows that the server before lives withdraws it.
"""

from collections import deque

from kvguard import events
from kvguard.events import Event, Origin
from kvguard.slotted import replace
from kvguard.startup import boundaries, failures
from kvguard.startup.beside import Beside, refutes_service
from kvguard.startup.boundaries import Course
from kvguard.startup.cautions import unproven
from kvguard.startup.deployment import of_containers
from kvguard.startup.doubt import Doubt
from kvguard.startup.echo import Echo, Order, is_repeated, mark_of, remember
from kvguard.startup.expected import is_complete
from kvguard.startup.ingest import INGEST, phase_proven
from kvguard.startup.report import (
    ENDED,
    MAX_HISTORY,
    SETTLED,
    CapacityReport,
    LogCounts,
    Phase,
    Place,
    Start,
    StartSummary,
    Unrecognized,
)
from kvguard.startup.snapshot import freeze, newest_first, summarize
from kvguard.startup.state import Sighting, StartState

MAX_NEXT_RUN = 64
"""Facts that are kept until it shows whose run they are of."""
_ORDER = (Phase.NONE, Phase.LOADING, Phase.PROFILING, Phase.ALLOCATED, Phase.READY)


class StartupFold:
    """Fold one log's events into its newest start.

    Args:
        source: the log's name in places.
    """

    def __init__(self, source: str = "log") -> None:
        self.source = source
        self._state: StartState | None = None
        self._starts = 0
        self._history: deque[StartSummary] = deque(maxlen=MAX_HISTORY)
        self._doubt: Doubt | None = None
        self._boundary = False
        self._may_begin = False
        self._echo: Echo | None = None
        self._beside = Beside()
        self._order = Order()
        self._began_at_end = False
        self._server_shown = False
        self._first_heard: Origin | None = None
        self._prologue: Origin | None = None

    @property
    def serving(self) -> bool:
        """Whether the newest start takes requests, so that users can write into the log."""
        state = self._state
        return state is not None and state.phase is Phase.READY and state.closed and state.of_vllm

    @property
    def tells_of_vllm(self) -> bool:
        """Whether any line was one that only a vLLM prints: in a log of several containers others have servers too."""
        return self._state is not None and self._state.of_vllm

    @property
    def doubtful(self) -> bool:
        """Whether a boundary may still be withdrawn because of who speaks."""
        return self._doubt is not None and self._state is not None and self._doubt.asks_who_speaks(self._state)

    @property
    def asks_who_serves(self) -> bool:
        """Whether no API server has said that it serves, or none has shown itself that could."""
        state = self._state
        return state is None or state.phase is not Phase.READY or not state.api_server or state.waits_for_server

    def boundary(self, certain: bool = True) -> None:
        """The source says that another stream begins here.

        Args:
            certain: a new process writes it, and its first fact begins a start, whatever its pid. Otherwise the log may
                just have been rotated under a server that goes on: a start is believed whatever its pid only if the
                very next fact announces it.
        """
        state = self._state
        if not certain:
            self._may_begin = state is not None
            return
        if state is not None and state.phase is Phase.READY:
            state.phase = Phase.STOPPED
        self._boundary = state is not None
        self._doubt = None
        self._beside.forget()

    def exited(self, status: int) -> None:
        """The source saw the process end, with that status: a server that was ready has stopped, or died."""
        state = self._state
        if state is not None and state.phase is Phase.READY:
            state.phase = Phase.STOPPED
            if status:
                state.died = Sighting(f"the command ended with status {status}", state.last_line)

    def apply(self, event: Event, now: float | None = None) -> None:
        """Take the next event; `now` is when it came, by the caller's clock."""
        self._order.follow(event.origin)
        self._withdraw_if_refuted(event)
        if isinstance(event, events.ProcessSpoke):
            self._hear(event)
            return
        if self._doubt is not None and self._state is not None and self._doubt.is_of_old(event, self._state):
            return
        self._forget_stranger(event)
        if self._is_of_an_end(event):
            return
        owner = self._beside.owner(event, self._state) or self._unseen(event)
        if owner is None:
            if not self._beside.is_anybodys(event, self._state):
                self._place(event, now)
        elif not owner.closed or boundaries.is_believed(owner, event):
            self._add(owner, event, now)

    def _place(self, event: Event, now: float | None) -> None:
        """Add the event to the newest start, or to the one that it begins."""
        may_begin, self._may_begin = self._may_begin, False
        state = self._state
        if state is not None and state.phase not in SETTLED and is_repeated(state, event):
            return
        if state is not None and not self._boundary and boundaries.may_be_prologue(state, event):
            self._prologue = event.origin
            return
        way = boundaries.course(self._state, event, new_process=self._boundary, new_stream=may_begin)
        if self._echo is not None and not self._echo.is_heard_in(event):
            self._echo = None
        if way in (Course.BEGINS, Course.BEGINS_IN_DOUBT):
            self._listen(event)
            before = self._state.next_run if self._state is not None else []
            self._begin(before[0] if before else event, now, in_doubt=way is Course.BEGINS_IN_DOUBT)
            for earlier in before:
                self._join(earlier, now)
        if way is Course.NOT_BELIEVED:
            self._note_refusal(event)
        elif self._state is not None:
            if way is Course.ANNOUNCES:
                self._state.find_unready()
            self._join(event, now)

    def _join(self, event: Event, now: float | None) -> None:
        state = self._state
        assert state is not None
        if boundaries.may_open_run(state, event):
            state.next_run = [] if boundaries.closes_run(event) else [*state.next_run, event][:MAX_NEXT_RUN]
        self._add(state, event, now)
        self._settle(state)

    def _unseen(self, event: Event) -> StartState | None:
        """A start of which the log shows nothing but its refusal."""
        if self._state is None or not refutes_service(self._state, event):
            return None
        self._starts += 1
        return self._beside.take_in(StartState(index=self._starts, first_line=event.origin.line, of_vllm=True))

    def _note_refusal(self, event: Event) -> None:
        """A process that is none of the serving start's says that it has not come up: no fact, but never silence."""
        state, origin = self._state, event.origin
        strange = state is not None and origin.pid is not None and origin.pid not in state.pids
        if state is not None and strange and origin.trust is events.Trust.RECORD and failures.is_refusal(event):
            state.refused_beside = state.refused_beside or origin.line

    def _is_of_an_end(self, event: Event) -> bool:
        """Whether the log begins behind a start, at its shut-down: what fails then is no start."""
        if self._state is None and isinstance(event, events.ShutdownBegan):
            self._began_at_end = True
        trouble = isinstance(event, events.ExceptionRaised) or event.format in boundaries.AT_AN_END
        return self._state is None and self._began_at_end and trouble

    def _hear(self, event: events.ProcessSpoke) -> None:
        """A record shows that time has passed, or an API server: that one says when the start is ready."""
        state, origin = self._state, event.origin
        if state is None:
            self._server_shown |= event.of_server
            self._first_heard = self._first_heard or (origin if origin.stamp is not None else None)
        else:
            state.hear(origin, event.of_server)

    def _forget_stranger(self, event: Event) -> None:
        """The server that has spoken so far was another program's: a wrapper's, that only now starts its vLLM."""
        if self._state is not None and not self._state.of_vllm and boundaries.is_of_vllm(event):
            self._state = None
            self._starts -= 1

    def _listen(self, event: Event) -> None:
        """Whether the line that begins a start stands in the start before, stamp and all."""
        old = self._state
        if old is not None and self._echo is None and not self._boundary and mark_of(event) in old.told:
            self._echo = Echo(old, self._starts, tuple(self._history))

    def _begin(self, event: Event, now: float | None, in_doubt: bool) -> None:
        old = self._state
        if in_doubt and old is not None:
            known = self._doubt
            if known is None or not known.is_contested(old):  # of two forged starts neither vouches for the other
                earlier = None if known is None else known.bounded()
                self._doubt = Doubt(old, self._starts, tuple(self._history), earlier)
        elif old is None or old.phase is Phase.READY:
            self._doubt = None  # a start that never got ready settles no doubt: two forged ones are no better than one
        if old is not None:
            self._history.append(summarize(old, self.source))
            if self._doubt is None:
                self._beside.set_aside(old, event)
        self._starts += 1
        self._boundary = False
        first = event.origin.process_line or event.origin.line
        if old is not None and first <= old.last_line:
            first = event.origin.line  # a pid that the start before had as well
        self._state = StartState(index=self._starts, first_line=first, began_clock=now)
        self._state.behind_server = old is not None and old.behind_server and old.phase not in ENDED
        if old is None and self._first_heard is not None:
            self._state.api_server = self._server_shown
            self._state.date(self._first_heard)
        prologue, self._prologue = self._prologue, None
        if prologue is not None and boundaries.is_prologue_of(prologue, event):
            self._state.first_line = prologue.line
            self._state.date(prologue)

    def _withdraw_if_refuted(self, event: Event) -> None:
        if self._doubt is not None and self._state is not None:
            refuted = self._doubt.refuted_by(event, self._state)
            if refuted is not None:
                self._withdraw(refuted)

    def _withdraw(self, doubt: Doubt) -> None:
        """The start before lives: the boundary was forged, and with it all that came behind."""
        new, self._state, self._starts = self._state, doubt.old, doubt.starts
        self._history = deque(doubt.history, maxlen=MAX_HISTORY)
        self._doubt = doubt.earlier
        self._beside.forget()
        if new is None or new.failure is None or new.failure.soft:
            return
        if new.pids:
            doubt.old.refused_beside = new.failure.line
        elif new.server_unnamed and doubt.old.behind_server:
            self._starts += 1
            new.index = self._starts
            self._beside.take_in(new)

    def _settle(self, state: StartState) -> None:
        if self._doubt is None or state.phase is not Phase.READY:
            return
        if self._doubt.is_refuted_by_time(state):
            self._withdraw(self._doubt)
        elif self._doubt.is_settled(state):
            self._doubt = None

    def _add(self, state: StartState, event: Event, now: float | None) -> None:
        origin = event.origin
        state.revive_if_alive(event)
        state.last_line = max(state.last_line, origin.line)
        if origin.pid is not None and (origin.trust is events.Trust.RECORD or self._doubt is None):
            state.pids.add(origin.pid)  # while its start is in doubt, a line without a logger's prefix vouches for none
            if self._doubt is not None and (origin.process_line or origin.line) <= self._doubt.old.last_line:
                self._doubt.old.pids.add(origin.pid)  # a process of the old start that has told nothing so far
            name = boundaries.speaker_of(origin)
            if name is not None:
                state.speakers.setdefault(name, origin.pid)
        if origin.trust is not events.Trust.RAW:
            state.stripped = False
        state.date(origin)
        state.latest_clock = now
        if origin.role is events.Role.API_SERVER:
            state.api_server = True
        state.of_vllm |= boundaries.is_of_vllm(event)
        if origin.stage is not None:
            state.stages.add(origin.stage)
        state.count_speaker(origin)
        if isinstance(event, events.ServerAnnounced | events.ArgumentsGiven):
            state.announced.setdefault(boundaries.announcement_kind(event), origin)
            state.behind_server = True
        state.quote(event)
        remember(state, event)
        if not self._ends(state, event):
            self._goes_on(state, event, now)

    def _ends(self, state: StartState, event: Event) -> bool:
        """Failures and shut-downs; whether the event was one."""
        if isinstance(event, events.ShutdownBegan):
            state.shut_down(event)
            return True
        if isinstance(event, events.FailureReported | events.ProcessFailed | events.ExceptionRaised):
            if not failures.is_failure(event) or (state.ending and event.format in boundaries.AT_AN_END):
                return True
            if state.phase is Phase.READY or _was_ready(state, event):
                state.phase = Phase.STOPPED
                state.died = Sighting(failures.message_of(event), event.origin.line)
            elif state.phase is not Phase.STOPPED:
                failures.take_failure(state, event)
                state.titled |= state.stripped and state.figures == 0
            return True
        return False

    def _goes_on(self, state: StartState, event: Event, now: float | None) -> None:
        ingest = INGEST.get(type(event))
        if ingest is not None and (_adds_nothing(state, event) or state.has_room()):
            ingest(state, event)
        if isinstance(event, events.LineUnrecognized) or state.phase is Phase.STOPPED:
            return
        failures.take_back(state)
        ready = isinstance(event, events.ServerReady | events.StatsLogged)
        if state.phase is Phase.FAILED and not ready:
            return
        if ready:
            state.failure = None
        self._advance(state, phase_proven(event), ready, event, now)

    def _advance(self, state: StartState, proven: Phase, ready: bool, event: Event, now: float | None) -> None:
        if not ready and not state.api_server and state.offline_ready:
            ready = state.ready_by_engines = True
        if ready:
            proven = Phase.READY
        elif state.phase not in (Phase.ALLOCATED, Phase.READY) and state.reported and is_complete(state):
            proven = Phase.ALLOCATED
        if state.phase is Phase.FAILED or _ORDER.index(proven) > _ORDER.index(state.phase):
            state.phase = proven
            if proven is Phase.READY:
                state.mark_ready(event.origin.line, now)
                state.ready_unseen = isinstance(event, events.StatsLogged)
        elif isinstance(event, events.ServerReady) and state.waits_for_server:
            state.mark_ready(event.origin.line, now)
            state.ready_by_engines = False

    def report(self, counts: LogCounts) -> CapacityReport:
        """The report as of now, of the weakest of servers that start side by side; frozen."""
        newest = self._newest(counts)
        alive = self._beside.alive
        if not alive:
            return newest
        beside = [self._summed_up(state, (), 1, LogCounts()) for state in alive]
        return of_containers([newest, *beside])

    def _newest(self, counts: LogCounts) -> CapacityReport:
        state, starts, before = self._state, self._starts, tuple(self._history)
        if self._echo is not None:
            state, starts, before = self._echo.old, self._echo.starts, self._echo.history
        if state is None or not (state.of_vllm or state.failure):
            return CapacityReport(sources=(self.source,), counts=counts)
        if self._order.newest_first:
            start = newest_first(state, self.source)
            return CapacityReport(sources=(self.source,), starts=1, start=start, counts=counts)
        own = {other.index for other in self._beside.alive}
        before = tuple(summary for summary in before if summary.index not in own)
        return self._summed_up(state, before, starts - len(own), counts)

    def _summed_up(
        self, state: StartState, before: tuple[StartSummary, ...], starts: int, counts: LogCounts
    ) -> CapacityReport:
        history = (*before, summarize(state, self.source))
        start = freeze(state, self.source, history, starts)
        contested_by = self._contested_by(state) if state is self._state else None
        if contested_by is not None:
            start = replace(start, warnings=(*start.warnings, unproven(state, start.first_place)))
        return CapacityReport(
            sources=(self.source,),
            starts=starts,
            start=start,
            history=history[-MAX_HISTORY:],
            unrecognized=tuple(
                Unrecognized(Place(self.source, noted.line), noted.value) for noted in state.unrecognized
            ),
            counts=counts,
            contested_by=contested_by,
        )

    def _contested_by(self, state: StartState) -> Start | None:
        """The start before, where nothing tells whether it serves or the newest one."""
        doubt = self._doubt
        if doubt is None or not doubt.is_contested(state):
            return None
        return freeze(doubt.old, self.source, doubt.history, doubt.starts)


def _adds_nothing(state: StartState, event: Event) -> bool:
    """Whether the event leaves the state as large as it was: what a server tells while it serves is added up."""
    return state.phase is Phase.READY or isinstance(event, events.LineUnrecognized)


def _was_ready(state: StartState, event: Event) -> bool:
    """Whether only an engine that has started says so (`run_engine_core`), in a log that shows nothing of its start."""
    return event.format == "process-engine-fatal" and state.figures == 0 and not state.shows_beginning
