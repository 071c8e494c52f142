"""The state of a start, frozen: ranks to engines (the smallest), engines to the deployment (sum and weakest)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kvguard.events import Printed
from kvguard.lines.stamps import elapsed
from kvguard.slotted import replace
from kvguard.startup import derived
from kvguard.startup.cautions import cautions
from kvguard.startup.expected import engines_expected, is_cache_told, is_complete, missing_reports
from kvguard.startup.failures import as_reported
from kvguard.startup.report import (
    MEMORY_BYTES,
    MEMORY_SHARES,
    Capacity,
    DeploymentCapacity,
    FailureKind,
    Memory,
    Phase,
    Place,
    Runtime,
    Start,
    StartSummary,
    StartWarning,
    Timings,
    TokenFigure,
    has_told,
    together,
    weakness,
)
from kvguard.startup.state import EngineState, RankState, Sighting, StartState, whole
from kvguard.startup.versions import token_figure

SHORTEST_MEASURED = 1.0
"""Seconds: what seems shorter was stamped, or handed over, when it was all over. vLLM's imports alone take more."""


def freeze(state: StartState, source: str, history: Sequence[StartSummary], starts: int) -> Start:
    """One start as a report shows it."""
    state = _as_shown(state)
    lines: dict[str, int] = {name: sighting.line for name, sighting in state.facts.items()}
    told = [_engine(state, index) for index in sorted(state.engines)] or _of_ranks_alone(state)
    for _, own in sorted(told, key=lambda one: weakness(one[0])):  # a figure is the weakest engine's, so is its line
        lines = {**own, **lines}
    engines = tuple(engine for engine, _ in told)
    figures: dict[str, Any] = {"memory": _memory(state, lines), "max_model_len": _max_model_len(state, lines)}
    quoted = set(lines.values())  # every function above has told its lines by now
    return Start(
        **_configuration(state),
        **_course(state, source),
        **figures,
        capacity=_deployment(state, engines),
        engines=engines,
        runtime=_runtime(state, source),
        failure=as_reported(state.failure, source) if state.phase is Phase.FAILED else None,
        warnings=cautions(state, source, engines, history, starts),
        missing=missing_reports(state),
        lines=MappingProxyType({name: Place(source, line) for name, line in sorted(lines.items())}),
        quotes=MappingProxyType({Place(source, line): text for line, text in state.quotes.items() if line in quoted}),
    )


def _configuration(state: StartState) -> dict[str, Any]:
    """What the start was asked for and what it made of that: facts under their own names, and what several tell."""
    return {
        **{name: read(state, name) for read, names in _FACTS.items() for name in names},
        "requested_max_model_len": state.reduced.value[0] if state.reduced is not None else None,
        "data_parallel_size": _data_parallel_size(state),
        "arguments": MappingProxyType(dict(state.arguments)),
        "layers": state.layers,
        "kv_cache_basis": _basis(state),
    }


def _course(state: StartState, source: str) -> dict[str, Any]:
    """How far it has come, and when."""
    return {
        "index": state.index,
        "phase": state.phase,
        "timings": _timings(state),
        "first_place": Place(source, state.first_line),
        "last_place": Place(source, state.last_line),
        "began": state.began,
        "latest": state.heard,
        "began_clock": state.began_clock,
        "latest_clock": state.latest_clock,
    }


def newest_first(state: StartState, source: str) -> Start:
    """The start of a log that must be turned over before it tells anything: what stands last in it was first."""
    text = "the log's newest line stands first: turn it over (tac LOG; in a viewer, oldest first)"
    place = Place(source, state.first_line)
    warning = StartWarning("log-without-start", text, place)
    return Start(
        index=1, phase=Phase.NONE, warnings=(warning,), missing=("the lines in their order",), first_place=place
    )


def summarize(state: StartState, source: str) -> StartSummary:
    """A start in short, as a history shows it."""
    frozen = freeze(state, source, (), 1)
    return StartSummary(
        index=state.index,
        phase=frozen.phase,
        vllm_version=frozen.vllm_version,
        max_concurrency=frozen.capacity.weakest.max_concurrency,
        failure_kind=frozen.failure.kind if frozen.failure is not None else None,
        first_line=state.first_line,
        last_line=state.last_line,
    )


def _as_shown(state: StartState) -> StartState:
    """The start without the engines' word that it is ready, where a server has shown that will give its own."""
    if not state.waits_for_server:
        return state
    told = (state.reported and is_complete(state)) or state.counted_blocks is not None
    phase = Phase.ALLOCATED if told else Phase.PROFILING
    return replace(state, phase=phase, ready_line=None, ready_stamp=None, ready_clock=None)


_Told = tuple[Capacity, Mapping[str, int]]
"""An engine, and the line of each of its figures by the figure's name."""


def _engine(state: StartState, index: int) -> _Told:
    lines: dict[str, int] = {}
    engine = state.engines[index]
    sole = len(state.engines) == 1
    figures: dict[str, Printed] = {}
    weights = _largest_weights(_ranks_of(state, index, with_loose=True))
    _take(figures, lines, "weights_bytes", weights)
    _take(figures, lines, "kv_cache_bytes", _tightest_cache(state, _ranks_of(state, index, with_loose=sole)))
    concurrency = _concurrency(engine)
    _take(figures, lines, "max_concurrency", concurrency)
    tokens = _smallest(engine.own_tokens or engine.tokens)
    blocks = _blocks(state, engine, sole)
    for name, sighting in (("kv_cache_tokens", tokens), ("gpu_blocks", blocks)):
        if sighting is not None:
            lines.setdefault(name, sighting.line)
    known = Capacity(
        engine=str(index),
        weights_bytes=whole(figures.get("weights_bytes")),
        kv_cache_bytes=whole(figures.get("kv_cache_bytes")),
        kv_cache_tokens=tokens.value if tokens is not None else None,
        gpu_blocks=blocks.value if blocks is not None else None,
        profiled_gpu_blocks=None if engine.override is None else engine.override.value[0],
        cpu_blocks=engine.cpu_blocks,
        max_model_len=_length_of(engine) or state.count("max_model_len"),
        max_concurrency=concurrency.value.value if concurrency is not None else None,
        token_figure=_token_figure(state, engine) if tokens is not None else None,
        rounding=MappingProxyType({name: figure.rounding for name, figure in figures.items() if figure.rounding}),
    )
    return derived.with_derived(known, state), lines


def _of_ranks_alone(state: StartState) -> list[_Told]:
    """A log that ends before any engine has told its capacity: what its ranks said, as engine 0's."""
    ranks, lines = list(state.ranks.values()), dict[str, int]()
    figures: dict[str, Printed] = {}
    _take(figures, lines, "weights_bytes", _largest_weights(ranks))
    _take(figures, lines, "kv_cache_bytes", _smallest_cache(ranks))
    if not figures:
        return []
    alone = Capacity(
        engine="0",
        weights_bytes=whole(figures.get("weights_bytes")),
        kv_cache_bytes=whole(figures.get("kv_cache_bytes")),
        max_model_len=state.count("max_model_len"),
        rounding=MappingProxyType({name: figure.rounding for name, figure in figures.items() if figure.rounding}),
    )
    return [(alone, lines)]


def _take(figures: dict[str, Printed], lines: dict[str, int], name: str, sighting: Sighting[Printed] | None) -> None:
    if sighting is not None:
        figures[name] = sighting.value
        lines.setdefault(name, sighting.line)


def _ranks_of(state: StartState, index: int, with_loose: bool) -> list[RankState]:
    own = [rank for (engine, _), rank in state.ranks.items() if engine == index]
    loose = [rank for (engine, _), rank in state.ranks.items() if engine is None]
    return own + loose if with_loose else own


def _largest_weights(ranks: Iterable[RankState]) -> Sighting[Printed] | None:
    """The largest rank's weights; of one rank's lines the largest is the main model's, a drafter is smaller."""
    found = [max(rank.weights, key=lambda sighting: sighting.value.value) for rank in ranks if rank.weights]
    found = found or [rank.parts["weights"] for rank in ranks if "weights" in rank.parts]
    return max(found, key=lambda sighting: sighting.value.value, default=None)


def _tightest_cache(state: StartState, ranks: Iterable[RankState]) -> Sighting[Printed] | None:
    """The smallest memory of an engine's ranks; none where one of them is known not to have told its own."""
    return _smallest_cache(ranks) if is_cache_told(state) else None


def _smallest_cache(ranks: Iterable[RankState]) -> Sighting[Printed] | None:
    ranks = list(ranks)
    found = [sighting for rank in ranks for sighting in rank.kv_cache]
    found = found or [rank.parts["kv_cache"] for rank in ranks if "kv_cache" in rank.parts]
    return min(found, key=lambda sighting: sighting.value.value, default=None)


def _smallest(sightings: Sequence[Sighting[int]]) -> Sighting[int] | None:
    return min(sightings, key=lambda sighting: sighting.value, default=None)


def _concurrency(engine: EngineState) -> Sighting[Printed] | None:
    """The smallest of the lines at the length in force, which is the last one's."""
    lines = [item for item in engine.concurrency if item[3]] or engine.concurrency
    if not lines:
        return None
    figure, _, line, _ = min((item for item in lines if item[1] == lines[-1][1]), key=lambda item: item[0].value)
    return Sighting(figure, line)


def _length_of(engine: EngineState) -> int | None:
    return engine.concurrency[-1][1] if engine.concurrency else None


def _blocks(state: StartState, engine: EngineState, sole: bool) -> Sighting[int] | None:
    """Blocks in force: rebuilt at run time, overridden, printed, or counted by the front end of one engine."""
    if engine.resized_blocks is not None:
        return engine.resized_blocks
    if engine.override is not None:
        return Sighting(engine.override.value[1], engine.override.line)
    printed = _smallest(engine.blocks)
    if printed is None and sole and engines_expected(state) == 1:
        return state.counted_blocks
    return printed


def _token_figure(state: StartState, engine: EngineState) -> TokenFigure | None:
    return token_figure(state.text("vllm_version")) or (
        TokenFigure.CONCURRENCY_TIMES_LEN if engine.combined_line else None
    )


def _deployment(state: StartState, engines: Sequence[Capacity]) -> DeploymentCapacity:
    told = [engine for engine in engines if has_told(engine)]
    expected = engines_expected(state)
    lengths = {engine.max_model_len for engine in told}  # requests of several add up to nothing
    addable = len(lengths) == 1 and len(told) == expected and is_complete(state)
    capacity = together(engines, expected, addable=addable)
    return replace(capacity, weakest=_with_loose_cache(state, capacity.weakest))


def _with_loose_cache(state: StartState, weakest: Capacity) -> Capacity:
    """Ranks that no line ties to an engine count for each of them: their smallest memory bounds the weakest too."""
    loose = _tightest_cache(state, (rank for (engine, _), rank in state.ranks.items() if engine is None))
    if loose is None or (weakest.kv_cache_bytes is not None and weakest.kv_cache_bytes <= loose.value.value):
        return weakest
    rounding = {**weakest.rounding, "kv_cache_bytes": loose.value.rounding}
    return replace(weakest, kv_cache_bytes=round(loose.value.value), rounding=MappingProxyType(rounding))


def _memory(state: StartState, lines: dict[str, int]) -> Memory:
    """One rank's parts, of the rank with the smallest KV cache; what it does not tell, any other rank's largest."""
    ranks = sorted(state.ranks.values(), key=_cache_of)
    found: dict[str, int] = {}
    for name in MEMORY_BYTES:
        sighting = next((part for rank in ranks if (part := _part(rank, name)) is not None), None)
        if sighting is not None:
            found[name] = round(sighting.value.value)
            lines.setdefault(f"memory.{name}", sighting.line)
    shares: dict[str, float] = {}
    for name in MEMORY_SHARES:
        sighting = next((rank.parts[name] for rank in ranks if name in rank.parts), None)
        if sighting is not None:
            shares[name] = sighting.value.value
            lines.setdefault(f"memory.{name}", sighting.line)
    return Memory(
        utilization=shares.get("utilization"), suggested_utilization=shares.get("suggested_utilization"), **found
    )


def _part(rank: RankState, name: str) -> Sighting[Printed] | None:
    if name == "weights" and rank.weights:
        return max(rank.weights, key=lambda sighting: sighting.value.value)
    if name == "kv_cache" and rank.kv_cache:
        return min(rank.kv_cache, key=lambda sighting: sighting.value.value)
    return rank.parts.get(name)


def _cache_of(rank: RankState) -> float:
    cache = _part(rank, "kv_cache")
    return cache.value.value if cache is not None else float("inf")


def _max_model_len(state: StartState, lines: dict[str, int]) -> int | None:
    """The length in force; of a start refused for its cache before it told one, the length that was asked for."""
    known = state.count("max_model_len")
    failure = state.failure if state.phase is Phase.FAILED else None
    if failure is not None and failure.kind is FailureKind.INVALID_CONFIG:
        return None  # what was asked for has never been in force
    if known is None and failure is not None and failure.requested_tokens is not None:
        lines["max_model_len"] = failure.line
        return failure.requested_tokens
    return known


def _data_parallel_size(state: StartState) -> int | None:
    """The arguments' size; else the banner's, which newer versions print as 1; else what the world's size leaves."""
    declared = state.count("data_parallel_size")
    if declared is not None:
        return declared
    banner = state.count("banner_data_parallel_size")
    if banner is not None:
        return max(banner, len(state.engines)) if state.arguments.get("data_parallel_rank") is None else banner
    if state.arguments_seen:
        return max(len(state.engines), 1)  # the line lists what differs from its default
    tensor = 1 if state.world_size == 1 else state.count("tensor_parallel_size")
    group = (tensor or 0) * (state.count("pipeline_parallel_size") or 1)
    if state.world_size is not None and group and state.world_size % group == 0:
        return state.world_size // group
    return len(state.engines) if len(state.engines) > 1 else None


def _ratio(state: StartState, name: str) -> float | None:
    value = state.fact(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(state: StartState, name: str) -> bool | None:
    value = state.fact(name)
    return value if isinstance(value, bool) else None


_FACTS: Mapping[Callable[[StartState, str], object], tuple[str, ...]] = {
    StartState.text: (
        "vllm_version",
        "generation",
        "model",
        "served_model_name",
        "kv_cache_dtype",
        "dtype",
        "quantization",
    ),
    StartState.count: (
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "decode_context_parallel_size",
        "block_size",
        "max_num_seqs",
        "max_num_batched_tokens",
    ),
    _ratio: ("gpu_memory_utilization",),
    _flag: ("enable_prefix_caching", "enforce_eager"),
}
"""Facts of the configuration that a report shows as they are, by what reads them."""


def _basis(state: StartState) -> str | None:
    overridden = any(engine.override is not None for engine in state.engines.values())
    if overridden or state.declared is not None:
        return "declared"
    return "profiled" if any(rank.kv_cache or "kv_cache" in rank.parts for rank in state.ranks.values()) else None


def _timings(state: StartState) -> Timings:
    seen = state.seen_timings
    return Timings(
        load=seen.get("load", seen.get("weights_read")),
        compile=seen.get("compile"),
        profile=seen.get("profile"),
        graphs=seen.get("graphs"),
        init=seen.get("init"),
        ready=_ready_after(state),
    )


def _ready_after(state: StartState) -> float | None:
    """Seconds from the first line to the ready line, by the log's stamps, else by when the lines came."""
    if not state.shows_beginning or state.ready_unseen:
        return None  # nobody knows how long the start had taken before the excerpt, or when it has ended
    took = None
    if state.ready_stamp is not None and state.began is not None:
        took = None if state.clock_went_back else elapsed(state.began, state.ready_stamp)
    elif state.ready_clock is not None and state.began_clock is not None:
        took = state.ready_clock - state.began_clock
    return None if took is None or took < SHORTEST_MEASURED else round(took, 3)


def _runtime(state: StartState, source: str) -> Runtime:
    running, waiting = state.peaks.get("running"), state.peaks.get("waiting")
    return Runtime(
        samples=state.samples,
        peak_running=int(running) if running is not None else None,
        peak_waiting=int(waiting) if waiting is not None else None,
        peak_kv_cache_usage=state.peaks.get("kv_cache_usage"),
        preemptions=state.preemptions,
        place=Place(source, state.peak_line) if state.peak_line is not None else None,
    )
