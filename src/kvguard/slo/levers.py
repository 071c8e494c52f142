"""What to change for a missed objective: its target for `kvguard.kvcache`, its answer in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from kvguard.kvcache.levers import REQUEST_LENGTH, SHARED_PREFIX, Question, Target, refused
from kvguard.kvcache.load_changes import at_length
from kvguard.slo.lever_facts import fixed_by, own_length, readings_of
from kvguard.slo.objectives import Slo, Workload
from kvguard.slo.pools import Pools
from kvguard.slo.told_levers import (
    LENGTH,
    NOTHING,
    SEQUENCES,
    of_bytes,
    of_length,
    requests_of,
    suggested,
    told,
    weighed,
)
from kvguard.slo.verdict import CheckResult, Lever
from kvguard.slo.workload import held_workload, longest_request, refused_at
from kvguard.slotted import replace
from kvguard.startup.report import Start
from kvguard.units import Interval, format_count


def levers_of_check(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """What would let a missed objective be met; none for those that no change of the cache meets."""
    search = _SEARCHES.get(check.objective)
    return () if search is None else search(check, start, slo, pools)


def beside_others(checks: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """The checks, each lever that is enough with the other missed objectives that it surely leaves missed."""
    missed = [check for check in checks if check.levers]

    def priced(check: CheckResult, lever: Lever) -> Lever:
        left = [other.objective for other in missed if other is not check and _leaves_missed(other, lever)]
        if not lever.enough or not left:
            return lever
        stays = "stays" if len(left) == 1 else "stay"
        return replace(lever, price=f"{lever.price}; {', '.join(left)} {stays} missed")

    return tuple(replace(check, levers=tuple(priced(check, lever) for lever in check.levers)) for check in checks)


def _leaves_missed(other: CheckResult, lever: Lever) -> bool:
    """Whether the same change is known not to meet that objective either."""
    if lever.flag in _NO_MATTER.get(other.objective, ()):
        return True
    return any(one.spelt == lever.spelt and one.enough is False for one in other.levers)


_NO_MATTER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "min_concurrency": (REQUEST_LENGTH, SHARED_PREFIX, SEQUENCES, "--data-parallel-size"),
        "concurrent_requests": (LENGTH,),
    }
)
"""Flags that never raise an objective's figure: a shorter context enlarges no pool, the load's own shape no cache."""


def summary_of(levers: Sequence[Lever]) -> str | None:
    """The cheapest way in one sentence; `None` where there is nothing to say."""
    if not levers:
        return None
    enough = [lever for lever in levers if lever.enough]
    if not enough:
        return "no change that can be computed is surely enough"
    first = enough[0]
    if len(first.flags) == 1:
        return f"{first.spelt} meets it: {first.gives}"
    at_this_price = " at this price" if any(len(lever.flags) == 1 for lever in enough) else ""
    return f"no single change meets it{at_this_price}, these two do: {first.spelt}, for {first.gives}"


def _at_length(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Concurrency at max_model_len, of one engine."""
    engines = max(start.capacity.engines, 1) if check.objective == "min_total_concurrency" else 1
    wanted = float(check.target) / engines
    found = suggested(readings_of(start, pools, slo.workload), Target(wanted, fixed=fixed_by(slo)))
    each = "" if engines == 1 else f", on each of {engines} engines"
    length = start.capacity.weakest.max_model_len
    return told(start, found, wanted, lambda lever: of_length(lever, length) + each)


def _in_tokens(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """The pool's tokens: as concurrency scaled by what a token figure is to it; a shorter context adds none."""
    readings = readings_of(start, pools, slo.workload)
    before = readings[0].concurrency
    if not isinstance(check.observed, int | float) or check.observed <= 0 or before is None:
        return ()
    scale = check.observed / before.low
    wanted = float(check.target) / scale
    ways = suggested(readings, Target(wanted, fixed=fixed_by(slo)))
    found = [lever for lever in ways if lever.flag != LENGTH]

    def tokens(figure: Interval) -> Interval:
        return Interval(round(figure.low * scale), round(figure.high * scale))

    return told(start, found, wanted, lambda lever: "tokens", tokens)


def _in_bytes(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """The cache's bytes on a rank: only what leaves it more memory counts."""
    wanted = float(check.target)
    return told(start, of_bytes(readings_of(start, None, None), wanted), wanted, lambda lever: "bytes")


def _of_workload(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Requests of the declared workload, over all engines."""
    workload = slo.workload
    if workload is None or pools is None or not workload.request_tokens:
        return ()
    length = refused_at(start, workload)
    if length is not None:
        return _for_the_refused(float(check.target), start, slo, pools, length)
    return (*levers_of_workload(float(check.target), start, slo, pools), *_no_larger_pool(start, workload, check))


def levers_of_workload(wanted: float, start: Start, slo: Slo, pools: Pools) -> tuple[Lever, ...]:
    """What would let so many requests of the workload run at once, over all engines."""
    target = Target(wanted, of_workload=True, fixed=fixed_by(slo))
    found = suggested(readings_of(start, pools, pools.workload), target)
    unit = requests_of(pools.workload.request_tokens)
    return told(start, found, wanted, lambda lever: "requests" if lever.flag == REQUEST_LENGTH else unit)


def _of_waiting(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Requests that waited in a load: more of the workload at once, so that no more wait than are allowed."""
    load = start.runtime
    if pools is None or not pools.workload.request_tokens or load.peak_running is None or load.peak_waiting is None:
        return ()
    return levers_of_workload(load.peak_running + load.peak_waiting - float(check.target), start, slo, pools)


def _for_the_refused(wanted: float, start: Start, slo: Slo, pools: Pools, length: int) -> tuple[Lever, ...]:
    """What lets requests in that vLLM refuses for their length: a longer context, or shorter requests."""
    ways = (
        _longer(start, slo, pools, length),
        Lever(REQUEST_LENGTH, f"at most {format_count(length)}", "", _SHORTER, unit="requests"),
    )
    open_ones = []
    for way, held in zip(ways, (held_workload(pools), held_workload(pools, length)), strict=True):
        if way is None:
            continue
        open_to_it = dict(fixed_by(slo)).get(way.flag, way.value) == way.value
        if held is not None and held.service.low >= 1 and open_to_it:
            open_ones.append(weighed(way, held.service, held.service.low >= wanted, held.service.high < wanted))
    return tuple(open_ones)


_SHORTER = "shorter prompts or answers"


def _longer(start: Start, slo: Slo, pools: Pools, length: int) -> Lever | None:
    """A context that lets the request in; `None` where vLLM refuses it: as longer than the model's own, or the pool.

    A server that runs beyond its model's length was allowed to (VLLM_ALLOW_LONG_MAX_MODEL_LEN): no bound is known then.
    """
    tokens, own = pools.workload.request_tokens, own_length(pools)
    longer = tuple(at_length(facts, tokens) for facts in readings_of(start, pools, pools.workload))
    if (own is not None and length <= own < tokens) or any(map(refused, longer)):
        return None
    price = "one such request must fit the pool, or the start is refused"
    if own is None or own < tokens:
        price = f"{price}, as beyond the model's own length, which is not known here"
    price = "; ".join((price, *_falls_below(slo, Question(longer, Target(1.0)), max(start.capacity.engines, 1))))
    return Lever(LENGTH, str(tokens), "", price, unit=requests_of(tokens))


def _falls_below(slo: Slo, longer: Question, engines: int) -> Iterator[str]:
    """What a longer context makes of the concurrency that is asked for: of longer requests fewer fit."""
    each = longer.figure(lambda facts: facts)
    for key, times in (("min_concurrency", 1), ("min_total_concurrency", engines)):
        asked = slo.target(key)
        if asked is None or each is None or each.low * times >= float(asked):
            continue
        ends = dict.fromkeys(format_count(end * times) for end in (each.low, each.high))
        missed = "would be" if each.high * times < float(asked) else "may be"
        yield f"{key} {missed} missed: {' to '.join(ends)}"


def _no_larger_pool(start: Start, workload: Workload, check: CheckResult) -> tuple[Lever, ...]:
    """What people try first, and why it helps nothing."""
    length = start.capacity.weakest.max_model_len
    if length is None or length <= workload.request_tokens:
        return ()
    price, remark = "the pool is not enlarged", "longer requests are refused"
    value = str(workload.request_tokens)
    return (Lever(LENGTH, value, NOTHING, price, False, check.low, check.high, "requests", remark),)


def _of_share(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """A request's share of the pool: as many of the longest request must fit as the share leaves room for."""
    workload = slo.workload
    longest = None if workload is None else longest_request(start, workload)
    if workload is None or longest is None or not float(check.target):
        return ()
    whole = replace(workload, prompt_tokens=longest, output_tokens=0, shared_prefix_tokens=0)
    readings = tuple(replace(facts, data_parallel_size=1) for facts in readings_of(start, pools, whole))
    wanted = 1 / float(check.target)
    found = [
        lever
        for lever in suggested(readings, Target(wanted, of_workload=True, fixed=fixed_by(slo)))
        if lever.flag not in ("--data-parallel-size", "--max-num-seqs") and (lever.gives is None or lever.gives.low > 0)
    ]
    return told(start, found, wanted, lambda lever: "ratio", lambda fit: Interval(1 / fit.high, 1 / fit.low))


_Search = Callable[[CheckResult, Start, Slo, "Pools | None"], tuple[Lever, ...]]
_SEARCHES: Mapping[str, _Search] = MappingProxyType(
    {
        "min_concurrency": _at_length,
        "min_total_concurrency": _at_length,
        "min_kv_cache_tokens": _in_tokens,
        "min_kv_cache": _in_bytes,
        "concurrent_requests": _of_workload,
        "max_request_share": _of_share,
        "max_waiting_requests": _of_waiting,
    }
)
