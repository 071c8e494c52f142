"""The changes that can be made to a deployment, each with its flag as vLLM spells it, its value and its price."""

from collections.abc import Callable
from dataclasses import replace
from math import ceil

from kvguard.kvcache.layers import LayerKind
from kvguard.kvcache.levers import (
    DIRECTION,
    UNCHANGED,
    Change,
    Facts,
    Lever,
    Target,
    layout_of,
    rank_levers,
    weigh,
    with_options,
)
from kvguard.kvcache.workload import Workload
from kvguard.units import Interval, format_bytes

MOST_UTILIZATION = 0.95
"""Beyond this share nothing is proposed unless the log shows that more of the card is free."""

_FOUR_BITS = Interval(0.27, 0.40)  # of 16-bit weights: 4 bits and scales, the embeddings and the head kept
_EIGHT_BITS = Interval(0.50, 0.58)


def suggest(facts: Facts, target: Target) -> tuple[Lever, ...]:
    """What to change so that the target is met, ranked; see `levers.rank_levers`."""
    builders = _FOR_WORKLOAD if target.of_workload else _FOR_LENGTH
    found = [change for build in (*builders, *_FOR_ANY) if (change := build(facts, target)) is not None]
    return rank_levers(facts, target, found)


def _direction(flag: str, value: str, price: str) -> Change:
    return Change(flag, value, price, DIRECTION, lambda facts: facts)


def _more_bytes(facts: Facts, gained: Interval) -> Facts:
    known = facts.kv_cache_bytes
    if known is None:
        return facts
    return replace(facts, kv_cache_bytes=Interval(known.low + gained.low, known.high + gained.high))


def _shorter(facts: Facts, target: Target) -> Change | None:
    """The longest max_model_len at which the target is met."""
    longest = facts.max_model_len
    if longest is None:
        return None
    price = "longer requests are refused; the pool is not enlarged, the same tokens fit as before"

    def at(length: int) -> Facts:
        changed = with_options(replace(facts, max_model_len=length), max_model_len=length, auto_max_model_len=False)
        if facts.concurrency is None or facts.read is not None:
            return changed
        stretch = longest / length
        low = facts.concurrency.low * (stretch if facts.one_kind_of_layer else 1.0)
        return replace(changed, concurrency=Interval(low, facts.concurrency.high * stretch))

    best = _longest(lambda length: _meets(at(length), target), longest)
    if best is None or best >= longest:
        return None if best else _direction("--max-model-len", "lower", price)
    return Change(
        "--max-model-len",
        str(best),
        price,
        6 + _cut(best, longest),
        lambda known: at(best) if known is facts else _at(known, best),
    )


def _at(facts: Facts, length: int) -> Facts:
    return with_options(replace(facts, max_model_len=length), max_model_len=length)


def _meets(facts: Facts, target: Target) -> bool:
    figure = weigh(facts, target)
    return figure is not None and figure.low >= target.requests


def _longest(meets: Callable[[int], bool], ceiling: int) -> int | None:
    low, high, best = 1, ceiling, None
    while low <= high:
        middle = (low + high) // 2
        if meets(middle):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def _fewer_tokens(facts: Facts, target: Target) -> Change | None:
    """The longest request of which the target's number fits."""
    load = facts.workload
    if load is None:
        return None

    def at(tokens: int) -> Facts:
        prompt = max(0, tokens - load.output_tokens)
        shared = min(load.shared_prefix_tokens, prompt)
        return replace(facts, workload=Workload(prompt, min(load.output_tokens, tokens), shared))

    best = _longest(lambda tokens: _meets(at(tokens), target), load.request_tokens)
    price = "shorter prompts or answers: retrieve less, cap max_tokens, or refuse long inputs in front of vLLM"
    if best is None or best >= load.request_tokens:
        return None if best else _direction("fewer tokens a request", "fewer", price)
    return Change(
        "fewer tokens a request", f"at most {best:,}", price, 7 + _cut(best, load.request_tokens), lambda _: at(best)
    )


def _cut(best: int, asked: int) -> int:
    """What giving up length costs, by how much of it is given up: a tenth is little, three quarters are another use."""
    return round(15 * (1 - best / asked))


def _prefix_caching(facts: Facts, target: Target) -> Change | None:
    load = facts.workload
    if load is None or not load.shared_prefix_tokens or facts.options is None or facts.options.enable_prefix_caching:
        return None
    layout = layout_of(facts)
    if layout is None or layout.serving.prefix_caching:
        return None
    price = "none for requests that share the prefix; recurrent layers then keep one state more a request"
    return Change(
        "--enable-prefix-caching", "", price, 1, lambda known: with_options(known, enable_prefix_caching=True)
    )


def _one_state_less(facts: Facts, target: Target) -> Change | None:
    layout = layout_of(facts)
    if layout is None or layout.serving.mamba_cache_mode == "none" or not layout.model.keeps_states:
        return None
    price = "no prefix is shared any more; each request of a hybrid model keeps one state less in each of its groups"
    return Change(
        "--no-enable-prefix-caching", "", price, 3, lambda known: with_options(known, enable_prefix_caching=False)
    )


def _fp8_cache(facts: Facts, target: Target) -> Change | None:
    dtype = facts.kv_cache_dtype
    if dtype not in (None, "auto", "bfloat16", "float16"):
        return None
    price = "a little accuracy; not on every attention backend and older card"
    if dtype is None:
        return _direction("--kv-cache-dtype", "fp8", price)
    factor = Interval(2.0 if facts.one_kind_of_layer else 1.0, 2.0)
    return Change(
        "--kv-cache-dtype",
        "fp8",
        price,
        5,
        lambda known: replace(with_options(known, kv_cache_dtype="fp8"), kv_cache_dtype="fp8"),
        factor,
    )


def _utilization(facts: Facts, target: Target) -> Change | None:
    """The smallest utilisation that meets the target, or the most that the card allows."""
    share, total = facts.utilization, facts.total_bytes
    price = "less room for other processes on the card and for allocations after start-up"
    if share is None or total is None or facts.kv_cache_bytes is None:
        return _direction("--gpu-memory-utilization", "higher, as far as the card is free", price)
    most = facts.free_share if facts.free_share is not None else MOST_UTILIZATION
    if most <= share:
        return None

    def at(value: float) -> Facts:
        gained = Interval(int(total.low * (value - share)), int(total.high * (value - share)))
        return _more_bytes(facts, gained)

    steps = [round(share + 0.01 * i, 2) for i in range(1, ceil((most - share) * 100 - 1e-6) + 1)]
    candidates = [value for value in steps if value <= most + 1e-9] or [round(most, 4)]
    value = next((value for value in candidates if _meets_by_bytes(facts, at(value), target)), candidates[-1])
    gained = Interval(int(total.low * (value - share)), int(total.high * (value - share)))
    return Change("--gpu-memory-utilization", f"{value:g}", price, 4, lambda known: _more_bytes(known, gained))


def _meets_by_bytes(before: Facts, after: Facts, target: Target) -> bool:
    old, new = before.kv_cache_bytes, after.kv_cache_bytes
    if old is None or new is None:
        return False
    factor = Interval(new.low / old.low, new.high / old.high) if old.low > 0 else UNCHANGED
    figure = weigh(after, target, factor)
    return figure is not None and figure.low >= target.requests


def _lighter_weights(facts: Facts, target: Target) -> Change | None:
    price = "another checkpoint, and a little quality"
    if facts.quantized:
        return None
    weights = facts.weights_bytes
    if weights is None or facts.quantized is None or facts.kv_cache_bytes is None:
        return _direction("--quantization", "awq, gptq or fp8 checkpoint", price)
    lighter = facts.quantized_weights_bytes or Interval(weights.low * _FOUR_BITS.low, weights.high * _FOUR_BITS.high)
    gained = Interval(int(weights.low - lighter.high), int(weights.high - lighter.low))
    return Change("--quantization", "awq (4-bit weights)", price, 9, lambda known: _more_bytes(known, gained))


def _eight_bit_weights(facts: Facts, target: Target) -> Change | None:
    weights = facts.weights_bytes
    if facts.quantized is not False or weights is None or facts.kv_cache_bytes is None:
        return None
    gained = Interval(int(weights.low * (1 - _EIGHT_BITS.high)), int(weights.high * (1 - _EIGHT_BITS.low)))
    price = "hardly any quality; fast from compute capability 8.9 on"
    return Change("--quantization", "fp8 (8-bit weights)", price, 8, lambda known: _more_bytes(known, gained))


def _smaller_steps(facts: Facts, target: Target) -> Change | None:
    """A smaller profile run: its saving is in no log, except what sliding layers reserve for tokens in flight."""
    price = "prompts are computed in smaller pieces: a longer time to the first token under load"
    layout = layout_of(facts)
    sliding = layout is not None and any(layer.kind is LayerKind.SLIDING for layer in layout.model.layers)
    if layout is None or not sliding or target.of_workload or layout.serving.max_num_batched_tokens <= 1024:
        return _direction("--max-num-batched-tokens", "lower (a smaller activation peak)", price)
    half = layout.serving.max_num_batched_tokens // 2
    return Change(
        "--max-num-batched-tokens",
        str(half),
        price,
        2,
        lambda known: with_options(known, max_num_batched_tokens=half),
    )


def _fewer_sequences(facts: Facts, target: Target) -> Change | None:
    price = "requests beyond it wait; frees part of the activation peak (the sampler's logits)"
    return _direction("--max-num-seqs", "lower (a smaller activation peak)", price)


def _more_sequences(facts: Facts, target: Target) -> Change | None:
    layout = layout_of(facts)
    needed = ceil(target.requests / max(1, facts.data_parallel_size))
    if layout is None or layout.serving.max_num_seqs >= needed:
        return None
    price = "a larger activation peak, so a slightly smaller pool"
    return Change("--max-num-seqs", str(needed), price, 1, lambda known: with_options(known, max_num_seqs=needed))


def _graphs(facts: Facts, target: Target) -> Change | None:
    gap, total, share = facts.graph_estimate_gap_bytes, facts.total_bytes, facts.utilization
    if gap is not None and gap > 0 and total is not None and share is not None:
        price = f"none: start-up set {format_bytes(gap)} aside for CUDA graphs that it then did not use"
        value = share + gap / total.high
        return Change(
            "--gpu-memory-utilization", f"{value:.3f}", price, 2, lambda known: _more_bytes(known, Interval(gap, gap))
        )
    graphs = facts.graph_bytes
    if graphs is None or facts.kv_cache_bytes is None:
        return None
    price = "no CUDA graphs: each decoding step is slower, most at small batches"
    return Change("--enforce-eager", "", price, 11, lambda known: _more_bytes(known, graphs))


def _two_cards(facts: Facts, target: Target) -> Change | None:
    """Twice the tensor-parallel ranks: half the weights on each, and half the heads while there are any."""
    price = "twice the cards, and traffic between them in every layer"
    weights, tp = facts.weights_bytes, facts.tensor_parallel_size
    if weights is None or facts.kv_cache_bytes is None:
        return _direction("--tensor-parallel-size", str(tp * 2), price)
    gained = Interval(int(weights.low / 2), int(weights.high / 2))

    def apply(known: Facts) -> Facts:
        return _more_bytes(with_options(known, tensor_parallel_size=tp * 2), gained)

    if facts.read is not None and layout_of(apply(facts)) is None:
        return None
    return Change("--tensor-parallel-size", str(tp * 2), price, 20, apply, Interval(1.0, 2.0))


def _another_engine(facts: Facts, target: Target) -> Change | None:
    engines = facts.data_parallel_size + 1
    price = "one more copy of the model on cards of its own; each engine keeps its own shared prefix"

    def apply(known: Facts) -> Facts:
        return replace(with_options(known, data_parallel_size=engines), data_parallel_size=engines)

    return Change("--data-parallel-size", str(engines), price, 21, apply)


def _split_tokens(facts: Facts, target: Target) -> Change | None:
    """Decode context parallel: replicated latents or heads hold different tokens instead."""
    if facts.options is None or facts.tensor_parallel_size < 2 or facts.options.decode_context_parallel_size > 1:
        return None
    shards = facts.tensor_parallel_size
    while shards > 1:
        changed = with_options(facts, decode_context_parallel_size=shards)
        if layout_of(changed) is not None:
            price = "traffic between the ranks at each decoding step"
            return Change(
                "--decode-context-parallel-size",
                str(shards),
                price,
                6,
                lambda known, shards=shards: with_options(known, decode_context_parallel_size=shards),  # type: ignore[misc]
            )
        shards //= 2
    return None


_Builder = Callable[[Facts, Target], Change | None]
_FOR_LENGTH: tuple[_Builder, ...] = (_shorter,)
_FOR_WORKLOAD: tuple[_Builder, ...] = (_prefix_caching, _more_sequences, _fewer_tokens, _another_engine)
_FOR_ANY: tuple[_Builder, ...] = (
    _one_state_less,
    _smaller_steps,
    _fewer_sequences,
    _utilization,
    _graphs,
    _fp8_cache,
    _split_tokens,
    _eight_bit_weights,
    _lighter_weights,
    _two_cards,
)
