"""The one place that decides: a report and what is asked of it, to a verdict that every face only draws.

Each stage's module says what the report tells of its indicators (`Observation`), `compare` holds it against the
target, `cautions` says what the SLO makes of warnings, `remedies` what to do. A failed start fails, whatever its
figures; a miss outweighs what is not known; what is not known is never a pass.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kvguard.slo.cautions import judged_warnings
from kvguard.slo.compare import judge, known_to_miss
from kvguard.slo.course import capacity_gap, course_checks, early_end
from kvguard.slo.objectives import Objective, Severity, Slo, Stage
from kvguard.slo.observation import Observation, unknown
from kvguard.slo.pools import Pools, pools_of
from kvguard.slo.remedies import (
    WARNING_REMEDIES,
    cache_remedy,
    capacity_unknown,
    ended_reason,
    failure_reason,
    missed_remedy,
    unknown_reason,
)
from kvguard.slo.runtime import observe_runtime
from kvguard.slo.startup_checks import observe_startup, said_of_capacity
from kvguard.slo.verdict import CheckKind, CheckResult, JudgedWarning, Lever, Outcome, Reason, Verdict
from kvguard.slo.workload import observe_workload, said_of_workload, workload_warnings
from kvguard.slotted import dataclass, replace
from kvguard.startup.report import CapacityReport, Phase, Start, StartWarning
from kvguard.units import format_quantity

if TYPE_CHECKING:
    from kvguard.slo.baselines.difference import Difference


def evaluate(report: CapacityReport, slo: Slo, now: float | None = None) -> Verdict:
    """What the evidence says of a report under an SLO; without any objective the start alone is judged.

    Args:
        report: the newest start of one deployment; where the one before contests it, the verdict is what both give.
        slo: what is asked of it.
        now: the present, in seconds of the clock by which the log's lines came; `None` where it is not followed.
            Only `ready_within` looks at it.
    """
    verdict = _of_newest(report, slo, now)
    if report.contested_by is None:
        return verdict
    return _agreed(verdict, _of_newest(replace(report, start=report.contested_by), slo, now))


def _agreed(newest: Verdict, before: Verdict) -> Verdict:
    """The newest start's verdict as far as the start before, which may be the one that serves, gives the same."""
    outcome = newest.outcome if newest.outcome is before.outcome else Outcome.UNKNOWN
    gate = newest.gate_outcome if newest.gate_outcome is before.gate_outcome else Outcome.UNKNOWN
    reasons = newest.reasons
    if outcome is not newest.outcome:
        assert newest.report.start is not None
        told = f"the newest start alone gives {newest.outcome}, the one before it {before.outcome}"
        message = f"the log cannot tell which of two starts serves: {told}"
        place = newest.report.start.first_place
        reasons = (Reason("restart-unproven", message, place, WARNING_REMEDIES["restart-unproven"]), *reasons)
    return replace(newest, outcome=outcome, startup_outcome=gate if gate is not outcome else None, reasons=reasons)


def _of_newest(report: CapacityReport, slo: Slo, now: float | None) -> Verdict:
    context = _Context(report, slo, _pools(report, slo), _difference(report, slo))
    judged = [_judge(objective, context) for objective in slo.objectives]
    checks = tuple(
        _with_levers(check, context) for check in (*(one.check for one in judged), *course_checks(report, slo, now))
    )
    if sum(bool(check.levers) for check in checks) > 1:
        from kvguard.slo.levers import beside_others  # the arithmetic is loaded already

        checks = beside_others(checks)
    found = [warning for one in judged for warning in one.warnings]
    found.extend(_of_stages(context))
    warnings = (*judged_warnings(report.start, slo, found), *_lenient(checks))
    outcome = _outcome(report, checks, warnings)
    at_startup = _outcome(report, [check for check in checks if check.stage is not Stage.RUNTIME], warnings)
    levers = _levers(context, checks, warnings)
    return Verdict(
        outcome=outcome,
        report=report,
        reasons=tuple(_reasons(context, outcome, checks, warnings, levers)),
        checks=checks,
        warnings=warnings,
        levers=levers,
        startup_outcome=at_startup if at_startup is not outcome else None,
    )


@dataclass(frozen=True, slots=True)
class _Context:
    """What every objective of one evaluation is judged from."""

    report: CapacityReport
    slo: Slo
    pools: Pools | None
    difference: "Difference | None"


@dataclass(frozen=True, slots=True)
class _Judged:
    """One objective's check, with the warnings that only its figures could raise."""

    check: CheckResult
    warnings: tuple[StartWarning, ...] = ()


def _pools(report: CapacityReport, slo: Slo) -> Pools | None:
    """The pools that the workload meets; `None` where none is declared, or no complete start holds any."""
    start = report.start
    if slo.workload is None or start is None or start.phase is Phase.FAILED or capacity_gap(start) is not None:
        return None
    return pools_of(start, slo.workload)


def _difference(report: CapacityReport, slo: Slo) -> "Difference | None":
    """What differs from the baseline; `None` where there is none, or no complete start to compare."""
    start = report.start
    if slo.baseline is None or start is None or capacity_gap(start) is not None:
        return None
    from kvguard.slo.regression import compare_with_baseline  # comparing only where there is a baseline

    return compare_with_baseline(report, slo.baseline)


def _of_stages(context: _Context) -> Iterable[StartWarning]:
    """Warnings that a declared workload or a baseline alone can raise."""
    if context.pools is not None:
        yield from workload_warnings(context.pools)
    if context.difference is not None:
        from kvguard.slo.regression import regression_warnings

        yield from regression_warnings(context.difference)


def _judge(objective: Objective, context: _Context) -> _Judged:
    if context.slo.strict and objective.severity is Severity.WARN:
        objective = replace(objective, severity=Severity.FAIL)
    observation = _observe(objective, context)
    check = judge(objective, observation)
    if check.outcome is Outcome.UNKNOWN and check.remedy is None and capacity_unknown(context.report):
        check = replace(check, remedy=unknown_reason(context.report).remedy)
    return _Judged(check, (_thin_margin(objective, observation),) if known_to_miss(objective, observation) else ())


def _with_levers(check: CheckResult, context: _Context) -> CheckResult:
    """A missed check with what would meet it; a failed start has levers of its own."""
    start = context.report.start
    if check.outcome is not Outcome.FAIL or start is None:
        return check
    if start.phase is Phase.FAILED:
        return replace(check, remedy=check.remedy or missed_remedy(check))
    # the arithmetic is loaded only where something is missed
    from kvguard.slo.levers import levers_of_check, summary_of

    levers = levers_of_check(check, start, context.slo, context.pools)
    remedies = (check.remedy, summary_of(levers) or missed_remedy(check) or cache_remedy(check))
    remedy = "; ".join(remedy for remedy in remedies if remedy) or None
    return replace(check, levers=levers, remedy=remedy)


def _levers(context: _Context, checks: Iterable[CheckResult], warnings: Iterable[JudgedWarning]) -> tuple[Lever, ...]:
    """Of the failed start, else of the first missed objective that has any, else of a request that can never run."""
    start = context.report.start
    failing = {warning.code for warning in warnings if warning.severity is Severity.FAIL}
    found = next((check.levers for check in checks if check.levers and check.severity is Severity.FAIL), ())
    if start is None or not (start.phase is Phase.FAILED or failing or found):
        return ()
    from kvguard.slo import failure_levers, levers, told_levers  # the arithmetic, as above

    if start.phase is Phase.FAILED:
        return failure_levers.levers_of_failure(start, context.slo)
    if "no-kv-cache-memory" in failing:
        return failure_levers.levers_of_no_room(start)
    if not found and "request-exceeds-pool" in failing and context.pools is not None:
        found = levers.levers_of_workload(1.0, start, context.slo, context.pools)
    if not found and "context-exceeds-pool" in failing:
        return failure_levers.levers_of_context(start, context.slo)
    return told_levers.shortlist(found)


def _observe(objective: Objective, context: _Context) -> Observation:
    """What the report says of the objective's indicator; every stage but load waits for the whole capacity."""
    start, key = context.report.start, objective.kind.key
    if start is None:
        return unknown(key, "no start has been seen")
    if objective.kind.stage is Stage.RUNTIME:
        return observe_runtime(key, start.runtime)
    gap = capacity_gap(start)
    if objective.kind.stage is Stage.WORKLOAD:
        observation = _of_workload(start, objective, context.pools)
    elif objective.kind.stage is Stage.REGRESSION:
        observation = _of_regression(key, context.difference)
    else:
        observation = observe_startup(key, start, objective.target)
    if gap is None:
        return observation
    return replace(observation, missing=gap, value=None, interval=None, place=None, settles=None)


def _of_regression(key: str, found: "Difference | None") -> Observation:
    if found is None:
        return unknown(key, "there is no baseline", kind=CheckKind.COMPUTED)
    from kvguard.slo.regression import observe_drop

    return observe_drop(found)


def _of_workload(start: Start, objective: Objective, pools: Pools | None) -> Observation:
    if pools is None:
        why = "the start failed before it could serve" if start.phase is Phase.FAILED else "no request is declared"
        return unknown(objective.kind.key, why, kind=CheckKind.COMPUTED)
    return observe_workload(objective.kind.key, pools)


def _thin_margin(objective: Objective, observation: Observation) -> StartWarning:
    assert observation.interval is not None
    assert observation.value is not None
    unit = objective.kind.unit
    shown = format_quantity(observation.value, unit)
    exact = format_quantity(observation.interval.high, unit, 4)
    return StartWarning(
        "thin-margin",
        f"{observation.subject} prints as {shown}, which meets the target; the exact value is at most {exact}",
        observation.place,
    )


def _lenient(checks: Iterable[CheckResult]) -> Iterable[JudgedWarning]:
    """A miss that the SLO does not let fail the verdict is still told."""
    return (
        JudgedWarning("objective-missed", check.severity, check.reason, check.place)
        for check in checks
        if check.outcome is Outcome.FAIL and check.severity is not Severity.FAIL
    )


def _outcome(report: CapacityReport, checks: Iterable[CheckResult], warnings: Iterable[JudgedWarning]) -> Outcome:
    found = {check.outcome for check in checks if check.severity is Severity.FAIL}
    failed = report.start is not None and report.start.phase is Phase.FAILED
    ended = early_end(report)
    failed |= ended is not None and ended.outcome is Outcome.FAIL
    if failed or Outcome.FAIL in found or any(warning.severity is Severity.FAIL for warning in warnings):
        return Outcome.FAIL
    if Outcome.UNKNOWN in found or (not found and capacity_unknown(report)):
        return Outcome.UNKNOWN
    return Outcome.PASS


def _reasons(
    context: _Context,
    outcome: Outcome,
    checks: tuple[CheckResult, ...],
    warnings: tuple[JudgedWarning, ...],
    levers: tuple[Lever, ...],
) -> Iterable[Reason]:
    report, slo = context.report, context.slo
    start = report.start
    if outcome is Outcome.PASS:
        yield _met(checks, context)
        return
    ended = ended_reason(report)
    if start is not None and start.phase is Phase.FAILED:
        yield failure_reason(start, slo, levers)
    elif ended is not None:
        yield ended
    yield from _of_checks(checks, Outcome.FAIL)
    for warning in warnings:
        if warning.severity is Severity.FAIL:
            yield Reason(warning.code, warning.message, warning.place, WARNING_REMEDIES.get(warning.code))
    if capacity_unknown(report) and ended is None:
        unknown = unknown_reason(report)
        if not any(warning.code == unknown.code and warning.severity is Severity.FAIL for warning in warnings):
            yield unknown
    yield from _of_checks(checks, Outcome.UNKNOWN)


def _of_checks(checks: Iterable[CheckResult], outcome: Outcome) -> Iterable[Reason]:
    return (
        Reason(check.objective, check.reason, check.place, check.remedy)
        for check in checks
        if check.outcome is outcome and check.severity is Severity.FAIL
    )


def _met(checks: tuple[CheckResult, ...], context: _Context) -> Reason:
    softened = len(checks)
    checks = tuple(check for check in checks if check.severity is Severity.FAIL)
    if not checks:
        return _held(context, "no objective that was given can fail it" if softened else "no objective was given")
    if len(checks) == 1:
        return Reason("objectives-met", checks[0].reason, checks[0].place)
    every = "both" if len(checks) == 2 else f"all {len(checks)}"
    return Reason("objectives-met", f"{every} objectives are met")


def _held(context: _Context, asked: str) -> Reason:
    """What a start holds of which nothing is asked, by the workload where one is declared."""
    start, pools = context.report.start, context.pools
    told = None if pools is None else said_of_workload(pools)
    figure = None if start is None else said_of_capacity(start)
    if told is not None or figure is None:
        return Reason("capacity-reported", told or f"the start has reported its capacity; {asked}")
    return Reason("capacity-reported", f"{figure[0]}; {asked}", figure[1])
