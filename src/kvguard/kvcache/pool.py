"""The pool: blocks from bytes, and the tokens and concurrency that each release prints of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from kvguard.kvcache import releases
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.requests import startup_blocks, startup_blocks_of_all
from kvguard.kvcache.stages import Stage


@dataclass(frozen=True, slots=True)
class Pool:
    """What one end of the pool's interval comes to, for one engine.

    `blocks` is the smallest rank's and includes the null block; `concurrency` is unrounded; `tokens` is the figure that
    the release prints (blocks times block size where it prints none).
    """

    blocks: int
    concurrency: float | None
    tokens: int
    printed: tuple[str, ...]


def pool_blocks(layout: Layout, stage_bytes: Sequence[int]) -> tuple[int, int]:
    """Blocks of the engine and the stage that limits it.

    Args:
        layout: the deployment's layout.
        stage_bytes: bytes for the cache on one rank of each stage.
    """
    counts = [
        (available // stage.bytes_per_block, stage.index)
        for stage, available in zip(layout.stages, stage_bytes, strict=True)
        if stage.bytes_per_block
    ]
    return min(counts) if counts else (0, 0)


def describe_pool(layout: Layout, blocks: int) -> Pool:
    """The figures of a pool of so many blocks, as this release derives and prints them."""
    serving, length = layout.serving, layout.serving.max_model_len
    concurrency = max_concurrency(layout, blocks)
    if length is None or concurrency is None:
        return Pool(blocks, concurrency, pool_tokens(layout, blocks), ())
    tokens = printed_tokens(layout, blocks, concurrency)
    if serving.engine == "v0" or serving.release < releases.V1_BY_DEFAULT:
        pool_line = f"# {'cuda' if serving.release >= releases.V1_EXISTS else 'GPU'} blocks: {blocks}"
        return Pool(blocks, concurrency, tokens, (pool_line, _concurrency_line(str(length), concurrency)))
    size = f"GPU KV cache size: {tokens:,} tokens"
    line = _concurrency_line(f"{length:,}", concurrency)
    joined = serving.release >= releases.ONE_CAPACITY_LINE
    return Pool(blocks, concurrency, tokens, (f"{size}, {line}",) if joined else (size, line))


def max_concurrency(layout: Layout, blocks: int) -> float | None:
    """Requests of max_model_len that fit, as printed (the null block counted in); None without a length."""
    serving, length = layout.serving, layout.serving.max_model_len
    if length is None or not layout.groups:
        return None
    if serving.engine == "v0" or serving.release < releases.CONCURRENCY_IN_BLOCKS:
        return blocks * serving.block_size / length
    needed = startup_blocks_of_all(layout.groups, length, serving)
    return blocks / needed if needed else None


def printed_tokens(layout: Layout, blocks: int, concurrency: float) -> int:
    """The token figure of this release."""
    serving = layout.serving
    if serving.release >= releases.TOKENS_FROM_CONCURRENCY and serving.max_model_len is not None:
        return int(concurrency * serving.max_model_len)
    return pool_tokens(layout, blocks)


def pool_tokens(layout: Layout, blocks: int) -> int:
    """Tokens by the older definition: an equal share of the pool for each group, in the smallest block."""
    serving = layout.serving
    if serving.engine == "v0" or serving.release < releases.CONCURRENCY_IN_BLOCKS:
        return blocks * serving.block_size
    one_kind = len(layout.groups) == 1 and serving.release < releases.MIXED_PAGES_IN_ONE_GROUP
    smallest = layout.block_size if one_kind else min((group.spec.block_size for group in layout.groups), default=0)
    return blocks // max(1, len(layout.groups)) * smallest * serving.length_shards


def blocks_per_request(layout: Layout, length: int) -> int:
    """Blocks that start-up counts for one request, over all groups."""
    return startup_blocks_of_all(layout.groups, length, layout.serving)


def stage_request_bytes(stage: Stage, layout: Layout, length: int) -> int:
    """Bytes that one request of this length takes on one rank of a stage, all groups counted (0.19 and later)."""
    blocks = sum(startup_blocks(group.spec, length, layout.serving) for group in stage.groups)
    return blocks * stage.bytes_per_block


def _concurrency_line(length: str, concurrency: float) -> str:
    return f"Maximum concurrency for {length} tokens per request: {concurrency:.2f}x"
