"""What is kept of a start, or of several of the same deployment: capacity, memory parts, and the flags that matter."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from kvguard.errors import ConfigError
from kvguard.slo.layer_evidence import is_hybrid, known_block_size, one_kind_because
from kvguard.slotted import dataclass, field, fields
from kvguard.startup.report import (
    SERVING_OPTIONS,
    Capacity,
    CapacityReport,
    Failure,
    Memory,
    Phase,
    Start,
    TokenFigure,
)

CAPACITY_FIGURES = ("kv_cache_tokens", "max_concurrency", "gpu_blocks", "kv_cache_bytes", "weights_bytes")
"""Figures of one engine, by their name in the report."""
MEMORY_PARTS = tuple(
    part.name for part in fields(Memory) if part.name not in ("utilization", "suggested_kv_cache", "full_kv_cache")
)
"""Parts of a rank's memory in bytes, and the share that vLLM says would keep the cache's size."""
ARGUMENTS = (
    "kv_cache_memory_bytes",
    "num_gpu_blocks_override",
    "num_speculative_tokens",
    "enable_chunked_prefill",
    "async_scheduling",
    "cpu_offload_gb",
    "enable_expert_parallel",
    "enable_lora",
    "max_loras",
    "max_lora_rank",
    "mamba_cache_mode",
    "disable_hybrid_kv_cache_manager",
    "prefill_context_parallel_size",
)
"""Serving arguments that bear on it as well, and are no facts of a start's own."""


class Figure(NamedTuple):
    """One figure over the starts: its smallest and largest value, and what rounding hides of each (±)."""

    low: float
    high: float
    rounding: float = 0.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """A deployment's capacity as it was: of one start, or with the spread over several. Base units."""

    sources: tuple[str, ...]
    starts: int = 1
    vllm_version: str | None = None
    generation: str | None = None
    token_figure: TokenFigure | None = None
    layers: str | None = None
    """`uniform` or `hybrid`, where the log proves it."""
    basis: str | None = None
    """`profiled` or `declared`, as in the report."""
    engines_expected: int | None = None
    weakest: Mapping[str, Figure] = field(default_factory=lambda: MappingProxyType({}))
    engines: Mapping[str, Mapping[str, Figure]] = field(default_factory=lambda: MappingProxyType({}))
    """The same of each engine that reported, by its label."""
    memory: Mapping[str, Figure] = field(default_factory=lambda: MappingProxyType({}))
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    arguments_told: bool = False
    """Whether the log lists its arguments, so that an option that is not among them has its default."""
    failure: Failure | None = None
    """Why the start failed: such a one can be compared, not kept."""

    @property
    def max_model_len(self) -> int | None:
        """The context length in force."""
        length = self.options.get("max_model_len")
        return length if isinstance(length, int) else None


def baseline_of(reports: Sequence[CapacityReport]) -> Baseline:
    """What is kept of those starts; of several, figures get their spread.

    Raises:
        ConfigError: a report has no start, or two are not of the same deployment.
    """
    kept = [_of_one(report) for report in reports]
    first = kept[0]
    for other in kept[1:]:
        _check_same(first, other)
    return Baseline(
        sources=tuple(source for one in kept for source in one.sources),
        starts=len(kept),
        vllm_version=first.vllm_version,
        generation=first.generation,
        token_figure=first.token_figure,
        layers=first.layers,
        basis=first.basis,
        engines_expected=first.engines_expected,
        weakest=_spread([one.weakest for one in kept]),
        engines={
            label: _spread([one.engines[label] for one in kept if label in one.engines]) for label in first.engines
        },
        memory=_spread([one.memory for one in kept]),
        options=first.options,
        arguments_told=first.arguments_told,
        failure=first.failure,
    )


def _of_one(report: CapacityReport) -> Baseline:
    start = report.start
    if start is None:
        raise ConfigError(f"{', '.join(report.sources) or 'the log'}: no start of a vLLM server in it")
    weakest = start.capacity.weakest
    return Baseline(
        sources=report.sources,
        vllm_version=start.vllm_version,
        generation=start.generation,
        token_figure=weakest.token_figure,
        layers=_layers(start, weakest),
        basis=start.kv_cache_basis,
        engines_expected=start.capacity.engines_expected,
        weakest=_figures(weakest),
        engines={engine.engine or "0": _figures(engine) for engine in start.engines},
        memory=_memory(start),
        options=_options(start),
        arguments_told=bool(start.arguments),
        failure=start.failure if start.phase is Phase.FAILED else None,
    )


def _layers(start: Start, engine: Capacity) -> str | None:
    if is_hybrid(start, engine):
        return "hybrid"
    return "uniform" if one_kind_because(start, engine) else None


def _figures(engine: Capacity) -> Mapping[str, Figure]:
    """The engine's figures; tokens and blocks that follow by arithmetic alone stand in for those not printed."""
    found: dict[str, Figure] = {}
    for name in CAPACITY_FIGURES:
        value = getattr(engine, name)
        if value is None and name in engine.derived:
            value = engine.derived[name].value
        if value is not None:
            found[name] = Figure(value, value, engine.rounding.get(name, 0.0))
    return found


def _memory(start: Start) -> Mapping[str, Figure]:
    parts = {name: getattr(start.memory, name) for name in MEMORY_PARTS}
    return {name: Figure(value, value) for name, value in parts.items() if value is not None}


def _options(start: Start) -> Mapping[str, object]:
    engine = start.capacity.weakest
    facts = {name: getattr(start, name) for name in SERVING_OPTIONS}
    facts["max_model_len"] = engine.max_model_len or start.max_model_len
    facts["gpu_memory_utilization"] = start.gpu_memory_utilization or start.memory.utilization
    facts["block_size"] = known_block_size(start, engine)
    # a switch that is off, and none of something, is what a list of non-default arguments leaves out
    facts.update({name: start.arguments.get(name) or None for name in ARGUMENTS})
    if engine.profiled_gpu_blocks is not None:
        facts["num_gpu_blocks_override"] = engine.gpu_blocks
    return {name: value for name, value in facts.items() if value is not None}


def _spread(starts: Sequence[Mapping[str, Figure]]) -> Mapping[str, Figure]:
    """Figures that every start tells, from the smallest to the largest."""
    names = [name for name in starts[0] if all(name in start for start in starts)]
    return {name: _over(start[name] for start in starts) for name in names}


def _over(figures: Iterable[Figure]) -> Figure:
    found = list(figures)
    return Figure(
        min(figure.low for figure in found),
        max(figure.high for figure in found),
        max(figure.rounding for figure in found),
    )


def _check_same(first: Baseline, other: Baseline) -> None:
    """Several starts make one baseline only where they ran the same version with the same flags."""
    differing = [name for name in first.options if first.options[name] != other.options.get(name)]
    differing += [name for name in other.options if name not in first.options]
    if first.vllm_version != other.vllm_version:
        differing.insert(0, "vllm_version")
    if differing:
        names = ", ".join(differing)
        raise ConfigError(
            f"{other.sources[0]}: differs from {first.sources[0]} in {names}: a baseline is of one deployment"
        )
