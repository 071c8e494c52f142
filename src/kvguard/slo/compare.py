"""Holds one observation against its target: the one place where a bound is applied."""

from collections.abc import Callable, Mapping
from math import isclose, isinf
from types import MappingProxyType

from kvguard.slo.objectives import Bound, Objective
from kvguard.slo.observation import Observation
from kvguard.slo.verdict import CheckKind, CheckResult, Outcome
from kvguard.units import Interval, format_apart, format_quantity

SAME_DTYPE: Mapping[str, str] = MappingProxyType({"fp8_e4m3": "fp8"})
"""vLLM's alias (`--kv-cache-dtype fp8` is fp8_e4m3 on CUDA); every other spelling is its own."""

_PHRASES: Mapping[tuple[Bound, Outcome], str] = MappingProxyType(
    {
        (Bound.AT_LEAST, Outcome.PASS): "at least the {target} asked for",
        (Bound.AT_LEAST, Outcome.FAIL): "below the {target} asked for",
        (Bound.AT_MOST, Outcome.PASS): "within the {target} allowed",
        (Bound.AT_MOST, Outcome.FAIL): "above the {target} allowed",
        (Bound.EQUAL, Outcome.PASS): "as expected",
        (Bound.EQUAL, Outcome.FAIL): "not the {target} expected",
    }
)


def judge(objective: Objective, observation: Observation) -> CheckResult:
    """One objective against one observation; remedies and levers for a miss are added by who knows them."""
    outcome = _outcome(objective, observation)
    interval = observation.interval if observation.kind is CheckKind.COMPUTED else None
    return CheckResult(
        objective=objective.kind.key,
        unit=objective.kind.unit,
        kind=observation.kind,
        stage=objective.kind.stage,
        observed=observation.value,
        low=interval.low if interval else None,
        high=interval.high if interval and not isinf(interval.high) else None,
        target=objective.target,
        outcome=outcome,
        reason=_reason(objective, observation, outcome),
        remedy=observation.settles,
        place=observation.place,
        severity=objective.severity,
        note=observation.missing or observation.note,
        settles=observation.settles,
    )


def known_to_miss(objective: Objective, observation: Observation) -> bool:
    """Whether a printed figure passes by its digits while the exact value behind them is known to miss."""
    return (
        observation.kind is CheckKind.PRINTED
        and observation.interval is not None
        and _outcome(objective, observation) is Outcome.PASS
        and _by_interval(objective, observation.interval) is Outcome.FAIL
    )


def _outcome(objective: Objective, observation: Observation) -> Outcome:
    if observation.missing is not None:
        return Outcome.UNKNOWN
    if observation.kind is CheckKind.PRINTED:
        return _met(objective, observation.value)
    assert observation.interval is not None, "a computed figure has an interval"
    if observation.worst_end_decides:
        return _met(objective, _worst_end(objective, observation.interval))
    return _by_interval(objective, observation.interval)


def _by_interval(objective: Objective, interval: Interval) -> Outcome:
    ends = {_met(objective, interval.low), _met(objective, interval.high)}
    return ends.pop() if len(ends) == 1 else Outcome.UNKNOWN


def _worst_end(objective: Objective, interval: Interval) -> float:
    return interval.high if objective.kind.bound is Bound.AT_MOST else interval.low


def _met(objective: Objective, value: float | str | None) -> Outcome:
    target = objective.target
    if isinstance(value, str) or isinstance(target, str):
        met = SAME_DTYPE.get(str(value), value) == SAME_DTYPE.get(str(target), target)
    else:
        assert value is not None, "an observation that is not missing has a value"
        met = _BOUNDS[objective.kind.bound](value, target)
    return Outcome.PASS if met else Outcome.FAIL


# sums of printed digits are not exact in binary: 1.1 + 1.4 must meet 2.5
_BOUNDS: Mapping[Bound, Callable[[float, float], bool]] = MappingProxyType(
    {
        Bound.AT_LEAST: lambda value, target: value >= target or isclose(value, target, rel_tol=1e-12),
        Bound.AT_MOST: lambda value, target: value <= target or isclose(value, target, rel_tol=1e-12),
        Bound.EQUAL: lambda value, target: value == target,
    }
)


def _reason(objective: Objective, observation: Observation, outcome: Outcome) -> str:
    if observation.missing is not None:
        return f"{observation.subject} is unknown: {observation.missing}"
    interval = observation.interval
    if observation.kind is CheckKind.COMPUTED and interval is not None and not interval.is_exact:
        sentence = _interval_reason(objective, observation, interval, outcome)
    else:
        value = observation.value if observation.value is not None else 0
        observed, target = format_apart(value, objective.target, objective.kind.unit)
        sentence = _sentence(objective, observation, outcome, observed, target)
    return f"{sentence} ({observation.note})" if observation.note else sentence


def _interval_reason(objective: Objective, observation: Observation, interval: Interval, outcome: Outcome) -> str:
    unit = objective.kind.unit
    found = _both_ends(interval, unit)
    if outcome is Outcome.UNKNOWN:
        target = format_quantity(objective.target, unit)
        return f"{_said(objective, observation, found)}: whether that meets {target} cannot be told"
    worst, target = format_apart(_worst_end(objective, interval), objective.target, unit)
    alike = unit not in ("bytes", "ratio") and round(interval.low, 2) == round(interval.high, 2)
    sentence = _sentence(objective, observation, outcome, worst if alike else found, target)
    return f"{sentence} by its worse end" if _by_interval(objective, interval) is Outcome.UNKNOWN else sentence


def _both_ends(interval: Interval, unit: str) -> str:
    if isinf(interval.high):
        return f"at least {format_quantity(interval.low, unit)}"
    if unit == "ratio" and interval.low == 0:
        return f"at most {format_quantity(interval.high, unit)}"
    low, high = format_apart(interval.low, interval.high, unit)
    return f"{low.removesuffix(f' {unit}')} to {high}"


def _sentence(objective: Objective, observation: Observation, outcome: Outcome, observed: str, target: str) -> str:
    """What was found and what was asked."""
    asked = _PHRASES[objective.kind.bound, outcome].format(target=_bare(target, objective.kind.unit))
    return f"{_said(objective, observation, observed)}, {asked}"


def _said(objective: Objective, observation: Observation, observed: str) -> str:
    """What was found; a counted thing is named once."""
    unit = objective.kind.unit
    named = unit and unit in f"{observation.subject} {observation.says}"
    shown = _bare(observed, unit) if named else observed
    says = observation.says.replace("requests", "request", 1) if shown == "1" else observation.says
    return says.format(subject=observation.subject, observed=shown)


def _bare(figure: str, unit: str) -> str:
    """The figure without the thing that it counts; a size keeps its unit."""
    return figure.removesuffix(f" {unit}").removesuffix(f" {unit.removesuffix('s')}") if unit else figure
