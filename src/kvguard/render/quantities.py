"""Figures of a check as a report shows them: what was found, and what was asked for, told apart by their digits."""

from collections.abc import Mapping
from types import MappingProxyType

from kvguard.render.log_text import shown
from kvguard.slo.objectives import KINDS, Bound
from kvguard.slo.verdict import CheckKind, CheckResult
from kvguard.units import format_apart, format_bytes, format_quantity

NOT_IN_THE_LOG = "not in the log"
_UNKNOWN: Mapping[str, str] = MappingProxyType({"max_drop": "not comparable"})
"""What stands for an unknown figure that no log could hold."""
BOUND_WORDS: Mapping[Bound, str] = MappingProxyType(
    {Bound.AT_LEAST: "at least ", Bound.AT_MOST: "at most ", Bound.EQUAL: ""}
)
"""How a target is introduced; equality needs no word."""

# the course of a start is judged without an objective of the table
_BOUNDS = {key: kind.bound for key, kind in KINDS.items()} | {"ready_within": Bound.AT_MOST}


def show(value: float | str | None, unit: str) -> str:
    """A figure with its unit; a name is a log's text and shown as such."""
    return NOT_IN_THE_LOG if value is None else shown(format_quantity(value, unit))


def show_bare(value: float | str | None, unit: str) -> str:
    """A figure beside a head or a target that names what it counts."""
    return _bare(show(value, unit), unit)


def with_minus(figure: str) -> str:
    """A figure with a minus sign, as wide as a plus, in the place of the hyphen."""
    return figure.replace("-", "−")


def show_size(count: float) -> str:
    """Bytes that may be fewer than none: a part of a budget that was overdrawn, a change."""
    return with_minus(format_bytes(count))


def show_observed(check: CheckResult) -> str:
    """What was found, without the unit that its target names; both ends of what is known, where they differ."""
    if check.kind is CheckKind.COMPUTED and check.low is not None:
        low = show_bare(check.low, check.unit)
        if check.high is None:
            return f"at least {low}"
        high = show_bare(check.high, check.unit)
        if check.unit == "ratio" and check.low == 0 != check.high:
            return f"at most {high}"
        return low if low.removesuffix(".00") == high.removesuffix(".00") else f"{low} to {high}"
    if check.observed is None:
        return _UNKNOWN.get(check.objective, NOT_IN_THE_LOG)
    return _bare(shown(format_apart(check.observed, check.target, check.unit)[0]), check.unit)


def show_target(check: CheckResult) -> str:
    """What was asked for, with its bound in words."""
    observed = check.target if check.observed is None else check.observed
    bound = BOUND_WORDS[_BOUNDS.get(check.objective, Bound.EQUAL)]
    return bound + shown(format_apart(observed, check.target, check.unit)[1])


def _bare(text: str, unit: str) -> str:
    return text if unit == "bytes" else text.removesuffix(f" {unit}")  # a size may be spelt in other units than bytes
