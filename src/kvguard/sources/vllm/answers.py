"""What vLLM's endpoints answer, as frozen types; whatever an answer does not hold is `None`, never zero."""

from kvguard.slotted import dataclass


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """What one engine is doing (vLLM's own label for it: "0", "1"; "0" where the version has no label)."""

    engine: str
    running: int | None = None
    """Requests in the running batch."""
    waiting: int | None = None
    """Requests that wait, for whatever reason."""
    kv_cache_usage: float | None = None
    """Share of the blocks in use, 0 to 1."""
    preemptions: int | None = None
    """Since the engine began."""


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """The labels of `vllm:cache_config_info`, with the meaning that each really has.

    They are there from vLLM 0.3.3 on, not in V1 before 0.8.0, not with the Rust front end and not with
    `--disable-log-stats`; the two capacity labels from 0.24.0 on.
    """

    engines: tuple[str, ...]
    """Who has a series of it."""
    total_gpu_blocks: int | None = None
    """Blocks summed over the engines that this front end knows: every engine's series repeats the same sum."""
    gpu_blocks_override: int | None = None
    """Blocks that an option fixed instead of a measurement."""
    block_size: int | None = None
    """Tokens a block: to 0.19 the argument, which is not always the engine's; from 0.20.0 the smallest group's."""
    block_size_resolved: bool = False
    """Whether vLLM says that the size is the engine's own (from 0.18.0)."""
    kv_cache_tokens: int | None = None
    """Of one engine, the smallest where they differ; not summed."""
    max_concurrency: float | None = None
    """Of one engine, the smallest where they differ; not rounded."""
    kv_cache_dtype: str | None = None
    kv_cache_memory_bytes: int | None = None
    """What an option fixed, a rank."""
    gpu_memory_utilization: float | None = None

    @property
    def gpu_blocks(self) -> int | None:
        """One engine's blocks: known only where there is one engine, since several are never told apart."""
        return self.total_gpu_blocks if len(self.engines) == 1 else None


@dataclass(frozen=True, slots=True)
class ServedModel:
    """An entry of `/v1/models`."""

    name: str
    max_model_len: int | None
    """Tokens. From 0.14.0 to 0.19.1 it is the value before vLLM fitted it to the memory."""
    is_adapter: bool
    """Whether it hangs on another model (LoRA)."""


@dataclass(frozen=True, slots=True)
class VllmAnswer:
    """Everything that was asked at one moment."""

    asked_at: float
    """In the time of whoever asked."""
    gone: bool = False
    """Whether nobody listens there: its process has ended, or has not come so far. One that is busy is not gone."""
    healthy: bool | None = None
    """`/health`: the API server lives. It does not say that a request would be served."""
    version: str | None = None
    models: tuple[ServedModel, ...] = ()
    cache: CacheInfo | None = None
    loads: tuple[EngineLoad, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be learnt and why, a line each."""

    @property
    def max_model_len(self) -> int | None:
        """Of the base models, the smallest."""
        lengths = [model.max_model_len for model in self.models if not model.is_adapter and model.max_model_len]
        return min(lengths, default=None)
