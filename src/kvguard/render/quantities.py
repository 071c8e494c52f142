"""Figures as a report shows them: one spelling a unit, and no rounding that hides why a check failed."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.render.log_text import shown
from kvguard.slo.objectives import OBJECTIVES, Bound
from kvguard.slo.verdict import CheckResult
from kvguard.units import format_bytes, format_seconds

NOT_IN_THE_LOG = "not in the log"

BOUND_WORDS: Mapping[Bound, str] = MappingProxyType(
    {Bound.AT_LEAST: "at least ", Bound.AT_MOST: "at most ", Bound.EQUAL: ""}
)
"""How a target is introduced; equality needs no word."""

_BOUND_OF = {kind.key: kind.bound for kind in OBJECTIVES} | {"ready_within": Bound.AT_MOST}


def _number(value: float) -> str:
    text = f"{value:,.2f}"
    return text.removesuffix(".00")


_SPELLINGS: Mapping[str, tuple[Callable[[float], str], Callable[[float], str], str]] = MappingProxyType(
    {
        "requests": (_number, lambda value: f"{value:,.6g}", " requests"),
        "tokens": (lambda value: f"{value:,.0f}", lambda value: f"{value:,.2f}", " tokens"),
        "blocks": (lambda value: f"{value:,.0f}", lambda value: f"{value:,.2f}", " blocks"),
        "engines": (lambda value: f"{value:,.0f}", lambda value: f"{value:,.2f}", " engines"),
        "bytes": (format_bytes, lambda value: f"{value:,.0f} bytes", ""),
        "seconds": (format_seconds, lambda value: f"{value:,.3f} s", ""),
        "ratio": (lambda value: f"{value * 100:.4g} %", lambda value: f"{value * 100:.9g} %", ""),
    }
)
"""By unit: the usual spelling, the exact one where the usual would hide a difference, and the word after it."""


def show(value: float | str | None, unit: str, *, word: bool = False) -> str:
    """A figure in its unit's usual spelling; `word` adds what it counts, where the spelling does not say."""
    if value is None:
        return NOT_IN_THE_LOG
    if isinstance(value, str) or unit not in _SPELLINGS:
        return shown(str(value))
    usual, _, counted = _SPELLINGS[unit]
    return usual(value) + (counted if word else "")


def show_observed(check: CheckResult) -> str:
    """What was found: the figure, or its two ends where they differ as shown; exact where rounding would mislead."""
    if check.kind == "computed" and check.low is not None and check.high is not None:
        ends = [show(end, check.unit) for end in (check.low, check.high)]
        return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    if _hides_a_difference(check):
        return _exact(check.observed, check.unit)
    return show(check.observed, check.unit)


def show_target(check: CheckResult) -> str:
    """What was asked for, with its bound and its unit in words."""
    bound = BOUND_WORDS[_BOUND_OF.get(check.objective, Bound.EQUAL)]
    if isinstance(check.target, str) or check.unit not in _SPELLINGS:
        return bound + shown(str(check.target))
    usual, exact, counted = _SPELLINGS[check.unit]
    spell = exact if _hides_a_difference(check) or check.unit == "requests" else usual  # 2.5 was asked for, not 2.50
    return bound + spell(check.target) + counted


def _hides_a_difference(check: CheckResult) -> bool:
    return (
        isinstance(check.observed, int | float)
        and check.observed != check.target
        and show(check.observed, check.unit) == show(check.target, check.unit)
    )


def _exact(value: float | str | None, unit: str) -> str:
    if isinstance(value, str) or value is None or unit not in _SPELLINGS:
        return show(value, unit)
    return _SPELLINGS[unit][1](value)
