"""The changes that can be made to a deployment, each with its flag as vLLM spells it, its value and its price."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from types import MappingProxyType

from kvguard.kvcache import load_changes
from kvguard.kvcache.layers import LayerKind
from kvguard.kvcache.levers import (
    UNCHANGED,
    Change,
    Facts,
    Lever,
    Question,
    Target,
    direction,
    layout_of,
    rank_levers,
    with_options,
)
from kvguard.slotted import replace
from kvguard.units import MIB, Interval, format_bytes

MOST_UTILIZATION = 0.95
"""Beyond this share nothing is proposed unless the log shows that more of the card is free."""

_AS_FAR = "only as far as the card is free"

_FOUR_BITS = Interval(0.27, 0.40)  # of 16-bit weights: 4 bits and scales, the embeddings and the head kept
_EIGHT_BITS = Interval(0.50, 0.58)
_TIMES_THE_CARDS = (2, 4, 8)
_MOST_ENGINES = 16
"""More of them are another project."""


def suggest(facts: Facts, target: Target, others: Sequence[Facts] = ()) -> tuple[Lever, ...]:
    """What to change so that the target is met, ranked; see `levers.rank_levers`.

    Args:
        facts: what is known, as it most likely is.
        target: what is to be met.
        others: what the same evidence may also mean; a gain spans all of it.
    """
    question = Question((facts, *others), target)
    builders = _FOR_WORKLOAD if target.of_workload else _FOR_LENGTH
    possible = (*builders, *_FOR_ANY[facts.fixed])
    found = [change for build in possible if (change := build(question)) is not None]
    fixed = dict(target.fixed)
    return rank_levers(question, [change for change in found if fixed.get(change.flag, change.value) == change.value])


def _more_bytes(facts: Facts, gained: Interval) -> Facts:
    known = facts.kv_cache_bytes
    if known is None:
        return facts
    return replace(facts, kv_cache_bytes=Interval(known.low + gained.low, known.high + gained.high))


# --- bytes of a token, and bytes for the cache ------------------------------------------------------------------------


def _fp8_cache(question: Question) -> Change | None:
    dtype = question.facts.kv_cache_dtype
    if dtype not in (None, "auto", "bfloat16", "float16"):
        return None
    price, remark = "a little accuracy", "not on every attention backend and older card"
    if dtype is None:
        return direction("--kv-cache-dtype", "fp8", price, remark)

    def apply(known: Facts) -> Facts:
        return replace(with_options(known, kv_cache_dtype="fp8"), kv_cache_dtype="fp8")

    one_kind = all(facts.one_kind_of_layer for facts in question.readings)
    factor = Interval(2.0 if one_kind else 1.0, 2.0)
    return Change("--kv-cache-dtype", "fp8", price, 5, apply, factor, remark)


def _utilization(question: Question) -> Change | None:
    """The smallest utilisation that meets the target, or the most that the card allows."""
    facts = question.facts
    share, total = facts.utilization, facts.total_bytes
    price = "less of the card left for anything else"
    if share is None or total is None or facts.kv_cache_bytes is None:
        return direction("--gpu-memory-utilization", "higher", price, _AS_FAR)
    most = facts.free_share if facts.free_share is not None else MOST_UTILIZATION
    if most <= share:
        return None

    def at(value: float) -> Change:
        gained = Interval(int(total.low * (value - share)), int(total.high * (value - share)))
        return Change(
            "--gpu-memory-utilization", f"{value:g}", price, 4, lambda known: _more_bytes(known, gained), UNCHANGED
        )

    steps = [round(share + 0.01 * i, 2) for i in range(1, ceil((most - share) * 100 - 1e-6) + 1)]
    return _least(question, [at(value) for value in steps if value <= most + 1e-9] or [at(round(most, 4))])


def _least(question: Question, settings: Sequence[Change]) -> Change:
    """The first setting that is enough alone, else the last; a pair looks through the others as well."""
    met = (one for one in settings if question.met_with(one.apply, one.factor))
    return replace(next(met, settings[-1]), settings=tuple(settings))


def _graphs(question: Question) -> Change | None:
    """What CUDA graphs were given too much, as far as the card was free; else doing without them."""
    facts = question.facts
    gap, total, share = facts.graph_estimate_gap_bytes, facts.total_bytes, facts.utilization
    if gap is not None and gap > 0:
        flag, price = "--gpu-memory-utilization", f"none: {format_bytes(gap)} set aside for CUDA graphs stayed unused"
        if total is None or share is None:
            given_back = Interval.exact(gap)
            return Change(flag, "higher by that much", price, 2, lambda known: _more_bytes(known, given_back))
        most = 1.0 if facts.free_share is None else facts.free_share
        value = floor(min(share + gap / total.high, most) * 1000) / 1000
        gained = Interval.exact(int((value - share) * total.low))
        if value > share:
            return Change(flag, f"{value:g}", price, 2, lambda known: _more_bytes(known, gained))
    graphs = facts.graph_bytes
    flag, price, remark = "--enforce-eager", "slower decoding without CUDA graphs", "most at small batches"
    if graphs is None or facts.kv_cache_bytes is None:
        return direction(flag, "", price, remark) if facts.graphs_taken_off else None
    return Change(flag, "", price, 11, lambda known: _more_bytes(known, graphs), remark=remark)


def leave_room(readings: Sequence[Facts], short: Interval | None) -> Lever:
    """A cache smaller by so many bytes of a rank, for what did not fit beside it.

    Args:
        readings: what is known, once for each reading of the evidence.
        short: what was lacking; None where that is not known.
    """
    question = Question(tuple(readings), Target(1.0))
    (lever,) = rank_levers(question, [_less_bytes(question.facts, short)])
    return lever


def _less_bytes(facts: Facts, short: Interval | None) -> Change:
    """The option that decides the cache's size, lower by what was lacking; without a value where nobody can tell it."""
    flag, price, cache = _SETS_THE_CACHE[facts.fixed], "a smaller KV cache", facts.kv_cache_bytes
    spelt, lost = _lowered(facts, short)
    if cache is None or lost is None or cache.low + lost.low <= 0:
        return direction(flag, spelt if cache is None else "lower", price)
    return Change(flag, spelt, price, 4, lambda known: _more_bytes(known, lost))


def _lowered(facts: Facts, short: Interval | None) -> tuple[str, Interval | None]:
    """The option's new value, and the bytes that the cache loses by it (negative)."""
    share, total, cache = facts.utilization, facts.total_bytes, facts.kv_cache_bytes
    if short is not None and facts.fixed == "bytes" and cache is not None:
        value = floor((cache.low - short.high) / MIB) * MIB
        return (str(value), Interval(value - cache.low, value - cache.high)) if value > 0 else ("lower", None)
    if short is None or facts.fixed is not None or share is None or total is None:
        return "lower", None
    lower = floor((share - short.high / total.low) * 100 + 1e-9) / 100
    if total.high * lower <= (0 if facts.weights_bytes is None else facts.weights_bytes.low):
        return "lower", None  # the weights alone would not fit
    return f"{lower:g}", Interval(total.high * (lower - share), total.low * (lower - share))


_SETS_THE_CACHE: Mapping[str | None, str] = MappingProxyType(
    {None: "--gpu-memory-utilization", "bytes": "--kv-cache-memory-bytes", "blocks": "--num-gpu-blocks-override"}
)
"""What decides how much the cache takes, by what an option has fixed of it."""


def _measured_blocks(question: Question) -> Change | None:
    """Without the option that fixes the blocks there are as many as were measured."""
    times = question.facts.unfixed_factor
    flag, price = "drop --num-gpu-blocks-override", "none: the cache is measured again"
    if times is None:
        return direction(flag, "", price)

    def apply(known: Facts) -> Facts:
        bytes_now = known.kv_cache_bytes
        if known.read is None or bytes_now is None:
            return known
        return replace(known, kv_cache_bytes=Interval(bytes_now.low * times, bytes_now.high * times))

    return Change(flag, "", price, 0, apply, Interval(times, times))


def _larger_cache(question: Question) -> Change | None:
    """The smallest cache that is enough, where an option sets its bytes."""
    bytes_now = question.facts.kv_cache_bytes
    flag, price = "--kv-cache-memory-bytes", "less of the card left, and nothing is measured"
    if bytes_now is None or bytes_now.low <= 0:
        return direction(flag, "more", price, _AS_FAR)

    def at(percent: int) -> Callable[[Facts], Facts]:
        return lambda known: _more_bytes(known, Interval.exact(int(bytes_now.high * (percent / 100 - 1))))

    enough = next((percent for percent in range(105, 405, 5) if question.met_with(at(percent))), None)
    if enough is None:
        return direction(flag, "more", price, _AS_FAR)
    value = ceil(bytes_now.high * enough / 100 / MIB) * MIB
    return Change(flag, str(value), price, 4, at(enough), remark=_AS_FAR)


def _eight_bit_weights(question: Question) -> Change | None:
    facts = question.facts
    weights = facts.weights_bytes
    if facts.quantized is not False or weights is None or facts.kv_cache_bytes is None:
        return None
    gained = Interval(int(weights.low * (1 - _EIGHT_BITS.high)), int(weights.high * (1 - _EIGHT_BITS.low)))
    price, remark = "hardly any quality", "fast from compute capability 8.9 on"
    return Change("--quantization", "fp8", price, 8, lambda known: _more_bytes(known, gained), remark=remark)


def _lighter_weights(question: Question) -> Change | None:
    facts = question.facts
    if facts.quantized:
        return None
    weights = facts.weights_bytes
    if weights is None or facts.quantized is None or facts.kv_cache_bytes is None:
        return direction("--quantization", "awq, gptq or fp8", "another checkpoint, a little quality")
    lighter = facts.quantized_weights_bytes or Interval(weights.low * _FOUR_BITS.low, weights.high * _FOUR_BITS.high)
    gained = Interval(int(weights.low - lighter.high), int(weights.high - lighter.low))
    price = "another checkpoint, a little quality"
    return Change("--quantization", "awq", price, 9, lambda known: _more_bytes(known, gained))


def _smaller_steps(question: Question) -> Change | None:
    """A smaller profile run: its saving is in no log, except what sliding layers reserve for tokens in flight."""
    flag, price = "--max-num-batched-tokens", "a longer time to the first token under load"
    remark = "prompts are computed in smaller pieces, with a smaller activation peak"
    layout = layout_of(question.facts)
    sliding = layout is not None and any(layer.kind is LayerKind.SLIDING for layer in layout.model.layers)
    if layout is None or not sliding or question.target.of_workload or layout.serving.max_num_batched_tokens <= 1024:
        return direction(flag, "lower", price, remark)
    half = layout.serving.max_num_batched_tokens // 2

    def apply(known: Facts) -> Facts:
        return with_options(known, max_num_batched_tokens=half)

    return Change(flag, str(half), price, 2, apply, remark=remark)


def _fewer_sequences(question: Question) -> Change | None:
    remark = "a smaller activation peak: the sampler's logits"
    return direction("--max-num-seqs", "lower", "requests beyond it wait", remark)


# --- more cards -------------------------------------------------------------------------------------------------------


def _more_cards(question: Question) -> Change | None:
    """Two, four or eight times the ranks: less of the weights on each, and fewer heads while there are any."""
    facts = question.facts
    weights, tp = facts.weights_bytes, facts.tensor_parallel_size
    remark = "traffic between them in every layer"
    if weights is None or facts.kv_cache_bytes is None:
        return direction("--tensor-parallel-size", str(tp * 2), "twice the cards", remark)

    def at(times: int) -> Change:
        share = 0.0 if facts.fixed else 1 - 1 / times  # of the weights' memory that the cache gets
        gained = Interval(int(weights.low * share), int(weights.high * share))

        def apply(known: Facts) -> Facts:
            return _more_bytes(with_options(known, tensor_parallel_size=tp * times), gained)

        price = "twice the cards" if times == 2 else f"{times} times the cards"
        flag, cost = "--tensor-parallel-size", 18 + times
        return Change(flag, str(tp * times), price, cost, apply, Interval(1.0, float(times)), remark)

    found = [at(times) for times in _TIMES_THE_CARDS]
    possible = [one for one in found if facts.read is None or layout_of(one.apply(facts)) is not None]
    met = (one for one in possible if question.met_with(one.apply, one.factor))
    return next(met, possible[0] if possible else None)


def _more_engines(question: Question) -> Change | None:
    """As many copies of the model as it takes; one more where that is not known, none where no request fits one."""
    now = question.facts.data_parallel_size

    def at(engines: int) -> Callable[[Facts], Facts]:
        return lambda known: replace(with_options(known, data_parallel_size=engines), data_parallel_size=engines)

    one = question.figure(at(1))
    if one is not None and one.high < 1:
        return None
    each = 0 if one is None else floor(one.low + 1e-9)
    needed = ceil(question.target.requests / each) if each else now + 1
    engines = needed if now < needed <= _MOST_ENGINES else now + 1
    more = engines - now
    price = "another copy of the model on cards of its own" if more == 1 else f"{more} more copies of the model"
    remark = "each engine has cards of its own and keeps its own shared prefix"
    return Change("--data-parallel-size", str(engines), price, 20 + more, at(engines), remark=remark)


def _split_tokens(question: Question) -> Change | None:
    """Decode context parallel: replicated latents or heads hold different tokens instead."""
    facts = question.facts
    if facts.options is None or facts.tensor_parallel_size < 2 or facts.options.decode_context_parallel_size > 1:
        return None
    shards = facts.tensor_parallel_size
    while shards > 1 and layout_of(with_options(facts, decode_context_parallel_size=shards)) is None:
        shards //= 2
    if shards == 1:
        return None

    def apply(known: Facts) -> Facts:
        return with_options(known, decode_context_parallel_size=shards)

    price = "traffic between the ranks at each decoding step"
    return Change("--decode-context-parallel-size", str(shards), price, 6, apply)


_Builder = Callable[[Question], Change | None]
_FOR_LENGTH: tuple[_Builder, ...] = (load_changes.shorter,)
_FOR_WORKLOAD: tuple[_Builder, ...] = (
    load_changes.shorter_to_start,
    load_changes.prefix_caching,
    load_changes.more_sequences,
    load_changes.shared_prefix,
    load_changes.fewer_tokens,
    _more_engines,
)
_BY_LAYOUT: tuple[_Builder, ...] = (load_changes.one_state_less, _split_tokens)
_FOR_ANY: Mapping[str | None, tuple[_Builder, ...]] = MappingProxyType(
    {
        None: (
            *_BY_LAYOUT,
            _smaller_steps,
            _fewer_sequences,
            _utilization,
            _graphs,
            _fp8_cache,
            _eight_bit_weights,
            _lighter_weights,
            _more_cards,
        ),
        "bytes": (*_BY_LAYOUT, _larger_cache, _fp8_cache, _more_cards),
        "blocks": (*_BY_LAYOUT, _measured_blocks),
    }
)
"""What enlarges the pool, by what an option has fixed of it: memory that is given back goes nowhere then."""
