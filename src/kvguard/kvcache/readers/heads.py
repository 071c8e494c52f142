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

_CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    # model type: what transformers' configuration class puts where the file is silent, for the families whose
    # published config.json files are silent (google/gemma-3-4b-it names no heads at all)
    "gemma": {"head_dim": 256, "num_key_value_heads": 16, "num_attention_heads": 16},
    "gemma2": {"head_dim": 256, "num_key_value_heads": 4, "num_attention_heads": 8},
    "gemma3_text": {"head_dim": 256, "num_key_value_heads": 4, "num_attention_heads": 8},
    "gemma3": {"head_dim": 256, "num_key_value_heads": 4, "num_attention_heads": 8},
    "gemma3n_text": {"head_dim": 256, "num_key_value_heads": 2, "num_attention_heads": 8},
    "gemma4_text": {"head_dim": 256, "num_key_value_heads": 4, "num_attention_heads": 8},
    "qwen3": {"head_dim": 128},
    "glm4": {"head_dim": 128},
    "gpt_oss": {"head_dim": 64, "num_key_value_heads": 8, "num_attention_heads": 64},
    "llama4_text": {"head_dim": 128, "num_key_value_heads": 8, "num_attention_heads": 40},
    "qwen3_5_text": {"head_dim": 256},
    "qwen3_5_moe_text": {"head_dim": 256},
    "qwen3_next": {"head_dim": 256},
}


_NESTED_DEFAULTS: Mapping[str, Mapping[str, int]] = {
    # the same where a multi-modal config gives only what differs from the class (llava-hf/llava-1.5-7b-hf)
    "llama": {"num_hidden_layers": 32, "num_attention_heads": 32, "hidden_size": 4096},
    "mistral": {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096},
    "qwen2": {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "hidden_size": 4096},
}


def layer_count(config: ModelConfig) -> int:
    """Decoder layers, as pipeline stages split them."""
    default = _default(config, "num_hidden_layers")
    count = default if default and config.get(*LAYER_KEYS) is None else config.integer(*LAYER_KEYS, least=1)
    if count > MOST_LAYERS:
        raise ConfigError(f"{config.architecture}: {count} layers are more than any model has")
    return count


def attention_heads(config: ModelConfig) -> int:
    """Query heads of the whole model."""
    if config.get(*HEAD_KEYS) is None and (default := _default(config, "num_attention_heads")):
        return default
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
    fallback = _default(config, "num_key_value_heads") or attention_heads(config)
    return config.optional(fallback, *KV_HEAD_KEYS, least=1)


def head_size(config: ModelConfig) -> int:
    """Elements of one head: named, or hidden size over heads."""
    named = config.optional(0, *HEAD_SIZE_KEYS)
    if named:
        return named
    if default := _default(config, "head_dim"):
        return default
    default = _default(config, "hidden_size")
    hidden = config.optional(default, *HIDDEN_KEYS) if default else config.integer(*HIDDEN_KEYS)
    heads = attention_heads(config)
    if hidden % heads:
        raise ConfigError(
            f'{config.architecture}: hidden size {hidden} over {heads} heads is no whole "head_dim"; name it'
        )
    return hidden // heads


def _default(config: ModelConfig, key: str) -> int:
    nested = _NESTED_DEFAULTS.get(config.model_type, {}) if config.text is not config.whole else {}
    return _CLASS_DEFAULTS.get(config.model_type, nested).get(key, 0)
