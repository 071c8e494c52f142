"""The plan: a deployment and a pool, to everything that can be said of it before it starts."""

from collections.abc import Sequence

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.budget import Budget
from kvguard.kvcache.fit import Refusal, check_fit, longest_fit
from kvguard.kvcache.layers import ModelLayers
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.load import Request
from kvguard.kvcache.options import Assumption, Options, resolve, with_max_model_len
from kvguard.kvcache.pool import Pool, describe_pool, pool_blocks
from kvguard.kvcache.serving import Serving
from kvguard.kvcache.workload import Service, serve
from kvguard.slotted import dataclass
from kvguard.units import Interval

_NO_CEILING = 1 << 24
INVALID_CONFIG = "invalid_config"
"""The refusal of flags, before any memory is looked at."""


@dataclass(frozen=True, slots=True)
class PoolInput:
    """What the pool is made of: bytes of one rank on each stage, a block count, or both (the count then wins)."""

    stage_bytes: tuple[Interval, ...] | None = None
    override: int | None = None
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class End:
    """All figures at one end of the pool's interval."""

    pool: Pool
    limiting_stage: int
    refusal: Refusal | None
    largest_max_model_len: int | None
    service: Service | None
    """What the pool holds of the workload, also where the server would not start."""

    @property
    def served(self) -> int | None:
        """Requests of the workload that one engine runs at once: none where it would not start."""
        if self.service is None:
            return None
        return 0 if self.refusal is not None else self.service.requests


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan. `low` and `high` are None where no pool was given; they are equal where it was exact."""

    layout: Layout
    assumptions: tuple[Assumption, ...]
    pool: PoolInput
    workload: Request | None
    low: End | None
    high: End | None

    @property
    def starts(self) -> bool | None:
        """Whether the server would start; None: the pool's interval straddles the answer."""
        if self.contradiction is not None:
            return False
        if self.low is None or self.high is None:
            return True
        if self.low.refusal is None:
            return True
        return False if self.high.refusal is not None else None

    @property
    def contradiction(self) -> Refusal | None:
        """What vLLM refuses of the flags, whatever the memory: what the pool would hold can be told all the same."""
        serving = self.layout.serving
        batch, sequences = serving.max_num_batched_tokens, serving.max_num_seqs
        if batch >= sequences or {note.option for note in self.assumptions} & {
            "max_num_batched_tokens",
            "max_num_seqs",
        }:
            return None
        # config/scheduler.py; a default is no more than the other flag
        printed = f"max_num_batched_tokens ({batch}) must be greater than or equal to max_num_seqs ({sequences})."
        return Refusal(INVALID_CONFIG, None, None, None, None, printed)

    @property
    def beyond_the_model(self) -> bool:
        """Whether vLLM refuses the length before it looks at any memory: it is more than the model's own."""
        return self.low is not None and self.low.refusal is not None and self.low.refusal.kind == INVALID_CONFIG


def make_plan(
    model: ModelLayers,
    options: Options,
    pool: PoolInput,
    workload: Request | None = None,
    total_gpu_bytes: float | None = None,
) -> Plan:
    """Plan one deployment.

    Raises:
        ConfigError: flags that contradict the release or the model, or a combination that vLLM refuses.
    """
    serving, assumed = resolve(options, model, total_gpu_bytes)
    layout = lay_out(model, serving)
    if options.auto_max_model_len:
        layout, note = _auto_fitted(layout, pool)
        assumed.append(note)
    if layout.bytes_per_block == 0 or (pool.stage_bytes is None and pool.override is None):
        return Plan(layout, tuple(assumed), pool, workload, None, None)
    low, high = (_end(layout, pool, workload, end) for end in ("low", "high"))
    return Plan(layout, tuple(assumed), pool, workload, low, high)


def _end(layout: Layout, pool: PoolInput, workload: Request | None, end: str) -> End:
    available = _stage_bytes(layout, pool, end)
    blocks, stage = pool_blocks(layout, available)
    if pool.override is not None and not _loses_override(layout.serving):
        blocks = pool.override
    ceiling = layout.model.context.longest or max(_NO_CEILING, layout.serving.max_model_len)
    return End(
        pool=describe_pool(layout, blocks),
        limiting_stage=stage,
        refusal=_refusal(layout, available, pool.override),
        largest_max_model_len=longest_fit(layout, available, pool.override, ceiling),
        service=serve(layout, blocks, workload) if workload is not None else None,
    )


def _loses_override(serving: Serving) -> bool:
    """One release logs --num-gpu-blocks-override and goes on with the blocks that it profiled."""
    return serving.engine == "v1" and serving.release == releases.OVERRIDE_LOST


def _refusal(layout: Layout, available: Sequence[int], override: int | None) -> Refusal | None:
    """The config is checked before any memory is: a length beyond the model's own is refused first."""
    asked, derived = layout.serving.max_model_len, layout.model.context.longest
    if derived is not None and asked > derived:
        printed = f"User-specified max_model_len ({asked}) is greater than the derived max_model_len"
        return Refusal(INVALID_CONFIG, None, None, None, derived, printed)
    return check_fit(layout, available, override)


def _stage_bytes(layout: Layout, pool: PoolInput, end: str) -> list[int]:
    if pool.stage_bytes is None:
        return [(pool.override or 0) * stage.bytes_per_block for stage in layout.stages]
    given = pool.stage_bytes
    if len(given) == 1:
        given = given * len(layout.stages)
    if len(given) == len(layout.stages) * layout.serving.tp:
        given = tuple(_tightest(given[i : i + layout.serving.tp]) for i in range(0, len(given), layout.serving.tp))
    if len(given) != len(layout.stages):
        raise ConfigError(
            f"--kv-cache-memory-bytes: {len(given)} sizes for {len(layout.stages)} stages of {layout.serving.tp} "
            "ranks; give one, one a stage, or one a rank"
        )
    return [int(getattr(interval, end)) for interval in given]


def _tightest(ranks: Sequence[Interval]) -> Interval:
    return Interval(min(rank.low for rank in ranks), min(rank.high for rank in ranks))


def _auto_fitted(layout: Layout, pool: PoolInput) -> tuple[Layout, Assumption]:
    """`--max-model-len auto`: the longest length that fits, at the pool's low end.

    Raises:
        ConfigError: no pool to fit into, or not even one token fits.
    """
    asked = layout.serving.max_model_len
    if pool.stage_bytes is None and pool.override is None:
        raise ConfigError("--max-model-len auto: a pool is needed")
    fitted = longest_fit(layout, _stage_bytes(layout, pool, "low"), pool.override, asked)
    if fitted <= 0:
        raise ConfigError("--max-model-len auto: not enough memory for a single token; vLLM refuses to start")
    why = f"auto: the model's own {asked} fits" if fitted >= asked else f"auto: cut from {asked} to what fits"
    serving = with_max_model_len(layout.serving, fitted)
    return lay_out(layout.model, serving), Assumption("max_model_len", fitted, why)
