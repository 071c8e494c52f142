"""Several logs of one deployment, one a node: their newest starts as one report."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kvguard.slotted import fields, replace
from kvguard.startup.report import (
    MAX_HISTORY,
    Capacity,
    CapacityReport,
    LogCounts,
    Phase,
    Runtime,
    Start,
    StartWarning,
    has_told,
    together,
    weakness,
)

SHARED = (
    "model",
    "vllm_version",
    "max_model_len",
    "kv_cache_dtype",
    "dtype",
    "quantization",
    "tensor_parallel_size",
    "pipeline_parallel_size",
)
"""What every node of one deployment has alike."""
_UNIT = frozenset({"model", "max_model_len"})
"""What a request is counted by: nodes that differ in it have nothing to add up."""
_COURSE = (
    "index",
    "phase",
    "timings",
    "first_place",
    "last_place",
    "began",
    "latest",
    "began_clock",
    "latest_clock",
)
"""What is told of the node that is behind."""
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
        start=_with_cautions(_joined(leading.start, starts), reports),
        contested_by=_joined(leading.contested_by or leading.start, [s for s in before if s]) if contested else None,
        history=tuple(summary for report in started for summary in report.history)[-MAX_HISTORY:],
        unrecognized=tuple(line for report in reports for line in report.unrecognized),
        counts=_counts(reports),
    )


def of_containers(reports: Sequence[CapacityReport]) -> CapacityReport:
    """One report of a log that several servers write: replicas of one model are one deployment.

    Servers that differ in what a deployment has once have nothing to add up: one that has failed is reported, else the
    one that can hold least.
    """
    starts = [(report.start, report) for report in reports if report.start is not None]
    differing = _differing([start for start, _ in starts])
    if len({start.model for start, _ in starts}) <= 1 and not differing:
        return join(reports)
    start, weakest = min(starts, key=lambda of: (of[0].phase is not Phase.FAILED, *weakness(of[0].capacity.weakest)))
    named = _named(differing) or "model"
    text = f"{len(starts)} servers write this log, and the weakest is judged: they differ in {named}"
    warnings = (StartWarning("nodes-differ", text), *start.warnings)
    return replace(weakest, start=replace(start, warnings=warnings), counts=_counts(reports))


def _progress(report: CapacityReport) -> int:
    assert report.start is not None
    told = any(map(has_told, report.start.engines))
    behind = _WORST_FIRST.index(report.start.phase)
    follower = not told and report.start.phase in (Phase.LOADING, Phase.PROFILING)
    return behind + len(_WORST_FIRST) if follower else behind


def _joined(leading: Start, starts: Sequence[Start]) -> Start:
    """The figures of the node whose engine is the weakest, the course of the one that is behind."""
    engines = _side_by_side(starts)
    reported = sum(map(has_told, engines))
    expected = _expected(starts, reported)
    silent = expected - reported
    missing = tuple(item for start in starts for item in start.missing) if silent > 0 else ()
    differing = _differing([start for start in starts if any(map(has_told, start.engines))])
    told = leading if leading.phase is Phase.FAILED else _of_weakest(starts)
    course: dict[str, Any] = {name: getattr(leading, name) for name in _COURSE}
    shared: dict[str, Any] = {name: None if name in differing else _first(name, (told, *starts)) for name in SHARED}
    return replace(
        told,
        **course,
        **shared,
        differing=MappingProxyType(differing),
        engines=engines,
        capacity=together(engines, expected, addable=silent <= 0 and not _UNIT & differing.keys()),
        runtime=_load_of_all(starts),
        failure=next((start.failure for start in starts if start.failure is not None), None),
        warnings=tuple(dict.fromkeys(warning for start in starts for warning in start.warnings)),
        missing=missing or ((f"{silent} of {expected} engines",) if silent > 0 else ()),
        lines=MappingProxyType({name: place for start in (*starts, told) for name, place in start.lines.items()}),
        quotes=MappingProxyType({place: text for start in starts for place, text in start.quotes.items()}),
    )


def _differing(starts: Sequence[Start]) -> dict[str, tuple[object, ...]]:
    """What one deployment has once and these nodes have in several values; followers tell no capacity of their own."""
    values = {name: dict.fromkeys(getattr(start, name) for start in starts) for name in SHARED}
    known = {name: tuple(value for value in found if value is not None) for name, found in values.items()}
    return {name: found for name, found in known.items() if len(found) > 1}


def _named(differing: Mapping[str, tuple[object, ...]]) -> str:
    return "; ".join(f"{name} {', '.join(map(str, values))}" for name, values in differing.items())


def _first(name: str, starts: Sequence[Start]) -> object:
    return next((value for start in starts if (value := getattr(start, name)) is not None), None)


def _load_of_all(starts: Sequence[Start]) -> Runtime:
    """The highest load of any node, and what all have preempted."""
    loads = [start.runtime for start in starts]

    def highest(name: str) -> Any:
        return max((value for load in loads if (value := getattr(load, name)) is not None), default=None)

    preemptions = [load.preemptions for load in loads if load.preemptions is not None]
    return Runtime(
        samples=sum(load.samples for load in loads),
        peak_running=highest("peak_running"),
        peak_waiting=highest("peak_waiting"),
        peak_kv_cache_usage=highest("peak_kv_cache_usage"),
        preemptions=sum(preemptions) if preemptions else None,
        place=max(loads, key=lambda load: load.peak_kv_cache_usage or 0).place,
    )


def _of_weakest(starts: Sequence[Start]) -> Start:
    """The node whose engine is the weakest of all."""
    return min(starts, key=lambda start: weakness(start.capacity.weakest))


def _with_cautions(start: Start, reports: Sequence[CapacityReport]) -> Start:
    """What the nodes together raise: logs of several deployments, and logs of none."""
    found = _silent(reports)
    if start.differing:
        text = f"the logs are not of one deployment: they differ in {_named(start.differing)}"
        found = (StartWarning("nodes-differ", text), *found)
    return replace(start, warnings=(*found, *start.warnings))


def _silent(reports: Sequence[CapacityReport]) -> tuple[StartWarning, ...]:
    return tuple(
        StartWarning("log-without-start", f"{source}: nothing of a start in it")
        for report in reports
        if report.start is None
        for source in report.sources
    )


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
