"""Each kind of event, and what it adds to the state of a start: one function a kind, joined in a table.

Nothing is decided here: which start an event belongs to is `boundaries`' business, what it all means `snapshot`'s.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kvguard import events
from kvguard.events import Event, Printed, Role, Trust
from kvguard.slotted import replace
from kvguard.startup.report import SERVING_OPTIONS, Phase
from kvguard.startup.state import MAX_NOTED, EngineState, RankKey, RankState, Sighting, StartState, process_of
from kvguard.startup.versions import OVERRIDE_LOST, release

# Where a fact of the configuration comes from; the higher wins.
GUESSED, ARGUMENT, RESOLVED, BANNER, IN_FORCE = range(5)

BANNER_NAMES = {
    "model": "model",
    "served_model_name": "served_model_name",
    "max_seq_len": "max_model_len",
    "kv_cache_dtype": "kv_cache_dtype",
    "dtype": "dtype",
    "quantization": "quantization",
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "data_parallel_size": "banner_data_parallel_size",
    "decode_context_parallel_size": "decode_context_parallel_size",
    "enforce_eager": "enforce_eager",
    "enable_prefix_caching": "enable_prefix_caching",
    "enable_chunked_prefill": "enable_chunked_prefill",
}
"""Keys of an engine's banner, and the fact that each is."""
PROFILED_PARTS = (
    "total_gpu",
    "usable",
    "free",
    "weights",
    "non_torch",
    "consumed",
    "activation_peak",
    "cuda_graphs",
    "kv_cache",
)
"""Parts of a rank's memory that the profile's lines tell, by their name in the report."""
AUTOMATIC = ("auto", -1)
"""Values of `max_model_len` that name no length."""


def engine_of(state: StartState, event: Event) -> EngineState:
    """The engine that an event speaks of: by its index, else by its process, else the only one."""
    state.engine_unnamed = event.origin.trust is Trust.RECORD and event.origin.pid is None
    return state.engines.setdefault(engine_index(state, event), EngineState())


def engine_index(state: StartState, event: Event) -> int:
    """An engine's data-parallel index; engines without one are numbered as their processes come.

    A process that is none of vLLM's own (an actor of Ray) and prints an engine's lines holds the engine in itself.
    """
    origin = event.origin
    if origin.engine is not None:
        return origin.engine
    if origin.role not in (Role.ENGINE, Role.OTHER) or origin.pid is None:
        return 0
    return state.engine_of_pid.setdefault(origin.pid, len(state.engine_of_pid))


def rank_of(state: StartState, event: Event) -> RankState:
    """The rank that an event speaks of; a worker that names no engine belongs to none yet."""
    origin = event.origin
    key: RankKey
    if origin.role in (Role.ENGINE, Role.OTHER):
        key = (engine_index(state, event), "0")
    elif origin.role is Role.WORKER:
        place = f"{origin.node} {origin.rank}" if origin.node else origin.rank or "0"
        key = (origin.engine, place)
    else:
        key = (origin.engine, "-")
    rank = state.ranks.setdefault(key, RankState())
    rank.repeated = max(rank.repeated, origin.repeated)
    if origin.role is Role.WORKER and getattr(event, "kv_cache_bytes", None) is not None:
        state.cache_tellers[process_of(origin)] = origin.rank
    return rank


def _server_announced(state: StartState, event: events.ServerAnnounced) -> None:
    state.api_server = True
    state.note("vllm_version", event.vllm_version, event.origin.line, ARGUMENT)
    state.note("model", event.model, event.origin.line, ARGUMENT)


def _arguments_given(state: StartState, event: events.ArgumentsGiven) -> None:
    state.arguments = {**state.arguments, **event.arguments}
    state.arguments_seen |= not event.cut
    for name in ("served_model_name", *SERVING_OPTIONS):
        value = event.arguments.get(name)
        if name == "served_model_name" and isinstance(value, list):
            value = value[0] if value else None
        if name == "model" and value is None:
            value = event.arguments.get("model_tag")
        if name == "max_model_len" and value in AUTOMATIC:
            value = None
        state.note(name, value, event.origin.line, ARGUMENT)


def _engine_configured(state: StartState, event: events.EngineConfigured) -> None:
    engine = engine_of(state, event)
    if event.origin.pid is not None:
        engine.pids.add(event.origin.pid)
    state.banner_line = event.origin.line
    line = event.origin.line
    state.note("vllm_version", event.vllm_version, line, BANNER)
    state.note("generation", event.generation, line, BANNER)
    for key, name in BANNER_NAMES.items():
        value = event.config.get(key)
        state.note(name, value if value != "None" else None, line, BANNER)


def _option_resolved(state: StartState, event: events.OptionResolved) -> None:
    line = event.origin.line
    if event.origin.stage is not None:
        return  # each stage is a model of its own, and whose engine is reported is not known yet
    if event.option == "max_model_len":
        if "max_model_len_resolved" not in state.facts:  # a second value may be a draft model's
            state.note("max_model_len_resolved", event.value, line)
            state.note("max_model_len", event.value, line, RESOLVED)
    elif event.option == "model":
        if "model" not in state.facts:
            state.note("model", event.value, line, GUESSED)
    elif event.option == "async_scheduling":
        state.note("async_scheduling", event.value == "enabled", line, RESOLVED)
    else:
        state.note(event.option, event.value, line, RESOLVED)


def _context_reduced(state: StartState, event: events.ContextReduced) -> None:
    state.note("max_model_len", event.max_model_len_tokens, event.origin.line, IN_FORCE)
    if event.requested_tokens is not None:
        state.reduced = Sighting((event.requested_tokens, event.max_model_len_tokens), event.origin.line)
    if event.kv_cache_bytes is not None:
        rank_of(state, event).parts.setdefault("kv_cache", Sighting(event.kv_cache_bytes, event.origin.line))


def _rank_assigned(state: StartState, event: events.RankAssigned) -> None:
    state.world_size = max(state.world_size or 0, event.world_size)


def _layers_noted(state: StartState, event: events.LayersNoted) -> None:
    if state.layers != "hybrid-manager-disabled":
        state.layers = event.layers
    state.note("layers", event.layers, event.origin.line)


def _weights_loaded(state: StartState, event: events.WeightsLoaded) -> None:
    if event.weights_bytes is not None:
        rank_of(state, event).weights.append(Sighting(event.weights_bytes, event.origin.line))
    if event.load_seconds is not None:
        name = "load" if event.weights_bytes is not None else "weights_read"
        _longest(state, name, event.load_seconds)


def _kv_cache_memory(state: StartState, event: events.KvCacheMemory) -> None:
    rank = rank_of(state, event)
    line = event.origin.line
    if event.supersedes or (event.origin.pid is not None and event.origin.role is not Role.UNTAGGED):
        rank.kv_cache = [Sighting(event.kv_cache_bytes, line)]
    else:
        rank.kv_cache.append(Sighting(event.kv_cache_bytes, line))
    if event.basis != "profiled":
        state.declared = Sighting("kv_cache_memory_bytes", line)


def _kv_cache_size(state: StartState, event: events.KvCacheSize) -> None:
    engine = engine_of(state, event)
    before = engine.latest_token_origin
    engine.doubled += before is not None and replace(before, line=before.line + 1) == event.origin
    engine.latest_token_origin = event.origin
    kept = engine.own_tokens if _is_plugins_own(event) else engine.tokens
    kept.append(Sighting(event.kv_cache_tokens, event.origin.line))
    engine.combined_line = engine.combined_line or event.format == "kv-cache-size-and-concurrency"


def _max_concurrency(state: StartState, event: events.MaxConcurrency) -> None:
    if not event.max_model_len_tokens:
        return  # no length is 0: nothing is known of it
    engine = engine_of(state, event)
    line = event.origin.line
    engine.concurrency.append((event.max_concurrency, event.max_model_len_tokens, line, _is_plugins_own(event)))
    state.note("max_model_len", event.max_model_len_tokens, line, IN_FORCE)


def _is_plugins_own(event: Event) -> bool:
    """The Spyre plugin prints its own pair; upstream's pair means nothing on that hardware."""
    return event.origin.file is not None and event.origin.file.startswith("spyre")


def _blocks_allocated(state: StartState, event: events.BlocksAllocated) -> None:
    engine = engine_of(state, event)
    engine.blocks.append(Sighting(event.gpu_blocks, event.origin.line))
    if event.cpu_blocks is not None:
        engine.cpu_blocks = event.cpu_blocks if engine.cpu_blocks is None else min(engine.cpu_blocks, event.cpu_blocks)


def _blocks_counted(state: StartState, event: events.BlocksCounted) -> None:
    state.counted_blocks = state.counted_blocks or Sighting(event.total_gpu_blocks, event.origin.line)


def _blocks_overridden(state: StartState, event: events.BlocksOverridden) -> None:
    engine = engine_of(state, event)
    if state.text("generation") == "V1" and release(state.text("vllm_version")) == OVERRIDE_LOST:
        engine.blocks.append(Sighting(event.profiled_blocks, event.origin.line))
    else:
        engine.override = Sighting((event.profiled_blocks, event.gpu_blocks), event.origin.line)


def _block_size_set(state: StartState, event: events.BlockSizeSet) -> None:
    state.note("block_size", event.block_size_tokens, event.origin.line, IN_FORCE)


def _memory_profiled(state: StartState, event: events.MemoryProfiled) -> None:
    rank = rank_of(state, event)
    for name in PROFILED_PARTS:
        value: Printed | None = getattr(event, f"{name}_bytes")
        if value is not None and not (name == "kv_cache" and "kv_cache" in rank.parts):
            rank.parts[name] = Sighting(value, event.origin.line)
    if event.utilization is not None:
        rank.parts["utilization"] = Sighting(event.utilization, event.origin.line)
        state.note("gpu_memory_utilization", event.utilization.value, event.origin.line, GUESSED)
    for name in ("suggested_kv_cache", "full_kv_cache"):
        count: int | None = getattr(event, f"{name}_bytes")
        if count is not None:
            rank.parts[name] = Sighting(Printed(count), event.origin.line)
    if event.profile_seconds is not None:
        _longest(state, "profile", event.profile_seconds)


def _cuda_graph_memory(state: StartState, event: events.CudaGraphMemory) -> None:
    rank = rank_of(state, event)
    for name in ("cuda_graphs_estimated", "cuda_graphs"):
        value: Printed | None = getattr(event, f"{name}_bytes")
        if value is not None:
            rank.parts[name] = Sighting(value, event.origin.line)
    if event.utilization is not None:
        state.note("gpu_memory_utilization", event.utilization.value, event.origin.line, ARGUMENT)
    if event.suggested_utilization is not None:
        rank.parts["suggested_utilization"] = Sighting(event.suggested_utilization, event.origin.line)
        if event.equivalent_utilization is None:  # nothing is subtracted yet
            state.note("graphs_uncounted", event.suggested_utilization.value, event.origin.line)
    if event.capture_seconds is not None:
        _longest(state, "graphs", event.capture_seconds)


def _engine_initialized(state: StartState, event: events.EngineInitialized) -> None:
    engine_of(state, event).init = Sighting(event.init_seconds, event.origin.line)
    _longest(state, "init", event.init_seconds)
    if event.compile_seconds is not None:
        _longest(state, "compile", event.compile_seconds)


def _compiled(state: StartState, event: events.Compiled) -> None:
    _longest(state, "compile", event.compile_seconds)


def _server_listening(state: StartState, event: events.ServerListening) -> None:
    state.api_server = True


def _process_started(state: StartState, event: events.ProcessStarted) -> None:
    state.api_server = True
    state.http_pids.add(event.process_pid)


def _stats_logged(state: StartState, event: events.StatsLogged) -> None:
    state.samples += event.samples
    line = event.peak_line or event.origin.line
    if event.kv_cache_usage is not None:
        highest = state.peaks.get("kv_cache_usage", -1.0)
        earlier = event.kv_cache_usage == highest and state.peak_line is not None and line < state.peak_line
        if event.kv_cache_usage > highest or earlier:
            state.peak_line = line
    state.peak_line = state.peak_line or line
    for name in ("running", "waiting", "kv_cache_usage"):
        value = getattr(event, name)
        if value is not None:
            state.peaks[name] = max(value, state.peaks.get(name, value))
    if event.preemptions is not None:
        state.preemptions = (state.preemptions or 0) + event.preemptions


def _preempted(state: StartState, event: events.Preempted) -> None:
    state.preemptions = max(state.preemptions or 0, event.preemptions_total)


def _data_parallel_resized(state: StartState, event: events.DataParallelResized) -> None:
    state.resized = Sighting(f"the engines were scaled to {event.data_parallel_size}", event.origin.line)
    state.note("data_parallel_size", event.data_parallel_size, event.origin.line, IN_FORCE)


def _pool_resized(state: StartState, event: events.PoolResized) -> None:
    engine_of(state, event).resized_blocks = Sighting(event.gpu_blocks, event.origin.line)
    state.resized = Sighting(f"the pool was rebuilt with {event.gpu_blocks:,} blocks", event.origin.line)


def _line_unrecognized(state: StartState, event: events.LineUnrecognized) -> None:
    state.unrecognized_count += 1
    if len(state.unrecognized) < MAX_NOTED:
        state.unrecognized.append(Sighting(event.text, event.origin.line))


def _longest(state: StartState, name: str, seconds: float) -> None:
    state.seen_timings[name] = max(seconds, state.seen_timings.get(name, 0.0))


INGEST: Mapping[type[Event], Callable[[StartState, Any], None]] = {
    events.ServerAnnounced: _server_announced,
    events.ArgumentsGiven: _arguments_given,
    events.EngineConfigured: _engine_configured,
    events.OptionResolved: _option_resolved,
    events.ContextReduced: _context_reduced,
    events.RankAssigned: _rank_assigned,
    events.LayersNoted: _layers_noted,
    events.WeightsLoaded: _weights_loaded,
    events.KvCacheMemory: _kv_cache_memory,
    events.KvCacheSize: _kv_cache_size,
    events.MaxConcurrency: _max_concurrency,
    events.BlocksAllocated: _blocks_allocated,
    events.BlocksCounted: _blocks_counted,
    events.BlocksOverridden: _blocks_overridden,
    events.BlockSizeSet: _block_size_set,
    events.MemoryProfiled: _memory_profiled,
    events.CudaGraphMemory: _cuda_graph_memory,
    events.EngineInitialized: _engine_initialized,
    events.Compiled: _compiled,
    events.ServerListening: _server_listening,
    events.ProcessStarted: _process_started,
    events.StatsLogged: _stats_logged,
    events.Preempted: _preempted,
    events.DataParallelResized: _data_parallel_resized,
    events.PoolResized: _pool_resized,
    events.LineUnrecognized: _line_unrecognized,
}
"""What each kind of event adds; a kind that is missing here only moves the phase."""

_PHASE_OF: Mapping[type[Event], Phase] = {
    events.MemoryProfiled: Phase.PROFILING,
    events.KvCacheMemory: Phase.PROFILING,
    events.CudaGraphMemory: Phase.PROFILING,
    events.Compiled: Phase.PROFILING,
    events.KvCacheSize: Phase.PROFILING,
    events.MaxConcurrency: Phase.PROFILING,
    events.BlocksAllocated: Phase.PROFILING,
}
"""The phase that a kind of event proves at least; every other proves `loading`."""


def phase_proven(event: Event) -> Phase:
    """The phase that an event proves at least; what the platform will take by default is told before anything loads."""
    if isinstance(event, events.KvCacheMemory) and event.basis == "default":
        return Phase.LOADING
    return _PHASE_OF.get(type(event), Phase.LOADING)
