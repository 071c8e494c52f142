"""Readiness as text for people and as a health document for machines, both from one list of checks.

The forms are those of the Kubernetes API server (`[+]name ok`, `[-]name failed: …`, and `[?]name unknown: …` for what
is not known yet) and of the expired draft "Health Check Response Format for HTTP APIs"
(draft-inadarei-api-health-check-06).
"""

from collections.abc import Iterator
from typing import Any

from kvguard.lines.secrets import mask_deep
from kvguard.render.log_text import shown
from kvguard.render.start_facts import WAITED_OUT, said_live
from kvguard.serve.death import death
from kvguard.serve.moments import iso
from kvguard.serve.snapshot import Snapshot
from kvguard.slo.objectives import Stage
from kvguard.slo.verdict import CheckResult, Outcome
from kvguard.slotted import dataclass
from kvguard.sources.source import State
from kvguard.startup.report import ENDED, Phase
from kvguard.units import format_bytes

_FORMS = {True: "[+]{} ok", False: "[-]{} failed", None: "[?]{} unknown"}
_STATUSES = {True: "pass", False: "fail", None: "warn"}
_OK = {Outcome.PASS: True, Outcome.FAIL: False, Outcome.UNKNOWN: None}


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that was looked at."""

    name: str
    ok: bool | None
    """`None` where it is not known (yet)."""
    text: str
    check: CheckResult | None = None


def health_checks(snapshot: Snapshot) -> list[HealthCheck]:
    """What readiness rests on, in the order of a reader's questions: the log, the SLO, the start, each objective."""
    return [_source(snapshot), *_vllm(snapshot), *_slo(snapshot), *_start(snapshot), *_objectives(snapshot)]


def readiness_text(snapshot: Snapshot, verbose: bool) -> str:
    """The body of `/readyz`: "ok", or each check; a closed gate always says why."""
    if snapshot.gate.open and not verbose:
        return "ok\n"
    lines = [f"{_FORMS[one.ok].format(one.name)}: {one.text}" for one in health_checks(snapshot)]
    if snapshot.gate.why:
        lines.append(f"gate: {snapshot.gate.why}")
    first = snapshot.verdict.reasons[:1]
    lines += [f"do this: {shown(one.remedy)}" for one in first if one.remedy and one.code not in WAITED_OUT]
    lines.append(f"verdict: {snapshot.verdict.outcome}")
    lines.append(f"readyz check {'passed' if snapshot.gate.open else 'failed'}")
    return "\n".join(lines) + "\n"


def health_document(snapshot: Snapshot) -> dict[str, Any]:
    """The body of `/healthz`: `warn` where the gate is open though the verdict is no pass."""
    passed = snapshot.verdict.outcome is Outcome.PASS
    status = ("pass" if passed else "warn") if snapshot.gate.open else "fail"
    document = {
        "status": status,
        "verdict": snapshot.verdict.outcome.value,
        "gate": {"open": snapshot.gate.open, "mode": snapshot.rules.mode.value, "why": snapshot.gate.why or None},
        "notes": [shown(said_live(reason)) for reason in snapshot.verdict.reasons],
        "checks": {one.name: [_entry(one, snapshot)] for one in health_checks(snapshot)},
    }
    return {key: mask_deep(value) for key, value in document.items()}


def _entry(one: HealthCheck, snapshot: Snapshot) -> dict[str, Any]:
    entry: dict[str, Any] = {"status": _STATUSES[one.ok], "output": one.text}
    if one.check is not None:
        entry |= {"observedValue": one.check.observed, "observedUnit": one.check.unit or None}
        entry |= {"target": one.check.target}
    if snapshot.read_at is not None:
        entry["time"] = iso(snapshot.read_at)
    return entry


def source_text(snapshot: Snapshot) -> str:
    """Which source, what it is doing, since when and how fresh."""
    source = snapshot.source
    since = f" since {iso(snapshot.source_since)}" if snapshot.source_since is not None else ""
    read = f", last bytes {iso(snapshot.read_at)}" if snapshot.read_at is not None else ", nothing read yet"
    unread = f", {format_bytes(source.unread)} still to be read" if source.unread else ""
    return shown(f"{source.message}{since}{read}{unread}")


def _source(snapshot: Snapshot) -> HealthCheck:
    ok = {State.FAILING: False, State.WAITING: None}.get(snapshot.source.state, True)
    return HealthCheck("source", ok, source_text(snapshot))


def _vllm(snapshot: Snapshot) -> Iterator[HealthCheck]:
    """What vLLM said when it was asked itself; while a start is under way it does not answer, and that is no fault."""
    heard = snapshot.heard
    if heard is not None:
        told = "; ".join(heard.problems) or f"answers, version {heard.version}"
        start = snapshot.verdict.report.start
        failed = False if start is not None and start.phase is Phase.READY else None
        yield HealthCheck("vllm-endpoint", failed if heard.problems else True, shown(told))


def _slo(snapshot: Snapshot) -> Iterator[HealthCheck]:
    slo = snapshot.slo
    if slo.path is None:
        return
    loaded = f"{slo.path} as of {iso(slo.loaded_at)}" if slo.loaded_at is not None else slo.path
    problem = f"{slo.problem}; in force is the one of {iso(slo.loaded_at or 0)}"
    yield HealthCheck("slo-file", slo.problem is None, shown(problem if slo.problem else loaded))


def _start(snapshot: Snapshot) -> Iterator[HealthCheck]:
    """The start itself, and why the verdict is no pass where no objective says it."""
    verdict = snapshot.verdict
    told = {check.reason for check in verdict.checks}
    reasons = [
        reason for reason in verdict.reasons if reason.message not in told and verdict.outcome is not Outcome.PASS
    ]
    if reasons:
        ok = _OK[verdict.outcome]
        yield from (HealthCheck(reason.code, ok, shown(said_live(reason))) for reason in reasons)
    else:
        start = verdict.report.start
        died = death(start)
        phase = f"start {start.index}, {start.phase}{f': {died}' if died else ''}" if start else "no start seen"
        ended = start is not None and start.phase in ENDED
        yield HealthCheck("start", not ended if start else None, phase)


def _objectives(snapshot: Snapshot) -> Iterator[HealthCheck]:
    for check in snapshot.verdict.checks:
        note = " (load: never gates)" if check.stage is Stage.RUNTIME and check.outcome is not Outcome.PASS else ""
        reason = check.reason.removeprefix(f"{check.objective} is unknown: ")  # which the line's own beginning says
        yield HealthCheck(check.objective, _OK[check.outcome], shown(reason) + note, check)
