"""Changes of the load and of what vLLM makes of it: the length of a request, what is shared, how many run at once."""

from collections.abc import Callable
from math import ceil

from kvguard.kvcache.fit import largest
from kvguard.kvcache.levers import (
    REQUEST_LENGTH,
    SHARED_PREFIX,
    Change,
    Facts,
    Question,
    direction,
    layout_of,
    refused,
    with_options,
)
from kvguard.kvcache.load import Request
from kvguard.slotted import replace
from kvguard.units import Interval

_LEAST_OF_A_REQUEST = 0.1
"""Requests cut to less than this share are other requests."""
_BLOCK = 16
"""Tokens of vLLM's default block."""
_MOST_SHARED = 0.75
"""Prompts that must share more than this are one prompt."""


def _cut(best: int, asked: int) -> int:
    """What giving up length costs, by how much of it is given up: a tenth is little, three quarters are another use."""
    return round(15 * (1 - best / asked))


# --- the length of a request ------------------------------------------------------------------------------------------


def shorter(question: Question) -> Change | None:
    """The longest max_model_len at which the target is met."""
    longest = question.facts.max_model_len
    if longest is None:
        return None
    price, remark = "longer requests are refused, the pool is not enlarged", "the same tokens fit as before"
    best = largest(lambda length: question.met_with(lambda facts: at_length(facts, length)), longest)
    load = question.facts.workload
    if load is not None and best < load.request_tokens:
        return None  # the load's own requests would be refused
    if not 0 < best < longest:
        return None if best else direction("--max-model-len", "lower", price, remark)
    cost = 6 + _cut(best, longest)
    return Change("--max-model-len", str(best), price, cost, lambda facts: at_length(facts, best), remark=remark)


def shorter_to_start(question: Question) -> Change | None:
    """The longest max_model_len with which a start begins that is refused now: till then no load is served."""
    load, longest = question.facts.workload, question.facts.max_model_len
    if load is None or longest is None or not any(map(refused, question.readings)):
        return None

    def starts(length: int) -> bool:
        return not any(refused(at_length(facts, length)) for facts in question.readings)

    best = largest(starts, longest)
    if best < load.request_tokens:
        return None
    # nobody has asked for longer ones than the load's
    return Change("--max-model-len", str(best), "longer requests are refused", 1, lambda facts: at_length(facts, best))


def at_length(facts: Facts, length: int) -> Facts:
    """The same deployment at another max_model_len; without its layers it gains at most what that is shorter."""
    changed = with_options(replace(facts, max_model_len=length), max_model_len=length, auto_max_model_len=False)
    if facts.concurrency is None or facts.max_model_len is None or facts.read is not None:
        return changed
    stretch = facts.max_model_len / length
    if length > facts.max_model_len:  # in whole blocks it takes a little more than its share
        least = facts.max_model_len / (ceil(length / _BLOCK) * _BLOCK)
        most = stretch if facts.one_kind_of_layer else 1.0
    else:  # unless all layers are of one kind, all of a request may be fixed cost
        least, most = stretch if facts.one_kind_of_layer else 1.0, stretch
    return replace(changed, concurrency=Interval(facts.concurrency.low * least, facts.concurrency.high * most))


def fewer_tokens(question: Question) -> Change | None:
    """The longest request of which the target's number fits."""
    load = question.facts.workload
    if load is None or all(map(refused, question.readings)):
        return None
    price = "shorter prompts or answers"
    remark = "retrieve less, cap max_tokens, or refuse long inputs in front of vLLM"
    asked = load.request_tokens
    best = largest(lambda tokens: question.met_with(lambda facts: _at_tokens(facts, tokens)), asked)
    if not asked * _LEAST_OF_A_REQUEST <= best < asked:
        return None if best else direction(REQUEST_LENGTH, "fewer", price, remark)
    cost = 7 + _cut(best, asked)
    value = f"at most {best:,}"
    return Change(REQUEST_LENGTH, value, price, cost, lambda facts: _at_tokens(facts, best), remark=remark)


def _at_tokens(facts: Facts, tokens: int) -> Facts:
    load = facts.workload
    if load is None:
        return facts
    prompt = max(0, tokens - load.output_tokens)
    shared = min(load.shared_prefix_tokens, prompt)
    return replace(facts, workload=Request(prompt, min(load.output_tokens, tokens), shared))


def shared_prefix(question: Question) -> Change | None:
    """The shortest beginning that all prompts would have to share, where none is declared and vLLM shares it."""
    facts = question.facts
    load = facts.workload
    if load is None or load.shared_prefix_tokens or load.prompt_tokens < 2 or not _shares_prefixes(facts):
        return None
    most = load.prompt_tokens - 1

    def at(shared: int) -> Callable[[Facts], Facts]:
        return lambda known: replace(known, workload=replace(load, shared_prefix_tokens=shared))

    spared = largest(lambda spared: question.met_with(at(most - spared)), most)
    if most - spared > most * _MOST_SHARED:
        return None
    least = most - spared
    price, remark = "what all prompts share must come first", "declare it with --shared-prefix-tokens"
    cost = 7 + round(15 * least / most)
    return Change(SHARED_PREFIX, f"{least:,} or more", price, cost, at(least), remark=remark)


# --- what vLLM shares and runs at once --------------------------------------------------------------------------------


def _shares_prefixes(facts: Facts) -> bool | None:
    """Whether vLLM keeps a shared prefix once; None where that is not known."""
    layout = layout_of(facts)
    if layout is not None:
        return layout.serving.prefix_caching
    return None if facts.uniform is None else facts.uniform.shares_prefixes


def prefix_caching(question: Question) -> Change | None:
    """Sharing a declared prefix, where it is known that vLLM does not."""
    facts = question.facts
    load = facts.workload
    if load is None or not load.shared_prefix_tokens or _shares_prefixes(facts) is not False:
        return None
    price, remark = "none for requests that share it", "recurrent layers then keep one state more a request"

    def apply(known: Facts) -> Facts:
        pool = None if known.uniform is None else replace(known.uniform, shares_prefixes=True)
        return replace(with_options(known, enable_prefix_caching=True), uniform=pool)

    return Change("--enable-prefix-caching", "", price, 1, apply, remark=remark)


def one_state_less(question: Question) -> Change | None:
    """Giving up shared prefixes, for which a hybrid model keeps one state more of each request."""
    layout = layout_of(question.facts)
    if layout is None or layout.serving.mamba_cache_mode == "none" or not layout.model.keeps_states:
        return None
    price = "no prefix is shared any more"
    remark = "each request of a hybrid model keeps one state less in each of its groups"
    flag = "--no-enable-prefix-caching"
    return Change(flag, "", price, 3, lambda facts: with_options(facts, enable_prefix_caching=False), remark=remark)


def more_sequences(question: Question) -> Change | None:
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
