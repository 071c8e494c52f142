"""A difference as rows of words: what every form of it shows, in one order and one spelling."""

from kvguard.render.log_text import shown
from kvguard.render.quantities import show_size, with_minus
from kvguard.render.start_facts import log_name
from kvguard.slo.baselines.baseline import Baseline, Figure
from kvguard.slo.baselines.budget import NOISE, Part
from kvguard.slo.baselines.difference import Difference, FigureChange
from kvguard.slo.baselines.evidence import factor, signed_bytes
from kvguard.slo.baselines.likeness import LABELS
from kvguard.slotted import dataclass
from kvguard.units import format_count, format_quantity

NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: a name, both figures, and what is to be said of their change."""

    name: str
    old: str
    new: str
    change: str
    differs: bool


def side(baseline: Baseline) -> str:
    """A start in one line: where it comes from and which version it ran."""
    name = ", ".join(map(log_name, baseline.sources))
    starts = f", {baseline.starts} starts" if baseline.starts > 1 else ""
    version = f"vLLM {shown(baseline.vllm_version)}" if baseline.vllm_version else "version not told"
    failed = ", failed" if baseline.failure is not None else ""
    return f"{name} ({version}{starts}{failed})"


def capacity_rows(found: Difference) -> list[Row]:
    """The capacity of the weakest engine."""
    rows = [_capacity_row(change) for change in found.figures]
    old, new = found.old.max_model_len, found.new.max_model_len
    if old or new:
        name = "max_model_len"
        change = factor(new / old) if old and new and old != new else ""
        rows.append(Row(name, _tokens(old), _tokens(new), change, bool(change)))
    return rows


def _capacity_row(change: FigureChange) -> Row:
    ratio = change.ratio
    moved = ratio is not None and change.old != change.new
    words = factor(ratio) if moved and ratio is not None else ""
    if not change.like and moved:
        words = f"{words}, not the same measure"
    return Row(
        change.label, _figure(change.old, change.unit), _figure(change.new, change.unit), words, moved and change.like
    )


def _figure(figure: Figure | None, unit: str) -> str:
    if figure is None:
        return NOT_TOLD
    low, high = (with_minus(format_quantity(value, unit)) for value in (figure.low, figure.high))
    return low if low == high else f"{low} to {high}"


def _tokens(count: int | None) -> str:
    return NOT_TOLD if count is None else f"{format_count(count)} tokens"


def memory_rows(found: Difference) -> list[Row]:
    """One rank's budget part by part, the cache last, then what the parts leave unexplained of its change."""
    budget = found.budget
    parts = (
        (*budget.parts, budget.cache) if budget.cache.old is not None or budget.cache.new is not None else budget.parts
    )
    rows = [_memory_row(found, part) for part in parts]
    left = budget.unexplained
    if left is not None and abs(left) > NOISE:
        rows.append(Row("unexplained", "", "", _both(found, left), True))
    return rows


def _memory_row(found: Difference, part: Part) -> Row:
    sides = zip((part.old, part.new), part.computed, strict=True)
    old, new = (NOT_TOLD if value is None else show_size(value) + " computed" * made for value, made in sides)
    change = part.change
    if change is None:
        return Row(part.label, old, new, "", False)
    differs = abs(change) > NOISE
    return Row(part.label, old, new, _both(found, change) if differs else "", differs)


def _both(found: Difference, change: float) -> str:
    """A change in GiB, and in tokens where a token takes as many bytes in both starts."""
    tokens = found.budget.tokens(change)
    if tokens is None:
        return signed_bytes(change)
    sign = "−" if change < 0 else "+"
    return f"{signed_bytes(change)} ({sign}{format_count(abs(round(tokens)))} tokens)"


def option_rows(found: Difference) -> list[Row]:
    """Options that differ."""
    return [Row(change.name, _option(change.old), _option(change.new), "", True) for change in found.options]


def _option(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return format_count(value) if number else shown(str(value), 60)  # type: ignore[arg-type]


def conclusions(found: Difference) -> list[str]:
    """Whether both hold the same, or what cannot be compared; and why they differ."""
    causes = [shown(cause) for cause in found.causes]
    if found.not_comparable is not None:
        unlike = f"capacity cannot be compared: {shown(found.not_comparable)}"
        return [*causes, unlike] if found.old.failure or found.new.failure else [unlike, *causes]
    if found.same_capacity and found.likeness is not None:
        label, unit = LABELS[found.likeness.figure]
        of_several = " of the weakest engine" if max(len(found.old.engines), len(found.new.engines)) > 1 else ""
        same = f"the capacity{of_several} is the same: {label} {_figure(found.likeness.new, unit)}"
        return [same if found.differs else f"{same}, and no part differs", *causes]
    return causes or ["nothing in the logs says why they differ"]
