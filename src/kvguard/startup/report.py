"""The capacity report: everything one log says about the newest start of a vLLM server, frozen.

Base units throughout. Bytes are per rank (the tightest rank of the engine; weights: the largest), tokens, blocks and
concurrency per engine; `total_*` are sums over the engines. `None` where the log does not say: never zero.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from kvguard.slotted import dataclass, field, fields


class Phase(StrEnum):
    """How far a start has come."""

    NONE = "none"
    LOADING = "loading"
    PROFILING = "profiling"
    ALLOCATED = "allocated"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


ENDED = (Phase.FAILED, Phase.STOPPED)
"""The phases that no process of the start outlives."""
SETTLED = (Phase.READY, *ENDED)
"""The phases of a start that is no longer under way."""

MAX_HISTORY = 20
"""Starts that a report names one by one, the newest."""


class FailureKind(StrEnum):
    """Why a start failed."""

    KV_CACHE_TOO_SMALL = "kv_cache_too_small"
    NO_KV_MEMORY = "no_kv_memory"
    OOM = "oom"
    FREE_MEMORY_BELOW_UTILIZATION = "free_memory_below_utilization"
    INVALID_CONFIG = "invalid_config"
    ENGINE_CRASH = "engine_crash"
    KILLED = "killed"
    OTHER = "other"


class TokenFigure(StrEnum):
    """What the printed token figure means: to vLLM 0.20.0 the pool, from 0.20.1 concurrency times length."""

    POOL = "pool"
    CONCURRENCY_TIMES_LEN = "concurrency_times_len"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact stands: the source's name and the physical line in it, from 1."""

    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Derived:
    """A figure that follows by arithmetic alone, and how."""

    value: float
    how: str


@dataclass(frozen=True, slots=True)
class Capacity:
    """What one engine can hold."""

    engine: str | None = None
    """vLLM's own label of the engine, "0", "1", …; `None` for the choice over all engines."""
    weights_bytes: int | None = None
    kv_cache_bytes: int | None = None
    kv_cache_tokens: int | None = None
    gpu_blocks: int | None = None
    cpu_blocks: int | None = None
    max_model_len: int | None = None
    max_concurrency: float | None = None
    token_figure: TokenFigure | None = None
    rounding: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """± of a printed figure in its own unit, by field name."""
    derived: Mapping[str, Derived] = field(default_factory=lambda: MappingProxyType({}))
    profiled_gpu_blocks: int | None = None
    """What would be there without num_gpu_blocks_override; `None` where no option fixes the blocks."""


def weakness(engine: Capacity) -> tuple[float, float, int]:
    """Sorts the weakest engine first: lowest concurrency, then fewest tokens, then lowest index; a silent one last."""
    unknown = float("inf")
    return (
        engine.max_concurrency if engine.max_concurrency is not None else unknown,
        engine.kv_cache_tokens if engine.kv_cache_tokens is not None else unknown,
        int(engine.engine or 0),
    )


def has_told(engine: Capacity) -> bool:
    """Whether the engine has told how much it can hold; an empty pool is told as well."""
    return any(figure is not None for figure in (engine.max_concurrency, engine.kv_cache_tokens, engine.gpu_blocks))


@dataclass(frozen=True, slots=True)
class DeploymentCapacity:
    """The gate's figures: those of the weakest engine, with the totals over all of them."""

    weakest: Capacity = Capacity()
    engines: int = 0
    """How many engines have reported."""
    engines_expected: int | None = None
    total_kv_cache_tokens: int | None = None
    total_max_concurrency: float | None = None


def together(engines: Sequence[Capacity], expected: int, *, addable: bool) -> DeploymentCapacity:
    """The engines side by side: the weakest that has told its capacity, and sums where each has told the figure.

    Args:
        engines: all of them, silent ones included.
        expected: how many there should be.
        addable: whether their requests are alike and none is missing.
    """
    told = [engine for engine in engines if has_told(engine)]
    tokens = [engine.kv_cache_tokens for engine in told if engine.kv_cache_tokens is not None]
    concurrency = [engine.max_concurrency for engine in told if engine.max_concurrency is not None]
    return DeploymentCapacity(
        weakest=min(told or engines or (Capacity(),), key=weakness),
        engines=len(told),
        engines_expected=expected,
        total_kv_cache_tokens=sum(tokens) if addable and 0 < len(tokens) == len(told) else None,
        total_max_concurrency=round(sum(concurrency), 2) if addable and 0 < len(concurrency) == len(told) else None,
    )


SERVING_OPTIONS = (
    "model",
    "max_model_len",
    "kv_cache_dtype",
    "dtype",
    "quantization",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "decode_context_parallel_size",
    "gpu_memory_utilization",
    "block_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enable_prefix_caching",
    "enforce_eager",
)
"""vLLM's options that a start has as facts of the same name."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Where one rank's device memory went, in bytes (utilization: a ratio)."""

    total_gpu: int | None = None
    utilization: float | None = None
    usable: int | None = None
    weights: int | None = None
    non_torch: int | None = None
    consumed: int | None = None
    """Weights and non-torch memory together, where vLLM prints them so."""
    activation_peak: int | None = None
    cuda_graphs_estimated: int | None = None
    cuda_graphs: int | None = None
    kv_cache: int | None = None
    free: int | None = None
    suggested_utilization: float | None = None
    """What vLLM says would keep the KV cache's size once the CUDA graphs' memory is taken off it."""
    suggested_kv_cache: int | None = None
    full_kv_cache: int | None = None


MEMORY_SHARES = ("utilization", "suggested_utilization")
MEMORY_BYTES = tuple(part.name for part in fields(Memory) if part.name not in MEMORY_SHARES)
"""The parts of a rank's memory by what they are counted in."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds a start has taken, by part; `ready` is from its first stamped line to the ready line."""

    load: float | None = None
    compile: float | None = None
    profile: float | None = None
    graphs: float | None = None
    init: float | None = None
    ready: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the start failed, with the numbers of the message."""

    kind: FailureKind
    message: str
    place: Place
    needed_bytes: int | None = None
    available_bytes: int | None = None
    requested_max_model_len: int | None = None
    kv_cache_tokens: int | None = None
    estimated_max_model_len: int | None = None
    requested_max_num_seqs: int | None = None
    mamba_blocks: int | None = None
    """State blocks that were there, where each of those sequences needs one."""
    transient: bool | None = None


@dataclass(frozen=True, slots=True)
class StartWarning:
    """Something that does not change a figure but its worth; severities are the SLO's business."""

    code: str
    message: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the stats lines of a load have shown: peaks over the engines' lines, preemptions in all."""

    samples: int = 0
    peak_running: int | None = None
    peak_waiting: int | None = None
    peak_kv_cache_usage: float | None = None
    preemptions: int | None = None
    place: Place | None = None
    """The line of the highest usage."""


@dataclass(frozen=True, slots=True)
class Start:
    """One start-up of the server, as far as the log tells."""

    index: int
    phase: Phase
    vllm_version: str | None = None
    generation: str | None = None
    model: str | None = None
    served_model_name: str | None = None
    max_model_len: int | None = None
    requested_max_model_len: int | None = None
    """What was asked for, where the context was cut to fit."""
    kv_cache_dtype: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    data_parallel_size: int | None = None
    decode_context_parallel_size: int | None = None
    gpu_memory_utilization: float | None = None
    block_size: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    enable_prefix_caching: bool | None = None
    enforce_eager: bool | None = None
    arguments: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """The serving arguments of the log, without secrets."""
    layers: str | None = None
    """`hybrid` where a line proves more than one kind of layer; `None` where nothing does."""
    kv_cache_basis: str | None = None
    """`profiled`, or `declared` where an option or the platform's default fixed the cache and nothing was measured."""
    capacity: DeploymentCapacity = DeploymentCapacity()
    engines: tuple[Capacity, ...] = ()
    memory: Memory = Memory()
    timings: Timings = Timings()
    runtime: Runtime = Runtime()
    failure: Failure | None = None
    warnings: tuple[StartWarning, ...] = ()
    missing: tuple[str, ...] = ()
    """What must still report before the capacity is complete, in words."""
    first_place: Place | None = None
    last_place: Place | None = None
    began: float | None = None
    """Stamp of the first line, in seconds as `Origin.stamp`."""
    latest: float | None = None
    """Stamp of the newest line that told something, or of any record while the start is under way."""
    began_clock: float | None = None
    """When the first line came, in seconds of the caller's clock; `None` where the caller has none."""
    latest_clock: float | None = None
    """When the newest line that told something came, by the same clock."""
    differing: Mapping[str, tuple[object, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Of several nodes' logs: facts that should be one and are not, each value once. The fact itself is `None`."""
    lines: Mapping[str, Place] = field(default_factory=lambda: MappingProxyType({}))
    """Where each fact stands, by its name in the report."""
    quotes: Mapping[Place, str] = field(default_factory=lambda: MappingProxyType({}))
    """What those lines say that tell a figure, word for word, by their places; secrets are masked."""


@dataclass(frozen=True, slots=True)
class StartSummary:
    """One start in the history."""

    index: int
    phase: Phase
    vllm_version: str | None
    max_concurrency: float | None
    failure_kind: FailureKind | None
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class Unrecognized:
    """A line that looks like capacity and matched no format: shown, not dropped."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class LogCounts:
    """What went through the parser."""

    bytes: int = 0
    lines: int = 0
    matched: int = 0
    unrecognized: int = 0
    truncated: int = 0
    """Physical lines longer than the bound, judged by their beginning."""
    records: int = 0
    """Lines read with a vLLM logger's prefix: none means another program's log, or a level that hides them."""


@dataclass(frozen=True, slots=True)
class CapacityReport:
    """The newest start of a log, with the starts before it in short."""

    sources: tuple[str, ...] = ()
    starts: int = 0
    start: Start | None = None
    history: tuple[StartSummary, ...] = ()
    unrecognized: tuple[Unrecognized, ...] = ()
    counts: LogCounts = LogCounts()
    contested_by: Start | None = None
    """The start before, where the log cannot tell whether that one still serves or the newest one does."""
    exit_status: int | None = None
    """Of the process that wrote the log, as a shell gives it; `None` while it runs, and where nobody sees its end."""

    @property
    def ended_early(self) -> bool:
        """Whether that process was seen to end before its server was ready, and nothing in the log says why."""
        settled = self.start is not None and self.start.phase in SETTLED
        return self.exit_status is not None and not settled
