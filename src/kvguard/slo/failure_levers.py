"""What to change for a start that failed, so that there is room: in its cache, on its device, on its host."""

from collections.abc import Callable, Mapping
from math import floor, inf
from types import MappingProxyType

from kvguard.kvcache import levers as arithmetic
from kvguard.kvcache.changes import leave_room
from kvguard.kvcache.levers import Facts, Target
from kvguard.slo.lever_facts import fixed_by, readings_of
from kvguard.slo.objectives import Slo
from kvguard.slo.refusal import RanOut, cause_of, free_share, is_of_context, ran_out, shortfall
from kvguard.slo.told_levers import (
    LENGTH,
    NOT_TOLD,
    SEQUENCES,
    of_bytes,
    of_length,
    shortlist,
    suggested,
    told,
    weighed,
)
from kvguard.slo.verdict import Lever
from kvguard.slotted import replace
from kvguard.startup.report import Failure, FailureKind, Start
from kvguard.units import GIB, Interval, format_bytes

_PAGE = 6
"""Levers of a failed start."""
_UTILIZATION, _BATCH = "--gpu-memory-utilization", "--max-num-batched-tokens"


def levers_of_failure(start: Start, slo: Slo) -> tuple[Lever, ...]:
    """What would let a start begin that failed for want of memory; none for other failures."""
    failure = cause_of(start)
    search = None if failure is None else _SEARCHES.get(failure.kind)
    return () if failure is None or search is None else search(start, failure, slo)


# --- no room in the cache ---------------------------------------------------------------------------------------------


def _of_the_cache(start: Start, failure: Failure, slo: Slo) -> tuple[Lever, ...]:
    if failure.mamba_blocks and failure.requested_max_num_seqs:
        return shortlist(_for_sequences(start, failure.requested_max_num_seqs, failure.mamba_blocks), _PAGE)
    return levers_of_context(start, slo) if is_of_context(failure) else ()


def levers_of_context(start: Start, slo: Slo) -> tuple[Lever, ...]:
    """What would let one request of the context fit, or as many as are asked."""
    asked = slo.target("min_concurrency")
    wanted = max(1.0, float(asked)) if asked is not None else 1.0
    readings = readings_of(start, None, None)
    fixed = fixed_by(slo)
    told_length = _told_length(start, fixed) if wanted <= 1 else None
    found = [
        lever
        for lever in suggested(readings, Target(wanted, fixed=fixed))
        if told_length is None or lever.flag != LENGTH
    ]
    # the context of a refused start is most often the model's default: shortening it comes first
    ordered = sorted((*found, *filter(None, [told_length])), key=lambda lever: lever.flag != LENGTH)
    return shortlist(told(start, ordered, wanted, lambda lever: of_length(lever, readings[0].max_model_len)), _PAGE)


def _told_length(start: Start, fixed: tuple[tuple[str, str], ...]) -> arithmetic.Lever | None:
    """The context that vLLM's own refusal says would fit, where it says so and the SLO leaves it open.

    Of pipeline stages it is the one that refused first: another may hold less.
    """
    failure = start.failure
    longest = None if failure is None else failure.kv_cache_tokens or failure.estimated_max_model_len
    if not longest or dict(fixed).get(LENGTH, str(longest)) != str(longest):
        return None
    alone = bool(failure and failure.kv_cache_tokens) or (start.pipeline_parallel_size or 1) == 1
    gives = Interval.exact(1.0) if alone else Interval(0.0, 1.0)
    remark = "the same tokens fit as before" if alone else "by the pipeline stage that refused; another may hold less"
    price = "longer requests are refused, the pool is not enlarged"
    return arithmetic.Lever(LENGTH, str(longest), gives, price, meets=alone, cost=0, remark=remark)


def levers_of_no_room(start: Start) -> tuple[Lever, ...]:
    """What leaves a cache without any memory some: how much a request of the context needs, the log cannot tell."""
    readings = readings_of(start, None, None)
    if readings[0].kv_cache_bytes is None:
        return _freed(start, readings, "GiB more for the KV cache of a rank")
    found = of_bytes(readings, inf)  # each as far as it goes
    if not any(lever.gives is not None and lever.gives.low > 0 for lever in found):
        found = of_bytes(readings, _A_BYTE)
    return _undecided(told(start, found, _A_BYTE, lambda lever: "GiB for the KV cache of a rank", _in_gib))


def _freed(start: Start, readings: tuple[Facts, ...], unit: str, flags: tuple[str, ...] = ()) -> tuple[Lever, ...]:
    """What each change frees on a rank, of these flags alone where any are named; whether it is enough stays open."""
    from_none = tuple(replace(facts, kv_cache_bytes=Interval.exact(0)) for facts in readings)
    found = [lever for lever in of_bytes(from_none, inf) if not flags or lever.flag in flags]
    return _undecided(told(start, found, _A_BYTE, lambda lever: unit, _in_gib))


def _undecided(ways: tuple[Lever, ...]) -> tuple[Lever, ...]:
    """One of each flag, what is computed first; that there is some room says of none that it is enough."""
    best = {way.flag: way for way in reversed(ways)}
    ordered = sorted((way for way in ways if best[way.flag] is way), key=lambda way: way.low is None)
    return tuple(replace(way, enough=None) if way.enough else way for way in ordered[:_PAGE])


_A_BYTE = 1.0


def _in_gib(figure: Interval) -> Interval:
    return Interval(figure.low / GIB, figure.high / GIB)


def _for_sequences(start: Start, asked: int, there: int) -> tuple[Lever, ...]:
    """What lets each sequence have the state block that it needs: fewer of them, or memory for more blocks."""
    readings = readings_of(start, None, None)
    cache = readings[0].kv_cache_bytes or Interval.exact(0)
    # the blocks are a whole number of the cache's bytes: one of them takes less than these, and no more than those
    least, most = cache.low / (there + 1), cache.high / there
    found = [
        # more ranks also make a block smaller: by how much, the layers would have to tell
        replace(lever, gives=None) if "--tensor-parallel-size" in lever.flag and not lever.meets else lever
        for lever in of_bytes(readings, asked * most)
        if lever.flag != SEQUENCES
    ]

    def blocks(figure: Interval) -> Interval:
        return Interval(floor(figure.low / most), floor(figure.high / least))

    fewer = Lever(SEQUENCES, str(there), "", _FEWER, unit="sequences at once")
    more = told(start, found, asked * least, lambda lever: "Mamba cache blocks", blocks)
    return (weighed(fewer, Interval.exact(there), True, False), *more)


_FEWER = "requests beyond it wait"


# --- no room on the device --------------------------------------------------------------------------------------------


def _of_free_memory(start: Start, failure: Failure, _: Slo) -> tuple[Lever, ...]:
    """As large a share of the device as is free, where the refusal tells both; what it holds is not measured yet."""
    found = free_share(start, failure)
    if found is None:
        return ()
    unit = "GiB for weights, activations and cache"
    price = f"{format_bytes(found.taken_bytes)} less for the KV cache"
    way = Lever(_UTILIZATION, f"{found.share:g}", "", price, unit=unit)
    remark = "while so much stays free; how much the weights take is not measured yet"
    return (_open(replace(way, remark=remark), Interval.exact(found.left_bytes / GIB)),)


def _of_device(start: Start, failure: Failure, _: Slo) -> tuple[Lever, ...]:
    """Where memory ran out decides: only once the cache is there does a smaller one leave more."""
    search = _RAN_OUT.get(ran_out(start))
    return () if search is None else search(start, failure)


def _beside_the_cache(start: Start, failure: Failure) -> tuple[Lever, ...]:
    """A smaller cache, by what was lacking; what else is allocated after it, the log does not tell."""
    readings = readings_of(start, None, None)
    smaller = leave_room(readings, shortfall(failure))
    (way,) = told(start, [smaller], 1.0, lambda lever: of_length(lever, readings[0].max_model_len))
    refused = smaller.gives is not None and smaller.gives.high < 1
    directions = [_direction(SEQUENCES, "lower", _FEWER, "what follows the cache is tried with so many")]
    if not start.enforce_eager:
        directions.append(_direction("--enforce-eager", None, "slower decoding without CUDA graphs", "if they failed"))
    return (replace(way, enough=False if refused else None), *directions)


def _beside_the_weights(start: Start, failure: Failure) -> tuple[Lever, ...]:
    """A smaller profile run, or lighter weights: there is no cache yet, so that a smaller one leaves nothing more."""
    # the profile run is one step of so many tokens, and logits of so many sequences
    directions = (
        _direction(_BATCH, "lower", "a longer time to the first token under load", "the profile run is as long"),
        _direction(SEQUENCES, "lower", _FEWER, "it samples as many"),
    )
    return (*directions, *_lighter_weights(start, failure))


def _lighter_weights(start: Start, failure: Failure) -> tuple[Lever, ...]:
    """Lighter weights, or fewer of them on each card."""
    ways = _freed(start, readings_of(start, None, None), "GiB more beside the weights of each card", _OF_WEIGHTS)
    short = shortfall(failure)
    lacking = 0.0 if short is None else short.low / GIB
    return tuple(replace(way, enough=False) if way.high is not None and way.high < lacking else way for way in ways)


_OF_WEIGHTS = ("--quantization", "--tensor-parallel-size")

_RAN_OUT: Mapping[RanOut | None, Callable[[Start, Failure], tuple[Lever, ...]]] = MappingProxyType(
    {
        RanOut.LOADING: _lighter_weights,
        RanOut.PROFILING: _beside_the_weights,
        RanOut.ALLOCATED: _beside_the_cache,
    }
)


def _direction(flag: str, value: str | None, price: str, remark: str) -> Lever:
    return Lever(flag, value, NOT_TOLD, price, remark=remark)


def _open(way: Lever, figure: Interval) -> Lever:
    """A lever with its figure, of which the log cannot say whether it is enough."""
    return weighed(way, figure, met=False, missed=False)


# --- no room on the host ----------------------------------------------------------------------------------------------


def _of_host(start: Start, failure: Failure, _: Slo) -> tuple[Lever, ...]:
    """What options of this start take of the host's memory; whether it was that, only the host can tell."""
    found = []
    for name, (ranks, price) in _ON_THE_HOST.items():
        size = start.arguments.get(name)
        if isinstance(size, int | float) and size * ranks(start) > 0:
            way = Lever(f"--{name.replace('_', '-')}", "0", "", price, unit="GiB of the host's memory")
            found.append(_open(way, Interval.exact(float(size) * ranks(start))))
    return tuple(found)


def _ranks(start: Start) -> int:
    return (start.tensor_parallel_size or 1) * (start.pipeline_parallel_size or 1)


_ON_THE_HOST: Mapping[str, tuple[Callable[[Start], int], str]] = MappingProxyType(
    {
        "cpu_offload_gb": (_ranks, "the weights that lie there go to the device"),
        # V1 takes the option and nothing for it
        "swap_space": (lambda start: _ranks(start) if start.generation == "V0" else 0, "no request is swapped out"),
    }
)
"""Options in GiB a rank, by the ranks that take them, with what doing without costs."""

_Search = Callable[[Start, Failure, Slo], tuple[Lever, ...]]
_SEARCHES: Mapping[FailureKind, _Search] = MappingProxyType(
    {
        FailureKind.KV_CACHE_TOO_SMALL: _of_the_cache,
        FailureKind.NO_KV_MEMORY: lambda start, failure, slo: levers_of_no_room(start),
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION: _of_free_memory,
        FailureKind.OOM: _of_device,
        FailureKind.KILLED: _of_host,
    }
)
