"""What the rules of `causes` look at, and the words that they share."""

from kvguard.slo.baselines.budget import NOISE, BudgetChange
from kvguard.slo.baselines.pair import DEFAULT, Pair
from kvguard.slotted import dataclass
from kvguard.startup.report import TokenFigure
from kvguard.units import format_bytes, format_count

NOTABLE = 0.02
"""Share from which a change of capacity is worth a sentence."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a rule looks at."""

    pair: Pair
    budget: BudgetChange

    def moved(self, figure: str) -> float | None:
        """The figure's ratio, where it changed by more than its digits and a notable share."""
        ratio = self.pair.ratio(figure)
        if ratio is None or self.pair.unchanged(figure) or abs(ratio - 1) < NOTABLE:
            return None
        return ratio

    @property
    def same_bytes(self) -> bool:
        """Whether the cache has the same bytes in both, as far as their digits tell.

        Not where num_gpu_blocks_override differs: the memory that is printed is then not what the blocks take.
        """
        change = self.budget.cache.change
        return self.pair.same("num_gpu_blocks_override") and change is not None and abs(change) <= NOISE

    @property
    def same_pool(self) -> bool:
        """Whether the pool is the same, by bytes, blocks, or tokens of the pool."""
        if self.budget.cache.change is not None:
            return self.same_bytes and self.pair.same("kv_cache_dtype")
        pool = self.pair.old.token_figure is TokenFigure.POOL and self.pair.new.token_figure is TokenFigure.POOL
        return bool(self.pair.unchanged("gpu_blocks") or (pool and self.pair.unchanged("kv_cache_tokens")))


def factor(ratio: float) -> str:
    """A ratio in words: "halved", "doubled", "×9.6", "−12 %", "−0.3 %"; "nothing left" of what is gone."""
    if ratio <= 0:
        return "nothing left"
    for known, word in ((0.5, "halved"), (2.0, "doubled")):
        if abs(ratio - known) <= 0.01 * known:
            return word
    if 0.67 < ratio < 1.5:
        percent = (ratio - 1) * 100
        return f"{percent:+.{0 if abs(percent) >= 1 else 1 if abs(percent) >= 0.1 else 2}f} %".replace("-", "−")
    return f"×{ratio:.1f}" if ratio >= 1 else f"×{ratio:.2f}"


def signed_bytes(count: float) -> str:
    """A change in GiB with its sign: "+4.09 GiB", "−0.10 GiB"."""
    return f"{'−' if count < 0 else '+'}{format_bytes(abs(count))}"


def arrow(old: object, new: object) -> str:
    """A change of an option: "4,096 → 8,192"."""
    return f"{_shown(old)} → {_shown(new)}"


def _shown(value: object) -> str:
    if value is None:
        return DEFAULT
    return format_count(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
