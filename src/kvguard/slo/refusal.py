"""What a refused start tells of its memory: a failure's bytes are the cache's only where its message speaks of it."""

from enum import Enum
from math import floor
from typing import NamedTuple

from kvguard.slo.course import capacity_reported
from kvguard.slotted import replace
from kvguard.startup.report import Failure, FailureKind, Phase, Start, StartWarning
from kvguard.units import GIB, Interval, format_bytes

OF_THE_CACHE = frozenset({FailureKind.KV_CACHE_TOO_SMALL, FailureKind.NO_KV_MEMORY})
"""Failures whose bytes are the KV cache's; those of any other are of the whole device, or of one allocation in it."""


HALF_DIGIT = 0.005 * GIB
"""Half of the last place of a size in GiB with two decimals, in bytes: what a printed one hides."""


def cache_there(failure: Failure | None) -> int | None:
    """Bytes that were left for the KV cache on a rank; `None` where the failure does not tell."""
    return failure.available_bytes if failure is not None and failure.kind in OF_THE_CACHE else None


def is_of_context(failure: Failure) -> bool:
    """Whether one request of the context did not fit, so that a shorter context would do; else it is another matter."""
    figures = (failure.requested_max_model_len, failure.kv_cache_tokens, failure.estimated_max_model_len)
    return any(figure is not None for figure in (*figures, failure.needed_bytes))


def share_of_one_request(failure: Failure) -> float | None:
    """How much of one request of the refused length there was room for; `None` where the failure does not tell."""
    there = cache_there(failure)
    if there is not None and failure.needed_bytes:
        return max(there, 0) / failure.needed_bytes
    if failure.requested_max_model_len and failure.kv_cache_tokens is not None:
        return failure.kv_cache_tokens / failure.requested_max_model_len
    return None


def share_with_rounding(failure: Failure) -> Interval | None:
    """The same with what the printed sizes may hide; less than one request in any case, for it was refused."""
    share, there = share_of_one_request(failure), cache_there(failure)
    if share is None or there is None or not failure.needed_bytes:
        return None if share is None else Interval.exact(share)
    low, high = max(there - HALF_DIGIT, 0), max(there + HALF_DIGIT, 0)
    return Interval(low / (failure.needed_bytes + HALF_DIGIT), min(high / (failure.needed_bytes - HALF_DIGIT), 1.0))


class RanOut(Enum):
    """How far a start was when its device ran out of memory."""

    LOADING = "loading"
    PROFILING = "profiling"
    ALLOCATED = "allocated"


def ran_out(start: Start) -> RanOut | None:
    """By what the log had told till then; `None` of an excerpt that shows no start, or hides its INFO lines."""
    if capacity_reported(start):
        return RanOut.ALLOCATED
    if start.memory.weights is not None or start.capacity.weakest.weights_bytes is not None:
        return RanOut.PROFILING
    return None if start.vllm_version is None and start.generation is None else RanOut.LOADING


def shortfall(failure: Failure) -> Interval | None:
    """Bytes that were lacking, by the two figures of the message; `None` where it does not tell, or none were."""
    needed, there = failure.needed_bytes, failure.available_bytes
    if needed is None or there is None or needed < there:
        return None  # an allocator may refuse what would fit, for it must lie in one piece
    return Interval(needed - there - 2 * HALF_DIGIT, needed - there + 2 * HALF_DIGIT)


class FreeShare(NamedTuple):
    """A share of the device that is free, and what vLLM has with it and without."""

    share: float
    left_bytes: float
    taken_bytes: float


def free_share(start: Start, failure: Failure) -> FreeShare | None:
    """The largest share, in hundredths, that was free where more was asked for; `None` where no line tells, or none."""
    total, short, asked = start.memory.total_gpu, shortfall(failure), failure.needed_bytes
    if total is None or short is None or asked is None:
        return None
    share = start.memory.utilization or (asked - HALF_DIGIT) / (total + HALF_DIGIT)
    free = floor((share - short.high / (total - HALF_DIGIT)) * 100 + 1e-9) / 100
    taken = (share - free) * total
    return FreeShare(free, asked - taken, taken) if free > 0 and asked > taken else None


def cause_of(start: Start) -> Failure | None:
    """The failure, by its cause: a cache that is left less than nothing also ends a process that does not say so."""
    failure, left = start.failure, start.capacity.weakest.kv_cache_bytes
    if failure is None or failure.kind not in _UNEXPLAINED or left is None or left >= 0:
        return failure
    return replace(failure, kind=FailureKind.NO_KV_MEMORY, available_bytes=left)


_UNEXPLAINED = frozenset({FailureKind.ENGINE_CRASH, FailureKind.OTHER})


def no_room(start: Start) -> StartWarning | None:
    """That profiling left a rank less than nothing for its cache, where no refusal says so; else `None`."""
    if start.phase not in (Phase.LOADING, Phase.PROFILING, Phase.ALLOCATED):
        return None  # a failed start says so itself; one that serves needs no cache, or was given its blocks
    for engine in (start.capacity.weakest, *start.engines):
        left = engine.kv_cache_bytes
        if left is not None and not engine.gpu_blocks and left + engine.rounding.get("kv_cache_bytes", 0.0) < 0:
            message = f"{format_bytes(left)} are left for the KV cache after weights and activations: no block fits"
            return StartWarning("no-kv-cache-memory", message, start.lines.get("kv_cache_bytes"))
    return None
