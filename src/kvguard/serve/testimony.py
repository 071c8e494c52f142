"""The second witness: what a running vLLM says of itself, held against what its log told, or standing in for it.

The log stays the first: where both speak and differ, the log's figure is judged and the difference is a warning. Where
the log's start-up lines are gone or hidden, vLLM's own figures stand in, as long as it answers now: an answer from
before the start began is another server's.
"""

from collections.abc import Iterator

from kvguard.slotted import replace
from kvguard.sources.vllm.answers import VllmAnswer
from kvguard.startup.report import (
    ENDED,
    Capacity,
    CapacityReport,
    DeploymentCapacity,
    Phase,
    Start,
    StartWarning,
)
from kvguard.units import format_count

DISAGREE = "log-and-metrics-disagree"
STANDS_IN = "capacity-from-metrics"
NOT_IN_THE_LOG = 0
"""The number of a start that vLLM alone tells of; those of a log are numbered from 1."""
_CONCURRENCY_ROUNDING = 0.005
"""The log prints two decimals, `/metrics` all of them."""


def amended(report: CapacityReport, answer: VllmAnswer, name: str) -> CapacityReport:
    """The report with what the second witness adds; the very same one where that is nothing.

    Args:
        report: what the log told.
        answer: what vLLM said, and when, on the clock of the report's arrival times.
        name: the address that was asked.
    """
    start = report.start
    if answer.cache is None or (start is not None and start.phase in ENDED) or not _of_this_start(start, answer):
        return report
    if start is None or _tells_nothing(start.capacity.weakest):
        standing_in = _standing_in(start or Start(index=NOT_IN_THE_LOG, phase=Phase.READY), answer, name)
        return report if standing_in is None else _with(report, standing_in, name)
    settled = _engines_settled(start, answer)
    differences = [StartWarning(DISAGREE, text) for text in _differences(settled, answer, name)]
    if settled is start and not differences:
        return report
    return replace(report, start=replace(settled, warnings=(*settled.warnings, *differences)))


def _of_this_start(start: Start | None, answer: VllmAnswer) -> bool:
    return start is None or start.began_clock is None or answer.asked_at > start.began_clock


def _tells_nothing(capacity: Capacity) -> bool:
    figures = (capacity.kv_cache_tokens, capacity.max_concurrency, capacity.gpu_blocks)
    return all(figure is None for figure in figures)


def _standing_in(start: Start, answer: VllmAnswer, name: str) -> Start | None:
    """The start with vLLM's own figures; nothing where it has none to give."""
    cache = answer.cache
    assert cache is not None
    sole = len(cache.engines) == 1
    capacity = replace(
        start.capacity.weakest,
        engine=cache.engines[0] if sole else start.capacity.weakest.engine,
        kv_cache_tokens=cache.kv_cache_tokens,
        gpu_blocks=cache.gpu_blocks,
        max_concurrency=cache.max_concurrency,
        max_model_len=answer.max_model_len or start.max_model_len,
    )
    if _tells_nothing(capacity):
        return None
    note = f"the log does not tell the capacity: these are the figures of {name}/metrics"
    return replace(
        start,
        phase=Phase.READY,
        vllm_version=start.vllm_version or answer.version,
        served_model_name=start.served_model_name or _model(answer),
        max_model_len=start.max_model_len or answer.max_model_len,
        kv_cache_dtype=start.kv_cache_dtype or cache.kv_cache_dtype,
        capacity=DeploymentCapacity(
            weakest=capacity,
            engines=len(cache.engines),
            engines_expected=start.capacity.engines_expected,
            total_kv_cache_tokens=cache.kv_cache_tokens if sole else None,
            total_max_concurrency=cache.max_concurrency if sole else None,
        ),
        engines=(capacity,) if sole else (),
        missing=(),
        warnings=(*start.warnings, StartWarning(STANDS_IN, note)),
    )


def _with(report: CapacityReport, start: Start, name: str) -> CapacityReport:
    sources = report.sources if name in report.sources else (*report.sources, name)
    return replace(report, start=start, sources=sources)


def _engines_settled(start: Start, answer: VllmAnswer) -> Start:
    """Engines that the log left silent are known to be there, and none of them holds less than those that spoke."""
    cache, weakest = answer.cache, start.capacity.weakest
    assert cache is not None
    silent = any(warning.code == "engines-missing" for warning in start.warnings)
    if not silent or len(cache.engines) != start.capacity.engines_expected:
        return start
    if cache.kv_cache_tokens is None or cache.kv_cache_tokens < (weakest.kv_cache_tokens or 0):
        return start
    return replace(
        start,
        capacity=replace(start.capacity, engines=len(cache.engines)),
        warnings=tuple(warning for warning in start.warnings if warning.code != "engines-missing"),
    )


def _differences(start: Start, answer: VllmAnswer, name: str) -> Iterator[str]:
    """What the two tell differently, in the log's and in the endpoint's figures."""
    cache, weakest = answer.cache, start.capacity.weakest
    assert cache is not None
    if _differ(weakest.kv_cache_tokens, cache.kv_cache_tokens, 0.5):
        yield _told("KV cache size", "tokens", weakest.kv_cache_tokens, cache.kv_cache_tokens, name)
    if _differ(weakest.max_concurrency, cache.max_concurrency, _CONCURRENCY_ROUNDING * 1.01):
        yield _told("maximum concurrency", "requests", weakest.max_concurrency, cache.max_concurrency, name)
    blocks = [engine.gpu_blocks for engine in start.engines]
    together = sum(known) if len(known := [one for one in blocks if one is not None]) == len(cache.engines) else None
    if _differ(together, cache.total_gpu_blocks, 0.5):
        yield _told("pool", "blocks", together, cache.total_gpu_blocks, name)
    if answer.version is not None and start.vllm_version is not None and answer.version != start.vllm_version:
        yield f"the log is of vLLM {start.vllm_version}, {name} is {answer.version}: it may be another server"


def _differ(log: float | None, metrics: float | None, tolerance: float) -> bool:
    return log is not None and metrics is not None and abs(log - metrics) > tolerance


def _told(what: str, unit: str, log: float | None, metrics: float | None, name: str) -> str:
    assert log is not None
    assert metrics is not None
    return f"{what}: the log says {format_count(log)} {unit}, {name}/metrics {format_count(metrics)}"


def _model(answer: VllmAnswer) -> str | None:
    return next((model.name for model in answer.models if not model.is_adapter), None)
