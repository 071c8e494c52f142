"""Holds a start against its baseline: how much capacity is lost, by the figure that means the same in both."""

from collections.abc import Iterator

from kvguard.slo.baselines.baseline import Baseline, baseline_of
from kvguard.slo.baselines.difference import Difference, difference
from kvguard.slo.baselines.likeness import LABELS
from kvguard.slo.baselines.pair import OptionChange
from kvguard.slo.observation import Observation, computed, unknown
from kvguard.slo.verdict import CheckKind
from kvguard.startup.report import CapacityReport, StartWarning
from kvguard.units import format_quantity

IMPLAUSIBLE_GAIN = 0.25
"""From this gain on, with no option changed, a figure has more likely changed its meaning than its amount."""
_NAMED = 3
"""Causes that a reason has room for."""


def compare_with_baseline(report: CapacityReport, baseline: Baseline) -> Difference:
    """The baseline and the report's start, compared."""
    return difference(baseline, baseline_of([report]))


def observe_drop(found: Difference) -> Observation:
    """The loss of capacity as a share; unknown where nothing means the same in both."""
    subject = "loss of capacity against the baseline"
    if found.likeness is None:
        why = f"no figure means the same in both ({found.not_comparable})"
        return unknown(subject, why, "make a baseline of this deployment anew", kind=CheckKind.COMPUTED)
    likeness = found.likeness
    drop = likeness.drop
    value = 1 - likeness.new.low / likeness.old.low * likeness.engines_kept
    says = "no capacity is lost against the baseline" if drop.high <= 0 else "{subject} is {observed}"
    return computed(subject, drop, None, value=value, note="; ".join(_notes(found)), says=says)


def _notes(found: Difference) -> Iterator[str]:
    likeness = found.likeness
    assert likeness is not None
    label, unit = LABELS[likeness.figure]
    old, new = (format_quantity(figure.low, unit) for figure in (likeness.old, likeness.new))
    unlike = " nor by ".join(f"{name} ({why})" for name, why in likeness.unlike)
    yield f"{label} {old} before, {new} now" + (f", not by {unlike}" if unlike else "")
    yield from found.causes[:_NAMED]


def regression_warnings(found: Difference) -> Iterator[StartWarning]:
    """What a comparison shows beside the loss: options that differ, and gains that nobody asked for."""
    given = [change for change in found.options if not change.by_default]
    if given:
        stands = "the comparison stands" if found.likeness else "they cannot be compared"
        by = f" by {LABELS[found.likeness.figure][0]}" if found.likeness else ""
        named = ", ".join(map(option_in_words, given))
        yield StartWarning("arguments-differ", f"the baseline ran with other options: {named}; {stands}{by}")
    likeness = found.likeness
    if likeness is not None and likeness.drop.high < -IMPLAUSIBLE_GAIN and not given:
        label, unit = LABELS[likeness.figure]
        old, new = format_quantity(likeness.old.high, unit), format_quantity(likeness.new.low, unit)
        why = f": {found.causes[0]}" if found.causes else ": see whether the figure still means the same"
        yield StartWarning("implausible-gain", f"{label} rose from {old} to {new} with the same options{why}")


def option_in_words(change: OptionChange) -> str:
    """An option's change: "max_model_len 32768 → 16384"."""
    return f"{change.name} {change.old} → {change.new}"
