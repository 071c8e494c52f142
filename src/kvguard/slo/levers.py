"""What to change for a missed objective or a failed start: its target for `kvguard.kvcache`, its answer in words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from kvguard.kvcache import changes
from kvguard.kvcache import levers as arithmetic
from kvguard.kvcache.levers import Facts, Target
from kvguard.slo.lever_facts import ASSUMED, facts_of, silent_on
from kvguard.slo.objectives import Slo, Workload
from kvguard.slo.pools import Pools
from kvguard.slo.verdict import CheckResult, Lever
from kvguard.startup.report import FailureKind, Start
from kvguard.units import Interval, format_bytes, format_count, format_quantity

_SHOWN = 10
"""Levers that a check lists: those that meet the target, and the nearest of the others."""
_PAGE, _PAGE_SOLVED, _PAGE_REFUSED, _PAGE_ENOUGH = 5, 2, 6, 2
"""Levers of the verdict itself: of a miss, of one that some meet, of a refused start; and how many may be enough."""
_MEMORY_FAILURES = (FailureKind.KV_CACHE_TOO_SMALL, FailureKind.NO_KV_MEMORY)
_LENGTH = "--max-model-len"
_ONLY_BYTES = (
    "--gpu-memory-utilization",
    "--quantization",
    "--enforce-eager",
    "--tensor-parallel-size",
    "--max-num-batched-tokens",
    "--max-num-seqs",
)


# a log that goes on asks the same again and again
_suggest = lru_cache(maxsize=64)(changes.suggest)


def levers_of_failure(start: Start, slo: Slo) -> tuple[Lever, ...]:
    """What would let a start begin that its memory refused: one request of its context, or as many as are asked."""
    if start.failure is None or start.failure.kind not in _MEMORY_FAILURES:
        return ()
    asked = slo.target("min_concurrency")
    wanted = max(1.0, float(asked)) if asked is not None else 1.0
    facts = facts_of(start, None, None)
    found = _suggest(facts, Target(wanted))
    length = facts.max_model_len
    # the context of a refused start is most often the model's default: shortening it comes first
    ordered = sorted(found, key=lambda lever: lever.flag != _LENGTH)
    told = _told(start, ordered, lambda lever: _requests(lever, _of_length(lever, "requests", length)))
    return shortlist(told, _PAGE_REFUSED)


def levers_of_check(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """What would let a missed objective be met; none for those that no change of the cache meets."""
    search = _SEARCHES.get(check.objective)
    return () if search is None else search(check, start, slo, pools)


def shortlist(levers: Sequence[Lever], room: int | None = None) -> tuple[Lever, ...]:
    """What a page has room for: one of each flag, the cheapest that are enough, then the nearest of the others."""
    best = {lever.flag: lever for lever in reversed(levers)}
    singled = [lever for lever in levers if best[lever.flag] is lever]
    enough = [lever for lever in singled if lever.enough][:_PAGE_ENOUGH]
    others = [lever for lever in singled if not lever.enough]
    computed = [lever for lever in others if lever.enough is False]
    left = (room or (_PAGE_SOLVED if enough else _PAGE)) - len(enough)
    return (*enough, *(computed or others)[:left])


def summary_of(levers: Sequence[Lever]) -> str | None:
    """The cheapest way in one sentence; `None` where there is nothing to say."""
    if not levers:
        return None
    enough = next((lever for lever in levers if lever.enough), None)
    if enough is None:
        return "no computed change meets it: see the levers"
    if " + " in enough.flag:
        return f"no single change meets it at this price, these two do: {enough.spelt}, for {enough.gives}"
    return f"{enough.spelt} meets it: {enough.gives}"


def _at_length(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Concurrency at max_model_len, of one engine."""
    engines = max(start.capacity.engines, 1) if check.objective == "min_total_concurrency" else 1
    found = _suggest(facts_of(start, pools, slo.workload), Target(float(check.target) / engines))
    unit = "requests" if engines == 1 else f"requests on each of {engines} engines"
    length = start.capacity.weakest.max_model_len
    return _told(start, found, lambda lever: _requests(lever, _of_length(lever, unit, length)))


def _of_length(lever: arithmetic.Lever, unit: str, length: int | None) -> str:
    """The figure's unit, with the context length that the lever leaves."""
    left = int(lever.value) if lever.flag == _LENGTH and lever.value.isdigit() else length
    return unit if left is None else f"{unit} of {format_count(left)} tokens"


def _in_tokens(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """The pool's tokens: as concurrency scaled by what a token figure is to it; a shorter context adds none."""
    facts = facts_of(start, pools, slo.workload)
    return _scaled(check, start, facts, lambda value: f"{format_count(round(value))} tokens", ())


def _in_bytes(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """The cache's bytes on a rank: only what leaves it more memory counts."""
    facts = replace(facts_of(start, None, None), read=None, options=None)
    return _scaled(check, start, facts, format_bytes, _ONLY_BYTES)


def _scaled(
    check: CheckResult, start: Start, facts: Facts, shown: Callable[[float], str], only: Sequence[str]
) -> tuple[Lever, ...]:
    if not isinstance(check.observed, int | float) or check.observed <= 0 or facts.concurrency is None:
        return ()
    scale = check.observed / facts.concurrency.low
    found = [
        lever
        for lever in _suggest(facts, Target(float(check.target) / scale))
        if lever.flag != _LENGTH and (not only or all(flag in only for flag in lever.flag.split(" + ")))
    ]

    def gives(lever: arithmetic.Lever) -> str | None:
        return None if lever.gives is None else _between(lever.gives, lambda value: shown(value * scale))

    return _told(start, found, gives)


def _of_workload(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Requests of the declared workload, over all engines."""
    workload = slo.workload
    if workload is None or not workload.request_tokens:
        return ()
    found = _suggest(facts_of(start, pools, workload), Target(float(check.target), of_workload=True))
    unit = f"requests of {format_count(workload.request_tokens)} tokens"
    told = _told(start, found, lambda lever: _requests(lever, unit if lever.flag[0] == "-" else "of them"))
    return (*told, *_no_larger_pool(start, workload, check))


def _no_larger_pool(start: Start, workload: Workload, check: CheckResult) -> tuple[Lever, ...]:
    """What people try first, and why it helps nothing."""
    length = start.capacity.weakest.max_model_len
    if length is None or length <= workload.request_tokens:
        return ()
    before = format_quantity(check.observed or check.low or 0.0, "requests")
    gives = f"nothing: the printed concurrency rises, the pool stays the same ({before})"
    return (Lever(_LENGTH, f"{workload.request_tokens} or more", gives, "longer requests are refused", False),)


def _of_share(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """A request's share of the pool: as many of the longest request must fit as the share leaves room for."""
    workload = slo.workload
    longest = None if workload is None else workload.longest_request_tokens or start.capacity.weakest.max_model_len
    if workload is None or longest is None or not float(check.target):
        return ()
    whole = replace(workload, prompt_tokens=longest, output_tokens=0, shared_prefix_tokens=0)
    facts = replace(facts_of(start, pools, whole), data_parallel_size=1)
    found = [
        lever
        for lever in _suggest(facts, Target(1 / float(check.target), of_workload=True))
        if lever.flag not in ("--data-parallel-size", "--max-num-seqs")
    ]
    return _told(start, found, lambda lever: _requests(lever, "requests of the longest kind"))


_Search = Callable[[CheckResult, Start, Slo, "Pools | None"], tuple[Lever, ...]]
_SEARCHES: Mapping[str, _Search] = MappingProxyType(
    {
        "min_concurrency": _at_length,
        "min_total_concurrency": _at_length,
        "min_kv_cache_tokens": _in_tokens,
        "min_kv_cache": _in_bytes,
        "concurrent_requests": _of_workload,
        "max_request_share": _of_share,
    }
)


def _told(
    start: Start, found: Sequence[arithmetic.Lever], gives: Callable[[arithmetic.Lever], str | None]
) -> tuple[Lever, ...]:
    silent = silent_on(start)
    told = []
    for lever in found[:_SHOWN]:
        assumed = [ASSUMED[flag] for flag in silent if flag in lever.flag.split(" + ")]
        if_so = [f"if 16-bit now, which the log does not say: {' and '.join(assumed)}"] if assumed else []
        told.append(
            Lever(
                flag=lever.flag,
                value=lever.value or None,
                gives=gives(lever) or "how much, the log does not tell",
                price="; ".join((lever.price, *if_so)),
                enough=None if lever.gives is None else lever.meets,
            )
        )
    return tuple(told)


def _requests(lever: arithmetic.Lever, unit: str) -> str | None:
    if lever.gives is None:
        return None
    figure = _between(lever.gives, format_count)
    return f"{figure} {unit.replace('requests', 'request', 1) if figure == '1' else unit}"


def _between(interval: Interval, shown: Callable[[float], str]) -> str:
    low, high = shown(interval.low), shown(interval.high)
    return low if low == high else f"{low} to {high}"
