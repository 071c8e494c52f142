"""What a log alone proves about a model's kinds of layers: it decides whether tokens may be divided at all."""

from math import ceil

from kvguard.slo.exactness import exact_concurrency
from kvguard.startup.report import Capacity, Start, TokenFigure

_BLOCK_SIZES = (16, 32, 64, 128)
"""What vLLM's attention backends use where nothing in the log names the block size; 16 is its default."""


def is_hybrid(start: Start, engine: Capacity) -> bool:
    """Whether the log proves more than one kind of layer: by a line, or by two figures that one kind cannot print.

    Before 0.20.1 the token figure is an equal share of the pool for each group, so that the concurrency of a hybrid
    model is not tokens over length.
    """
    return start.layers == "hybrid" or (engine.token_figure is TokenFigure.POOL and _agreeing(start, engine) is False)


def one_kind_because(start: Start, engine: Capacity) -> str | None:
    """Why all layers are of one kind, in words; `None` where the log does not prove it."""
    if start.layers == "hybrid":
        return None
    if start.generation == "V0":
        return "the V0 engine lays all layers out alike"
    if engine.token_figure is TokenFigure.POOL and _agreeing(start, engine):
        return "tokens and concurrency agree as only one kind of layer prints them"
    block_size = known_block_size(start, engine)
    if engine.gpu_blocks is not None and block_size is not None and _explains(engine, block_size):
        return "blocks and concurrency agree as only one kind of layer prints them"
    return None


def block_sizes(start: Start, engine: Capacity) -> tuple[int, ...]:
    """Block sizes that the log allows, in tokens of one request: the default first.

    With decode context parallelism a block holds its size on each of the ranks that share a request.
    """
    shards = start.decode_context_parallel_size or 1
    told = known_block_size(start, engine)
    if told is not None:
        return (told * shards,)
    sizes = tuple(size * shards for size in _BLOCK_SIZES)
    return tuple(size for size in sizes if _explains(engine, size)) or sizes[:1]


def _explains(engine: Capacity, size: int) -> bool:
    """Whether the figures could be those of whole blocks of that many tokens, of one kind of layer."""
    tokens, blocks, length = engine.kv_cache_tokens, engine.gpu_blocks, engine.max_model_len
    if engine.token_figure is not TokenFigure.CONCURRENCY_TIMES_LEN and tokens is not None:
        return tokens % size == 0 if blocks is None else tokens == blocks * size
    exact = exact_concurrency(engine, size, hybrid=False)
    if blocks is None or exact is None or not length:
        return True
    return exact.low - 1e-9 <= blocks / ceil(length / size) <= exact.high + 1e-9


def known_block_size(start: Start, engine: Capacity) -> int | None:
    """The block size that the log tells, or that its figures prove."""
    derived = engine.derived.get("block_size")
    return start.block_size or (_by_tokens_and_blocks(engine) if derived is None else round(derived.value))


def _by_tokens_and_blocks(engine: Capacity) -> int | None:
    """Tokens over blocks, where the concurrency is that of one kind of layer."""
    tokens, blocks, length = engine.kv_cache_tokens, engine.gpu_blocks, engine.max_model_len
    pool = engine.token_figure is TokenFigure.POOL
    if not (pool and tokens and blocks and length and engine.max_concurrency) or tokens % blocks:
        return None
    size = tokens // blocks
    half = engine.rounding.get("max_concurrency", 0.0) + 1e-9
    return size if abs(blocks / ceil(length / size) - engine.max_concurrency) <= half else None


def _agreeing(start: Start, engine: Capacity) -> bool | None:
    """Whether tokens / length explains the printed concurrency, within its digits and one block a request."""
    if not engine.kv_cache_tokens or not engine.max_model_len or engine.max_concurrency is None:
        return None
    rounding = engine.rounding.get("max_concurrency", 0.0)
    for size in block_sizes(start, engine):
        exact = engine.kv_cache_tokens / size / ceil(engine.max_model_len / size)
        unrounded = engine.kv_cache_tokens / engine.max_model_len  # to 0.9.0, not rounded to blocks
        if any(abs(figure - engine.max_concurrency) <= rounding + 1e-9 for figure in (exact, unrounded)):
            return True
    return False
