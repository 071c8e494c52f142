"""Several logs of one deployment, one a node: their newest starts as one report."""

from collections.abc import Sequence

from kvguard.slotted import fields, replace
from kvguard.startup.report import (
    MAX_HISTORY,
    Capacity,
    CapacityReport,
    DeploymentCapacity,
    LogCounts,
    Phase,
    Start,
    weakness,
)

_WORST_FIRST = (Phase.FAILED, Phase.NONE, Phase.LOADING, Phase.PROFILING, Phase.STOPPED, Phase.ALLOCATED, Phase.READY)


def join(reports: Sequence[CapacityReport]) -> CapacityReport:
    """One report of all nodes: engines side by side, the phase of the node that is behind, every node's warnings.

    Engines that two logs name alike are told apart only where their processes differ: an index that a second node
    repeats is numbered on. A node that prints nothing of its own (a follower) adds nothing.
    """
    if len(reports) == 1:
        return reports[0]
    started = [report for report in reports if report.start is not None]
    if not started:
        return replace(reports[0], sources=_sources(reports), counts=_counts(reports))
    leading = min(started, key=_progress)
    assert leading.start is not None
    starts = [report.start for report in started if report.start is not None]
    before = [report.contested_by or report.start for report in started]
    contested = any(report.contested_by is not None for report in started)
    return replace(
        leading,
        sources=_sources(reports),
        start=_joined(leading.start, starts),
        contested_by=_joined(leading.contested_by or leading.start, [s for s in before if s]) if contested else None,
        history=tuple(summary for report in started for summary in report.history)[-MAX_HISTORY:],
        unrecognized=tuple(line for report in reports for line in report.unrecognized),
        counts=_counts(reports),
    )


def of_containers(reports: Sequence[CapacityReport]) -> CapacityReport:
    """One report of a log that several containers write: replicas of one model are one deployment.

    Servers of different models have nothing to add up: one that has failed is reported, else the one that can hold
    least.
    """
    starts = [(report.start, report) for report in reports if report.start is not None]
    if len({start.model for start, _ in starts}) <= 1:
        return join(reports)
    _, weakest = min(starts, key=lambda of: (of[0].phase is not Phase.FAILED, *weakness(of[0].capacity.weakest)))
    return replace(weakest, counts=_counts(reports))


def _progress(report: CapacityReport) -> int:
    assert report.start is not None
    told = any(engine.max_concurrency is not None or engine.gpu_blocks for engine in report.start.engines)
    behind = _WORST_FIRST.index(report.start.phase)
    follower = not told and report.start.phase in (Phase.LOADING, Phase.PROFILING)
    return behind + len(_WORST_FIRST) if follower else behind


def _joined(leading: Start, starts: Sequence[Start]) -> Start:
    engines = _side_by_side(starts)
    reported = [
        engine
        for engine in engines
        if engine.max_concurrency is not None or engine.kv_cache_tokens or engine.gpu_blocks
    ]
    expected = _expected(starts, len(reported))
    tokens = [engine.kv_cache_tokens for engine in reported]
    concurrency = [engine.max_concurrency for engine in reported]
    whole = len(reported) >= expected
    missing = tuple(item for start in starts for item in start.missing) if not whole else ()
    capacity = DeploymentCapacity(
        weakest=min(reported or engines or (Capacity(),), key=weakness),
        engines=len(reported),
        engines_expected=expected,
        total_kv_cache_tokens=sum(t for t in tokens if t) if whole and all(tokens) else None,
        total_max_concurrency=round(sum(c for c in concurrency if c), 2) if whole and all(concurrency) else None,
    )
    return replace(
        leading,
        engines=engines,
        capacity=capacity,
        warnings=tuple(dict.fromkeys(warning for start in starts for warning in start.warnings)),
        missing=missing or (() if whole else (f"{expected - len(reported)} of {expected} engines",)),
        memory=_of_weakest(starts).memory,
        failure=next((start.failure for start in starts if start.failure is not None), None),
        max_model_len=next((start.max_model_len for start in starts if start.max_model_len is not None), None),
    )


def _of_weakest(starts: Sequence[Start]) -> Start:
    """The node whose engine is the weakest of all."""
    return min(starts, key=lambda start: weakness(start.capacity.weakest))


def _side_by_side(starts: Sequence[Start]) -> tuple[Capacity, ...]:
    engines: list[Capacity] = []
    taken: set[str] = set()
    for start in starts:
        for engine in start.engines:
            label = engine.engine or "0"
            while label in taken:
                label = str(int(label) + 1)
            taken.add(label)
            engines.append(replace(engine, engine=label))
    return tuple(engines)


def _expected(starts: Sequence[Start], reported: int) -> int:
    """The whole data-parallel size where a node names it, else the nodes' own numbers added up."""
    whole = max((start.data_parallel_size or 0 for start in starts), default=0)
    return whole if whole > 1 else max(sum(start.capacity.engines for start in starts), reported, 1)


def _sources(reports: Sequence[CapacityReport]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source for report in reports for source in report.sources))


def _counts(reports: Sequence[CapacityReport]) -> LogCounts:
    return LogCounts(*(sum(getattr(report.counts, item.name) for report in reports) for item in fields(LogCounts)))
