"""The start-up check: whether one request of max_model_len fits, how each release counts, and what it says if not."""

from collections.abc import Callable, Sequence

from kvguard.kvcache import releases
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.pages import ceil
from kvguard.kvcache.pool import stage_request_bytes
from kvguard.kvcache.requests import startup_blocks
from kvguard.kvcache.serving import Serving
from kvguard.kvcache.stages import Stage
from kvguard.slotted import dataclass
from kvguard.units import GIB

_DOCS = "https://docs.vllm.ai/en/latest/configuration/conserving_memory/"

Needed = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a start is refused. Bytes are of one rank of the stage that refuses; `printed` is the exception's text."""

    kind: str
    needed_bytes: int | None
    available_bytes: int | None
    kv_cache_tokens: int | None
    estimated_max_model_len: int | None
    printed: str


@dataclass(frozen=True, slots=True)
class _Check:
    """One comparison that start-up makes: bytes there against bytes needed at a length."""

    available: int
    needed: Needed


def check_fit(layout: Layout, stage_bytes: Sequence[int], override: int | None) -> Refusal | None:
    """What start-up says; None where it goes on.

    Args:
        layout: the deployment's layout; its max_model_len is what is asked for.
        stage_bytes: bytes for the cache on one rank of each stage.
        override: --num-gpu-blocks-override, where given.
    """
    length = layout.serving.max_model_len
    if not layout.groups:
        return None
    if layout.serving.engine == "v0":
        return _check_v0(layout, stage_bytes, override, length)
    for check in _checks(layout, stage_bytes, override):
        if check.available <= 0:
            return Refusal("no_kv_memory", None, check.available, None, None, _no_memory_text(layout.serving))
        if check.needed(length) > check.available:
            estimate = _longest(check, length)
            printed = _too_small_text(layout.serving, length, check.needed(length), check.available, estimate)
            return Refusal("kv_cache_too_small", check.needed(length), check.available, None, estimate or None, printed)
    return None


def longest_fit(layout: Layout, stage_bytes: Sequence[int], override: int | None, ceiling: int) -> int:
    """The longest max_model_len up to `ceiling` with which this deployment starts; 0 where none does."""
    if layout.serving.engine == "v0":
        return min(_v0_tokens(layout, stage_bytes, override), ceiling)
    checks = _checks(layout, stage_bytes, override)
    return min((_longest(check, ceiling) for check in checks), default=ceiling)


def largest(meets: Callable[[int], bool], ceiling: int) -> int:
    """The largest whole number from 1 up to `ceiling` that meets, where all below it do; 0 where not even 1 does.

    Halved as vLLM searches (estimate_max_model_len).
    """
    low, high, best = 1, ceiling, 0
    while low <= high:
        middle = (low + high) // 2
        if meets(middle):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def _checks(layout: Layout, stage_bytes: Sequence[int], override: int | None) -> list[_Check]:
    release = layout.serving.release
    if override is not None and release >= releases.OVERRIDE_IN_FIT:
        stage_bytes = [override * stage.bytes_per_block for stage in layout.stages]
    if releases.FIT_AGAINST_ALL_LAYERS <= release < releases.FIT_PER_STAGE:
        return [_Check(min(stage_bytes), _needed_by_all_layers(layout))]
    return [
        _Check(_usable(available, stage, release), _needed_on(stage, layout))
        for stage, available in zip(layout.stages, stage_bytes, strict=True)
        if stage.layers
    ]


def _usable(available: int, stage: Stage, release: releases.Release) -> int:
    """From 0.29 one block is kept for the null block."""
    return available - (stage.bytes_per_block if release >= releases.NULL_BLOCK_IN_FIT else 0)


def _needed_on(stage: Stage, layout: Layout) -> Needed:
    release = layout.serving.release
    if release < releases.FIT_AGAINST_ALL_LAYERS:
        return lambda length: _layer_by_layer(stage, layout, length)
    if release < releases.FIT_COUNTS_ALL_GROUPS:
        return lambda length: _first_group_only(stage.bytes_per_block, layout, length)
    return lambda length: stage_request_bytes(stage, layout, length)


def _needed_by_all_layers(layout: Layout) -> Needed:
    """0.14 to 0.16 charge the whole model to each stage (vllm#34076)."""
    return lambda length: _first_group_only(layout.grouping.bytes_per_block, layout, length)


def _first_group_only(bytes_per_block: int, layout: Layout, length: int) -> int:
    first = layout.groups[0]
    return startup_blocks(first.spec, length, layout.serving) * bytes_per_block


def _layer_by_layer(stage: Stage, layout: Layout, length: int) -> int:
    """To 0.13: each layer's own need, before layers are kept in full, pages unified and groups padded."""
    return sum(startup_blocks(spec, length, layout.serving) * spec.page_bytes for spec in stage.specs)


def _longest(check: _Check, ceiling: int) -> int:
    """The longest length that passes, as vLLM searches it; 0 where even one token does not."""
    return largest(lambda length: check.needed(length) <= check.available, ceiling)


def _v0_blocks(layout: Layout, stage_bytes: Sequence[int]) -> int:
    return min(available // stage.bytes_per_block for stage, available in zip(layout.stages, stage_bytes, strict=True))


def _v0_tokens(layout: Layout, stage_bytes: Sequence[int], override: int | None) -> int:
    """Tokens that V0 compares a context with; it divides the blocks by pipeline stages (worker/worker.py, from 0.8)."""
    blocks = override if override is not None else _v0_blocks(layout, stage_bytes)
    if layout.serving.release >= releases.V0_DIVIDES_BY_STAGES:
        blocks //= layout.serving.pp
    return blocks * layout.serving.block_size


def _check_v0(layout: Layout, stage_bytes: Sequence[int], override: int | None, length: int) -> Refusal | None:
    if (override if override is not None else _v0_blocks(layout, stage_bytes)) <= 0:
        return Refusal("no_kv_memory", None, min(stage_bytes), None, None, _no_memory_text(layout.serving))
    tokens = _v0_tokens(layout, stage_bytes, override)
    if length <= tokens:
        return None
    printed = (
        f"The model's max seq len ({length}) is larger than the maximum number of tokens that can be stored in KV "
        f"cache ({tokens}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing "
        "the engine."
    )
    needed = ceil(length, layout.serving.block_size) * layout.bytes_per_block
    return Refusal("kv_cache_too_small", needed, min(stage_bytes), tokens, tokens, printed)


def _no_memory_text(serving: Serving) -> str:
    text = (
        "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine"
    )
    if serving.release >= releases.REFUSAL_REWORDED:
        text += " (this flag also controls CPU memory reservation on the CPU backend, despite its name)"
    suffix = f" See {_DOCS} for more details." if serving.release >= releases.URL_IN_REFUSAL else ""
    return f"{text}.{suffix}"


def _too_small_text(serving: Serving, length: int, needed: int, available: int, estimate: int) -> str:
    """The wording of each range of releases (vllm v1/core/kv_cache_utils.py)."""
    release = serving.release
    possessive = "model's" if release >= releases.REFUSAL_REWORDED else "models's"
    unit = "GiB" if release >= releases.GIB_NAMED else "GB"
    text = (
        f"To serve at least one request with the {possessive} max seq len ({length}), ({_gib(needed, release)} {unit} "
        f"KV cache is needed, which is larger than the available KV cache memory ({_gib(available, release)} {unit})."
    )
    text += _estimate_text(release, estimate)
    also = " (which also controls CPU memory on the CPU backend)" if release >= releases.REFUSAL_REWORDED else ""
    text += (
        f" Try increasing `gpu_memory_utilization`{also} or decreasing `max_model_len` when initializing the engine."
    )
    return text + (f" See {_DOCS} for more details." if release >= releases.URL_IN_REFUSAL else "")


def _estimate_text(release: releases.Release, estimate: int) -> str:
    if release < releases.ESTIMATE_BEGUN or estimate <= 0:
        return ""
    if release < releases.ESTIMATE_PRINTED:
        return " Based on the available memory, "  # the number is lost: two f-strings, one of them a statement
    return f" Based on the available memory, the estimated maximum model length is {estimate}."


def _gib(count: int, release: releases.Release) -> str:
    if release >= releases.GIB_TRIMMED:
        return str(round(count / GIB, 2))
    return f"{count / GIB:.2f}"
