"""What a report says of the start-up indicators: one small function an objective, joined in one table."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.slo.course import capacity_reported
from kvguard.slo.exactness import exact_concurrency
from kvguard.slo.observation import Observation, computed, printed, unknown
from kvguard.slo.refusal import cache_there, share_of_one_request, share_with_rounding
from kvguard.startup.report import Capacity, Failure, Phase, Place, Start
from kvguard.units import Interval, format_bytes, format_count, format_quantity


def observe_startup(key: str, start: Start, target: float | str) -> Observation:
    """The indicator of that key, in its objective's unit; `target` only words what is still missing."""
    return _OBSERVERS[key](start, target)


def said_of_capacity(start: Start) -> tuple[str, Place | None] | None:
    """The figure that says most of what a start can hold, in a sentence, with its place; `None` where none is told."""
    for observe, unit in ((_concurrency, "requests"), (_tokens, "tokens")):
        found = observe(start, None)
        if found.value is not None:
            return f"{found.subject} is {format_quantity(found.value, unit)}{_noted(found)}", found.place
    blocks = start.capacity.weakest.gpu_blocks
    return None if blocks is None else (f"the cache has {format_count(blocks)} blocks", start.lines.get("gpu_blocks"))


def _noted(found: Observation) -> str:
    return f" ({found.note})" if found.note else ""


def _concurrency(start: Start, _target: object) -> Observation:
    weakest = start.capacity.weakest
    subject = _at_length("maximum concurrency", weakest.max_model_len or start.max_model_len)
    if weakest.max_concurrency is not None:
        place = start.lines.get("max_concurrency")
        return printed(subject, weakest.max_concurrency, place, exact=_exact(weakest, start), note=_whose(start))
    return _refused_concurrency(subject, start.failure) or _not_printed(start, subject, "the maximum concurrency")


def _total_concurrency(start: Start, _target: object) -> Observation:
    total = start.capacity.total_max_concurrency
    subject = _at_length("total maximum concurrency", start.capacity.weakest.max_model_len or start.max_model_len)
    place = start.lines.get("max_concurrency")
    if total is None and start.differing:
        return unknown(subject, "the logs are not of one deployment", "check each log by itself")
    silent = (start.capacity.engines_expected or 0) - start.capacity.engines
    if total is None and start.capacity.engines and silent > 0:
        return unknown(subject, f"{silent} of {start.capacity.engines_expected} engines printed none")
    if total is None:
        return _refused_concurrency(subject, start.failure) or _not_printed(start, subject, "the maximum concurrency")
    if start.capacity.engines <= 1:
        return printed(subject, total, place, exact=_exact(start.capacity.weakest, start))
    exact = [_exact(engine, start) for engine in start.engines]
    known = [interval for interval in exact if interval is not None]
    if len(known) < start.capacity.engines:
        return computed(subject, Interval.exact(total), place, note="sum of the printed figures")
    interval = Interval(sum(i.low for i in known), sum(i.high for i in known))
    return computed(subject, interval, place, value=total, note=f"sum over {len(known)} engines")


def _tokens(start: Start, _target: object) -> Observation:
    weakest = start.capacity.weakest
    subject = "KV cache size"
    if weakest.kv_cache_tokens is not None:
        return printed(subject, weakest.kv_cache_tokens, start.lines.get("kv_cache_tokens"), note=_whose(start))
    derived = weakest.derived.get("kv_cache_tokens")
    if derived is not None:
        return computed(subject, Interval.exact(derived.value), start.lines.get("gpu_blocks"), note=derived.how)
    failure = start.failure
    if failure is not None and failure.kv_cache_tokens is not None:
        return printed(subject, failure.kv_cache_tokens, failure.place, note="as the refusal says")
    return _not_printed(start, subject, "the KV cache size in tokens")


def _kv_cache(start: Start, _target: object) -> Observation:
    subject = "KV cache memory of a rank"
    value = start.capacity.weakest.kv_cache_bytes
    place = start.lines.get("kv_cache_bytes")
    failure = start.failure
    there = cache_there(failure)
    if value is None and failure is not None and there is not None:
        return printed(subject, there, failure.place, note="as the refusal says")
    if value is None:
        return _not_printed(start, subject, "the available KV cache memory of every rank")
    declared = "declared, not measured" if start.kv_cache_basis == "declared" else None
    return printed(subject, value, place, note=declared)


def _weights(start: Start, _target: object) -> Observation:
    weights = start.capacity.weakest.weights_bytes
    value = start.memory.weights if weights is None else weights
    if value is None:
        return _not_printed(start, "memory of the weights", "how much the weights take")
    return printed("memory of the weights", value, start.lines.get("weights_bytes"))


def _max_model_len(start: Start, target: object) -> Observation:
    if start.differing.get("max_model_len"):
        return _of_one_that_differs("max_model_len", start, target)
    value = start.capacity.weakest.max_model_len or start.max_model_len
    if value is None:
        return _not_printed(start, "max_model_len", "max_model_len")
    asked = start.requested_max_model_len
    note = f"cut from {format_count(asked)} to fit" if asked is not None and asked > value else None
    return printed("max_model_len", value, start.lines.get("max_model_len"), note=note)


def _kv_cache_dtype(start: Start, target: object) -> Observation:
    if start.differing.get("kv_cache_dtype"):
        return _of_one_that_differs("kv_cache_dtype", start, target)
    if start.kv_cache_dtype is None:
        return _not_printed(start, "the KV cache dtype", "the KV cache dtype")
    return printed("KV cache dtype", start.kv_cache_dtype, start.lines.get("kv_cache_dtype"))


def _of_one_that_differs(name: str, start: Start, target: object) -> Observation:
    """What is expected of a fact holds for every node: the value of one that has another."""
    other = next(value for value in start.differing[name] if value != target)
    assert isinstance(other, int | str)
    return printed(name, other, None, note="of one of the nodes, which differ")


def _engines(start: Start, target: float | str) -> Observation:
    """Engines that reported. Silent ones are unknown, unless the log itself declares another number than asked."""
    subject, reported = "the number of engines", start.capacity.engines
    declared = start.capacity.engines_expected if start.data_parallel_size is not None else None
    elsewhere = start.data_parallel_size == target
    if reported == target or reported > float(target) or (declared not in (None, target) and not elsewhere):
        return printed(subject, max(reported, declared or 0), start.lines.get("engines"))
    named = "; ".join(start.missing) or f"{format_count(reported)} of {format_count(float(target))} have reported"
    return unknown(subject, named, "give the logs of all nodes (kvguard check LOG LOG …), or wait for the others")


_OBSERVERS: Mapping[str, Callable[[Start, float | str], Observation]] = MappingProxyType(
    {
        "min_concurrency": _concurrency,
        "min_total_concurrency": _total_concurrency,
        "min_kv_cache_tokens": _tokens,
        "min_kv_cache": _kv_cache,
        "max_weights": _weights,
        "expect_max_model_len": _max_model_len,
        "expect_kv_cache_dtype": _kv_cache_dtype,
        "expect_engines": _engines,
    }
)


def _exact(capacity: Capacity, start: Start) -> Interval | None:
    return exact_concurrency(capacity, start.block_size, start.layers is not None)


def _whose(start: Start) -> str | None:
    """Which engine the figure is of, where there are several: the weakest one."""
    engine = start.capacity.weakest.engine
    if start.capacity.engines < 2 or engine is None:
        return None
    return f"engine {engine}, the weakest of {start.capacity.engines}"


def _at_length(subject: str, length: int | None) -> str:
    return subject if length is None else f"{subject} at {format_quantity(length, 'tokens')}"


def _refused_concurrency(subject: str, failure: Failure | None) -> Observation | None:
    """The concurrency of a start that refused its context: what it had over what one request needs, below one."""
    share = None if failure is None else share_with_rounding(failure)
    if failure is None or share is None:
        return None
    there = cache_there(failure)
    if there is not None and failure.needed_bytes:
        how = f"{format_bytes(there)} of {format_bytes(failure.needed_bytes)} that one request needs"
    else:
        asked, fits = (format_count(count or 0) for count in (failure.requested_max_model_len, failure.kv_cache_tokens))
        how = f"{fits} of the {asked} tokens that one request needs"
    return computed(subject, share, failure.place, value=share_of_one_request(failure), note=how)


def _not_printed(start: Start, subject: str, what: str) -> Observation:
    """What no line tells, of a start that has told its capacity: of any other it is said why that is not known."""
    told = start.phase is not Phase.FAILED and capacity_reported(start)
    return unknown(subject, f"no line tells {what}", _WHOLE_LOG if told else None)


_WHOLE_LOG = "give the log from its first line on, at VLLM_LOGGING_LEVEL=INFO (its default), if the release prints that"
