"""What a report tells the search for levers: measured bytes, flags, and the model's layers where they are known."""

from collections.abc import Mapping
from math import floor
from types import MappingProxyType
from typing import Any

from kvguard.errors import ConfigError
from kvguard.kvcache import workload as load
from kvguard.kvcache.levers import Facts
from kvguard.kvcache.weights import QUANTIZED_BITS, declared_method, estimate_weights
from kvguard.slo.exactness import exact_concurrency
from kvguard.slo.fit_by_model import Explained
from kvguard.slo.layer_evidence import one_kind_because
from kvguard.slo.objectives import Workload
from kvguard.slo.pools import Pools
from kvguard.slo.served_model import ServedModel
from kvguard.startup.report import Capacity, Start
from kvguard.units import GIB, Interval

_HALF_DIGIT = 0.005 * GIB
"""Half of the last place of a figure in GiB with two decimals: what a memory part's line hides."""
_GIVEN_DEFAULT = "auto"

ASSUMED: Mapping[str, str] = MappingProxyType({"--kv-cache-dtype": "the cache", "--quantization": "the weights"})
"""What a lever takes to be 16-bit now where the log is silent, by its flag."""


def facts_of(start: Start, pools: Pools | None, workload: Workload | None) -> Facts:
    """The facts of the weakest engine; of a refused start those of the refusal."""
    engine = start.capacity.weakest
    facts: dict[str, Any] = {
        "kv_cache_bytes": _kv_cache(start, engine),
        "concurrency": _concurrency(start, engine),
        "max_model_len": engine.max_model_len or start.max_model_len or _refused_length(start),
        "total_bytes": _printed(start.memory.total_gpu),
        "utilization": _utilization(start),
        "free_share": _free_share(start),
        "weights_bytes": _printed(engine.weights_bytes or start.memory.weights),
        "quantized": start.quantization is not None,
        "activation_peak_bytes": _printed(start.memory.activation_peak),
        "graph_bytes": _printed(start.memory.cuda_graphs),
        "graph_estimate_gap_bytes": _graph_gap(start),
        "kv_cache_dtype": start.kv_cache_dtype or _GIVEN_DEFAULT,
        "tensor_parallel_size": start.tensor_parallel_size or 1,
        "data_parallel_size": max(start.capacity.engines, 1),
        "one_kind_of_layer": _one_kind(start, engine, workload),
        "workload": None if workload is None else _load(workload),
    }
    explained = () if pools is None else pools.explained[pools.engines.index(_weakest(pools, engine))]
    if explained and workload is not None and workload.model_config is not None:
        facts.update(_of_model(explained[0], workload.model_config, facts["weights_bytes"]))
    return Facts(**facts)


def silent_on(start: Start) -> tuple[str, ...]:
    """Flags whose present value the log does not tell, so that their levers assume vLLM's default."""
    silent = (("--kv-cache-dtype", start.kv_cache_dtype is None), ("--quantization", start.generation is None))
    return tuple(flag for flag, unknown in silent if unknown)


def _weakest(pools: Pools, engine: Capacity) -> Capacity:
    return next((one for one in pools.engines if one.engine == engine.engine), pools.engines[0])


def _load(workload: Workload) -> load.Workload:
    return load.Workload(workload.prompt_tokens, workload.output_tokens, workload.shared_prefix_tokens)


def _of_model(explained: Explained, config: Mapping[str, object], weights: Interval | None) -> dict[str, Any]:
    """What the model's layers add: exact bytes of the pool, and the weights where no line tells them."""
    model, layout = ServedModel.of(config), explained.layout
    parsed = model.config
    quantized = declared_method(parsed) in QUANTIZED_BITS
    page = layout.bytes_per_block
    found: dict[str, Any] = {
        "read": model,
        "options": explained.options,
        "one_kind_of_layer": len(layout.groups) == 1,
        "kv_cache_bytes": Interval(explained.blocks.low * page, explained.blocks.high * page),
        "quantized": quantized,
    }
    try:
        if weights is None:
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
    refused = None if start.failure is None else start.failure.available_bytes
    return _printed(start.memory.kv_cache if refused is None else refused)


def _concurrency(start: Start, engine: Capacity) -> Interval | None:
    """At max_model_len; of a refused start, what share of one request it had room for."""
    failure = start.failure
    if engine.max_concurrency is not None:
        return exact_concurrency(engine, start.block_size, start.layers is not None)
    if failure is None:
        return None
    if failure.kv_cache_tokens is not None and failure.requested_max_model_len:
        return Interval.exact(failure.kv_cache_tokens / failure.requested_max_model_len)
    if failure.available_bytes is not None and failure.needed_bytes:
        return Interval.exact(max(failure.available_bytes, 0) / failure.needed_bytes)
    return None


def _refused_length(start: Start) -> int | None:
    return None if start.failure is None else start.failure.requested_max_model_len


def _utilization(start: Start) -> float | None:
    return start.memory.utilization or start.gpu_memory_utilization


def _free_share(start: Start) -> float | None:
    """The largest share of the card that was free when the start began."""
    free, total = start.memory.free, start.memory.total_gpu
    return None if free is None or not total else floor(free / total * 100) / 100


def _graph_gap(start: Start) -> int | None:
    estimated, taken = start.memory.cuda_graphs_estimated, start.memory.cuda_graphs
    return None if estimated is None or taken is None else estimated - taken


def _one_kind(start: Start, engine: Capacity, workload: Workload | None) -> bool:
    if workload is not None and workload.uniform_layers:
        return True
    # V0's refusal counts tokens: every layer of that engine keeps all of them
    refused_by_tokens = start.failure is not None and start.failure.kv_cache_tokens is not None
    return refused_by_tokens or one_kind_because(start, engine) is not None


def _printed(count: int | None) -> Interval | None:
    return None if count is None else Interval(count - _HALF_DIGIT, count + _HALF_DIGIT)
