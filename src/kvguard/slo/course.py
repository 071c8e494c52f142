"""How far a start has come, as a judge sees it: whether its capacity counts yet, and whether it is ready in time."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvguard.lines.stamps import elapsed
from kvguard.slo.objectives import Slo, Stage
from kvguard.slo.verdict import CheckKind, CheckResult, Outcome
from kvguard.startup.report import CapacityReport, Phase, Start
from kvguard.units import format_apart, format_seconds

_NOT_YET: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.NONE: "no line of the start has been seen",
        Phase.LOADING: "the model is still loading where the log ends",
        Phase.PROFILING: "memory is still being profiled where the log ends",
    }
)
_SIGNALS: Mapping[int, str] = MappingProxyType(
    {
        129: " (SIGHUP)",
        130: " (SIGINT)",
        131: " (SIGQUIT)",
        134: " (SIGABRT)",
        135: " (SIGBUS)",
        137: " (SIGKILL)",
        139: " (SIGSEGV)",
        143: " (SIGTERM)",
    }
)
"""Exit statuses that tell of a signal, as Linux numbers them."""
_AFTER_STATUS: Mapping[int, str] = MappingProxyType(
    {
        0: "run the server in the foreground: of one behind docker run -d or an & nothing can be read here",
        137: "see whether the host ran out of memory, or who else killed it (dmesg)",
    }
)
_AFTER_ANY = "read what the command printed last"
_WAIT = "wait for the start (--until ready reads on, up to --timeout), or give a log that goes on to the ready line"


def capacity_gap(start: Start) -> str | None:
    """Why the capacity of this start cannot be judged; `None` from the phase `allocated` on, and of a failed start."""
    if start.phase in _NOT_YET:
        return _NOT_YET[start.phase]
    if start.phase is not Phase.FAILED and start.missing:
        if start.capacity.engines == 0 and start.phase in (Phase.READY, Phase.STOPPED):
            return "the server is ready, but no line tells its KV cache"
        return "still to report: " + ", ".join(start.missing)
    return None


def capacity_reported(start: Start) -> bool:
    """Whether the start has told, in any wording, how much it can hold."""
    weakest = start.capacity.weakest
    return any(figure is not None for figure in (weakest.max_concurrency, weakest.kv_cache_tokens, weakest.gpu_blocks))


class EarlyEnd(NamedTuple):
    """A command that ended before its server was ready."""

    outcome: Outcome
    """One that fails has failed to start its server; of one that is content nobody knows what became of it."""
    message: str
    remedy: str


def early_end(report: CapacityReport) -> EarlyEnd | None:
    """How the command ended too early; `None` where it has not, or nobody saw it."""
    status = report.exit_status
    if status is None or not report.ended_early:
        return None
    message = f"the command ended with status {status}{_SIGNALS.get(status, '')} before its server was ready"
    return EarlyEnd(Outcome.FAIL if status else Outcome.UNKNOWN, message, _AFTER_STATUS.get(status, _AFTER_ANY))


def course_checks(report: CapacityReport, slo: Slo, now: float | None) -> tuple[CheckResult, ...]:
    """The checks of `require_ready` and `ready_within`, where they are asked for."""
    checks = []
    if slo.require_ready:
        checks.append(_require_ready(report))
    if slo.ready_within is not None:
        checks.append(_ready_within(report, slo.ready_within, now))
    return tuple(checks)


def _require_ready(report: CapacityReport) -> CheckResult:
    start = report.start
    phase = Phase.NONE if start is None else start.phase
    ended = early_end(report)
    not_ready = ended[:2] if ended else (Outcome.UNKNOWN, "the server is not ready yet")
    outcome, reason = _READINESS.get(phase, not_ready)
    return CheckResult(
        objective="require_ready",
        unit="",
        kind=CheckKind.PRINTED,
        stage=Stage.STARTUP,
        observed=None if start is None else phase.value,
        low=None,
        high=None,
        target=Phase.READY.value,
        outcome=outcome,
        reason=reason,
        remedy=ended.remedy if ended else _WAIT if outcome is Outcome.UNKNOWN else None,
        place=None if start is None else start.lines.get("ready"),
        note=reason,
    )


_READINESS: Mapping[Phase, tuple[Outcome, str]] = MappingProxyType(
    {
        Phase.READY: (Outcome.PASS, "the server is ready"),
        Phase.STOPPED: (Outcome.PASS, "the server was ready, and has ended since"),
        Phase.FAILED: (Outcome.FAIL, "the start failed before it was ready"),
    }
)


def _ready_within(report: CapacityReport, limit: float, now: float | None) -> CheckResult:
    start, ended = report.start, early_end(report)
    seconds, outcome, why = (None, *ended[:2]) if ended else _readiness_in_time(start, limit, now)
    return CheckResult(
        objective="ready_within",
        unit="seconds",
        kind=CheckKind.COMPUTED,
        stage=Stage.STARTUP,
        observed=seconds,
        low=seconds,
        high=seconds,
        target=limit,
        outcome=outcome,
        reason=why,
        remedy=ended.remedy if ended else _WAIT if outcome is Outcome.UNKNOWN else None,
        place=None if start is None else start.lines.get("ready"),
        note=why,
    )


def _readiness_in_time(start: Start | None, limit: float, now: float | None) -> tuple[float | None, Outcome, str]:
    if start is None:
        return None, Outcome.UNKNOWN, "no start has been seen"
    if start.phase is Phase.FAILED:
        return None, Outcome.FAIL, "the start failed before it was ready"
    if start.phase in (Phase.READY, Phase.STOPPED):
        return _ready_after(start.timings.ready, limit)
    passed = _passed(start, now)
    if passed is None:
        return None, Outcome.UNKNOWN, "the server is not ready yet, and nothing tells how long it has taken"
    if passed > limit:
        texts = format_apart(passed, limit, "seconds")
        return passed, Outcome.FAIL, f"the server is not ready after {texts[0]}; {texts[1]} are allowed"
    return None, Outcome.UNKNOWN, f"the server is not ready yet, {format_seconds(limit - passed)} are left"


def _passed(start: Start, now: float | None) -> float | None:
    """Seconds that the start has taken so far: by the log's own stamps and, since the last of them, by the clock."""
    if start.began is not None and start.latest is not None:
        since = 0.0 if now is None or start.latest_clock is None else max(now - start.latest_clock, 0.0)
        return elapsed(start.began, start.latest) + since
    return None if now is None or start.began_clock is None else now - start.began_clock


def _ready_after(seconds: float | None, limit: float) -> tuple[float | None, Outcome, str]:
    if seconds is None:
        return None, Outcome.UNKNOWN, "the server is ready, but no time stamp tells after how long"
    taken, allowed = format_apart(seconds, limit, "seconds")
    if seconds <= limit:
        return seconds, Outcome.PASS, f"ready after {taken}, within the {allowed} allowed"
    return seconds, Outcome.FAIL, f"ready after {taken}; {allowed} are allowed"
