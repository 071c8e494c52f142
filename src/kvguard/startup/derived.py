"""What follows from printed figures by arithmetic alone: it stands in `derived` with how, never in the field itself."""

import math
from types import MappingProxyType

from kvguard.slotted import replace
from kvguard.startup.report import Capacity, Derived
from kvguard.startup.state import StartState
from kvguard.startup.versions import TOKENS_OF_A_GROUP, at_least

LARGEST_BLOCK = 4096
"""Tokens of the largest block size that a printed figure is taken to prove; hybrids' go beyond, and tell it."""


def with_derived(known: Capacity, state: StartState) -> Capacity:
    """The capacity with what it implies: tokens from blocks where a block size is proven, blocks from tokens."""
    found: dict[str, Derived] = {}
    block_size, why = _block_size(known, state)
    if block_size is not None and state.layers is None:
        if known.kv_cache_tokens is None and known.gpu_blocks is not None:
            how = f"{known.gpu_blocks:,} blocks x {block_size} tokens ({why})"
            found["kv_cache_tokens"] = Derived(known.gpu_blocks * block_size, how)
        if known.gpu_blocks is None and known.kv_cache_tokens is not None and _counts_blocks(state):
            how = f"{known.kv_cache_tokens:,} tokens / {block_size} ({why})"
            found["gpu_blocks"] = Derived(known.kv_cache_tokens // block_size, how)
    if block_size is not None:
        found["block_size"] = Derived(block_size, why)
    return replace(known, derived=MappingProxyType(found)) if found else known


def _counts_blocks(state: StartState) -> bool:
    """Whether tokens are blocks by block size: later releases divide by the groups of layers, which no line names."""
    return at_least(state.text("vllm_version"), TOKENS_OF_A_GROUP) is False


def _block_size(known: Capacity, state: StartState) -> tuple[int | None, str]:
    """The block size that the log proves: told, or the only whole one that blocks and concurrency allow (V0)."""
    told = state.count("block_size")
    if told is not None:
        return told, f"block size of line {state.facts['block_size'].line}"
    if not known.gpu_blocks or known.max_concurrency is None or known.max_model_len is None:
        return None, ""
    half = known.rounding.get("max_concurrency", 0.0)
    low = (known.max_concurrency - half) * known.max_model_len / known.gpu_blocks
    high = (known.max_concurrency + half) * known.max_model_len / known.gpu_blocks
    sizes = range(max(math.ceil(low), 1), min(math.floor(high), LARGEST_BLOCK) + 1)
    if len(sizes) != 1 or known.kv_cache_tokens is not None:
        return None, ""
    return sizes[0], f"the only block size with which they give {known.max_concurrency:.2f}x"
