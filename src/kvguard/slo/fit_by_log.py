"""How many requests fit by the log alone: exact where it proves one kind of layer, else the interval it allows."""

from math import ceil, floor

from kvguard.slo.exactness import exact_concurrency
from kvguard.slo.fit import Fit, Request, in_blocks
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
    max_model_len), the high end takes all of them as growing with its length.
    """
    by_tokens = _one_kind(start, engine, request)
    why = "declared" if uniform else one_kind_because(start, engine)
    if why is not None:
        return by_tokens
    return _open(start, engine, request, by_tokens)


def _one_kind(start: Start, engine: Capacity, request: Request) -> Fit | None:
    found = [(blocks, size) for size in block_sizes(start, engine) if (blocks := _blocks(engine, size)) is not None]
    if not found:
        return None
    fits = [_in_whole_blocks(blocks, size, request, _shares_prefixes(start)) for blocks, size in found]
    low, high = min(fit.interval.low for fit in fits), max(fit.interval.high for fit in fits)
    first = fits[0]
    return Fit(
        Interval(low, high),
        first.how,
        best=None if low == high else first.interval.low,
        usable_blocks=first.usable_blocks,
        request_blocks=first.request_blocks,
    )


def _in_whole_blocks(blocks: Interval, size: int, request: Request, sharing: bool) -> Fit:
    each = ceil(request.stored_tokens / size)
    shared = min(floor(request.shared_prefix_tokens / size), each) if sharing else 0
    usable = Interval(max(blocks.low - 1, 0), max(blocks.high - 1, 0))
    added = max(each - shared, 1)
    fits = Interval(max(usable.low - shared, 0) / added, max(usable.high - shared, 0) / added)
    how = in_blocks(floor(usable.low), added, shared) + f" (blocks of {format_count(size)})"
    return Fit(fits, how, usable_blocks=usable.low, request_blocks=each)


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
    at_length = exact_concurrency(engine, start.block_size, is_hybrid(start, engine))
    length = engine.max_model_len
    if at_length is None or not length:
        return None
    growing = at_length.high * length / request.tokens
    hybrid = is_hybrid(start, engine)
    if by_tokens is not None and not hybrid:
        growing = by_tokens.interval.high
    low = at_length.low if by_tokens is None else min(at_length.low, by_tokens.interval.low)
    least = f"hybrid: at least {format_count(at_length.low)}"
    if hybrid:
        how = f"{least}, at most {format_count(growing, 1)}: the log shows several kinds of layers"
        return Fit(Interval(low, max(low, growing)), how, layers_open=True)
    most = format_count(growing, 1)
    how = f"one kind of layer: {most}; {least}; --model-config or workload.layers: uniform settles it"
    return Fit(Interval(low, max(low, growing)), how, layers_open=True)


def _shares_prefixes(start: Start) -> bool:
    """Prefix caching: on by default in V1 (vLLM 0.8.0), off in V0."""
    if start.enable_prefix_caching is not None:
        return start.enable_prefix_caching
    return start.generation != "V0"
