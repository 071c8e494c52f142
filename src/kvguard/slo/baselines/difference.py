"""The difference of two starts, whole: capacity, memory part by part, options, and why; the faces only draw it."""

from kvguard.slo.baselines.baseline import Baseline, Figure
from kvguard.slo.baselines.budget import NOISE, BudgetChange, budget_change
from kvguard.slo.baselines.causes import causes
from kvguard.slo.baselines.likeness import LABELS, Likeness, compared, is_like
from kvguard.slo.baselines.pair import OptionChange, Pair
from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One capacity figure of the weakest engine in both starts."""

    figure: str
    label: str
    unit: str
    old: Figure | None
    new: Figure | None
    like: bool
    """Whether it means the same in both."""

    @property
    def ratio(self) -> float | None:
        """How many times the old figure the new one is."""
        return None if self.old is None or self.new is None or not self.old.low else self.new.low / self.old.low


@dataclass(frozen=True, slots=True)
class Difference:
    """Two starts compared."""

    old: Baseline
    new: Baseline
    likeness: Likeness | None
    """The figure that means the same in both and says most of capacity."""
    not_comparable: str | None
    """Why there is none; one line."""
    figures: tuple[FigureChange, ...]
    budget: BudgetChange
    options: tuple[OptionChange, ...]
    causes: tuple[str, ...]

    @property
    def tells(self) -> bool:
        """Whether the comparison says anything: of capacity, of memory, or of a start that failed."""
        failed = self.old.failure is not None or self.new.failure is not None
        same_model = Pair(self.old, self.new).same("model")
        return self.likeness is not None or (same_model and (failed or self.budget.cache.change is not None))

    @property
    def differs(self) -> bool:
        """Whether anything is not the same beyond what digits hide: like figures, memory, options, or fate."""
        parts = any(abs(part.change or 0.0) > NOISE for part in (*self.budget.parts, self.budget.cache))
        fate = (self.old.failure is None) != (self.new.failure is None)
        return self._moved or parts or fate or bool(self.options)

    @property
    def same_capacity(self) -> bool:
        """Whether both hold the same, by every figure that means the same in both and as far as its digits tell."""
        failed = self.old.failure is not None or self.new.failure is not None
        return self.likeness is not None and not failed and not self._moved and self.likeness.engines_kept == 1

    @property
    def _moved(self) -> bool:
        return any(figure.like and not Pair(self.old, self.new).unchanged(figure.figure) for figure in self.figures)


def difference(old: Baseline, new: Baseline) -> Difference:
    """Compare two starts."""
    pair = Pair(old, new)
    likeness = compared(pair)
    budget = budget_change(pair)
    return Difference(
        old=old,
        new=new,
        likeness=None if isinstance(likeness, str) else likeness,
        not_comparable=likeness if isinstance(likeness, str) else None,
        figures=_figures(pair),
        budget=budget,
        options=tuple(pair.changed_options()),
        causes=causes(pair, budget),
    )


def _figures(pair: Pair) -> tuple[FigureChange, ...]:
    return tuple(
        FigureChange(
            figure, label, unit, pair.old.weakest.get(figure), pair.new.weakest.get(figure), is_like(pair, figure)
        )
        for figure, (label, unit) in LABELS.items()
        if figure in pair.old.weakest or figure in pair.new.weakest
    )
