"""What a report tells the search for levers: measured bytes, flags, and the model's layers as far as they are known."""

import re
from collections.abc import Callable, Iterable, Mapping
from math import floor
from types import MappingProxyType
from typing import Any

from kvguard.errors import ConfigError
from kvguard.kvcache.levers import Facts
from kvguard.kvcache.weights import QUANTIZED_BITS, declared_method, estimate_weights
from kvguard.slo.compare import SAME_DTYPE
from kvguard.slo.fit_by_log import refutes_uniform, uniform_pools
from kvguard.slo.fit_by_model import Explained
from kvguard.slo.layer_evidence import is_hybrid, one_kind_because
from kvguard.slo.objectives import Severity, Slo, Workload
from kvguard.slo.pools import Pools
from kvguard.slo.refusal import HALF_DIGIT, cache_there, share_with_rounding
from kvguard.slo.served_model import ServedModel
from kvguard.slo.startup_checks import observe_startup
from kvguard.slotted import replace
from kvguard.startup.graphs import graphs_counted
from kvguard.startup.report import Capacity, Start
from kvguard.units import Interval

_GIVEN_DEFAULT = "auto"
_NO_CAP = 1 << 20
"""Sequences that no scheduler is asked to run at once."""

_TAKEN_AS_16_BIT: Mapping[str, tuple[str, Callable[[Start], bool]]] = MappingProxyType(
    {
        "--kv-cache-dtype": ("the cache", lambda start: start.kv_cache_dtype is None),
        "--quantization": ("the weights", lambda start: start.generation is None),  # the config's line names both
    }
)
"""What a lever takes to be 16-bit now, by its flag, and whether the log is silent on it."""


def fixed_by(slo: Slo) -> tuple[tuple[str, str], ...]:
    """Flags that a failing objective of the SLO itself expects a value of: a lever that changes them misses that."""
    expected = ((o.kind.key, o.target) for o in slo.objectives if o.severity is Severity.FAIL)
    return tuple(
        (_EXPECTED[key], SAME_DTYPE.get(target, target) if isinstance(target, str) else f"{target:.0f}")
        for key, target in expected
        if key in _EXPECTED
    )


_EXPECTED: Mapping[str, str] = MappingProxyType(
    {
        "expect_max_model_len": "--max-model-len",
        "expect_kv_cache_dtype": "--kv-cache-dtype",
        "expect_engines": "--data-parallel-size",
    }
)


def readings_of(start: Start, pools: Pools | None, workload: Workload | None) -> tuple[Facts, ...]:
    """The facts of the weakest engine, of a refused start those of the refusal: once for each reading of the log.

    A log that does not tell the block size, or the version, may mean several pools: a lever must do in all of them,
    as the check spans them all.
    """
    engine = start.capacity.weakest
    measured = _measured(start, engine, workload)
    explained = () if pools is None else pools.explained[pools.engines.index(_weakest(pools, engine))]
    if explained and workload is not None and workload.model_config is not None:
        config = workload.model_config
        return tuple(replace(measured, **_of_model(one, config, measured)) for one in explained)
    if workload is None or is_hybrid(start, engine):
        return (measured,)
    return tuple(replace(measured, uniform=pool) for pool in uniform_pools(start, engine)) or (measured,)


def _measured(start: Start, engine: Capacity, workload: Workload | None) -> Facts:
    return Facts(
        kv_cache_bytes=_kv_cache(start, engine),
        fixed=_fixed(start, engine),
        unfixed_factor=_unfixed(engine),
        concurrency=_concurrency(start),
        max_model_len=engine.max_model_len or start.max_model_len or _refused_length(start),
        max_num_seqs=start.max_num_seqs,
        total_bytes=_printed(start.memory.total_gpu),
        utilization=_utilization(start),
        free_share=_free_share(start),
        weights_bytes=_printed(engine.weights_bytes or start.memory.weights),
        quantized=start.quantization is not None or _named_quantized(start),
        graph_bytes=_printed(graphs_taken_off(start)),
        graphs_taken_off=_takes_graphs_off(start),
        graph_estimate_gap_bytes=graph_gap(start),
        kv_cache_dtype=start.kv_cache_dtype or _GIVEN_DEFAULT,
        tensor_parallel_size=start.tensor_parallel_size or 1,
        data_parallel_size=max(start.capacity.engines, 1),
        one_kind_of_layer=_one_kind(start, engine, workload),
        workload=None if workload is None else workload.request,
    )


def own_length(pools: Pools) -> int | None:
    """The longest max_model_len that the model's config allows, in tokens; `None` where none is known to bound it."""
    lengths = [one.layout.model.context.longest for explained in pools.explained for one in explained]
    return min((length for length in lengths if length is not None), default=None)


def assumed_by(flags: Iterable[str], start: Start) -> tuple[str, ...]:
    """What a lever of these flags takes to be 16-bit now, since the log does not say."""
    found = (_TAKEN_AS_16_BIT[flag] for flag in flags if flag in _TAKEN_AS_16_BIT)
    return tuple(what for what, silent in found if silent(start))


def _fixed(start: Start, engine: Capacity) -> str | None:
    """What an option sets of the pool, so that no memory given back enlarges it."""
    if engine.profiled_gpu_blocks is not None:
        return "blocks"
    return "bytes" if start.kv_cache_basis == "declared" else None


def _unfixed(engine: Capacity) -> float | None:
    profiled, forced = engine.profiled_gpu_blocks, engine.gpu_blocks
    return profiled / forced if profiled and forced else None


def _weakest(pools: Pools, engine: Capacity) -> Capacity:
    return next((one for one in pools.engines if one.engine == engine.engine), pools.engines[0])


def _of_model(explained: Explained, config: Mapping[str, object], measured: Facts) -> dict[str, Any]:
    """What the model's layers add: exact bytes of the pool, and the weights where no line tells them."""
    model, layout = ServedModel.of(config), explained.layout
    parsed = model.config
    quantized = measured.quantized or declared_method(parsed) in QUANTIZED_BITS
    page = layout.bytes_per_block
    # a cap that the log does not tell is none, as for the check
    options = replace(explained.options, max_num_seqs=measured.max_num_seqs or _NO_CAP)
    found: dict[str, Any] = {
        "read": model,
        "options": options,
        "one_kind_of_layer": len(layout.groups) == 1,
        "kv_cache_bytes": Interval(explained.blocks.low * page, explained.blocks.high * page),
        "quantized": quantized,
    }
    try:
        if measured.weights_bytes is None:
            found["weights_bytes"] = estimate_weights(parsed, layout.model, layout.serving, None)
        if not quantized:
            found["quantized_weights_bytes"] = estimate_weights(parsed, layout.model, layout.serving, "awq")
    except ConfigError:  # the layout needs less of a config than the weights do: without them, directions only
        return found
    return found


def _kv_cache(start: Start, engine: Capacity) -> Interval | None:
    if engine.kv_cache_bytes is not None:
        half = engine.rounding.get("kv_cache_bytes", 0.0)
        return Interval(engine.kv_cache_bytes - half, engine.kv_cache_bytes + half)
    refused = cache_there(start.failure)
    return _printed(start.memory.kv_cache if refused is None else refused)


def _concurrency(start: Start) -> Interval | None:
    """At max_model_len, as the check sees it; of a refused start, what share of one request it had room for."""
    share = None if start.failure is None else share_with_rounding(start.failure)
    return observe_startup("min_concurrency", start, 1.0).interval if share is None else share


def _named_quantized(start: Start) -> bool:
    """Whether the checkpoint's own name says that its weights are quantised: a log may leave the method out."""
    return _QUANTIZED_NAME.search(start.model or "") is not None


_QUANTIZED_NAME = re.compile(
    r"(?i)(?:^|[-_./])(?:awq|gptq|gguf|bnb|fp8|fp4|int[48]|[48]bit|w[48]a(?:8|16)|nvfp4|mxfp4)(?:$|[-_./])"
)


def _refused_length(start: Start) -> int | None:
    return None if start.failure is None else start.failure.requested_max_model_len


def _utilization(start: Start) -> float | None:
    return start.memory.utilization or start.gpu_memory_utilization


def _free_share(start: Start) -> float | None:
    """The largest share of the card that was free when the start began."""
    free, total = start.memory.free, start.memory.total_gpu
    return None if free is None or not total else floor(free / total * 100) / 100


def graphs_taken_off(start: Start) -> int | None:
    """Bytes of a rank that were taken off its KV cache for CUDA graphs, which it has without them; `None` for none.

    What is taken off is the estimate, and nothing where a log shows none.
    """
    estimated = start.memory.cuda_graphs_estimated
    return estimated if estimated is not None and estimated > 0 and graphs_counted(start) else None


def _takes_graphs_off(start: Start) -> bool:
    """Whether graphs were captured where their estimate is taken off the cache: the log may leave the estimate out."""
    captured = start.memory.cuda_graphs is not None and start.memory.cuda_graphs > 0
    return captured and not start.enforce_eager and bool(graphs_counted(start))


def graph_gap(start: Start) -> int | None:
    """How much more was taken off for CUDA graphs than they took; `None` where nothing was, or that is not known."""
    estimated, taken = graphs_taken_off(start), start.memory.cuda_graphs
    return None if estimated is None or taken is None or taken < 0 else estimated - taken


def _one_kind(start: Start, engine: Capacity, workload: Workload | None) -> bool:
    if workload is not None and workload.uniform_layers and refutes_uniform(start, engine) is None:
        return True
    # V0's refusal counts tokens: every layer of that engine keeps all of them
    refused_by_tokens = start.failure is not None and start.failure.kv_cache_tokens is not None
    return refused_by_tokens or one_kind_because(start, engine) is not None


def _printed(count: int | None) -> Interval | None:
    return None if count is None else Interval(count - HALF_DIGIT, count + HALF_DIGIT)
