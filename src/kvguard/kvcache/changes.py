"""The changes that can be made to a deployment, each with its flag as vLLM spells it, its value and its price."""

from collections.abc import Callable, Sequence
from math import ceil, floor

from kvguard.kvcache.layers import LayerKind
from kvguard.kvcache.levers import (
    DIRECTION,
    REQUEST_LENGTH,
    Change,
    Facts,
    Lever,
    Question,
    Target,
    layout_of,
    rank_levers,
    with_options,
)
from kvguard.kvcache.workload import Workload
from kvguard.slotted import replace
from kvguard.units import Interval, format_bytes

MOST_UTILIZATION = 0.95
"""Beyond this share nothing is proposed unless the log shows that more of the card is free."""

_FOUR_BITS = Interval(0.27, 0.40)  # of 16-bit weights: 4 bits and scales, the embeddings and the head kept
_EIGHT_BITS = Interval(0.50, 0.58)
_MOST_TIMES_THE_CARDS = (2, 4, 8)


def suggest(facts: Facts, target: Target, others: Sequence[Facts] = ()) -> tuple[Lever, ...]:
    """What to change so that the target is met, ranked; see `levers.rank_levers`.

    Args:
        facts: what is known, as it most likely is.
        target: what is to be met.
        others: what the same evidence may also mean; a gain spans all of it.
    """
    question = Question((facts, *others), target)
    builders = _FOR_WORKLOAD if target.of_workload else _FOR_LENGTH
    found = [change for build in (*builders, *_FOR_ANY) if (change := build(question)) is not None]
    return rank_levers(question, found)


def _direction(flag: str, value: str, price: str, remark: str = "") -> Change:
    return Change(flag, value, price, DIRECTION, lambda facts: facts, remark=remark)


def _more_bytes(facts: Facts, gained: Interval) -> Facts:
    known = facts.kv_cache_bytes
    if known is None:
        return facts
    return replace(facts, kv_cache_bytes=Interval(known.low + gained.low, known.high + gained.high))


def _largest(meets: Callable[[int], bool], ceiling: int) -> int | None:
    """The largest whole number from 1 up to `ceiling` that meets, where all below it do."""
    low, high, best = 1, ceiling, None
    while low <= high:
        middle = (low + high) // 2
        if meets(middle):
            best, low = middle, middle + 1
        else:
            high = middle - 1
    return best


def _cut(best: int, asked: int) -> int:
    """What giving up length costs, by how much of it is given up: a tenth is little, three quarters are another use."""
    return round(15 * (1 - best / asked))


# --- the length of a request ------------------------------------------------------------------------------------------


def _shorter(question: Question) -> Change | None:
    """The longest max_model_len at which the target is met."""
    longest = question.facts.max_model_len
    if longest is None:
        return None
    price, remark = "longer requests are refused, the pool is not enlarged", "the same tokens fit as before"
    best = _largest(lambda length: question.met_with(lambda facts: _at_length(facts, length)), longest)
    if best is None or best >= longest:
        return None if best else _direction("--max-model-len", "lower", price, remark)
    cost = 6 + _cut(best, longest)
    return Change("--max-model-len", str(best), price, cost, lambda facts: _at_length(facts, best), remark=remark)


def _at_length(facts: Facts, length: int) -> Facts:
    changed = with_options(replace(facts, max_model_len=length), max_model_len=length, auto_max_model_len=False)
    if facts.concurrency is None or facts.max_model_len is None or facts.read is not None:
        return changed
    stretch = facts.max_model_len / length
    low = facts.concurrency.low * (stretch if facts.one_kind_of_layer else 1.0)
    return replace(changed, concurrency=Interval(low, facts.concurrency.high * stretch))


def _fewer_tokens(question: Question) -> Change | None:
    """The longest request of which the target's number fits."""
    load = question.facts.workload
    if load is None:
        return None
    price = "shorter prompts or answers"
    remark = "retrieve less, cap max_tokens, or refuse long inputs in front of vLLM"
    asked = load.request_tokens
    best = _largest(lambda tokens: question.met_with(lambda facts: _at_tokens(facts, tokens)), asked)
    if best is None or best >= asked:
        return None if best else _direction(REQUEST_LENGTH, "fewer", price, remark)
    cost = 7 + _cut(best, asked)
    value = f"at most {best:,}"
    return Change(REQUEST_LENGTH, value, price, cost, lambda facts: _at_tokens(facts, best), remark=remark)


def _at_tokens(facts: Facts, tokens: int) -> Facts:
    load = facts.workload
    if load is None:
        return facts
    prompt = max(0, tokens - load.output_tokens)
    shared = min(load.shared_prefix_tokens, prompt)
    return replace(facts, workload=Workload(prompt, min(load.output_tokens, tokens), shared))


# --- what vLLM shares and runs at once --------------------------------------------------------------------------------


def _prefix_caching(question: Question) -> Change | None:
    facts = question.facts
    load = facts.workload
    if load is None or not load.shared_prefix_tokens:
        return None
    layout = layout_of(facts)
    sharing = layout.serving.prefix_caching if layout else facts.uniform is None or facts.uniform.shares_prefixes
    if sharing:
        return None
    price, remark = "none for requests that share it", "recurrent layers then keep one state more a request"

    def apply(known: Facts) -> Facts:
        pool = None if known.uniform is None else replace(known.uniform, shares_prefixes=True)
        return replace(with_options(known, enable_prefix_caching=True), uniform=pool)

    return Change("--enable-prefix-caching", "", price, 1, apply, remark=remark)


def _one_state_less(question: Question) -> Change | None:
    layout = layout_of(question.facts)
    if layout is None or layout.serving.mamba_cache_mode == "none" or not layout.model.keeps_states:
        return None
    price = "no prefix is shared any more"
    remark = "each request of a hybrid model keeps one state less in each of its groups"
    flag = "--no-enable-prefix-caching"
    return Change(flag, "", price, 3, lambda facts: with_options(facts, enable_prefix_caching=False), remark=remark)


def _more_sequences(question: Question) -> Change | None:
    """A higher cap of the scheduler, where it is known to be below the target."""
    facts = question.facts
    layout = layout_of(facts)
    cap = facts.max_num_seqs if layout is None else layout.serving.max_num_seqs
    needed = ceil(question.target.requests / max(1, facts.data_parallel_size))
    if cap is None or cap >= needed:
        return None

    def apply(known: Facts) -> Facts:
        return replace(with_options(known, max_num_seqs=needed), max_num_seqs=needed)

    price, remark = "a larger activation peak", "so a slightly smaller pool"
    return Change("--max-num-seqs", str(needed), price, 1, apply, remark=remark)


# --- bytes of a token, and bytes for the cache ------------------------------------------------------------------------


def _fp8_cache(question: Question) -> Change | None:
    dtype = question.facts.kv_cache_dtype
    if dtype not in (None, "auto", "bfloat16", "float16"):
        return None
    price, remark = "a little accuracy", "not on every attention backend and older card"
    if dtype is None:
        return _direction("--kv-cache-dtype", "fp8", price, remark)

    def apply(known: Facts) -> Facts:
        return replace(with_options(known, kv_cache_dtype="fp8"), kv_cache_dtype="fp8")

    factor = Interval(2.0 if question.facts.one_kind_of_layer else 1.0, 2.0)
    return Change("--kv-cache-dtype", "fp8", price, 5, apply, factor, remark)


def _utilization(question: Question) -> Change | None:
    """The smallest utilisation that meets the target, or the most that the card allows."""
    facts = question.facts
    share, total = facts.utilization, facts.total_bytes
    price = "less of the card left for anything else"
    if share is None or total is None or facts.kv_cache_bytes is None:
        return _direction("--gpu-memory-utilization", "higher, as far as the card is free", price)
    most = facts.free_share if facts.free_share is not None else MOST_UTILIZATION
    if most <= share:
        return None

    def at(value: float) -> Callable[[Facts], Facts]:
        gained = Interval(int(total.low * (value - share)), int(total.high * (value - share)))
        return lambda known: _more_bytes(known, gained)

    steps = [round(share + 0.01 * i, 2) for i in range(1, ceil((most - share) * 100 - 1e-6) + 1)]
    candidates = [value for value in steps if value <= most + 1e-9] or [round(most, 4)]
    value = next((value for value in candidates if question.met_with(at(value))), candidates[-1])
    return Change("--gpu-memory-utilization", f"{value:g}", price, 4, at(value))


def _graphs(question: Question) -> Change | None:
    """What CUDA graphs were given too much, as far as the card was free; else doing without them."""
    facts = question.facts
    gap, total, share = facts.graph_estimate_gap_bytes, facts.total_bytes, facts.utilization
    if gap is not None and gap > 0 and total is not None and share is not None:
        most = 1.0 if facts.free_share is None else facts.free_share
        value = floor(min(share + gap / total.high, most) * 1000) / 1000
        gained = Interval.exact(int((value - share) * total.low))
        price = f"none: {format_bytes(gap)} set aside for CUDA graphs stayed unused"
        flag = "--gpu-memory-utilization"
        if value > share:
            return Change(flag, f"{value:g}", price, 2, lambda known: _more_bytes(known, gained))
    graphs = facts.graph_bytes
    if graphs is None or facts.kv_cache_bytes is None:
        return None
    price, remark = "slower decoding without CUDA graphs", "most at small batches"
    return Change("--enforce-eager", "", price, 11, lambda known: _more_bytes(known, graphs), remark=remark)


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
        return _direction("--quantization", "awq, gptq or fp8", "another checkpoint, a little quality")
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
        return _direction(flag, "lower", price, remark)
    half = layout.serving.max_num_batched_tokens // 2

    def apply(known: Facts) -> Facts:
        return with_options(known, max_num_batched_tokens=half)

    return Change(flag, str(half), price, 2, apply, remark=remark)


def _fewer_sequences(question: Question) -> Change | None:
    remark = "a smaller activation peak: the sampler's logits"
    return _direction("--max-num-seqs", "lower", "requests beyond it wait", remark)


# --- more cards -------------------------------------------------------------------------------------------------------


def _more_cards(question: Question) -> Change | None:
    """Two, four or eight times the ranks: less of the weights on each, and fewer heads while there are any."""
    facts = question.facts
    weights, tp = facts.weights_bytes, facts.tensor_parallel_size
    remark = "traffic between them in every layer"
    if weights is None or facts.kv_cache_bytes is None:
        return _direction("--tensor-parallel-size", str(tp * 2), "twice the cards", remark)

    def at(times: int) -> Change:
        gained = Interval(int(weights.low * (1 - 1 / times)), int(weights.high * (1 - 1 / times)))

        def apply(known: Facts) -> Facts:
            return _more_bytes(with_options(known, tensor_parallel_size=tp * times), gained)

        price = "twice the cards" if times == 2 else f"{times} times the cards"
        flag, cost = "--tensor-parallel-size", 18 + times
        return Change(flag, str(tp * times), price, cost, apply, Interval(1.0, float(times)), remark)

    found = [at(times) for times in _MOST_TIMES_THE_CARDS]
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
    engines = max(now + 1, ceil(question.target.requests / each)) if each else now + 1
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
_FOR_LENGTH: tuple[_Builder, ...] = (_shorter,)
_FOR_WORKLOAD: tuple[_Builder, ...] = (_prefix_caching, _more_sequences, _fewer_tokens, _more_engines)
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
    _more_cards,
)
