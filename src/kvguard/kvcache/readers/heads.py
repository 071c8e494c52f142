"""Layer counts and head sizes under every spelling that architectures use."""

from collections.abc import Mapping

from kvguard.errors import ConfigError
from kvguard.kvcache.model_config import ModelConfig

LAYER_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers")
HEAD_KEYS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
KV_HEAD_KEYS = ("n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups")
HEAD_SIZE_KEYS = ("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels")
HIDDEN_KEYS = ("hidden_size", "n_embd", "d_model", "dim")
MOST_LAYERS = 4096
_FALCON_TYPES = ("falcon", "RefinedWeb", "RefinedWebModel")


def layer_count(config: ModelConfig) -> int:
    """Decoder layers, as pipeline stages split them."""
    count = config.integer(*LAYER_KEYS, least=1)
    if count > MOST_LAYERS:
        raise ConfigError(f"{config.architecture}: {count} layers are more than any model has")
    return count


def attention_heads(config: ModelConfig) -> int:
    """Query heads of the whole model."""
    return config.integer(*HEAD_KEYS, least=1)


def kv_heads(config: ModelConfig) -> int:
    """KV heads of the whole model: all query heads where the config names none (multi-head attention)."""
    if config.model_type in _FALCON_TYPES and config.get("new_decoder_architecture"):
        return config.optional(attention_heads(config), *KV_HEAD_KEYS, least=1)
    if config.get("multi_query") is True:
        return 1
    nested = config.get("attn_config")
    if isinstance(nested, Mapping) and nested.get("kv_n_heads") is not None:  # DBRX, MPT
        return config.section("attn_config").integer("kv_n_heads", least=1)
    return config.optional(attention_heads(config), *KV_HEAD_KEYS, least=1)


def head_size(config: ModelConfig) -> int:
    """Elements of one head: named, or hidden size over heads."""
    named = config.optional(0, *HEAD_SIZE_KEYS)
    if named:
        return named
    hidden, heads = config.integer(*HIDDEN_KEYS), attention_heads(config)
    if hidden % heads:
        raise ConfigError(
            f'{config.architecture}: hidden size {hidden} over {heads} heads is no whole "head_dim"; name it'
        )
    return hidden // heads
