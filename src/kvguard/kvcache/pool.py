"""The pool: blocks from bytes, and the tokens and concurrency that each release prints of them."""

from bisect import bisect_left
from collections.abc import Sequence

from kvguard.kvcache import releases
from kvguard.kvcache.layout import Layout
from kvguard.kvcache.requests import startup_blocks, startup_blocks_of_all
from kvguard.kvcache.stages import Stage
from kvguard.slotted import dataclass
from kvguard.units import GIB, Interval


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
        stage_bytes: bytes for the cache on one rank of each stage; negative where the weights alone are too large.
    """
    counts = [
        (max(0, available) // stage.bytes_per_block, stage.index)
        for stage, available in zip(layout.stages, stage_bytes, strict=True)
        if stage.bytes_per_block
    ]
    return min(counts) if counts else (0, 0)


def describe_pool(layout: Layout, blocks: int) -> Pool:
    """The figures of a pool of so many blocks, as this release derives and prints them."""
    serving, length = layout.serving, layout.serving.max_model_len
    concurrency = max_concurrency(layout, blocks)
    if concurrency is None:
        return Pool(blocks, concurrency, pool_tokens(layout, blocks), ())
    tokens = printed_tokens(layout, blocks, concurrency)
    if serving.engine == "v0" or serving.release < releases.TOKENS_PRINTED:
        lines = (_blocks_line(layout, blocks), _concurrency_line(str(length), concurrency))
        return Pool(blocks, concurrency, tokens, lines)
    size = f"GPU KV cache size: {tokens:,} tokens"
    line = _concurrency_line(f"{length:,}", concurrency)
    joined = serving.release >= releases.ONE_CAPACITY_LINE
    return Pool(blocks, concurrency, tokens, (f"{size}, {line}",) if joined else (size, line))


def max_concurrency(layout: Layout, blocks: int) -> float | None:
    """Requests of max_model_len that fit, as printed (the null block counted in); None where nothing is cached."""
    serving, length = layout.serving, layout.serving.max_model_len
    if not layout.groups:
        return None
    if serving.engine == "v0" or serving.release < releases.CONCURRENCY_IN_BLOCKS:
        return blocks * serving.block_size / length
    needed = startup_blocks_of_all(layout.groups, length, serving)
    return blocks / needed if needed else None


def printed_tokens(layout: Layout, blocks: int, concurrency: float) -> int:
    """The token figure of this release."""
    serving = layout.serving
    if serving.release >= releases.TOKENS_FROM_CONCURRENCY:
        return int(concurrency * serving.max_model_len)
    return pool_tokens(layout, blocks)


def pool_tokens(layout: Layout, blocks: int) -> int:
    """Tokens by the older definition: an equal share of the pool for each group, in the smallest block."""
    serving = layout.serving
    if serving.engine == "v0" or serving.release < releases.CONCURRENCY_IN_BLOCKS:
        return blocks * serving.block_size
    one_kind = len(layout.groups) == 1 and serving.release < releases.TOKENS_IN_SMALLEST_BLOCKS
    smallest = layout.block_size if one_kind else min((group.spec.block_size for group in layout.groups), default=0)
    shards = serving.length_shards
    if len(layout.groups) > 1 and serving.release < releases.TOKENS_IN_SMALLEST_BLOCKS:
        shards = 1  # 0.10.2 multiplied by DCP only where there was one group
    return blocks // max(1, len(layout.groups)) * smallest * shards


def recover_blocks(layout: Layout, tokens: int | None, concurrency: Interval | None) -> tuple[int, int] | None:
    """The block counts, first and last, that print these figures; None where none does.

    Args:
        layout: the layout of the server that printed them.
        tokens: its token figure.
        concurrency: its concurrency with the rounding of its last digit.
    """
    if not layout.groups or (tokens is None and concurrency is None):
        return None

    def place(blocks: int) -> int:
        """Below (-1), among (0) or above (1) the counts that are looked for: both figures grow with the blocks."""
        pool = describe_pool(layout, blocks)
        reached = pool.concurrency or 0.0
        if (tokens is not None and pool.tokens < tokens) or (concurrency is not None and reached < concurrency.low):
            return -1
        above = (tokens is not None and pool.tokens > tokens) or (
            concurrency is not None and reached > concurrency.high
        )
        return 1 if above else 0

    first, last = bisect_left(_COUNTS, 0, key=place), bisect_left(_COUNTS, 1, key=place) - 1
    return (first, last) if first <= last and place(first) == 0 else None


_COUNTS = range(1 << 34)
"""Any number of blocks that a pool may have."""


def blocks_per_request(layout: Layout, length: int) -> int:
    """Blocks that start-up counts for one request, over all groups."""
    return startup_blocks_of_all(layout.groups, length, layout.serving)


def stage_request_bytes(stage: Stage, layout: Layout, length: int) -> int:
    """Bytes that one request of this length takes on one rank of a stage, all groups counted (0.19 and later)."""
    blocks = sum(startup_blocks(group.spec, length, layout.serving) for group in stage.groups)
    return blocks * stage.bytes_per_block


_SWAP_BYTES = 4 * GIB
"""V0's default --swap-space, of which its line prints the blocks beside those of the card."""


def _blocks_line(layout: Layout, blocks: int) -> str:
    release = layout.serving.release
    if layout.serving.engine == "v1" or release < releases.V1_EXISTS:
        device = "GPU"
    else:
        device = "CUDA" if release < releases.DEVICE_IN_SMALL_LETTERS else "cuda"
    swapped = "" if layout.serving.engine == "v1" else f", # CPU blocks: {_SWAP_BYTES // layout.bytes_per_block}"
    return f"# {device} blocks: {blocks}{swapped}"


def _concurrency_line(length: str, concurrency: float) -> str:
    return f"Maximum concurrency for {length} tokens per request: {concurrency:.2f}x"
