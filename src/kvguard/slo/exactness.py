"""What is known of the exact value behind a printed concurrency: its rounding, narrowed by the token figure."""

from math import ceil

from kvguard.startup.report import Capacity, TokenFigure
from kvguard.units import Interval

_LARGEST_BLOCK = 256
"""No attention backend of vLLM asks for larger blocks than this where nothing but attention is cached."""


def exact_concurrency(capacity: Capacity, block_size: int | None, hybrid: bool) -> Interval | None:
    """The interval that holds the engine's exact maximum concurrency; `None` where none was printed.

    From vLLM 0.20.1 the token figure is `int(concurrency * max_model_len)`, which bounds it to one token in
    max_model_len. Before, with one kind of layer, it is `tokens / block size / ceil(max_model_len / block size)`
    (to 0.9.0 not rounded to blocks); where the two figures contradict each other the rounding alone is believed.
    """
    if capacity.max_concurrency is None:
        return None
    rounding = capacity.rounding.get("max_concurrency", 0.0)
    by_digits = Interval(max(capacity.max_concurrency - rounding, 0.0), capacity.max_concurrency + rounding)
    by_tokens = _by_tokens(capacity, block_size, hybrid)
    return by_digits if by_tokens is None else _common(by_digits, by_tokens) or by_digits


def _by_tokens(capacity: Capacity, block_size: int | None, hybrid: bool) -> Interval | None:
    derived = capacity.derived.get("kv_cache_tokens")
    tokens, length = capacity.kv_cache_tokens or (derived and derived.value), capacity.max_model_len
    if not tokens or not length:
        return None
    if capacity.token_figure is TokenFigure.CONCURRENCY_TIMES_LEN:
        return Interval(tokens / length, (tokens + 1) / length)
    if hybrid:
        return None
    block = block_size or _LARGEST_BLOCK
    # a log that names no version may mean either: the wider of the two
    more = 0 if capacity.token_figure is TokenFigure.POOL else 1
    return Interval(tokens / (ceil(length / block) * block), (tokens + more) / length)


def _common(one: Interval, other: Interval) -> Interval | None:
    low, high = max(one.low, other.low), min(one.high, other.high)
    return Interval(low, high) if low <= high else None
