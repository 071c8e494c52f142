"""What a start was, in words that every readable face shares: model, sizes, phase, time, and what was refused."""

from collections.abc import Mapping
from types import MappingProxyType

from kvguard.render.log_text import shown
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import JudgedWarning, Outcome, Reason, Verdict
from kvguard.startup.report import CapacityReport, Failure, FailureKind, Phase, Place, Start, Timings
from kvguard.units import format_bytes, format_seconds

PHASE_WORDS: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.NONE: "nothing of a start seen",
        Phase.LOADING: "still loading",
        Phase.PROFILING: "still profiling",
        Phase.ALLOCATED: "KV cache allocated, not ready yet",
        Phase.READY: "ready",
        Phase.FAILED: "failed",
        Phase.STOPPED: "stopped",
    }
)
"""Each phase as a person would say it."""

FAILURE_WORDS: Mapping[FailureKind, str] = MappingProxyType(
    {
        FailureKind.KV_CACHE_TOO_SMALL: "the KV cache is too small",
        FailureKind.NO_KV_MEMORY: "no memory left for the KV cache",
        FailureKind.OOM: "out of memory",
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION: "too little memory free",
        FailureKind.INVALID_CONFIG: "a wrong argument",
        FailureKind.ENGINE_CRASH: "an engine died",
        FailureKind.KILLED: "killed",
        FailureKind.OTHER: "vLLM gave up",
    }
)
"""Each kind of failure, in a few words behind "failed: "."""

EMPTY_LOG = "empty-log"
"""The reason of a log of which nothing was read."""
WAITED_OUT = frozenset({EMPTY_LOG, "capacity-not-reported"})
"""Reasons that whoever follows the log waits out: there is nothing to do about them."""
_WHILE_FOLLOWED = {EMPTY_LOG: "no line of the log has been read yet"}


def said_live(reason: Reason) -> str:
    """What a reason says while the log is followed: one that has no line may not be there yet, or not be read yet."""
    return _WHILE_FOLLOWED.get(reason.code, reason.message)


def headline_of(verdict: Verdict) -> Reason:
    """The first reason, which says most; the outcome alone of a verdict that was made without any."""
    return verdict.reasons[0] if verdict.reasons else Reason("", verdict.outcome)


def why_not(verdict: Verdict) -> Reason | None:
    """Of a start of which nothing was asked, why the log holds no server's capacity; `None` where it does."""
    start = verdict.report.start
    failed = start is not None and start.phase is Phase.FAILED
    return headline_of(verdict) if failed or verdict.outcome is Outcome.UNKNOWN else None


def warnings_of(report: CapacityReport) -> list[JudgedWarning]:
    """The warnings of a start that nobody judged, each with the severity that it has unless an SLO says otherwise."""
    found = report.start.warnings if report.start else ()
    return [JudgedWarning(w.code, Slo().severity(w.code), w.message, w.place) for w in found]


_STDIN, _COMMAND = "-", "run:"
_NO_FILES = (_COMMAND, "pod:", "prometheus:")


def log_name(source: str) -> str:
    """A log's name as people say it; reports by program keep the name that was given."""
    return "stdin" if source == _STDIN else shown(source.removeprefix(_COMMAND), 120)


def file_of(place: Place | None) -> str | None:
    """The file of a place, for tools that would open it there; `None` where there is none to open."""
    if place is None or place.source == _STDIN or place.source.startswith(_NO_FILES):
        return None
    return shown(place.source)


def place_of(place: Place | None, report: CapacityReport) -> str:
    """Where a fact stands: the line, with the file's name where several were read; empty where nowhere."""
    if place is None:
        return ""
    return f"line {place.line}" if len(report.sources) < 2 else f"{log_name(place.source)}:{place.line}"


def identity(start: Start) -> list[str]:
    """What was started, in a few words each; what the log does not say is left out."""
    sizes = (
        ("TP", start.tensor_parallel_size),
        ("PP", start.pipeline_parallel_size),
        ("DP", start.data_parallel_size),
    )
    facts = [
        f"vLLM {start.vllm_version}" if start.vllm_version else None,
        start.model,
        f"context {start.max_model_len:,} tokens" if start.max_model_len else None,
        f"KV cache dtype {start.kv_cache_dtype}" if start.kv_cache_dtype else None,
        f"quantization {start.quantization}" if start.quantization else None,
        *(f"{name} {size}" for name, size in sizes if size is not None and size > 1),
    ]
    return [shown(fact, 120) for fact in facts if fact]


def origin_line(report: CapacityReport) -> str:
    """Which log was read, and which of its starts is meant."""
    names = ", ".join(map(log_name, report.sources)) or "log"
    start = report.start
    if start is None:
        return f"{names}: {PHASE_WORDS[Phase.NONE]}"
    phase = PHASE_WORDS[start.phase]
    if start.phase is Phase.READY and start.timings.ready is not None:
        phase = f"ready after {format_seconds(start.timings.ready)}"
    if report.starts > 1:
        where = f", from line {start.first_place.line}" if start.first_place else ""
        return f"{names}: {phase} · the newest of {report.starts} starts{where}"
    return f"{names}: {phase}"


_BYTES_OF: Mapping[FailureKind, tuple[str, str]] = MappingProxyType(
    {
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION: (" of device memory, by its utilization", " of device memory, free"),
        FailureKind.OOM: (" of device memory at once", " of device memory, free"),
    }
)
"""What the bytes of a failure are of that is not the KV cache's: asked for, and there."""


def refusal(failure: Failure) -> list[tuple[str, str]]:
    """What a refused start asked for and what fits, where its message has the numbers."""
    asked, there = _BYTES_OF.get(failure.kind, (" of KV cache", " of KV cache"))
    wanted = [
        _tokens(failure.requested_max_model_len, " of context"),
        _count(failure.requested_max_num_seqs, " sequences at once"),
        _size(failure.needed_bytes, asked),
    ]
    fits = [
        _tokens(failure.kv_cache_tokens, " in the KV cache"),
        _size(failure.available_bytes, there),
        _tokens(failure.estimated_max_model_len, " of context, by vLLM's estimate"),
        _count(failure.mamba_blocks, " Mamba cache blocks"),
    ]
    rows = [("Asked for", ", ".join(filter(None, wanted))), ("What fits", ", ".join(filter(None, fits)))]
    if failure.transient:
        rows.append(("Passing?", "another process holds memory: it may start once that one has let go"))
    return [(name, text) for name, text in rows if text]


def timing_line(timings: Timings) -> str | None:
    """The seconds of a start, part by part; `None` where the log has none."""
    named = (
        ("load", timings.load),
        ("compile", timings.compile),
        ("profile", timings.profile),
        ("CUDA graphs", timings.graphs),
        ("engine init", timings.init),
        ("ready", timings.ready),
    )
    parts = [f"{name} {format_seconds(seconds)}" for name, seconds in named if seconds is not None]
    return " · ".join(parts) if parts else None


def _tokens(count: int | None, what: str) -> str | None:
    return _count(count, f" tokens{what}")


def _count(count: int | None, what: str) -> str | None:
    return None if count is None else f"{count:,}{what}"


def _size(count: int | None, what: str) -> str | None:
    return None if count is None else f"{format_bytes(count)}{what}"
