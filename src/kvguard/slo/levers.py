"""What to change for a missed objective or a failed start: its target for `kvguard.kvcache`, its answer in words."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import floor, isinf
from types import MappingProxyType

from kvguard.kvcache import changes
from kvguard.kvcache import levers as arithmetic
from kvguard.kvcache.levers import REQUEST_LENGTH, SHARED_PREFIX, Facts, Target
from kvguard.kvcache.spelling import AND
from kvguard.slo.lever_facts import assumed_by, fixed_by, own_length, readings_of
from kvguard.slo.objectives import Slo, Workload
from kvguard.slo.pools import Pools
from kvguard.slo.refusal import OF_THE_CACHE, is_of_context
from kvguard.slo.verdict import CheckResult, Lever
from kvguard.slo.workload import held_workload, longest_request, refused_at
from kvguard.slotted import replace
from kvguard.startup.report import FailureKind, Start
from kvguard.units import Interval, format_count, format_quantity

_MOST = 10
"""Levers that a check lists: those that meet the target, and the nearest of the others."""
_PAGE, _PAGE_SOLVED, _PAGE_REFUSED = 4, 2, 6
"""Levers of the verdict itself: of a miss, of one that some meet, of a refused start."""
_LENGTH, _SEQUENCES = "--max-model-len", "--max-num-seqs"
_ONLY_BYTES = (
    "--gpu-memory-utilization",
    "--quantization",
    "--enforce-eager",
    "--tensor-parallel-size",
    "--max-num-batched-tokens",
    _SEQUENCES,
    "--kv-cache-memory-bytes",
)


# a log that goes on asks the same again and again
@lru_cache(maxsize=64)
def _suggested(readings: tuple[Facts, ...], target: Target) -> tuple[arithmetic.Lever, ...]:
    return changes.suggest(readings[0], target, readings[1:])


def levers_of_failure(start: Start, slo: Slo) -> tuple[Lever, ...]:
    """What would let a start begin that its memory refused: one request of its context, or as many as are asked."""
    failure = start.failure
    if failure is None or failure.kind not in OF_THE_CACHE:
        return ()
    if failure.mamba_blocks and failure.requested_max_num_seqs:
        return shortlist(_for_sequences(start, failure.requested_max_num_seqs, failure.mamba_blocks), _PAGE_REFUSED)
    if failure.kind is FailureKind.KV_CACHE_TOO_SMALL and not is_of_context(failure):
        return ()
    if failure.kind is FailureKind.NO_KV_MEMORY:
        return levers_of_no_room(start)
    return levers_of_context(start, slo)


def levers_of_context(start: Start, slo: Slo) -> tuple[Lever, ...]:
    """What would let one request of the context fit, or as many as are asked."""
    asked = slo.target("min_concurrency")
    wanted = max(1.0, float(asked)) if asked is not None else 1.0
    readings = readings_of(start, None, None)
    estimate = start.failure.estimated_max_model_len if start.failure is not None and wanted <= 1 else None
    found = [_by_estimate(lever, estimate) for lever in _suggested(readings, Target(wanted, fixed=fixed_by(slo)))]
    # the context of a refused start is most often the model's default: shortening it comes first
    ordered = sorted(found, key=lambda lever: lever.flag != _LENGTH)
    told = _told(start, ordered, wanted, lambda lever: _of_length(lever, readings[0].max_model_len))
    return shortlist(told, _PAGE_REFUSED)


def levers_of_no_room(start: Start) -> tuple[Lever, ...]:
    """What leaves a cache without any memory some: how much a request of the context needs, the log cannot tell."""
    readings = readings_of(start, None, None)
    found = [lever for lever in _suggested(readings, Target(1.0)) if _leaves_bytes(lever)]
    return shortlist(_told(start, found, 1.0, lambda lever: "requests"), _PAGE_REFUSED)


def _for_sequences(start: Start, asked: int, there: int) -> tuple[Lever, ...]:
    """What lets each sequence have the state block that it needs: fewer of them, or memory for more blocks."""
    readings = readings_of(start, None, None)
    cache = readings[0].kv_cache_bytes or Interval.exact(0)
    # the blocks are a whole number of the cache's bytes: one of them takes less than these, and no more than those
    least, most = cache.low / (there + 1), cache.high / there
    found = [
        # more ranks also make a block smaller: by how much, the layers would have to tell
        replace(lever, gives=None) if "--tensor-parallel-size" in lever.flag and not lever.meets else lever
        for lever in _of_bytes(readings, asked * most)
        if lever.flag != _SEQUENCES
    ]

    def blocks(figure: Interval) -> Interval:
        return Interval(floor(figure.low / most), floor(figure.high / least))

    fewer = Lever(_SEQUENCES, str(there), "", "requests beyond it wait", unit="sequences at once")
    told = _told(start, found, asked * least, lambda lever: "Mamba cache blocks", blocks)
    return (_weighed(fewer, Interval.exact(there), True, False), *told)


def _by_estimate(lever: arithmetic.Lever, longest: int | None) -> arithmetic.Lever:
    """A shorter context that could not be computed, at the length which vLLM's own refusal says would fit."""
    if lever.flag != _LENGTH or lever.gives is not None or not longest:
        return lever
    return replace(lever, value=str(longest), gives=Interval.exact(1.0), meets=True)


def levers_of_check(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """What would let a missed objective be met; none for those that no change of the cache meets."""
    search = _SEARCHES.get(check.objective)
    return () if search is None else search(check, start, slo, pools)


def beside_others(checks: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """The checks, each lever that is enough with the other missed objectives that it surely leaves missed."""
    missed = [check for check in checks if check.levers]

    def told(check: CheckResult, lever: Lever) -> Lever:
        left = [other.objective for other in missed if other is not check and _leaves_missed(other, lever)]
        if not lever.enough or not left:
            return lever
        stays = "stays" if len(left) == 1 else "stay"
        return replace(lever, price=f"{lever.price}; {', '.join(left)} {stays} missed")

    return tuple(replace(check, levers=tuple(told(check, lever) for lever in check.levers)) for check in checks)


def _leaves_missed(other: CheckResult, lever: Lever) -> bool:
    """Whether the same change is known not to meet that objective either."""
    if lever.flag in _NO_MATTER.get(other.objective, ()):
        return True
    return any(one.spelt == lever.spelt and one.enough is False for one in other.levers)


_NO_MATTER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "min_concurrency": (REQUEST_LENGTH, SHARED_PREFIX, _SEQUENCES, "--data-parallel-size"),
        "concurrent_requests": (_LENGTH,),
    }
)
"""Flags that never raise an objective's figure: a shorter context enlarges no pool, the load's own shape no cache."""


def shortlist(levers: Sequence[Lever], room: int | None = None) -> tuple[Lever, ...]:
    """What a page has room for: one of each flag, the cheapest that are enough, the nearest others, what is useless."""
    best = {lever.flag: lever for lever in reversed(levers)}
    singled = [lever for lever in levers if best[lever.flag] is lever]
    enough = [lever for lever in singled if lever.enough]
    useless = [lever for lever in singled if lever.gives == _NOTHING]
    others = [lever for lever in singled if not lever.enough and lever.gives != _NOTHING]
    computed = [lever for lever in others if lever.low is not None]
    left = room or (_PAGE_SOLVED if enough else _PAGE)
    return (*_cheapest(enough, left), *(computed or others)[: max(left - len(enough), 0)], *useless)


def _cheapest(enough: Sequence[Lever], most: int) -> list[Lever]:
    """The cheapest that are enough, the best of each kind (one change, two together) among them."""
    kinds = {len(lever.flags): lever for lever in reversed(enough)}
    chosen = [*kinds.values(), *(lever for lever in enough if lever not in kinds.values())][:most]
    return [lever for lever in enough if lever in chosen]


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
    found = _suggested(readings_of(start, pools, slo.workload), Target(wanted, fixed=fixed_by(slo)))
    each = "" if engines == 1 else f", on each of {engines} engines"
    length = start.capacity.weakest.max_model_len
    return _told(start, found, wanted, lambda lever: _of_length(lever, length) + each)


def _of_length(lever: arithmetic.Lever, length: int | None) -> str:
    """Requests of the context length that the lever leaves."""
    left = int(lever.value) if lever.flag == _LENGTH and lever.value.isdigit() else length
    return "requests" if left is None else _requests_of(left)


def _in_tokens(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """The pool's tokens: as concurrency scaled by what a token figure is to it; a shorter context adds none."""
    readings = readings_of(start, pools, slo.workload)
    before = readings[0].concurrency
    if not isinstance(check.observed, int | float) or check.observed <= 0 or before is None:
        return ()
    scale = check.observed / before.low
    wanted = float(check.target) / scale
    suggested = _suggested(readings, Target(wanted, fixed=fixed_by(slo)))
    found = [lever for lever in suggested if lever.flag != _LENGTH]

    def tokens(figure: Interval) -> Interval:
        return Interval(round(figure.low * scale), round(figure.high * scale))

    return _told(start, found, wanted, lambda lever: "tokens", tokens)


def _in_bytes(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """The cache's bytes on a rank: only what leaves it more memory counts."""
    wanted = float(check.target)
    return _told(start, _of_bytes(readings_of(start, None, None), wanted), wanted, lambda lever: "bytes")


def _of_bytes(readings: tuple[Facts, ...], wanted: float) -> list[arithmetic.Lever]:
    """Levers that leave the cache of a rank more memory."""
    found = _suggested(readings, Target(wanted, of_bytes=True))
    return [lever for lever in found if _leaves_bytes(lever)]


def _leaves_bytes(lever: arithmetic.Lever) -> bool:
    return all(flag in _ONLY_BYTES for flag in lever.flag.split(AND))


def _of_workload(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Requests of the declared workload, over all engines."""
    workload = slo.workload
    if workload is None or pools is None or not workload.request_tokens:
        return ()
    length = refused_at(start, workload)
    if length is not None:
        return _for_the_refused(float(check.target), slo, pools, length)
    return (*levers_of_workload(float(check.target), start, slo, pools), *_no_larger_pool(start, workload, check))


def levers_of_workload(wanted: float, start: Start, slo: Slo, pools: Pools) -> tuple[Lever, ...]:
    """What would let so many requests of the workload run at once, over all engines."""
    target = Target(wanted, of_workload=True, fixed=fixed_by(slo))
    found = _suggested(readings_of(start, pools, pools.workload), target)
    unit = _requests_of(pools.workload.request_tokens)
    return _told(start, found, wanted, lambda lever: "requests" if lever.flag == REQUEST_LENGTH else unit)


def _of_waiting(check: CheckResult, start: Start, slo: Slo, pools: Pools | None) -> tuple[Lever, ...]:
    """Requests that waited in a load: more of the workload at once, so that no more wait than are allowed."""
    load = start.runtime
    if pools is None or not pools.workload.request_tokens or load.peak_running is None or load.peak_waiting is None:
        return ()
    return levers_of_workload(load.peak_running + load.peak_waiting - float(check.target), start, slo, pools)


def _requests_of(tokens: int) -> str:
    return f"requests of {format_quantity(tokens, 'tokens')}"


def _for_the_refused(wanted: float, slo: Slo, pools: Pools, length: int) -> tuple[Lever, ...]:
    """What lets requests in that vLLM refuses for their length: a longer context, or shorter requests."""
    ways = (
        _longer(pools, length),
        Lever(REQUEST_LENGTH, f"at most {format_count(length)}", "", _SHORTER, unit="requests"),
    )
    told = []
    for way, held in zip(ways, (held_workload(pools), held_workload(pools, length)), strict=True):
        if way is None:
            continue
        open_to_it = dict(fixed_by(slo)).get(way.flag, way.value) == way.value
        if held is not None and held.service.low >= 1 and open_to_it:
            told.append(_weighed(way, held.service, held.service.low >= wanted, held.service.high < wanted))
    return tuple(told)


_SHORTER = "shorter prompts or answers"


def _longer(pools: Pools, length: int) -> Lever | None:
    """A context that lets the request in; `None` where vLLM refuses it as longer than the model's own.

    A server that runs beyond its model's length was allowed to (VLLM_ALLOW_LONG_MAX_MODEL_LEN): no bound is known then.
    """
    tokens, own = pools.workload.request_tokens, own_length(pools)
    if own is not None and length <= own < tokens:
        return None
    price = "one such request must fit the pool, or the start is refused"
    if own is None or own < tokens:
        price = f"{price}, as beyond the model's own length, which is not known here"
    return Lever(_LENGTH, str(tokens), "", price, unit=_requests_of(tokens))


_NOTHING = "nothing: no more requests fit, only the printed concurrency rises"


def _no_larger_pool(start: Start, workload: Workload, check: CheckResult) -> tuple[Lever, ...]:
    """What people try first, and why it helps nothing."""
    length = start.capacity.weakest.max_model_len
    if length is None or length <= workload.request_tokens:
        return ()
    price, remark = "the pool is not enlarged", "longer requests are refused"
    value = str(workload.request_tokens)
    return (Lever(_LENGTH, value, _NOTHING, price, False, check.low, check.high, "requests", remark),)


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
        for lever in _suggested(readings, Target(wanted, of_workload=True, fixed=fixed_by(slo)))
        if lever.flag not in ("--data-parallel-size", "--max-num-seqs") and (lever.gives is None or lever.gives.low > 0)
    ]
    return _told(start, found, wanted, lambda lever: "ratio", lambda fit: Interval(1 / fit.high, 1 / fit.low))


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


def _told(
    start: Start,
    found: Sequence[arithmetic.Lever],
    wanted: float,
    unit_of: Callable[[arithmetic.Lever], str],
    in_unit: Callable[[Interval], Interval] = lambda figure: figure,
) -> tuple[Lever, ...]:
    """The levers in words.

    Args:
        start: what the log is silent on.
        found: the levers, in requests.
        wanted: the target, in requests.
        unit_of: the unit in which a lever is told.
        in_unit: its figure in that unit.
    """
    told = []
    for lever in found[:_MOST]:
        way = Lever(
            flag=lever.flag,
            value=lever.value or None,
            gives="how much, the log does not tell",
            price=lever.price,
            unit=unit_of(lever),
            remark=lever.remark or None,
            assumes=assumed_by(lever.flag.split(AND), start),
        )
        weighed = lever.gives and _weighed(way, in_unit(lever.gives), lever.meets, lever.gives.high < wanted)
        told.append(weighed or replace(way, unit=""))
    return tuple(told)


def _weighed(way: Lever, figure: Interval, met: bool, missed: bool) -> Lever:
    """The lever with its figure, and whether it is enough: open where the figure's ends disagree."""
    high = None if isinf(figure.high) else figure.high
    counted = replace(way, low=figure.low, high=high, enough=True if met else (False if missed else None))
    unit = _AFTER_A_FIGURE.get(way.unit, way.unit)
    unit = unit.replace("requests", "request", 1) if counted.figure == "1" else unit
    return replace(counted, gives=f"{counted.figure} {unit}".strip())


_AFTER_A_FIGURE: Mapping[str, str] = MappingProxyType({"bytes": "", "ratio": "of the pool"})
"""Units that a figure carries itself."""
