"""Multi-head latent attention: DeepSeek and its descendants, dense and sparse with an indexer."""

from collections.abc import Mapping

from kvguard.errors import ConfigError
from kvguard.kvcache.layers import Attention, Layer, LayerKind
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.readers import Shards
from kvguard.kvcache.readers.heads import attention_heads, layer_count
from kvguard.kvcache.releases import Release

_INDEXER_GROUP = 128  # one fp32 scale every 128 fp8 elements of an indexer key (deepseek_v2.py)

# config.py ModelConfig.use_mla and get_head_size, release by release
_LATENTS_CACHED = Release(0, 7, 1)
_LATENTS_OF_ANY_QUANTIZATION = Release(0, 8, 0)
_QUANTIZATIONS_WITH_LATENTS = frozenset({"fp8", "compressed-tensors"})
_KIMI_K2_KNOWN = Release(0, 10, 0)
_HEADS_AS_THEY_ARE = Release(0, 7, 0)
_PADDED_HEAD = 256


def latent_layer(config: ModelConfig, index: int) -> Attention:
    """One layer's latent: one vector, no value of its own, never split by tensor parallelism."""
    if config.get("compress_ratios") is not None:
        raise ConfigError(
            f'{config.architecture}: "compress_ratios" (compressed latent layers) is a layer kind that is not known'
        )
    size = config.integer("kv_lora_rank") + config.integer("qk_rope_head_dim")
    return Attention(index, LayerKind.MLA, 1, size, 0)


def indexer_layer(config: ModelConfig, index: int) -> Attention:
    """The keys by which sparse attention picks tokens: fp8 with scales, whatever the cache's dtype."""
    size = config.integer("index_head_dim")
    return Attention(index, LayerKind.MLA_INDEXER, 1, size, 0, row_bytes=size + size // _INDEXER_GROUP * 4)


def deepseek(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """DeepSeek V2 and later, Kimi-K2, GLM-5: latents, and an indexer where index_topk says so."""
    if config.get("kv_lora_rank") is None or not _caches_latents(config, shards.release):
        return _plain_heads(config, None if shards.release >= _HEADS_AS_THEY_ARE else _PADDED_HEAD)
    layers: list[Layer] = []
    for index in range(layer_count(config)):
        layers.append(latent_layer(config, index))
        if config.get("index_topk") is not None and _builds_indexer(config, index):
            layers.append(indexer_layer(config, index))
    return tuple(layers)


def padded_heads(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """Latent projections cached as plain heads, values padded to the keys' size (MiniCPM3)."""
    return _plain_heads(config, None)


def _plain_heads(config: ModelConfig, padded: int | None) -> tuple[Layer, ...]:
    size = padded or config.integer("qk_nope_head_dim") + config.integer("qk_rope_head_dim")
    heads = attention_heads(config)
    return tuple(Attention(i, LayerKind.FULL, heads, size, size) for i in range(layer_count(config)))


def longcat_flash(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """LongCat-Flash: two attention layers a decoder layer."""
    return tuple(
        latent_layer(config, i) for i in range(config.integer("num_layers", "num_hidden_layers")) for _two in (0, 1)
    )


def _caches_latents(config: ModelConfig, release: Release) -> bool:
    if release < _LATENTS_CACHED or (config.model_type == "kimi_k2" and release < _KIMI_K2_KNOWN):
        return False
    quantization = config.whole.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    return method is None or method in _QUANTIZATIONS_WITH_LATENTS or release >= _LATENTS_OF_ANY_QUANTIZATION


def _builds_indexer(config: ModelConfig, index: int) -> bool:
    """GLM-5 lets layers reuse the indexer of an earlier one (deepseek_v2.py: index_topk_freq and _pattern)."""
    pattern = config.get("index_topk_pattern")
    if pattern is not None:
        return not (index < len(pattern) and pattern[index] == "S")
    frequency, offset = config.optional(1, "index_topk_freq"), config.optional(2, "index_skip_topk_offset")
    return max(index - offset + 1, 0) % frequency == 0
