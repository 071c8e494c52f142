"""Blocks of one request, group by group: what start-up counts, and what a decoding request really holds."""

from collections.abc import Sequence

from kvguard.kvcache import releases
from kvguard.kvcache.groups import Group
from kvguard.kvcache.layers import LayerKind
from kvguard.kvcache.pages import CacheSpec, ceil
from kvguard.kvcache.serving import Serving


def startup_blocks(spec: CacheSpec, length: int, serving: Serving) -> int:
    """Blocks of one group that start-up counts for a request of `length` tokens (max_memory_usage_bytes over page)."""
    size = spec.block_size
    if spec.is_state:
        return _state_blocks(spec, length, serving)
    if spec.kind == LayerKind.SLIDING.value and spec.window is not None:
        return ceil(min(spec.window - 1 + serving.in_flight_tokens, length), size) + 1
    if spec.kind == LayerKind.CHUNKED.value and spec.window is not None:
        return ceil(min(spec.window + serving.in_flight_tokens, length), size)
    if spec.kind == LayerKind.CROSS.value:
        return ceil(serving.encoder_budget, size)
    shards = serving.length_shards if spec.splits_tokens else 1
    return ceil(ceil(length, shards), size)


def startup_blocks_of_all(groups: Sequence[Group], length: int, serving: Serving) -> int:
    """The same over all groups: what the printed concurrency divides by."""
    return sum(startup_blocks(group.spec, length, serving) for group in groups)


def _state_blocks(spec: CacheSpec, length: int, serving: Serving) -> int:
    release = serving.release
    if release < releases.STATES_BY_BLOCK:
        return 1
    if release < releases.STATE_CACHE_MODES:
        return ceil(length, spec.block_size)
    if serving.mamba_cache_mode == "all":
        drafts = serving.speculative_tokens if release >= releases.ALL_MODE_COUNTS_SPECULATION else 0
        return ceil(length, spec.block_size) + drafts
    return _resident_states(spec, serving)


def _resident_states(spec: CacheSpec, serving: Serving) -> int:
    if serving.mamba_cache_mode == "align":
        return 2 + serving.speculative_tokens + spec.checkpoints
    return 1 + serving.speculative_tokens


def held_blocks(spec: CacheSpec, stored: int, serving: Serving, encoder_tokens: int | None) -> int:
    """Blocks of one group that a decoding request with `stored` tokens holds.

    In-flight tokens are one budget an engine, not one a request, so they are left out here; measured at the first
    preemption of a loaded server.
    """
    size = spec.block_size
    if spec.is_state:
        return _held_states(spec, stored, serving)
    if spec.kind == LayerKind.CROSS.value:
        return ceil(encoder_tokens if encoder_tokens is not None else serving.encoder_budget, size)
    shards = serving.length_shards if spec.splits_tokens else 1
    blocks = ceil(ceil(stored, shards), size)
    if spec.window is None or spec.kind not in (LayerKind.SLIDING.value, LayerKind.CHUNKED.value):
        return blocks
    if spec.kind == LayerKind.CHUNKED.value:
        return ceil(min(stored, spec.window), size)
    return min(blocks, ceil(spec.window - 1, size) + 1)


def _held_states(spec: CacheSpec, stored: int, serving: Serving) -> int:
    if serving.mamba_cache_mode == "all" or (releases.STATES_BY_BLOCK <= serving.release < releases.STATE_CACHE_MODES):
        drafts = serving.speculative_tokens if serving.release >= releases.ALL_MODE_COUNTS_SPECULATION else 0
        return max(1, ceil(stored, spec.block_size)) + drafts
    if serving.mamba_cache_mode == "align":
        return min(2, max(1, ceil(stored, spec.block_size))) + serving.speculative_tokens + spec.checkpoints
    return _resident_states(spec, serving)
