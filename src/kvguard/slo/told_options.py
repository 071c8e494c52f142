"""What a log tells the arithmetic: the serving flags of a start as `kvguard.kvcache` takes them."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from kvguard.kvcache.options import Options
from kvguard.kvcache.releases import ASYNC_BY_DEFAULT, CHECKPOINTS_GDN, NEWEST_COMPUTED, OLDEST, Release
from kvguard.slo.layer_evidence import known_block_size
from kvguard.slo.told_release import told_release
from kvguard.slotted import replace
from kvguard.startup.report import Capacity, Start

_POOL_FIGURE = Release(0, 20, 0)
"""The last release whose token figure is the pool: the other meaning that an unnamed version may have."""
_BLOCK_SIZES = (None, 32, 64, 128)
"""vLLM's default, and what its attention backends choose themselves."""
_BATCHES = (2048, 8192, 16384, 4096, 1024, 512)
"""Usual max_num_batched_tokens, of servers and offline use, on small and large devices."""
_GDN_PREFILL_BACKENDS = (None, "triton")
"""vLLM's choice on Hopper and Blackwell, and on other cards: which one it is bears on the cache from 0.33 on."""
TOLD_ARGUMENTS = (
    "max_num_encoder_input_tokens",
    "async_scheduling",
    "mamba_cache_mode",
    "mamba_block_size",
    "mamba_cache_dtype",
    "mamba_ssm_cache_dtype",
    "prefill_context_parallel_size",
)
"""Serving arguments that bear on the layout alone."""


def possible_options(start: Start, engine: Capacity) -> Iterator[Options]:
    """The flags in force, most likely first: what the log leaves open is varied, for its figures to decide.

    Varied are the version, the block size, the drafter, and what the card decides of recurrent layers.
    """
    for release, block_size, draft_layers, gdn_prefill_backend in product(
        _releases(start), _block_sizes(start, engine), _draft_layers(start), _GDN_PREFILL_BACKENDS
    ):
        if gdn_prefill_backend is None or release >= CHECKPOINTS_GDN:
            yield Options(
                **_told(start, engine),
                vllm_version=release,
                block_size=block_size,
                draft_layers=draft_layers,
                gdn_prefill_backend=gdn_prefill_backend,
            )


def in_flight_options(possible: Sequence[Options]) -> Iterator[Options]:
    """The same for models that reserve for tokens in flight: their number depends on the device and on the caller."""
    batches = _BATCHES if possible[0].max_num_batched_tokens is None else (possible[0].max_num_batched_tokens,)
    for options, batched, overlapped in product(possible, batches, _overlapping(possible[0])):
        yield replace(options, max_num_batched_tokens=batched, async_scheduling=overlapped)


def _overlapping(options: Options) -> tuple[bool | None, ...]:
    if options.async_scheduling is not None or options.vllm_version < ASYNC_BY_DEFAULT:
        return (options.async_scheduling,)
    return (True, False)


def _told(start: Start, engine: Capacity) -> dict[str, Any]:
    told: dict[str, Any] = {
        "engine": start.generation.lower() if start.generation else None,
        "max_model_len": engine.max_model_len or start.max_model_len,
        "dtype": None if start.dtype is None else start.dtype.removeprefix("torch."),
        "kv_cache_dtype": start.kv_cache_dtype or "auto",
        "tensor_parallel_size": start.tensor_parallel_size or 1,
        "pipeline_parallel_size": start.pipeline_parallel_size or 1,
        "decode_context_parallel_size": start.decode_context_parallel_size or 1,
        "data_parallel_size": start.data_parallel_size or 1,
        "max_num_batched_tokens": start.max_num_batched_tokens,
        "max_num_seqs": start.max_num_seqs,
        "enable_prefix_caching": start.enable_prefix_caching,
        "disable_hybrid_kv_cache_manager": start.arguments.get("disable_hybrid_kv_cache_manager") is True,
        "num_speculative_tokens": speculative_tokens(start),
    }
    return told | told_arguments(start)


def told_arguments(start: Start) -> dict[str, int | str]:
    """Serving arguments that the log lists and that bear on the layout alone; what it leaves out has its default."""
    return {name: value for name in TOLD_ARGUMENTS if isinstance(value := start.arguments.get(name), int | str)}


def _releases(start: Start) -> tuple[Release, ...]:
    release = told_release(start.vllm_version)
    return (NEWEST_COMPUTED, _POOL_FIGURE) if release is None else (max(release, OLDEST),)


def _block_sizes(start: Start, engine: Capacity) -> tuple[int | None, ...]:
    told = known_block_size(start, engine)
    return _BLOCK_SIZES if told is None else (told,)


def speculative_tokens(start: Start) -> int:
    """Tokens that a drafter proposes at once; 0 where the log tells of none."""
    tokens = start.arguments.get("num_speculative_tokens")
    return tokens if isinstance(tokens, int) else 0


def _draft_layers(start: Start) -> tuple[int, ...]:
    """A drafter adds layers of its own; how many is in no log, so that the figures must tell."""
    return (1, 0) if speculative_tokens(start) else (0,)
