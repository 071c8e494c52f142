"""Compares like with like: which figure of two starts means the same in both, and why the others do not."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.slo.baselines.baseline import Figure
from kvguard.slo.baselines.pair import Pair
from kvguard.slotted import dataclass
from kvguard.startup.report import TokenFigure
from kvguard.units import Interval

LABELS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "kv_cache_tokens": ("KV cache size", "tokens"),
        "max_concurrency": ("maximum concurrency", "requests"),
        "gpu_blocks": ("blocks", "blocks"),
        "kv_cache_bytes": ("KV cache memory of a rank", "bytes"),
    }
)
"""Figures that can stand for capacity, the most telling first, with their name and unit."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """The figure by which two starts are compared."""

    figure: str
    old: Figure
    new: Figure
    unlike: tuple[tuple[str, str], ...] = ()
    """More telling figures that both tell, by their name, and why each was not taken."""
    engines: tuple[int, int] | None = None
    """How many engines each side has, where both tell."""

    @property
    def passed_over(self) -> tuple[str, ...]:
        """The same, a line each."""
        return tuple(f"{label}: {why}" for label, why in self.unlike)

    @property
    def drop(self) -> Interval:
        """How much of the old capacity is lost, as a share; negative where more is there.

        Against the lowest start of the baseline. Figures whose printed digits agree have not dropped. The weakest
        engine's figure, and where engines are gone, that of all of them: more engines make up for no smaller one.
        """
        kept = self.engines_kept
        of_one = self._drop_of_one
        return of_one if kept == 1 else Interval(1 - (1 - of_one.low) * kept, 1 - (1 - of_one.high) * kept)

    @property
    def engines_kept(self) -> float:
        """Share of the old engines that is still there, 1 of more."""
        return min(1.0, self.engines[1] / self.engines[0]) if self.engines else 1.0

    @property
    def _drop_of_one(self) -> Interval:
        if self.old.low == self.new.low and self.old.rounding == self.new.rounding:
            return Interval.exact(0.0)
        least, most = self.old.low - self.old.rounding, self.old.low + self.old.rounding
        low, high = self.new.low - self.new.rounding, self.new.low + self.new.rounding
        if high <= 0:
            return Interval.exact(1.0)  # nothing is left, and less than nothing is no larger loss
        return Interval(1 - high / least, 1 - low / most)


def compared(pair: Pair) -> Likeness | str:
    """The figure that is like in both; where there is none, why, in one line."""
    if not pair.same("model"):
        old, new = pair.options("model")
        return f"another model: {old} before, {new} now"
    unlike: dict[str, str] = {}
    untold: list[str] = []
    for figure, (label, _unit) in LABELS.items():
        figures = pair.capacity(figure)
        why = _WHY_NOT[figure](pair)
        if why is None and figures is not None and figures[0].low <= figures[0].rounding:
            why = "nothing was there before"
        if why is None and figures is not None:
            return Likeness(figure, *figures, tuple(unlike.items()), pair.engines)
        if figures is not None and why is not None:
            unlike[label] = why
        else:
            untold.append(label)
    reasons = [f"{label}: {why}" for label, why in unlike.items()]
    return "; ".join([*reasons, f"not told by both: {', '.join(untold)}"] if untold else reasons)


def is_like(pair: Pair, figure: str) -> bool:
    """Whether that figure is told in both and means the same."""
    return pair.same("model") and pair.capacity(figure) is not None and _WHY_NOT[figure](pair) is None


def _tokens(pair: Pair) -> str | None:
    if pair.one_kind_of_layer:
        return None
    old, new = pair.old.token_figure, pair.new.token_figure
    if old is not new:
        return "reported differently since 0.20.1"
    if old is TokenFigure.CONCURRENCY_TIMES_LEN and pair.old.max_model_len != pair.new.max_model_len:
        return "printed as concurrency times max_model_len, which differs"
    return None


def _concurrency(pair: Pair) -> str | None:
    return "at another max_model_len" if pair.old.max_model_len != pair.new.max_model_len else None


def _blocks(pair: Pair) -> str | None:
    return None if pair.same("block_size") else "of another size"


def _bytes(pair: Pair) -> str | None:
    if any(option is not None for option in pair.options("num_gpu_blocks_override")):
        return "num_gpu_blocks_override fixes the pool, whatever the memory would hold"
    other = [name for name in _BYTES_DEPEND_ON if not pair.same(name)]
    return f"with another {other[0]}" if other else None


_BYTES_DEPEND_ON = ("kv_cache_dtype", "dtype", "tensor_parallel_size", "pipeline_parallel_size")
_WHY_NOT: Mapping[str, Callable[[Pair], str | None]] = MappingProxyType(
    {"kv_cache_tokens": _tokens, "max_concurrency": _concurrency, "gpu_blocks": _blocks, "kv_cache_bytes": _bytes}
)
