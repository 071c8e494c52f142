"""What a line of a vLLM log can tell: one frozen type for each thing, the unit in the field's name.

Bytes are of one rank unless the type says otherwise; tokens and concurrency are of one engine, blocks of one rank's
pool (all ranks of an engine are levelled to the smallest). A figure printed with limited digits is a `Printed`, which
carries half of its last place; counts are exact. A field that the wording does not hold is `None`: never zero.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Self

from kvguard.slotted import dataclass, field


class Printed(NamedTuple):
    """A figure as printed: its value in the base unit, and what rounding hides (± in the same unit)."""

    value: float
    rounding: float = 0.0


class Role(StrEnum):
    """Who spoke, as far as the process tag tells."""

    API_SERVER = "api_server"
    ENGINE = "engine"
    WORKER = "worker"
    OTHER = "other"
    UNTAGGED = "untagged"


class Trust(StrEnum):
    """What stands before a message, and so how much of it vLLM's own logger vouches for."""

    RECORD = "record"  # level, and time or file, as a logger prints them (or a JSON object of a logger)
    TAGGED = "tagged"  # a process tag alone: a traceback or a print of a child process
    TRACEBACK = "traceback"  # a raw line inside a traceback that the same process opened
    RAW = "raw"  # nothing: any process may have printed it


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message stands and who printed it; what the prefix does not tell is `None`."""

    line: int  # number of the physical line in its source, from 1 (a wrapped message: its first line)
    role: Role = Role.UNTAGGED
    tag: str | None = None  # the process tag without its pid: `EngineCore_DP0`, `Worker_TP1`, `APIServer`
    pid: int | None = None
    writer: int | None = None  # the outermost pid of a process of vLLM: it printed the line, whoever speaks inside
    engine: int | None = None  # data-parallel index, where the tag or the message names one
    rank: str | None = None
    """Which rank of its engine, as the tag spells it (`PP0_TP1`, `rank=1`), or the pid of an unnamed worker."""
    node: str | None = None  # the address that Ray prints before a remote worker's line
    stamp: float | None = None  # seconds since the start of its own year, by the logger's stamp: vLLM's has no zone
    outer_stamp: float | None = None  # the same, of a runtime's or a runner's stamp: another clock, often another zone
    level: str | None = None
    file: str | None = None  # the upstream source file in the brackets, without its folder
    trust: Trust = Trust.RAW
    process_line: int | None = None  # the first that this process printed, where it has a pid
    repeated: int = 1  # how often Ray swallowed a like line (its `[repeated 7x across cluster]`), this one included
    behind_vllm: bool = False  # a record in vLLM's own form stands here or before: others print some of these lines
    stage: str | None = None  # of vllm-omni: one of several models of a server, as its tag numbers them
    container: str | None = None  # that printed it, where the log interleaves several and names them
    text: str | None = None  # the message as printed, without what stands before it; a wrapped one in one piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all: every event knows the format that told it and its origin."""

    format: str
    origin: Origin

    def __deepcopy__(self, memo: object) -> Self:
        return self  # frozen, its read-only mappings included


# --- configuration ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnnounced(Event):
    """The API server names itself: its first line, logo or version line."""

    vllm_version: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsGiven(Event):
    """The serving arguments, all of them (`Namespace`) or those that are not default; secrets are left out."""

    arguments: Mapping[str, object]
    complete: bool  # every argument is listed, so that a missing one is no default
    cut: bool = False  # by a page: what is not listed may have stood behind


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfigured(Event):
    """An engine's banner (`Initializing a V1 LLM engine …`): known keys only, `None` values left out."""

    vllm_version: str | None = None
    generation: str | None = None  # `V0` or `V1`, where the banner names it
    config: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionResolved(Event):
    """One option in force, resolved by vLLM after its arguments: the key is the argument's name."""

    option: str
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReduced(Event):
    """`Auto-fit max_model_len`: the context served is shorter than the one asked for, or the whole one fits."""

    requested_tokens: int | None
    max_model_len_tokens: int
    kv_cache_bytes: Printed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAssigned(Event):
    """A rank takes its place in the world of its engine."""

    rank_number: int
    world_size: int
    dp_rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersNoted(Event):
    """A line that tells how the KV cache is laid out over kinds of layers (a hybrid model's), or how not."""

    layers: str
    """What it says: `hybrid`, `hybrid-manager-disabled`."""
    block_size_tokens: int | None = None
    padding_layers: int | None = None


# --- capacity ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsLoaded(Event):
    """Growth of device memory while the model was loaded, of one rank (vLLM: `load_model` of the model runner)."""

    weights_bytes: Printed | None = None
    load_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterAnnounced(Event):
    """The next weights that this rank loads are a draft model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheMemory(Event):
    """Bytes for the KV cache, of one rank; may be negative."""

    kv_cache_bytes: Printed
    basis: str = "profiled"
    """`profiled`, or nothing was measured: `declared` where an option fixed it, `default` where the platform will."""
    supersedes: bool = False
    """Whether it replaces what the same rank printed before (memory taken away afterwards)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCacheSize(Event):
    """The KV cache in tokens, of one engine (to vLLM 0.11.0 of one rank, before levelling)."""

    kv_cache_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxConcurrency(Event):
    """How many requests of `max_model_len` fit, of one engine."""

    max_concurrency: Printed
    max_model_len_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksAllocated(Event):
    """The pool in blocks, of one engine."""

    gpu_blocks: int
    cpu_blocks: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksCounted(Event):
    """`cache_config_info … num_gpu_blocks is`: blocks summed over the engines that the front end knows."""

    total_gpu_blocks: int
    engines: int | None = None
    """How many engines the line says it adds up; `None` where it names one engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksOverridden(Event):
    """`num_gpu_blocks_override` is in force: the pool is declared, not measured."""

    profiled_blocks: int
    gpu_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockSizeSet(Event):
    """The block size in force, in tokens, where vLLM chose it itself."""

    block_size_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensMultiplied(Event):
    """The next token figure is already multiplied by the context-parallel size (vLLM 0.10.2 to 0.20.0)."""

    factor: int


# --- memory and time --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryProfiled(Event):
    """Parts of one rank's device memory; a wording holds some of them."""

    total_gpu_bytes: Printed | None = None
    usable_bytes: Printed | None = None
    utilization: Printed | None = None
    free_bytes: Printed | None = None
    weights_bytes: Printed | None = None
    non_torch_bytes: Printed | None = None
    consumed_bytes: Printed | None = None  # weights and non-torch memory in one figure (vLLM 0.27 and later)
    activation_peak_bytes: Printed | None = None
    cuda_graphs_bytes: Printed | None = None
    kv_cache_bytes: Printed | None = None
    suggested_kv_cache_bytes: int | None = None
    """What vLLM says would fill the requested memory, as `--kv-cache-memory`."""
    full_kv_cache_bytes: int | None = None  # what vLLM says would fill the whole device
    profile_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGraphMemory(Event):
    """CUDA-graph memory of one rank: the estimate that profiling subtracts, and what capture really took."""

    cuda_graphs_estimated_bytes: Printed | None = None
    cuda_graphs_bytes: Printed | None = None
    capture_seconds: float | None = None
    utilization: Printed | None = None
    equivalent_utilization: Printed | None = None
    suggested_utilization: Printed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInitialized(Event):
    """`init engine … took`: profile, cache creation and warm-up of one engine are done."""

    init_seconds: float
    compile_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled(Event):
    """torch.compile of one rank is done."""

    compile_seconds: float


# --- the course of a start --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed(Event):
    """A step of a start without a figure."""

    step: str  # `loading` or `profiling`


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerListening(Event):
    """The API server says where it listens; its start-up completes right after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReady(Event):
    """The server takes requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStarted(Event):
    """The HTTP library names its process; the prefix may have no pid."""

    process_pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownBegan(Event):
    """An orderly end: a signal, or the API server closing."""

    process_pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReported(Event):
    """A message that names why a start cannot go on; before ready it is fatal by itself."""

    kind: str
    message: str
    needed_bytes: Printed | None = None
    available_bytes: Printed | None = None
    requested_tokens: int | None = None
    kv_cache_tokens: int | None = None
    estimated_tokens: int | None = None
    requested_seqs: int | None = None
    mamba_blocks: int | None = None  # state blocks there, of which every sequence needs one
    total_gpu_bytes: Printed | None = None
    free_bytes: Printed | None = None
    utilization: Printed | None = None
    transient: bool | None = None
    """Whether waiting may mend it (memory held by another process)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFailed(Event):
    """A process says that it, or one that it waits for, has failed; the cause stands elsewhere."""

    message: str
    kind: str = "engine_crash"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionRaised(Event):
    """The last line of a traceback; a cause only if a process then fails."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineUnrecognized(Event):
    """A record that looks like capacity and that no format describes."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpoke(Event):
    """A process printed a line, whatever else that tells; only asked for while it is in doubt who serves."""

    answers: bool = False  # the line is of a request that it has answered: no process that only starts has any
    of_server: bool = False  # its record is one that only an API server prints


# --- at run time ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsLogged(Event):
    """The periodic stats line of one engine (or of all of them, aggregated)."""

    running: int | None = None
    waiting: int | None = None
    kv_cache_usage: float | None = None  # a ratio, 0 to 1
    preemptions: int | None = None  # since the last such line
    samples: int = 1
    """How many such lines the figures are the peaks of."""
    peak_line: int | None = None
    """The line of the highest usage, where they are more than one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempted(Event):
    """V0's warning that requests lost their blocks; the figure is the running total."""

    preemptions_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallelResized(Event):
    """Elastic scaling has changed the number of engines at run time."""

    data_parallel_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolResized(Event):
    """An engine's pool was rebuilt with another number of blocks, at its start or at run time."""

    gpu_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept(Event):
    """Sleep mode has freed memory, or given it back; the capacity of the start is unchanged."""

    awake: bool
