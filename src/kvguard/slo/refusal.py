"""What a refused start tells of its KV cache: a failure's bytes are the cache's only where its message speaks of it."""

from kvguard.startup.report import Failure, FailureKind, Phase, Start, StartWarning
from kvguard.units import format_bytes

OF_THE_CACHE = frozenset({FailureKind.KV_CACHE_TOO_SMALL, FailureKind.NO_KV_MEMORY})
"""Failures whose bytes are the KV cache's; those of any other are of the whole device, or of one allocation in it."""


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
