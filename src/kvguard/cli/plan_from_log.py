"""`kvguard plan --from-log`: what a start measured on that machine, as the parts and the flags of a plan."""

from collections.abc import Mapping

from kvguard.errors import ConfigError
from kvguard.kvcache.budget import MeasuredParts
from kvguard.kvcache.dtypes import KV_DTYPES
from kvguard.kvcache.options import Options
from kvguard.slo.fit_by_model import explain
from kvguard.slo.lever_facts import graph_gap, graphs_taken_off
from kvguard.slo.refusal import cache_there
from kvguard.slo.told_options import speculative_tokens, told_arguments
from kvguard.slotted import dataclass
from kvguard.sources.documents import read_log
from kvguard.startup.graphs import activation_alone
from kvguard.startup.report import Memory, Start
from kvguard.units import GIB, Interval

_HALF_OF_THE_LAST_PLACE = GIB // 200
"""Sizes are printed in GiB with two decimals."""
OPEN = ("block_size", "max_num_batched_tokens", "async_scheduling", "draft_layers", "gdn_prefill_backend")
"""Flags that hardly a log tells, and that its figures give away once the model is known."""


@dataclass(frozen=True, slots=True)
class MeasuredStart:
    """One start of a log: its parts, its flags by vLLM's names, and its blocks where the log tells them."""

    parts: MeasuredParts
    flags: dict[str, object]
    settled: frozenset[str]
    """Flags that the log does not tell, and with which the model prints its figures."""
    model: str | None
    """As the log names it."""
    gpu_blocks: int | None
    tokens: int | None
    concurrency: Interval | None
    concurrency_at: int | None
    """The max_model_len that it is told for."""
    blocks_declared: bool
    """Whether an option had set the blocks, whatever memory there was."""
    free_share: float | None
    graph_estimate_gap_bytes: int | None


def read_start(log: str, config: Mapping[str, object], given: Mapping[str, object]) -> MeasuredStart:
    """Read the newest start of a log.

    Args:
        log: its name.
        config: of the model that was served.
        given: what the command line says of `OPEN`.

    Raises:
        SourceError: it cannot be read.
        ConfigError: it holds no start of a vLLM server.
    """
    start = read_log(log).start
    if start is None:
        raise ConfigError(f"--from-log {log}: no start of a vLLM server in it; give the log from its beginning")
    told = _flags(start)
    settled = {name: value for name, value in _settled(start, config, given).items() if name not in told}
    return _measured(start, told | settled, frozenset(settled))


def _measured(start: Start, flags: dict[str, object], settled: frozenset[str]) -> MeasuredStart:
    memory, weakest = start.memory, start.capacity.weakest
    derived = weakest.derived.get("gpu_blocks")
    blocks = weakest.gpu_blocks if weakest.gpu_blocks is not None else None if derived is None else int(derived.value)
    utilization = memory.utilization if memory.utilization is not None else start.gpu_memory_utilization
    weights = weakest.weights_bytes if memory.weights is None else memory.weights
    cache = (memory.kv_cache, weakest.kv_cache_bytes, cache_there(start.failure))
    return MeasuredStart(
        parts=MeasuredParts(
            total=_around(memory.total_gpu),
            utilization=utilization,
            weights=_around(weights),
            non_torch=_around(_non_torch(memory, weights)),
            activation_peak=_around(activation_alone(start)),
            cuda_graphs=_around(graphs_taken_off(start)),
            kv_cache=_around(next((size for size in cache if size is not None), None)),
        ),
        flags=flags,
        settled=settled,
        model=start.model,
        gpu_blocks=blocks,
        tokens=weakest.kv_cache_tokens,
        concurrency=_rounded(weakest.max_concurrency, weakest.rounding.get("max_concurrency", 0.005)),
        concurrency_at=weakest.max_model_len,
        blocks_declared=weakest.profiled_gpu_blocks is not None,
        free_share=None if not memory.free or not memory.total_gpu else memory.free / memory.total_gpu,
        graph_estimate_gap_bytes=graph_gap(start),
    )


def _non_torch(memory: Memory, weights: int | None) -> int | None:
    """As printed, or what newer releases print together with the weights less these."""
    if memory.non_torch is not None or memory.consumed is None or weights is None:
        return memory.non_torch
    return max(memory.consumed - weights, 0)


def _around(count: int | None) -> Interval | None:
    """A printed size with its rounding."""
    return None if count is None else Interval(count - _HALF_OF_THE_LAST_PLACE, count + _HALF_OF_THE_LAST_PLACE)


def _rounded(figure: float | None, half: float) -> Interval | None:
    return None if figure is None else Interval(figure - half, figure + half)


def _flags(start: Start) -> dict[str, object]:
    """The flags that the start ran with; those that no plan could use are left out."""
    dtype = (start.kv_cache_dtype or "").removeprefix("torch.")
    named = {
        "vllm_version": start.vllm_version,
        "engine": (start.generation or "").lower() or None,
        "max_model_len": start.requested_max_model_len or start.max_model_len,
        "kv_cache_dtype": dtype if dtype in KV_DTYPES or dtype == "auto" else None,
        "tensor_parallel_size": start.tensor_parallel_size,
        "pipeline_parallel_size": start.pipeline_parallel_size,
        "data_parallel_size": start.data_parallel_size,
        "decode_context_parallel_size": start.decode_context_parallel_size,
        "block_size": start.block_size,
        "max_num_seqs": start.max_num_seqs,
        "max_num_batched_tokens": start.max_num_batched_tokens,
        "enable_prefix_caching": start.enable_prefix_caching,
        "num_speculative_tokens": speculative_tokens(start) or None,
        **told_arguments(start),
    }
    return {name: value for name, value in named.items() if value is not None}


def _settled(start: Start, config: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Open flags with which the config gives the log's figures: those of the command line, where they do as well."""
    try:
        explained = [one.options for one in explain(start, start.capacity.weakest, config)]
    except ConfigError:  # the plan itself is held against the log
        return {}
    if not explained:
        return {}
    options = next((one for one in explained if _agrees(one, given)), explained[0])
    return {name: value for name in OPEN if (value := getattr(options, name)) != getattr(_DEFAULTS, name)}


def _agrees(options: Options, given: Mapping[str, object]) -> bool:
    """Whether nothing that is given is otherwise in these; a batch that bears on no figure is left open by them."""
    return all(
        getattr(options, name) == value or (getattr(options, name) is None and name != "block_size")
        for name, value in given.items()
    )


_DEFAULTS = Options()
