"""Where a start begins, and what is believed once a server serves: the rules that a forged line must not pass."""

from enum import Enum

from kvguard import events
from kvguard.events import Event, Origin, Role, Trust
from kvguard.lines.long_records import SEVERE
from kvguard.lines.stamps import YEAR, elapsed
from kvguard.startup.failures import is_failure
from kvguard.startup.ingest import engine_index
from kvguard.startup.report import ENDED, SETTLED, FailureKind, Phase
from kvguard.startup.state import LONGEST_START, StartState

AMENDING = (events.StatsLogged, events.Preempted, events.DataParallelResized, events.PoolResized, events.Slept)
"""What may change a start that serves, if a process of that start says it."""
ANNOUNCEMENTS = (events.ServerAnnounced, events.ArgumentsGiven, events.EngineConfigured)
"""What a process says of itself when it starts."""
ANYBODYS = frozenset(
    {
        "exception",
        "fail-exit-137",
        "fail-killed",
        "fail-validation",
        "platform-detected",
        "server-process-started",
        "server-ready",
        "server-running",
        "shutdown-finished",
        "shutdown-http",
    }
)
"""Formats of lines that any Python server prints, or any that imports vLLM."""
LONGEST_IMPORT = 600.0
"""Seconds from a process's first line to its announcement: vLLM's imports take 10 to 60 from a local disk."""
OF_ONE_CALL = ("process-worker-error", "process-worker-exception", "process-worker-method-failed")
"""Formats of failures that a server which serves may outlive, as the engine answers its client. What it does not
outlive, another record says."""
AT_AN_END = ("process-died", "process-engine-dead", "process-worker-died", *OF_ONE_CALL)
"""Formats of failures that an orderly shut-down prints as well."""
TROUBLE = (
    events.FailureReported,
    events.ProcessFailed,
    events.ExceptionRaised,
    events.ShutdownBegan,
    events.LineUnrecognized,
)
"""What no start goes on by."""
EXCLUSIVE = frozenset({FailureKind.NO_KV_MEMORY, FailureKind.KV_CACHE_TOO_SMALL, FailureKind.OOM})
"""Kinds of failure of which a process has one."""
_NO_BEGINNING = (events.ShutdownBegan, events.LineUnrecognized)
_ONCE_PER_ENGINE = ("blocks-device-and-cpu", "kv-cache-size-and-concurrency")
"""Formats that an engine prints once in every release that has them; the token line alone is not among them."""


class Course(Enum):
    """What becomes of an event."""

    BEGINS = "it is the first of a new start"
    BEGINS_IN_DOUBT = "so it says, and the log alone vouches for it"
    JOINS = "it belongs to the start that is there"
    ANNOUNCES = "it announces the start that is there, behind its place"
    NOT_BELIEVED = "a user may have written it"


def course(state: StartState | None, event: Event, new_process: bool, new_stream: bool) -> Course:
    """What becomes of an event.

    Args:
        state: the newest start so far.
        event: what came.
        new_process: the source says that a new process writes from here on.
        new_stream: the source says that another stream begins here, of the same process or of a new one.
    """
    if state is None:
        return Course.NOT_BELIEVED if isinstance(event, _NO_BEGINNING) else Course.BEGINS
    if new_process or (new_stream and _announces_behind(state, event)):
        return Course.BEGINS
    if _stands_behind_its_place(state, event):
        return Course.ANNOUNCES
    begins = begins_start(state, event)
    if state.phase is Phase.READY and begins:
        return Course.BEGINS_IN_DOUBT if is_believed_boundary(state, event) else Course.NOT_BELIEVED
    if begins:
        return Course.BEGINS
    return Course.NOT_BELIEVED if state.closed and not is_believed(state, event) else Course.JOINS


def begins_start(state: StartState, event: Event) -> bool:
    """Whether the event is the first of a start that is not `state`."""
    if event.origin.stage is not None and event.origin.stage not in state.stages:
        return False  # another model of the same server
    if isinstance(event, events.ServerAnnounced | events.ArgumentsGiven):
        return _announces_another(state, event)
    if isinstance(event, events.EngineConfigured):
        return _configures_another(state, event)
    if state.announced or state.banner_line is not None:
        return False
    return _tells_another(state, event)


def announcement_kind(event: Event) -> str:
    """Which of the announcements an event is: a process makes each of them once."""
    if isinstance(event, events.EngineConfigured):
        return "engine"
    if isinstance(event, events.ArgumentsGiven):
        return "arguments"
    return "model" if isinstance(event, events.ServerAnnounced) and event.vllm_version is None else "version"


def _announces_behind(state: StartState, event: Event) -> bool:
    """Whether the event announces a process where a new stream may begin, behind a start that has come to its end.

    A new container counts its pids anew, so they say nothing here; a start that is still under way may go on in the
    new stream, and is left to the rules that look at pids.
    """
    vouched = event.origin.trust is Trust.RECORD or state.stripped
    return _has_come_far(state) and vouched and isinstance(event, ANNOUNCEMENTS)


def _has_come_far(state: StartState) -> bool:
    """Whether nothing of the start need announce itself any more."""
    return state.reported or state.phase in SETTLED


def _announces_another(state: StartState, event: Event) -> bool:
    """An API server announces itself once: again, or where a start has gone further without it, it is another one."""
    earlier = state.announced.get(announcement_kind(event))
    far = _has_come_far(state)
    if earlier is None:
        return far and (_is_new(state, event.origin) or _comes_later(state, event.origin))
    if event.origin.tag != earlier.tag:
        return far
    # a process announces itself once: the same pid later is a new process in a new container
    return far or event.origin.pid != earlier.pid or event.origin.stamp != earlier.stamp


def _comes_later(state: StartState, origin: Origin) -> bool:
    """Whether the clock shows that what should stand at a start's head stands behind all of it.

    The log has lost the head, and a container that is started again has the same pids.
    """
    stamp = state.stamp_of(origin)
    return stamp is not None and state.latest is not None and 0 < elapsed(state.latest, stamp) < YEAR / 2


def _stands_behind_its_place(state: StartState, event: Event) -> bool:
    """Whether it announces the start that is already there: an excerpt put together with its beginning last."""
    stamp = state.stamp_of(event.origin)
    return (
        isinstance(event, ANNOUNCEMENTS)
        and not (state.phase in ENDED or (state.phase is Phase.READY and not state.ready_by_engines))
        and not state.announced.get(announcement_kind(event))
        and stamp is not None
        and state.began is not None
        and 0 < elapsed(stamp, state.began) < LONGEST_START
    )


def _configures_another(state: StartState, event: events.EngineConfigured) -> bool:
    """An engine that has reported, failed or ended is configured again by another process, or by the same pid anew."""
    if not _is_new(state, event.origin):
        configured = any(event.origin.pid in engine.pids for engine in state.engines.values())
        return configured and state.phase in SETTLED
    if state.phase in ENDED:
        return True
    if event.origin.engine is None and event.origin.pid is not None:
        return state.reported  # a tag without an index can only mean the one engine
    twin = state.engines.get(engine_index(state, event))
    return twin is not None and twin.reported


def _tells_another(state: StartState, event: Event) -> bool:
    """Stripped logs, where no process names itself: the first fact after the end, or another value of a once-row."""
    if _refuses_again(state, event):
        return True
    if state.phase in ENDED:
        if state.titled and event.origin.trust is Trust.RAW:
            return False
        return not isinstance(event, TROUBLE) and _is_new(state, event.origin)
    if _speaks_for_another(state, event.origin) or _is_of_another_length(state, event):
        return True
    if event.format not in _ONCE_PER_ENGINE:
        return False
    engine = state.engines.get(engine_index(state, event))
    if engine is None:
        return False
    if isinstance(event, events.BlocksAllocated) and engine.blocks:
        return event.gpu_blocks != engine.blocks[-1].value
    if isinstance(event, events.KvCacheSize) and engine.tokens:
        return event.kv_cache_tokens != engine.tokens[-1].value
    return False


def _refuses_again(state: StartState, event: Event) -> bool:
    """Whether one process cannot have said both this and what the start has failed of: each ends it."""
    known = state.failure
    if known is None or known.soft or not isinstance(event, events.FailureReported) or event.origin.pid is not None:
        return False
    both = {known.kind, FailureKind(event.kind)}
    asked = {known.requested_tokens, event.requested_tokens} - {None}
    return is_failure(event) and both <= EXCLUSIVE and (len(both) > 1 or len(asked) > 1)


def _is_of_another_length(state: StartState, event: Event) -> bool:
    """Whether it tells the concurrency for another length than the engine has told already, or its refusal."""
    if isinstance(event, events.MaxConcurrency):
        length: int | None = event.max_model_len_tokens
    else:
        length = event.requested_tokens if isinstance(event, events.FailureReported) and is_failure(event) else None
    engine = state.engines.get(engine_index(state, event)) if length is not None else None
    return engine is not None and bool(engine.concurrency) and engine.concurrency[-1][1] != length


def may_be_prologue(state: StartState, event: Event) -> bool:
    """Whether it is what a process prints when it imports vLLM, before it names itself: perhaps of the next start."""
    imported = event.format == "platform-detected" and event.origin.pid is None
    return imported and state.phase in SETTLED and state.shows_beginning


def is_prologue_of(prologue: Origin, event: Event) -> bool:
    """Whether the event may announce the process that has printed the prologue."""
    took = None if event.origin.stamp is None or prologue.stamp is None else elapsed(prologue.stamp, event.origin.stamp)
    return isinstance(event, ANNOUNCEMENTS) and took is not None and 0 <= took <= LONGEST_IMPORT


def may_open_run(state: StartState, event: Event) -> bool:
    """Whether the event may be of a run behind the one that has reported, in an excerpt where none announces itself.

    What a run tells first is alike in any other: that it was another one shows when its capacity comes.
    """
    if state.shows_beginning or not state.reported or state.phase in SETTLED:
        return False
    if state.next_run:
        return True
    if isinstance(event, events.KvCacheSize):
        return any(engine.concurrency or engine.blocks for engine in state.engines.values())
    return isinstance(event, events.WeightsLoaded | events.MemoryProfiled | events.KvCacheMemory)


def closes_run(event: Event) -> bool:
    """Whether the event, which begins no start, shows that what came before it was of the run that is there."""
    return isinstance(event, (events.MaxConcurrency, events.BlocksAllocated, events.EngineInitialized, *TROUBLE))


def _speaks_for_another(state: StartState, origin: Origin) -> bool:
    """Whether an engine or a rank of a start that has reported speaks again, as a process never seen before."""
    name = speaker_of(origin)
    before = state.speakers.get(name) if name is not None else None
    return state.reported and before not in (None, origin.pid) and origin.pid not in state.pids


def speaker_of(origin: Origin) -> str | None:
    """The name of an engine or a rank that only one process of a start has; `None` where several may share it."""
    if origin.pid is None or origin.role not in (Role.ENGINE, Role.WORKER):
        return None
    if origin.role is Role.ENGINE:
        return origin.tag
    return (
        None if origin.rank is None or origin.rank.startswith("pid=") else f"{origin.tag} {origin.rank} {origin.node}"
    )


def _is_new(state: StartState, origin: Origin) -> bool:
    """Whether the process is none of the start's, as far as the log names processes."""
    return origin.pid is None or origin.pid not in state.pids


def is_believed(state: StartState, event: Event) -> bool:
    """Whether a start that serves takes the event: what users can write must not pass.

    The facts of the start are closed. A record of one of its processes may amend it or end it; where the log's format
    names no process, the logger's own prefix has to do, and where no line has one (a stripped log) nothing can be told.
    """
    origin = event.origin
    if isinstance(event, events.ShutdownBegan) and event.process_pid is not None:
        of_start = origin.pid is None or origin.pid in state.pids
        return of_start and event.process_pid in state.http_pids | state.pids
    if isinstance(event, events.ServerReady):
        return state.waits_for_server
    late = isinstance(event, events.BlocksCounted) and state.ready_by_engines and state.counted_blocks is None
    if not (late or isinstance(event, (*AMENDING, events.ShutdownBegan)) or _is_crash(event)):
        return False
    if origin.level in SEVERE and isinstance(event, AMENDING):
        return False  # the rest of a record about an error, which may repeat a client's text
    if late:
        return origin.trust is Trust.RECORD
    if origin.pid is not None and state.pids:
        return origin.pid in state.pids and origin.trust is Trust.RECORD
    return state.server_unnamed and (origin.trust is Trust.RECORD or (state.stripped and not state.pids))


def _is_crash(event: Event) -> bool:
    """A process of the start has died."""
    return isinstance(event, events.ProcessFailed | events.FailureReported) and event.format not in OF_ONE_CALL


def is_believed_boundary(state: StartState, event: Event) -> bool:
    """Whether a start may begin behind one that serves.

    By a process that the log has not seen before, or by one with the pid of an earlier one, as in a container that is
    started again: a process announces itself once. What speaks against either afterwards stands in `doubt`.
    """
    origin = event.origin
    if origin.level in SEVERE:
        return False
    if origin.pid is not None:
        own = origin.writer in (None, origin.pid) or origin.writer not in state.pids  # else it quotes another process
        return own and (origin.trust is Trust.RECORD or _announces_as_before(state, origin))
    if origin.trust is Trust.RECORD and state.announced:
        return state.server_unnamed  # it can only announce itself as the first one did
    return not state.pids and (origin.trust is Trust.RECORD or state.stripped)


def _announces_as_before(state: StartState, origin: Origin) -> bool:
    """Whether the log shows no more of a record than its tag, and a process that it has not seen says it."""
    tagged = all(earlier.trust is Trust.TAGGED for earlier in state.announced.values())
    return origin.trust is Trust.TAGGED and tagged and bool(state.announced) and origin.pid not in state.pids


def is_of_vllm(event: Event) -> bool:
    """Whether only a vLLM can have printed it."""
    return event.origin.behind_vllm or event.format not in ANYBODYS
