"""How many requests fit by the log alone: exact where it proves one kind of layer, else the interval it allows."""

from math import ceil, floor, inf

from kvguard.kvcache.load import Request
from kvguard.kvcache.uniform import UniformPool
from kvguard.slo.exactness import exact_concurrency
from kvguard.slo.fit import Fit, in_blocks, spanned
from kvguard.slo.layer_evidence import block_sizes, is_hybrid, one_kind_because
from kvguard.startup.report import Capacity, Start, TokenFigure
from kvguard.units import Interval, format_count


def fit_by_log(start: Start, engine: Capacity, request: Request, uniform: bool) -> Fit | None:
    """Requests of that length on that engine; `None` where the log holds too few figures.

    Args:
        start: the start, for its flags.
        engine: the engine's figures.
        request: the request.
        uniform: the user declares one kind of layer.

    With one kind of layer a request holds `ceil(stored / block size)` blocks, and one block id of the pool is
    reserved. With kinds unknown, the low end takes all of a request's blocks as fixed cost (as many fit as at
    max_model_len), the high end is that of one kind. Of several kinds there is no high end: at max_model_len start-up
    counts tokens in flight for each sliding group, which a request that decodes does not hold.
    """
    by_tokens = _one_kind(start, engine, request)
    declared = uniform and refutes_uniform(start, engine) is None
    why = "declared" if declared else one_kind_because(start, engine)
    if why is not None:
        return by_tokens
    return _open(start, engine, request, by_tokens)


def refutes_uniform(start: Start, engine: Capacity) -> str | None:
    """Why the layers cannot be of one kind, whatever is declared; `None` where the log allows it."""
    if is_hybrid(start, engine):
        return "the log shows several kinds of layers"
    if engine.kv_cache_tokens is not None and not uniform_pools(start, engine):
        return f"{format_count(engine.kv_cache_tokens)} tokens are no whole blocks of one kind of layer"
    return None


def uniform_pools(start: Start, engine: Capacity) -> tuple[UniformPool, ...]:
    """The engine's pool if all layers are of one kind: once for each block size that the log allows."""
    sharing = _shares_prefixes(start)
    sizes = block_sizes(start, engine)
    return tuple(UniformPool(blocks, size, sharing) for size in sizes if (blocks := _blocks(engine, size)) is not None)


def _one_kind(start: Start, engine: Capacity, request: Request) -> Fit | None:
    pools = uniform_pools(start, engine)
    sizes = [format_count(pool.block_size) for pool in pools]
    counted = f"in blocks of {' to '.join(dict.fromkeys((sizes[0], sizes[-1])))} tokens" if sizes else ""
    return spanned([_in_whole_blocks(pool, request) for pool in pools], counted)


def _in_whole_blocks(pool: UniformPool, request: Request) -> Fit:
    need = pool.request(request)
    return Fit(pool.holds(need), in_blocks(pool.usable.low, need.added, need.shared))


def _blocks(engine: Capacity, size: int) -> Interval | None:
    """The pool in blocks of that many tokens, for one kind of layer."""
    if engine.gpu_blocks is not None:
        return Interval.exact(engine.gpu_blocks)
    tokens, length = engine.kv_cache_tokens, engine.max_model_len
    if tokens is None:
        return None
    if engine.token_figure is not TokenFigure.CONCURRENCY_TIMES_LEN or not length:
        return Interval.exact(floor(tokens / size))
    # tokens = int(blocks / ceil(length / size) * length): one whole number at most gives the printed figure
    each = ceil(length / size)
    low, high = ceil(tokens * each / length), ceil((tokens + 1) * each / length) - 1
    return Interval(low, high) if low <= high else None


def _open(start: Start, engine: Capacity, request: Request, by_tokens: Fit | None) -> Fit | None:
    """Both answers, where the log does not tell the kinds of layers."""
    length = engine.max_model_len
    at_length = exact_concurrency(engine, start.block_size, is_hybrid(start, engine))
    if at_length is None or not length:
        return None
    low = at_length.low if by_tokens is None else min(at_length.low, by_tokens.interval.low)
    least = f"hybrid: at least {format_count(at_length.low)}"
    several = refutes_uniform(start, engine)
    if several is not None:
        growing = at_length.high * length / request.request_tokens
        if_all = f"about {format_count(growing)} if all of a request grows with its length"
        how = f"{least}, {if_all}: {several}"
        return Fit(Interval(low, inf), how, settles=_BY_CONFIG)
    growing = at_length.high * length / request.request_tokens if by_tokens is None else by_tokens.interval.high
    how = f"one kind of layer: {format_count(growing)}; {least}"
    return Fit(Interval(low, max(low, growing)), how, settles=f"{_BY_CONFIG}, or declare workload.layers: uniform")


_BY_CONFIG = "give the model's config (--model-config)"


def _shares_prefixes(start: Start) -> bool:
    """Prefix caching: on by default in V1 (vLLM 0.8.0), off in V0."""
    if start.enable_prefix_caching is not None:
        return start.enable_prefix_caching
    return start.generation != "V0"
