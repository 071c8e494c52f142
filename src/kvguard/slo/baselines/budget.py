"""Where one rank's memory went in both starts, part by part, and how much of the cache's change that explains.

The cache is what vLLM may use, less the weights, less what else is held, less the activation peak and, from 0.20.0 on,
less the CUDA graphs' estimate. From 0.27.0 on weights and non-torch memory are printed as one, and the activation peak
with the graphs in it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kvguard.kvcache.releases import GRAPHS_TAKEN_OFF, Release
from kvguard.slo.baselines.baseline import Baseline
from kvguard.slo.baselines.pair import Pair
from kvguard.slo.told_release import told_release
from kvguard.slotted import dataclass
from kvguard.units import GIB

NOISE = 0.011 * GIB
"""Two figures of two decimals may differ by this much, and one more, with nothing changed."""
_GRAPHS_IN_PEAK = Release(0, 27, 0)

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "usable": "memory that vLLM may use",
        "weights": "weights",
        "non_torch": "non-torch memory",
        "consumed": "weights and non-torch memory",
        "activation_peak": "activation peak",
        "cuda_graphs": "CUDA graphs set aside",
        "kv_cache": "KV cache",
    }
)
"""Parts of the budget, in its order; all but the first take from the cache."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the budget in both starts, in bytes of one rank; `None` where a log does not tell it."""

    name: str
    old: float | None
    new: float | None
    computed: tuple[bool, bool] = (False, False)
    """Whether a side's figure follows from the other's bytes a token or block, and is not told itself."""

    @property
    def label(self) -> str:
        """Its name for people."""
        return LABELS[self.name]

    @property
    def change(self) -> float | None:
        """New less old."""
        return None if self.old is None or self.new is None else self.new - self.old

    @property
    def effect(self) -> float | None:
        """What the change did to the cache."""
        change = self.change
        return change if change is None or self.name in ("usable", "kv_cache") else -change


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """The parts of both budgets, and what they do not explain of the cache's change."""

    parts: tuple[Part, ...]
    cache: Part
    bytes_per_token: float | None
    """Where one token takes as many bytes in both, of one kind of layer; `None` elsewhere."""

    @property
    def explained(self) -> float | None:
        """Sum of the effects of the parts that both logs tell; `None` where they tell none."""
        effects = [part.effect for part in self.parts if part.effect is not None]
        return sum(effects) if effects else None

    @property
    def unexplained(self) -> float | None:
        """What is left of the cache's change; `None` where the cache is not told in both."""
        return None if self.cache.change is None else self.cache.change - (self.explained or 0.0)

    def tokens(self, count: float | None) -> float | None:
        """Bytes as tokens of the engine."""
        return None if count is None or not self.bytes_per_token else count / self.bytes_per_token


def budget_change(pair: Pair) -> BudgetChange:
    """Both budgets side by side."""
    old, new = _parts(pair.old), _parts(pair.new)
    apart = all(name in side for side in (old, new) for name in ("weights", "non_torch"))
    joined = not apart and all("consumed" in side for side in (old, new))
    names = ("usable", *(("consumed",) if joined else ("weights", "non_torch")), "activation_peak", "cuda_graphs")
    parts = tuple(Part(name, old.get(name), new.get(name)) for name in names if old.get(name) or new.get(name))
    return BudgetChange(parts, _cache(pair), _bytes_per_token(pair))


def _parts(side: Baseline) -> dict[str, float]:
    """The budget of one start, by the names of `LABELS`."""
    told = {name: figure.low for name, figure in side.memory.items()}
    found: dict[str, float] = {
        name: told[name] for name in ("weights", "non_torch", "consumed", "usable") if name in told
    }
    share = side.options.get("gpu_memory_utilization")
    if "usable" not in found and "total_gpu" in told and isinstance(share, int | float):
        found["usable"] = told["total_gpu"] * share
    if "consumed" not in found and "weights" in found and "non_torch" in found:
        found["consumed"] = found["weights"] + found["non_torch"]
    graphs = _graphs_taken_off(side, told)
    if graphs is not None:
        found["cuda_graphs"] = graphs
    if "activation_peak" in told:
        in_peak = _since(side, _GRAPHS_IN_PEAK) and graphs is not None
        found["activation_peak"] = told["activation_peak"] - (graphs or 0.0 if in_peak else 0.0)
    return found


def _graphs_taken_off(side: Baseline, told: Mapping[str, float]) -> float | None:
    """What the CUDA graphs' estimate takes from the cache: nothing before 0.20.0."""
    taken_off = _since(side, GRAPHS_TAKEN_OFF)
    if taken_off is None:
        return None
    return told.get("cuda_graphs_estimated") if taken_off else 0.0


def _since(side: Baseline, release: Release) -> bool | None:
    told = told_release(side.vllm_version)
    return None if told is None else told >= release


def _cache(pair: Pair) -> Part:
    """The cache's bytes; where one side prints tokens or blocks only, by the other's bytes for each of them."""
    sides = [_cache_of(pair.old), _cache_of(pair.new)]
    told = [side is not None for side in sides]
    for index, (own, other) in enumerate(((pair.old, pair.new), (pair.new, pair.old))):
        if sides[index] is None:
            sides[index] = _by_the_other(pair, own, other)
    computed = [side is not None and not known for side, known in zip(sides, told, strict=True)]
    return Part("kv_cache", sides[0], sides[1], (computed[0], computed[1]))


def _cache_of(side: Baseline) -> float | None:
    figure = side.weakest.get("kv_cache_bytes") or side.memory.get("kv_cache")
    return None if figure is None else figure.low


def _by_the_other(pair: Pair, own: Baseline, other: Baseline) -> float | None:
    bytes_there = _cache_of(other)
    alike = all(pair.same(name) for name in ("kv_cache_dtype", "block_size", "tensor_parallel_size", "model"))
    if bytes_there is None or not alike:
        return None
    for name in ("gpu_blocks", "kv_cache_tokens"):
        here, there = own.weakest.get(name), other.weakest.get(name)
        if here is not None and there is not None and there.low and (name == "gpu_blocks" or pair.one_kind_of_layer):
            return bytes_there * here.low / there.low
    return None


def _bytes_per_token(pair: Pair) -> float | None:
    """Bytes of one token on a rank, where both starts agree on it."""
    if not pair.one_kind_of_layer or not pair.same("kv_cache_dtype"):
        return None
    found = []
    for side in (pair.old, pair.new):
        tokens, size = side.weakest.get("kv_cache_tokens"), _cache_of(side)
        if tokens is not None and tokens.low and size is not None:
            found.append(size / tokens.low)
    if not found or max(found) > min(found) * 1.02:
        return None
    return sum(found) / len(found)
