"""From a model's config to its layers, by the table of architectures, and what else the arithmetic asks of it."""

from kvguard.errors import ConfigError
from kvguard.kvcache.architecture_table import ARCHITECTURES, MODEL_TYPES, STATES_CACHED_IN_FULL
from kvguard.kvcache.context import context_of
from kvguard.kvcache.layers import FULL_KINDS, Attention, Layer, LayerKind, ModelLayers, NoCache
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.options import Options
from kvguard.kvcache.readers import Reader, Shards, recurrent
from kvguard.kvcache.readers.heads import MOST_LAYERS, attention_heads, layer_count
from kvguard.slotted import replace

_SPARSE_BLOCK = 64  # FlashMLA's sparse kernels take no other


def read_model(config: ModelConfig, options: Options) -> ModelLayers:
    """All layers of a model under these flags, the drafter's included.

    Raises:
        ConfigError: an architecture, a layer kind or a missing key, by name.
    """
    name, reader = _reader(config)
    exports = options.gdn_prefill_backend in (None, "auto", "flashinfer")
    shards = Shards(options.tensor_parallel_size, options.num_speculative_tokens, options.vllm_version, exports)
    layers = reader(config, shards)
    count = _decoder_layers(config, layers)
    sparse = any(layer.kind is LayerKind.MLA_INDEXER for layer in layers)
    cross = any(layer.kind is LayerKind.CROSS for layer in layers)
    return ModelLayers(
        architecture=config.architecture,
        layers=layers + _drafter(layers, count, options.draft_layers),
        decoder_layers=count,
        attention_heads=_heads(config, layers),
        context=context_of(config, options.vllm_version),
        dtype=config.dtype,
        encoder_tokens=config.optional(1500, "max_source_positions") if cross else None,
        mamba_chunk=recurrent.mamba_chunk(config),
        ssm_dtype=recurrent.ssm_dtype(config, options.vllm_version),
        caches_states_in_full=name in STATES_CACHED_IN_FULL,
        default_block_size=_SPARSE_BLOCK if sparse else None,
        is_moe=bool(config.get("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")),
    )


def with_drafter(model: ModelLayers, draft: ModelLayers) -> ModelLayers:
    """The model with a drafter's layers behind its own, on the last pipeline stage."""
    last = model.decoder_layers - 1
    return replace(model, layers=model.layers + tuple(replace(layer, index=last) for layer in draft.layers))


def _reader(config: ModelConfig) -> tuple[str, Reader]:
    name = config.architecture
    if name in ARCHITECTURES:
        return name, ARCHITECTURES[name]
    inner = MODEL_TYPES.get(config.model_type)
    if inner is not None and (config.nested or _wraps(config)):
        return inner, ARCHITECTURES[inner]
    raise ConfigError(
        f"{name} (model_type {config.model_type or 'not named'}): an architecture whose cache is not known; "
        "the block count that vLLM printed can still be judged without a model config"
    )


def _wraps(config: ModelConfig) -> bool:
    """Older multi-modal configs keep the decoder's keys beside a vision section."""
    return any(name.startswith(("vision", "visual", "audio")) for name in config.whole)


def _decoder_layers(config: ModelConfig, layers: tuple[Layer, ...]) -> int:
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return len(pattern)
    if any(layer.kind is LayerKind.CROSS for layer in layers):
        return max(layer.index for layer in layers) + 1
    return layer_count(config)


def _heads(config: ModelConfig, layers: tuple[Layer, ...]) -> int:
    """What tensor parallelism must divide; a purely recurrent model has its states checked instead."""
    if any(isinstance(layer, Attention | NoCache) for layer in layers):
        return attention_heads(config)
    return 0


def _drafter(layers: tuple[Layer, ...], count: int, draft_layers: int) -> tuple[Layer, ...]:
    """MTP and EAGLE layers: each as the model's last layer that keeps every token."""
    if not draft_layers:
        return ()
    if draft_layers > MOST_LAYERS:
        raise ConfigError(f"--draft-layers {draft_layers}: more than any model has")
    kept = [layer for layer in layers if isinstance(layer, Attention) and layer.kind in FULL_KINDS]
    if not kept:
        raise ConfigError("--draft-layers: the model has no full-attention layer to copy; give --draft-config")
    last = kept[-1]
    pair = [layer for layer in kept if layer.index == last.index]
    return tuple(replace(layer, index=count - 1) for _layer in range(draft_layers) for layer in pair)
