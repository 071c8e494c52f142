"""Encoder-decoders and pure encoders: what their decoders keep, and encoders that keep nothing."""

from kvguard.kvcache.layers import Attention, Layer, LayerKind, NoCache
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.readers import Reader, Shards
from kvguard.kvcache.readers.heads import attention_heads, head_size, layer_count


def whisper(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """Whisper: each decoder layer keeps its own tokens and the encoder's."""
    count = config.integer("decoder_layers", "num_hidden_layers")
    heads = config.integer("decoder_attention_heads", "num_attention_heads", least=1)
    size = config.integer("d_model", "hidden_size") // heads
    encoder = tuple(NoCache(0, LayerKind.ENCODER_ONLY) for _layer in range(config.optional(0, "encoder_layers")))
    decoder = tuple(
        Attention(i, kind, heads, size, size) for i in range(count) for kind in (LayerKind.FULL, LayerKind.CROSS)
    )
    return decoder + encoder


def encoder_only(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """BERT and its like: attention within one pass, no KV cache at all."""
    head_size(config)
    attention_heads(config)
    return tuple(NoCache(i, LayerKind.ENCODER_ONLY) for i in range(layer_count(config)))


def encoder_if_bidirectional(causal: Reader) -> Reader:
    """EmbeddingGemma is an encoder where its config attends both ways (model_executor/models/config.py)."""

    def read(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
        return (encoder_only if config.get("use_bidirectional_attention") else causal)(config, shards)

    return read
