"""Models with recurrent layers: pure Mamba, and the hybrids that mix states with attention."""

from collections.abc import Sequence

from kvguard.errors import ConfigError
from kvguard.kvcache.layers import Attention, Layer, LayerKind, State, StateTensor
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.readers import Shards, states
from kvguard.kvcache.readers.heads import attention_heads, head_size, kv_heads, layer_count
from kvguard.kvcache.readers.latent import latent_layer
from kvguard.kvcache.releases import CHECKPOINTS_GDN, CHECKPOINTS_KDA, CHECKPOINTS_MAMBA2, Release

_MAMBA = ("mamba", "linear_attention")
"""How a Mamba layer is called in layer_types: transformers 5 writes the second."""
_DRAFTS_IN_MAMBA2 = Release(0, 32, 0)  # falcon_h1.py, granitemoehybrid.py, zamba2.py: num_spec
_MOST_EXPANDED = 64
_DRAFTS_IN_NEMOTRON_H = Release(0, 17, 0)
_QWEN_NAMES_ITS_DTYPE = Release(0, 17, 0)
_NEMOTRON_NAMES_ITS_DTYPE, _NEMOTRON_TAKES_FLOAT32 = Release(0, 13, 0), Release(0, 20, 0)
_DRAFTS_IN_KDA = Release(0, 27, 0)  # mamba_utils.py kda_state_shape
_FLASH_KDA_HEAD = 128  # models/kimi_k3/nvidia/kda.py: the kernel that exports states needs this and a bounded gate


def _full(config: ModelConfig, index: int) -> Attention:
    size = head_size(config)
    return Attention(index, LayerKind.FULL, kv_heads(config), size, size)


def _mamba2(index: int, tensors: tuple[StateTensor, ...], shards: Shards) -> State:
    return State(index, LayerKind.MAMBA2, tensors, checkpoints=shards.release >= CHECKPOINTS_MAMBA2)


def _drafts(shards: Shards, since: Release) -> int:
    return shards.speculative_tokens if shards.release >= since else 0


def mamba(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Mamba-1 alone (Mamba, Falcon-Mamba)."""
    inner = config.optional(config.optional(2, "expand") * config.integer("hidden_size", least=1), "intermediate_size")
    tensors = states.mamba1(shards, inner, config.optional(16, "state_size"), config.optional(4, "conv_kernel"))
    return tuple(State(i, LayerKind.MAMBA1, tensors) for i in range(layer_count(config)))


def mamba2(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Mamba-2 alone (Mamba-2, Codestral-Mamba)."""
    tensors = states.mamba2(
        shards,
        config.optional(2, "expand") * config.integer("hidden_size", least=1),
        config.integer("n_groups"),
        config.integer("num_heads"),
        config.integer("head_dim"),
        config.integer("state_size"),
        config.optional(4, "conv_kernel"),
        _drafts(shards, _DRAFTS_IN_MAMBA2),
    )
    return tuple(_mamba2(i, tensors, shards) for i in range(layer_count(config)))


def jamba(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Jamba: Mamba-1 with attention in every attn_layer_period-th layer."""
    inner = config.optional(2, "mamba_expand") * config.integer("hidden_size", least=1)
    tensors = states.mamba1(shards, inner, config.optional(16, "mamba_d_state"), config.optional(4, "mamba_d_conv"))
    period, offset = config.optional(8, "attn_layer_period", least=1), config.optional(4, "attn_layer_offset")
    return tuple(
        _full(config, i) if i % period == offset else State(i, LayerKind.MAMBA1, tensors)
        for i in range(layer_count(config))
    )


def _prefixed_mamba2(config: ModelConfig, shards: Shards) -> tuple[StateTensor, ...]:
    """The shape under the keys that Bamba, Granite and Falcon-H1 share; a head's size may be "auto"."""
    inner = _expanded(config) if config.get("mamba_d_ssm") is None else config.integer("mamba_d_ssm")
    heads = config.integer("mamba_n_heads", least=1)
    return states.mamba2(
        shards,
        inner,
        config.optional(1, "mamba_n_groups"),
        heads,
        inner // heads if config.get("mamba_d_head") in (None, "auto") else config.integer("mamba_d_head"),
        config.integer("mamba_d_state"),
        config.optional(4, "mamba_d_conv"),
        _drafts(shards, _DRAFTS_IN_MAMBA2),
    )


def _expanded(config: ModelConfig) -> int:
    """The width inside; the factor need not be whole."""
    factor = config.need("mamba_expand")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= _MOST_EXPANDED:
        raise ConfigError(f'{config.architecture}: "mamba_expand" of the model config is {factor!r}, not a factor')
    return int(factor * config.integer("hidden_size", least=1))


def bamba(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Bamba: Mamba-2 with attention at listed layers."""
    attention = set(config.listed("attn_layer_indices"))
    tensors = _prefixed_mamba2(config, shards)
    return tuple(
        _full(config, i) if i in attention else _mamba2(i, tensors, shards) for i in range(layer_count(config))
    )


def granite_hybrid(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Granite 4: Mamba-2 and attention as listed."""
    kinds = _listed(config, ("layer_types", "layers_block_type"), (*_MAMBA, "attention", "full_attention"))
    tensors = _prefixed_mamba2(config, shards) if set(_MAMBA) & set(kinds) else ()
    return tuple(_mamba2(i, tensors, shards) if kind in _MAMBA else _full(config, i) for i, kind in enumerate(kinds))


def falcon_h1(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Falcon-H1: attention and Mamba-2 side by side in each layer."""
    tensors = _prefixed_mamba2(config, shards)
    return tuple(layer for i in range(layer_count(config)) for layer in (_full(config, i), _mamba2(i, tensors, shards)))


def zamba2(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Zamba 2: Mamba-2 in each layer, a shared transformer besides in the "hybrid" ones."""
    kinds, inner, heads = _zamba2_kinds(config), _expanded(config), config.integer("n_mamba_heads", least=1)
    tensors = states.mamba2(
        shards,
        inner,
        config.integer("mamba_ngroups"),
        heads,
        config.optional(inner // heads, "mamba_headdim"),
        config.integer("mamba_d_state"),
        config.integer("mamba_d_conv"),
        _drafts(shards, _DRAFTS_IN_MAMBA2),
    )
    size = config.optional(2 * config.integer("hidden_size") // attention_heads(config), "attention_head_dim")
    attention = tuple(
        Attention(i, LayerKind.FULL, kv_heads(config), size, size) for i, kind in enumerate(kinds) if kind == "hybrid"
    )
    return attention + tuple(_mamba2(i, tensors, shards) for i in range(len(kinds)))


def _zamba2_kinds(config: ModelConfig) -> Sequence[str]:
    if config.get("hybrid_layer_ids") is not None:
        hybrid = set(config.listed("hybrid_layer_ids"))
        return tuple("hybrid" if i in hybrid else "mamba" for i in range(layer_count(config)))
    return _listed(config, ("layers_block_type", "layer_types"), (*_MAMBA, "hybrid"))


def nemotron_h(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Nemotron-H: one letter a layer; only M (Mamba-2) and * (attention) keep anything."""
    pattern = config.get("hybrid_override_pattern")
    if not isinstance(pattern, str):
        letters = {
            "mamba": "M",
            "linear_attention": "M",
            "attention": "*",
            "full_attention": "*",
            "mlp": "-",
            "moe": "E",
        }
        pattern = "".join(
            letters[kind] for kind in _listed(config, ("layers_block_type", "layer_types"), tuple(letters))
        )
    unknown = sorted(set(pattern) - set("M*-E"))
    if unknown:
        raise ConfigError(
            f'{config.architecture}: "hybrid_override_pattern" has {unknown[0]!r}, whose cache is not known'
        )
    heads, size = config.integer("mamba_num_heads"), config.integer("mamba_head_dim")
    tensors = states.mamba2(
        shards,
        heads * size,
        config.integer("n_groups"),
        heads,
        size,
        config.integer("ssm_state_size"),
        config.integer("conv_kernel"),
        _drafts(shards, _DRAFTS_IN_NEMOTRON_H),
    )
    return tuple(
        _mamba2(i, tensors, shards) if letter == "M" else _full(config, i)
        for i, letter in enumerate(pattern)
        if letter in "M*"
    )


def plamo2(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """PLaMo 2: Mamba-2 without groups, attention once every mamba_step layers."""
    count, step = layer_count(config), config.optional(2, "mamba_step", least=2)
    heads, size = config.integer("mamba_num_heads"), config.integer("hidden_size_per_head")
    channels = states.split(heads * size, shards.tp, "Mamba channels")
    kernel, state = config.optional(4, "mamba_d_conv"), config.optional(64, "mamba_d_state")
    tensors = (
        StateTensor(channels * (kernel - 1), "conv"),
        StateTensor(states.split(heads, shards.tp, "Mamba heads") * size * state, "ssm"),
    )

    def recurrent(i: int) -> bool:
        return i != count - 1 if count <= step // 2 else i % step != step // 2

    return tuple(_mamba2(i, tensors, shards) if recurrent(i) else _full(config, i) for i in range(count))


def qwen_gdn(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Qwen3-Next, Qwen3.5 and later, OLMo hybrid: Gated DeltaNet with attention in between."""
    tensors = states.gated_delta_net(
        shards,
        config.integer("linear_num_key_heads"),
        config.integer("linear_num_value_heads"),
        config.integer("linear_key_head_dim"),
        config.integer("linear_value_head_dim"),
        config.integer("linear_conv_kernel_dim"),
    )
    count, interval = layer_count(config), config.optional(4, "full_attention_interval", least=1)
    if config.get("layer_types") is None:
        kinds: Sequence[str] = ["linear_attention" if (i + 1) % interval else "full_attention" for i in range(count)]
    else:
        kinds = _listed(config, ("layer_types",), ("linear_attention", "full_attention"))
    exports = shards.gdn_exports and config.architecture != _OLMO and shards.release >= CHECKPOINTS_GDN
    return tuple(
        State(i, LayerKind.GDN, tensors, exports) if kind == "linear_attention" else _full(config, i)
        for i, kind in enumerate(kinds)
    )


_OLMO = "OlmoHybridForCausalLM"  # its own Gated DeltaNet layer, which exports no state


def kimi_linear(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Kimi-Linear and Kimi-K3: KDA with latent attention in between; layers are counted from 1 in the config."""
    linear = config.section("linear_attn_config")
    recurrent, size = set(linear.listed("kda_layers")), linear.integer("head_dim")
    kernel, drafts = linear.optional(4, "short_conv_kernel_size", least=1), _drafts(shards, _DRAFTS_IN_KDA)
    tensors = states.kimi_delta(shards, linear.integer("num_heads"), size, kernel, drafts)
    flash_kda = size == _FLASH_KDA_HEAD and linear.get("gate_lower_bound") is not None
    checkpoints = flash_kda and shards.release >= CHECKPOINTS_KDA
    return tuple(
        State(i, LayerKind.KDA, tensors, checkpoints) if i + 1 in recurrent else latent_layer(config, i)
        for i in range(layer_count(config))
    )


def lfm2(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """LFM2: short convolutions with attention at listed layers."""
    width = config.optional(config.integer("hidden_size", least=1), "conv_dim")
    tensors = states.short_conv(shards, width, config.optional(3, "conv_L_cache"))
    if config.get("layer_types") is not None:
        kinds = _listed(config, ("layer_types",), ("conv", "short_conv", "full_attention"))
        attention = {i for i, kind in enumerate(kinds) if kind == "full_attention"}
    else:
        attention = set(config.listed("full_attn_idxs"))
    return tuple(
        _full(config, i) if i in attention else State(i, LayerKind.SHORT_CONV, tensors)
        for i in range(layer_count(config))
    )


def minimax_text(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """MiniMax-Text-01 and M1: lightning attention (0) and softmax attention (1), as listed."""
    if config.get("attn_type_list") is None:
        kinds = _listed(config, ("layer_types",), ("linear_attention", "full_attention"))
        listed = [int(kind == "full_attention") for kind in kinds]
    else:
        listed = config.listed("attn_type_list", length=layer_count(config))
    tensors = states.linear(shards, attention_heads(config), head_size(config))
    return tuple(
        _full(config, i) if kind == 1 else State(i, LayerKind.LINEAR, tensors)
        for i, kind in enumerate(listed[: layer_count(config)])
    )


def bailing_linear(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Ling 2.5: lightning attention, and latent attention at the end of each group of layers."""
    group = config.optional(1, "layer_group_size")
    tensors = states.linear(shards, attention_heads(config), head_size(config))
    return tuple(
        State(i, LayerKind.LINEAR, tensors) if group > 0 and (i + 1) % group else latent_layer(config, i)
        for i in range(layer_count(config))
    )


def ssm_dtype(config: ModelConfig, release: Release) -> str | None:
    """What "auto" means for --mamba-ssm-cache-dtype where the model itself says (model_executor/models/config.py)."""
    if config.model_type.startswith("qwen3_5"):
        named = config.get("mamba_ssm_dtype")
        return str(named) if named is not None and release >= _QWEN_NAMES_ITS_DTYPE else None
    if config.architecture.startswith("NemotronH") and release >= _NEMOTRON_NAMES_ITS_DTYPE:
        fallback = "float32" if release >= _NEMOTRON_TAKES_FLOAT32 else "float16"
        return str(config.get("mamba_ssm_cache_dtype") or fallback)
    if "linear_attn_config" in config.text:
        return "float32"
    return None


def mamba_chunk(config: ModelConfig) -> int:
    """The chunk that mode "all" aligns to (config/model.py get_mamba_chunk_size)."""
    return config.optional(2048, "mamba_chunk_size", "chunk_size", least=1)


def _listed(config: ModelConfig, keys: tuple[str, ...], known: tuple[str, ...]) -> Sequence[str]:
    kinds = config.listed(*keys, of=str, length=layer_count(config))
    unknown = sorted({str(kind) for kind in kinds} - set(known))
    if unknown:
        raise ConfigError(f'{config.architecture}: "{keys[0]}" names {unknown[0]!r}, whose cache is not known')
    return tuple(kinds)[: layer_count(config)]
