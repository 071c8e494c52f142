"""From messages of failure to the cause of a failed start: the root cause wins over those who only report it."""

from kvguard.events import Event, ExceptionRaised, FailureReported, ProcessFailed, Role, Trust
from kvguard.lines.patterns import compiled
from kvguard.lines.reader import ENGINE_FILES
from kvguard.lines.secrets import redact
from kvguard.startup.ingest import GUESSED, rank_of
from kvguard.startup.report import Failure, FailureKind, Phase, Place
from kvguard.startup.state import FailureState, Sighting, StartState, whole

_WEIGHT = {
    FailureKind.OTHER: 0,
    FailureKind.ENGINE_CRASH: 1,
    FailureKind.KILLED: 2,
    FailureKind.INVALID_CONFIG: 3,
    FailureKind.OOM: 4,
    FailureKind.FREE_MEMORY_BELOW_UTILIZATION: 4,
    FailureKind.NO_KV_MEMORY: 4,
    FailureKind.KV_CACHE_TOO_SMALL: 4,
}
"""How near to the root cause a kind is; the first of the nearest is kept."""
_REFUSALS = (
    FailureKind.FREE_MEMORY_BELOW_UTILIZATION,
    FailureKind.NO_KV_MEMORY,
    FailureKind.KV_CACHE_TOO_SMALL,
)
"""The kinds of failure that no server finds once it serves; an invalid value may be a request's."""
_NOT_STARTED = frozenset(
    {
        "process-engine-core-failed",
        "process-engine-failed",
        "process-initialization-failed",
        "process-initialization-failed-named",
        "process-start-timed-out",
        "process-triton-engine-failed",
        "process-worker-failed",
        "process-worker-initialization-failed",
    }
)
"""Formats of processes that say that they have not started."""
_HARMLESS_LEVELS = frozenset({"TRACE", "DEBUG", "INFO", "NOTICE", "WARNING", "WARN"})
"""Levels at which the words of a failure are advice, and the start goes on."""
_RAISED = r"[A-Za-z_][\w.]*+(?:(?<=Error)|(?<=Exception)|(?<=Interrupt))"
_BY_SIGKILL = r"exit code: -9\b"
_INVALID = ("ValidationError", "validation error")
_SILENT = ("SystemExit", "KeyboardInterrupt", "BrokenPipeError", "CancelledError", "asyncio.exceptions.CancelledError")


def is_failure(event: Event) -> bool:
    """Whether the event speaks of a failure at a level that means it."""
    if not isinstance(event, FailureReported | ProcessFailed | ExceptionRaised):
        return False
    if event.origin.level not in _HARMLESS_LEVELS:
        return True
    # a shipper gives every raw line a level of its own: what an exception's class opens is no advice
    return event.origin.file is None and compiled(_RAISED).match(event.message) is not None


def is_refusal(event: Event) -> bool:
    """Whether only a server that has never served fails so."""
    if isinstance(event, FailureReported) and is_failure(event):
        return FailureKind(event.kind) in _REFUSALS
    return isinstance(event, ProcessFailed) and event.format in _NOT_STARTED


def take_failure(state: StartState, event: Event) -> None:
    """Add a message of failure to a start that is not ready."""
    if isinstance(event, FailureReported):
        _replace(state, _reported(event))
        _note_memory(state, event)
    elif isinstance(event, ProcessFailed):
        _take_process(state, event)
    elif isinstance(event, ExceptionRaised) and not event.message.startswith(_SILENT):
        _take_exception(state, event)
    if state.failure is not None:
        state.phase = Phase.FAILED


def _note_memory(state: StartState, event: FailureReported) -> None:
    """What the refusal says of the device itself, where no profile has told it."""
    line = event.origin.line
    if event.utilization is not None:
        state.note("gpu_memory_utilization", event.utilization.value, line, GUESSED)
    known = (("total_gpu", event.total_gpu_bytes), ("free", event.free_bytes), ("utilization", event.utilization))
    told = [(name, figure) for name, figure in known if figure is not None]
    parts = rank_of(state, event).parts if told else {}
    for name, figure in told:
        parts.setdefault(name, Sighting(figure, line))


def take_back(state: StartState) -> None:
    """The start goes on: a traceback that nobody called fatal was none."""
    state.exception = None
    if state.failure is not None and state.failure.soft:
        state.failure = None
        state.phase = Phase.LOADING


def message_of(event: Event) -> str:
    """The text of a message of failure, as a report may repeat it."""
    return redact(str(getattr(event, "message", "")))


def _take_process(state: StartState, event: ProcessFailed) -> None:
    """A process has given up: for the exception that was raised before, if one was, else for one that will follow."""
    kind = FailureKind.KILLED if compiled(_BY_SIGKILL).search(event.message) else FailureKind(event.kind)
    cause = state.exception
    if cause is None:
        _replace(state, FailureState(kind, redact(event.message), event.origin.line, unexplained=True))
    else:
        _replace(state, FailureState(_kind_of(cause.value, kind), cause.value, cause.line))


def _take_exception(state: StartState, event: ExceptionRaised) -> None:
    """The last line of a traceback: the cause of a failure that is known already, or a soft one of its own."""
    state.exception = state.exception or Sighting(event.message, event.origin.line)
    known = state.failure
    if known is not None and known.unexplained:
        kind = _kind_of(event.message, known.kind)
        state.failure = FailureState(kind, event.message, event.origin.line)
    elif known is not None or event.origin.trust is not Trust.RECORD or event.origin.file in ENGINE_FILES:
        of_engine = event.origin.file in ENGINE_FILES or event.origin.role in (Role.ENGINE, Role.WORKER)
        own = FailureKind.ENGINE_CRASH if of_engine else FailureKind.OTHER
        kind = _kind_of(event.message, own)
        _replace(state, FailureState(kind, event.message, event.origin.line, soft=known is None))


def _replace(state: StartState, failure: FailureState) -> None:
    known = state.failure
    if known is None or _WEIGHT[failure.kind] > _WEIGHT[known.kind] or _heads(known, failure):
        state.failure = failure
    elif known.soft and not failure.soft:
        known.soft = False


def _heads(known: FailureState, failure: FailureState) -> bool:
    """Whether what is known only counts the errors of a configuration, and this is one of them."""
    return known.kind is failure.kind is FailureKind.INVALID_CONFIG and _INVALID[1] in known.message


def _kind_of(message: str, otherwise: FailureKind) -> FailureKind:
    return FailureKind.INVALID_CONFIG if any(word in message for word in _INVALID) else otherwise


def _reported(event: FailureReported) -> FailureState:
    return FailureState(
        kind=FailureKind(event.kind),
        message=redact(event.message),
        line=event.origin.line,
        needed=event.needed_bytes,
        available=event.available_bytes if event.available_bytes is not None else event.free_bytes,
        requested_tokens=event.requested_tokens,
        kv_cache_tokens=event.kv_cache_tokens,
        estimated_tokens=event.estimated_tokens,
        requested_seqs=event.requested_seqs,
        mamba_blocks=event.mamba_blocks,
        transient=event.transient,
    )


def as_reported(failure: FailureState | None, source: str) -> Failure | None:
    """The cause as a report shows it."""
    if failure is None:
        return None
    return Failure(
        kind=failure.kind,
        message=failure.message,
        place=Place(source, failure.line),
        needed_bytes=whole(failure.needed),
        available_bytes=whole(failure.available),
        requested_max_model_len=failure.requested_tokens,
        kv_cache_tokens=failure.kv_cache_tokens,
        estimated_max_model_len=failure.estimated_tokens,
        requested_max_num_seqs=failure.requested_seqs,
        mamba_blocks=failure.mamba_blocks,
        transient=failure.transient,
    )
