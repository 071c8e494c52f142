"""Why a verdict is what it is, and what to do about it: failures by kind, silent logs by cause, warnings by code."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from kvguard.slo.course import capacity_gap, capacity_reported, early_end
from kvguard.slo.objectives import Slo
from kvguard.slo.refusal import RanOut, cause_of, free_share, is_of_context, no_room, ran_out
from kvguard.slo.verdict import CheckResult, Lever, Reason
from kvguard.startup.report import CapacityReport, Failure, FailureKind, Phase, Start
from kvguard.units import format_bytes, format_count, format_quantity

# --- a start that failed ----------------------------------------------------------------------------------------------


def failure_reason(start: Start, slo: Slo, levers: Sequence[Lever]) -> Reason:
    """Why the start failed, in its own numbers, and the first thing to do; `levers` are what would meet the SLO."""
    failure = cause_of(start)
    if failure is None:
        return Reason(
            "start-failed",
            "the start failed, and no line says why",
            start.last_place,
            _FAILURE_REMEDIES[FailureKind.OTHER],
        )
    headline = _HEADLINES[failure.kind](failure)
    return Reason(
        "start-failed", f"the start failed: {headline}", failure.place, _failure_remedy(start, failure, slo, levers)
    )


def _too_small(failure: Failure) -> str:
    sequences, blocks = failure.requested_max_num_seqs, failure.mamba_blocks
    if sequences is not None and blocks is not None:
        return (
            f"max_num_seqs {format_count(sequences)} asks for a Mamba cache block for each sequence, "
            f"{format_count(blocks)} are there"
        )
    if not is_of_context(failure):
        return _in_its_words("the KV cache is too small")(failure)
    asked = failure.requested_max_model_len
    context = f"a context of {format_quantity(asked, 'tokens')}" if asked else "the context asked for"
    fits = failure.kv_cache_tokens or failure.estimated_max_model_len
    if fits:
        return f"{context} was asked for, {format_count(fits)} fit in the KV cache"
    if failure.needed_bytes is not None and failure.available_bytes is not None:
        needed, available = format_bytes(failure.needed_bytes), format_bytes(failure.available_bytes)
        return f"{context} needs {needed} of KV cache, {available} are available"
    return f"the KV cache is too small for {context}"


def _free_below(failure: Failure) -> str:
    if failure.available_bytes is None and failure.transient:
        return "the device's free memory rose while vLLM measured it"
    if failure.needed_bytes is None or failure.available_bytes is None:
        return _in_its_words("less of the device is left than gpu_memory_utilization asks for")(failure)
    short = format_bytes(failure.needed_bytes - failure.available_bytes)
    needed, free = format_bytes(failure.needed_bytes), format_bytes(failure.available_bytes)
    return f"{free} of device memory are free, gpu_memory_utilization asks for {needed}: {short} short"


def _no_memory(failure: Failure) -> str:
    if failure.available_bytes is None:
        return "nothing is left for the KV cache after weights and activations"
    return f"weights and activations leave {format_bytes(failure.available_bytes)} for the KV cache"


def _in_its_words(what: str) -> Callable[[Failure], str]:
    return lambda failure: f"{what}: {failure.message}" if failure.message else what


_HEADLINES: Mapping[FailureKind, Callable[[Failure], str]] = MappingProxyType(
    {
        FailureKind.KV_CACHE_TOO_SMALL: _too_small,
        FailureKind.NO_KV_MEMORY: _no_memory,
        FailureKind.OOM: _in_its_words("the device ran out of memory"),
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION: _free_below,
        FailureKind.INVALID_CONFIG: _in_its_words("an argument is wrong"),
        FailureKind.ENGINE_CRASH: _in_its_words("an engine process died"),
        FailureKind.KILLED: _in_its_words("a process was killed"),
        FailureKind.OTHER: _in_its_words("vLLM gave up"),
    }
)

_FAILURE_REMEDIES: Mapping[FailureKind, str] = MappingProxyType(
    {
        FailureKind.KV_CACHE_TOO_SMALL: "lower --max-model-len, or give the KV cache more memory",
        FailureKind.NO_KV_MEMORY: (
            "raise --gpu-memory-utilization, lower --max-num-batched-tokens or --max-num-seqs (activation peak), "
            "quantise the weights, or split the model over more devices (--tensor-parallel-size)"
        ),
        FailureKind.OOM: (
            "leave more room outside the KV cache: lower --gpu-memory-utilization or --max-num-seqs, and see what else "
            "uses the device"
        ),
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION: (
            "another process holds device memory: end it or wait for it to go, then start again"
        ),
        FailureKind.INVALID_CONFIG: "correct the argument that the message names",
        FailureKind.ENGINE_CRASH: "read the traceback above the failure for its cause",
        FailureKind.KILLED: (
            "see whether the host ran out of memory or a probe killed it (kubectl describe pod, dmesg); where the "
            "device shares the host's memory, lower --gpu-memory-utilization"
        ),
        FailureKind.OTHER: "read the message and the lines above it",
    }
)


_OUT_OF_MEMORY: Mapping[RanOut | None, str] = MappingProxyType(
    {
        RanOut.LOADING: (
            "the weights do not fit: quantise them, or split them over more devices (--tensor-parallel-size), and see "
            "what else uses the device"
        ),
        RanOut.PROFILING: (
            "lower --max-num-batched-tokens or --max-num-seqs, or make room beside the weights: the KV cache comes "
            "later, so that a lower --gpu-memory-utilization does not help"
        ),
    }
)
"""By how far the start was; else what `_FAILURE_REMEDIES` says."""


def _failure_remedy(start: Start, failure: Failure, slo: Slo, levers: Sequence[Lever]) -> str:
    remedy = _FAILURE_REMEDIES[failure.kind]
    fits = failure.kv_cache_tokens or failure.estimated_max_model_len
    if failure.kind is FailureKind.KV_CACHE_TOO_SMALL and fits:
        expected = slo.target("expect_max_model_len")
        if expected is not None and float(expected) > fits:
            return f"give the KV cache more memory: the SLO expects a context of {format_quantity(expected, 'tokens')}"
        return f"set --max-model-len {fits} or less{_to_hold(slo, levers)}, or give the KV cache more memory"
    if failure.mamba_blocks:
        return f"set --max-num-seqs {failure.mamba_blocks} or less, or give the KV cache more memory"
    if failure.kind is FailureKind.KV_CACHE_TOO_SMALL and not is_of_context(failure):
        return "do what the message asks, or give the KV cache more memory"
    if failure.kind is FailureKind.OOM:
        return _OUT_OF_MEMORY.get(ran_out(start), remedy)
    if failure.kind is FailureKind.FREE_MEMORY_BELOW_UTILIZATION:
        return _of_free_memory(start, failure)
    return remedy


def _of_free_memory(start: Start, failure: Failure) -> str:
    if failure.available_bytes is None and failure.transient:
        return (
            "another process gave memory back while this one measured: start again once it has come to rest, or give "
            "--kv-cache-memory-bytes, with which nothing is measured"
        )
    if failure.available_bytes is None:
        return "do what the message asks: less of the device held outside of vLLM, or a larger share of it"
    found = free_share(start, failure)
    lower = f"; or lower --gpu-memory-utilization (at most {found.share:g} with what is free now)" if found else ""
    return f"{_FAILURE_REMEDIES[failure.kind]}{lower}"


def _to_hold(slo: Slo, levers: Sequence[Lever]) -> str:
    """At the length with which the start begins one request fits: how much shorter it must be for those asked for."""
    asked = slo.target("min_concurrency")
    if asked is None or float(asked) <= 1 or slo.target("expect_max_model_len") is not None:
        return ""
    enough = (lever.value for lever in levers if lever.flag == "--max-model-len" and lever.enough)
    length = next(enough, None)
    return (
        f" to start, {f'{length} or less' if length else 'shorter still'} to hold {format_quantity(asked, 'requests')}"
    )


# --- a log that does not say enough -----------------------------------------------------------------------------------


def unknown_reason(report: CapacityReport) -> Reason:
    """Why the capacity is not known, and what would make it known."""
    return next(reason for tell in _CAUSES if (reason := tell(report)) is not None)


def ended_reason(report: CapacityReport) -> Reason | None:
    """That the command which wrote the log has ended, and no line says why; `None` where that is not so."""
    ended = early_end(report)
    if ended is None:
        return None
    place = None if report.start is None else report.start.last_place
    return Reason("command-ended", ended.message, place, ended.remedy)


def _nothing_known(report: CapacityReport) -> Reason | None:
    if report.start is not None:
        return None
    if report.counts.bytes == 0:
        return Reason(
            "empty-log", "the log is empty", None, "give the log of the vLLM process: its stdout and stderr in one file"
        )
    lone = report.counts.lines == 1
    lines = "one line" if lone else f"{format_count(report.counts.lines)} lines"
    if report.counts.records == 0:
        return Reason(
            "not-a-vllm-log",
            "the one line is not a vLLM server's" if lone else f"none of the {lines} is a vLLM server's",
            None,
            "give the log of the vLLM container or process; if it is, its log level or format hides every line",
        )
    return Reason(
        "no-start-seen",
        f"no start-up of a server in the {lines} of the log",
        None,
        "read the log from its beginning: a rotated or tailed log has lost the start-up lines, which vLLM prints once",
    )


def _unfinished(report: CapacityReport) -> Reason | None:
    start = report.start
    gap = None if start is None else capacity_gap(start)
    if start is None or gap is None:
        return None
    if start.phase in (Phase.READY, Phase.STOPPED) and start.capacity.engines == 0:
        return None
    if start.missing and start.phase not in (Phase.NONE, Phase.LOADING, Phase.PROFILING):
        remedy = "give the logs of all nodes (kvguard check LOG LOG …), or wait until every engine has reported"
        return Reason("engines-missing", gap, start.last_place, remedy)
    remedy = "give the whole log, or wait for the rest (--until ready reads on, up to --timeout)"
    return Reason("capacity-not-reported", gap, start.last_place, remedy)


def _without_room(report: CapacityReport) -> Reason | None:
    warning = None if report.start is None else no_room(report.start)
    if warning is None:
        return None
    return Reason(warning.code, warning.message, warning.place, _FAILURE_REMEDIES[FailureKind.NO_KV_MEMORY])


def _unread(report: CapacityReport) -> Reason | None:
    if not report.unrecognized:
        return None
    first = report.unrecognized[0]
    message = f"the capacity is not known; line {first.place.line} looks like it, in a wording that no format matches"
    remedy = "see kvguard explain LOG, and add the wording with --formats FILE"
    return Reason("unrecognized-capacity-line", message, first.place, remedy)


def _hidden(report: CapacityReport) -> Reason:
    start = report.start
    last = None if start is None else start.last_place
    ready = start is not None and start.phase in (Phase.READY, Phase.STOPPED)
    message = "the server is ready, but" if ready else "the start goes on, but"
    return Reason(
        "capacity-not-printed",
        f"{message} no line tells its KV cache",
        last,
        "run vLLM with VLLM_LOGGING_LEVEL=INFO (its default): a higher level hides the capacity lines; "
        "a pooling model without a KV cache has none",
    )


_CAUSES: tuple[Callable[[CapacityReport], Reason | None], ...] = (
    ended_reason,
    _nothing_known,
    _without_room,
    _unfinished,
    _unread,
    _hidden,
)


def capacity_unknown(report: CapacityReport) -> bool:
    """Whether the log leaves the capacity itself open, so that the cause says more than each check."""
    start = report.start
    if start is None:
        return True
    return start.phase is not Phase.FAILED and (capacity_gap(start) is not None or not capacity_reported(start))


# --- objectives without levers ---------------------------------------------------------------------------------------

_MORE_CACHE = (
    "give the KV cache more memory: raise --gpu-memory-utilization, quantise the weights, or split them "
    "(--tensor-parallel-size)"
)
_OF_THE_CACHE: Mapping[str, str] = MappingProxyType(
    {
        "min_concurrency": _MORE_CACHE,
        "min_total_concurrency": _MORE_CACHE,
        "min_kv_cache_tokens": _MORE_CACHE,
        "min_kv_cache": _MORE_CACHE,
        "concurrent_requests": (
            "send shorter requests or fewer at once, or hold more: --max-model-len bounds their length, the KV cache "
            "their number"
        ),
        "max_request_share": _MORE_CACHE,
    }
)
"""Where no lever can be computed."""
_MISSED: Mapping[str, str] = MappingProxyType(
    {
        "max_weights": "quantise the weights, or split them over more devices: --tensor-parallel-size",
        "expect_max_model_len": "set --max-model-len {target}, or correct the SLO",
        "expect_kv_cache_dtype": "set --kv-cache-dtype {target}, or correct the SLO",
        "expect_engines": "set --data-parallel-size {target}, or correct the SLO",
        "max_waiting_requests": "send less at once or hold more: a declared workload shows what would help",
        "max_kv_cache_usage": "send less at once or hold more: a declared workload shows what would help",
        "max_preemptions": "send less at once or hold more: a declared workload shows what would help",
        "max_drop": "kvguard diff BASELINE LOG shows what took it; if it is wanted, make the baseline anew",
        "ready_within": "kvguard inspect LOG shows which part of the start took how long",
    }
)


def missed_remedy(check: CheckResult) -> str | None:
    """What to do about a missed objective that no change of the cache meets; `None` for the others."""
    target = check.target if isinstance(check.target, str) else f"{check.target:.0f}"
    remedy = _MISSED.get(check.objective)
    return None if remedy is None else remedy.format(target=target)


def cache_remedy(check: CheckResult) -> str | None:
    """What to do about a missed objective of the cache where no lever can be computed; `None` for the others."""
    return _OF_THE_CACHE.get(check.objective)


# --- warnings ---------------------------------------------------------------------------------------------------------

WARNING_REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "no-kv-cache-memory": _FAILURE_REMEDIES[FailureKind.NO_KV_MEMORY],
        "context-auto-reduced": (
            "give the KV cache more memory, or accept the shorter context: objectives.expect_max_model_len with the "
            "length served, or warnings: {context-auto-reduced: ignore}"
        ),
        "request-exceeds-pool": "shorten the request, or enlarge the pool: see the levers",
        "context-exceeds-pool": (
            "lower --max-model-len to what fits, so that vLLM refuses what it cannot run; or, where nobody sends such "
            "requests, warnings: {context-exceeds-pool: warn}"
        ),
        "request-exceeds-context": "raise --max-model-len (at most to the model's own length), or shorten the request",
        "model-config-not-used": "give the config.json of the model that is served",
        "layers-not-uniform": "drop workload.layers, and give the model's config.json: --model-config",
        "load-differs-from-plan": "declare the requests that the load really sends, or see what else bounds it",
        "start-not-finished": "wait for the ready line: --until ready, or require_ready in the SLO",
        "died-after-ready": "read the traceback above the end of the log",
        "restart-loop": "read the first failure: the starts after it repeat it",
        "restart-unproven": (
            "give the log from the restart on, or with its runtime's stamps (docker logs -t, kubectl logs "
            "--timestamps) up to the ready line"
        ),
        "engines-missing": "give the logs of all nodes, or say how many engines there are: --expect-engines",
        "nodes-differ": "check each log by itself, or name the nodes of one deployment only",
        "log-without-start": "name only the logs of the deployment's nodes; at WARNING level vLLM prints no start",
        "thin-margin": "leave more room between target and capacity",
        "graph-estimate-gap": "the CUDA-graph estimate takes KV cache that is never used: see the levers",
        "blocks-overridden": "drop --num-gpu-blocks-override, so that the cache is measured",
        "profiling-skipped": "drop --kv-cache-memory-bytes, so that the cache is measured",
        "newer-than-tested": "compare a few figures with the log itself: kvguard explain LOG",
        "unrecognized-capacity-line": "see kvguard explain LOG, and add the wording with --formats FILE",
        "log-and-metrics-disagree": "trust the lower figure until a long request has shown which one holds",
    }
)
"""What to do about a warning that fails a verdict."""
