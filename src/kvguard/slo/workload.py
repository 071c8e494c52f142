"""Judges the declared workload: requests that fit without preemption, the share of one request, what load has shown."""

from collections.abc import Iterator
from math import floor, isinf

from kvguard.kvcache.load import Request
from kvguard.slo.fit import Fit
from kvguard.slo.objectives import Workload
from kvguard.slo.observation import Observation, computed, unknown
from kvguard.slo.pools import Pools
from kvguard.slo.verdict import CheckKind
from kvguard.slotted import dataclass, replace
from kvguard.startup.report import Place, Start, StartWarning
from kvguard.units import Interval, format_count, format_quantity, format_ratio


@dataclass(frozen=True, slots=True)
class Held:
    """The workload on a deployment: requests of one length on its weakest engine, and on all of them."""

    request: Request
    fit: Fit
    engines: int
    service: Interval
    """Requests that the deployment serves at once: unrounded for one engine; of several each carries as many whole
    ones as the smallest, for a router that balances by number overloads it first."""


def held_workload(pools: Pools, tokens: int | None = None) -> Held | None:
    """Requests of the workload's length, or of `tokens`, without preemption; `None` where too little is known."""
    start, workload = pools.start, pools.workload
    request = workload.request if tokens is None else Request(tokens, 0)
    engines = pools.engines
    fits = [fit for engine in engines if (fit := pools.fit(engine, request)) is not None]
    if len(fits) < len(engines):
        return None
    weakest = _narrowed(min(fits, key=lambda fit: fit.interval.low), start)
    capped = _capped(weakest.interval, start.max_num_seqs)
    if len(fits) == 1:
        return Held(request, weakest, 1, capped)
    count = len(fits)
    return Held(request, weakest, count, Interval(count * floor(capped.low), count * _whole(capped.high)))


def _whole(requests: float) -> float:
    return requests if isinf(requests) else floor(requests)


def refused_at(start: Start, workload: Workload) -> int | None:
    """max_model_len, where the workload's request is longer, so that vLLM refuses it; else `None`."""
    served = start.capacity.weakest.max_model_len or start.max_model_len
    return served if served is not None and workload.request_tokens > served else None


def said_of_workload(pools: Pools) -> str | None:
    """What is told of a request where nobody says how many of it must fit; `None` where too little is known."""
    held = held_workload(pools) if pools.workload.request_tokens else None
    if held is None:
        return None
    requests = f"requests of {format_quantity(held.request.request_tokens, 'tokens')}"
    return f"{_ends(held.service)} {requests} fit without preemption; no number of them was asked for"


def observe_workload(key: str, pools: Pools) -> Observation:
    """The workload's indicator of that key."""
    return _share(pools) if key == "max_request_share" else _concurrent(pools)


def _concurrent(pools: Pools) -> Observation:
    requests = f"requests of {format_quantity(pools.workload.request_tokens, 'tokens')}"
    subject = f"the number of {requests} that fit without preemption"
    if refused_at(pools.start, pools.workload) is not None:
        place = pools.start.lines.get("max_model_len")
        return computed(
            subject, Interval.exact(0), place, says=f"no request of {requests.partition(' of ')[2]} is served"
        )
    held = held_workload(pools)
    if held is None:
        return _too_little(subject)
    fit, cap = held.fit, pools.start.max_num_seqs
    notes = [fit.how if held.engines == 1 else f"each engine: {fit.how}"]
    if cap is not None and fit.interval.high > cap:
        notes.append(f"max_num_seqs runs {format_count(cap)} at once")
    if held.engines > 1:
        notes.append(f"{held.engines} engines, the smallest holds {_ends(fit.interval)}")
    best = None if fit.best is None or held.engines > 1 else min(fit.best, held.service.high)
    return computed(
        subject,
        held.service,
        _place(pools.start),
        value=best,
        note="; ".join(notes),
        worst_end_decides=fit.layers_open,
        settles=fit.settles,
        says=f"{{observed}} {requests} fit without preemption",
    )


def _share(pools: Pools) -> Observation:
    """How much of the usable pool the longest request takes; without a bound in front of it, one of max_model_len."""
    longest = longest_request(pools.start, pools.workload)
    if longest is None:
        return _too_little("the share of the pool that one request takes")
    request = f"one request of {format_quantity(longest, 'tokens')}"
    subject = f"the share of the pool that {request} takes"
    held = held_workload(pools, longest)
    if held is None or held.fit.interval.low <= 0:
        return _too_little(subject)
    fit = held.fit
    share = Interval(1 / fit.interval.high, 1 / fit.interval.low)
    best = None if fit.best is None else 1 / fit.best
    return computed(
        subject,
        share,
        _place(pools.start),
        value=best,
        note=fit.how,
        worst_end_decides=fit.layers_open,
        settles=fit.settles,
        says=f"{request} takes {{observed}} of the pool",
    )


def longest_request(start: Start, workload: Workload) -> int | None:
    """Tokens of the longest request that can run: what is let through, as far as max_model_len serves it."""
    bounds = (workload.longest_request_tokens, start.capacity.weakest.max_model_len)
    return min((bound for bound in bounds if bound is not None), default=None)


def workload_warnings(pools: Pools) -> Iterator[StartWarning]:
    """What the declared workload shows beside its objectives: a request that can never run, and what load has shown."""
    start, workload = pools.start, pools.workload
    if pools.trouble is not None:
        yield pools.trouble
    if not workload.request_tokens:
        return
    tokens = format_quantity(workload.request_tokens, "tokens")
    length = refused_at(start, workload)
    if length is not None:
        message = f"a request of {tokens} is longer than max_model_len ({format_count(length)}): vLLM refuses it"
        yield StartWarning("request-exceeds-context", message, start.lines.get("max_model_len"))
        return
    held = held_workload(pools)
    if held is None:
        return
    if held.fit.most < 1:
        message = f"a request of {tokens} never fits into the pool and would wait for ever: {held.fit.how}"
        yield StartWarning("request-exceeds-pool", message, start.lines.get("kv_cache_tokens"))
    yield from _load_seen(start, held)


def _load_seen(start: Start, held: Held) -> Iterator[StartWarning]:
    """Whether a load ran as the workload plans it: as many at once as fit while others wait, no more and no fewer."""
    load = start.runtime
    if not load.samples or load.peak_running is None or load.peak_kv_cache_usage is None:
        return
    running, waiting, usage = load.peak_running, load.peak_waiting or 0, load.peak_kv_cache_usage
    fit = held.fit.interval
    holds = _ends(fit)
    pool = f"the pool holds {holds} of your {format_count(held.request.request_tokens)}-token requests"
    seen = f"{format_count(running)} running at {format_ratio(usage, 1)}"
    if waiting:
        seen = f"{seen}, {format_count(waiting)} waiting"
    if running > _whole(held.fit.most) + 1:
        message = f"{seen}: {pool}, so those that ran were shorter"
        yield StartWarning("load-differs-from-plan", message, load.place)
    elif waiting and running < floor(fit.low) and usage < _FULL:
        message = f"{seen}: {pool}, so something else than the KV cache makes requests wait"
        yield StartWarning("load-differs-from-plan", message, load.place)
    elif waiting or usage >= _FULL:
        yield StartWarning("load-matches-plan", f"{seen}: {pool}", load.place)


_FULL = 0.9
"""Usage from which waiting requests wait for KV cache rather than for the scheduler."""


def _narrowed(fit: Fit, start: Start) -> Fit:
    """The high end cut to what a saturated load has shown: while others waited for cache, no more than these ran.

    Only the high end: a running request may hold less than its full length, so load proves no lower end.
    """
    load = start.runtime
    if (
        not fit.layers_open
        or load.peak_running is None
        or not load.peak_waiting
        or load.peak_running == start.max_num_seqs
    ):
        return fit
    if (load.peak_kv_cache_usage or 0.0) < _FULL:
        return fit
    high = max(fit.interval.low, min(fit.interval.high, load.peak_running + 1.0))
    return replace(fit, interval=Interval(fit.interval.low, high))


def _place(start: Start) -> Place | None:
    return start.lines.get("kv_cache_tokens") or start.lines.get("gpu_blocks") or start.lines.get("max_concurrency")


def _capped(fits: Interval, max_num_seqs: int | None) -> Interval:
    if max_num_seqs is None:
        return fits
    return Interval(min(fits.low, max_num_seqs), min(fits.high, max_num_seqs))


def _ends(interval: Interval) -> str:
    """Both ends with as many digits as tell them apart from each other's place: 4.8, but 1.25 to 4.81."""
    if isinf(interval.high):
        return f"at least {format_count(interval.low)}"
    if round(interval.low, 1) == round(interval.high, 1):
        return format_count(round(interval.low, 1), 1)
    return f"{format_count(interval.low)} to {format_count(interval.high)}"


def _too_little(subject: str) -> Observation:
    settles = "give a log with the KV cache's lines, which vLLM prints at VLLM_LOGGING_LEVEL=INFO, its default"
    return unknown(subject, "the log tells too little of the pool", settles, kind=CheckKind.COMPUTED)
