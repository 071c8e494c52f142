"""Decoders of attention layers: full, sliding, chunked, mixed, with two head geometries, with layers that share."""

from collections.abc import Callable, Mapping, Sequence

from kvguard.errors import ConfigError
from kvguard.kvcache.layers import Attention, Layer, LayerKind, NoCache
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.readers import Reader, Shards
from kvguard.kvcache.readers.heads import head_size, kv_heads, layer_count
from kvguard.kvcache.releases import CHUNKED_LAYERS_KNOWN, Release
from kvguard.slotted import replace

_KIND_OF_TYPE = {
    "full_attention": LayerKind.FULL,
    "attention": LayerKind.FULL,
    "global_attention": LayerKind.FULL,
    "sliding_attention": LayerKind.SLIDING,
    "local_attention": LayerKind.SLIDING,
    "chunked_attention": LayerKind.CHUNKED,
}
_COHERE_WINDOW_PLUS_ONE = Release(0, 31, 0)  # commandr.py: the layer sees [position − window, position]

Kinds = Sequence[LayerKind]
Pattern = Callable[[ModelConfig, int], Kinds]


def uniform(config: ModelConfig, count: int) -> Kinds:
    """Every layer alike: sliding where the config has a window in force, else full."""
    return (LayerKind.SLIDING if window(config) else LayerKind.FULL,) * count


def every(period: int, *keys: str) -> Pattern:
    """Every `period`-th layer full, the others sliding; a config key may name another period."""

    def pattern(config: ModelConfig, count: int) -> Kinds:
        named = config.get(*keys) if keys else None
        if isinstance(named, str):  # EXAONE 4 spells a period as "LLLG"
            return tuple(LayerKind.FULL if named[i % len(named)] == "G" else LayerKind.SLIDING for i in range(count))
        n = config.integer(*keys, least=1) if named else period
        return tuple(LayerKind.FULL if (i + 1) % n == 0 else LayerKind.SLIDING for i in range(count))

    return pattern


def first_full(config: ModelConfig, count: int) -> Kinds:
    """Qwen2 and 3 with use_sliding_window: all layers sliding, or none; qwen2.py takes no mixture.

    Raises:
        ConfigError: max_window_layers, behind which layers slide, lies between.
    """
    full = min(config.optional(count, "max_window_layers"), count) if window(config) else count
    if 0 < full < count:
        raise ConfigError(
            f'{config.architecture}: "max_window_layers" is {full} of {count}; vLLM refuses such a mixture'
        )
    return (LayerKind.FULL if full else LayerKind.SLIDING,) * count


def all_full(_: ModelConfig, count: int) -> Kinds:
    """Every layer full, whatever window the config names: vLLM's class has no sliding layers."""
    return (LayerKind.FULL,) * count


def without_rope(config: ModelConfig, count: int) -> Kinds:
    """SmolLM3 with use_sliding_window: the layers without RoPE sliding, the rest full."""
    if not window(config):
        return (LayerKind.FULL,) * count
    return tuple(LayerKind.FULL if rope else LayerKind.SLIDING for rope in with_rope(config, count))


def with_rope(config: ModelConfig, count: int) -> Sequence[int]:
    """Which layers have RoPE (1): as listed, else all but every fourth."""
    if config.get("no_rope_layers"):
        return config.listed("no_rope_layers", length=count)
    interval = config.optional(4, "no_rope_layer_interval", least=1)
    return [int((i + 1) % interval != 0) for i in range(count)]


def window(config: ModelConfig) -> int | None:
    """The sliding window in force, in tokens; 0 and `use_sliding_window: false` mean none.

    Raises:
        ConfigError: a window that is no number, such as one that differs by layer.
    """
    if config.text.get("use_sliding_window") is False or config.get("sliding_window", "sliding_window_size") is None:
        return None
    value = config.integer("sliding_window", "sliding_window_size")
    return value if value > 0 else None


def layer_kinds(config: ModelConfig, count: int, pattern: Pattern) -> Kinds:
    """The kind of each layer: as listed, else by the architecture's pattern.

    Raises:
        ConfigError: a listed type that is not known.
    """
    listed = config.get("layer_types")
    if not isinstance(listed, list):
        return pattern(config, count)
    unknown = sorted({str(name) for name in listed} - set(_KIND_OF_TYPE))
    if unknown:
        raise ConfigError(f'{config.architecture}: "layer_types" names {unknown[0]!r}, whose cache is not known')
    if len(listed) < count:
        raise ConfigError(f'{config.architecture}: "layer_types" lists {len(listed)} of {count} layers')
    return tuple(_KIND_OF_TYPE[name] for name in listed[:count])


def decoder(pattern: Pattern = uniform, window_offset_since: Release | None = None) -> Reader:
    """A reader for decoders whose layers differ in kind only."""

    def read(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
        count = layer_count(config)
        offset = 1 if window_offset_since is not None and shards.release >= window_offset_since else 0
        heads, size = kv_heads(config), head_size(config)
        return tuple(
            attention_layer(config, i, kind, heads, size, offset)
            for i, kind in enumerate(layer_kinds(config, count, pattern))
        )

    return read


def attention_layer(
    config: ModelConfig, index: int, kind: LayerKind, heads: int, size: int, offset: int = 0, size_v: int | None = None
) -> Attention:
    """One attention layer; a sliding one takes the config's window.

    Raises:
        ConfigError: sliding layers without a window in the config.
    """
    reach = None
    if kind is LayerKind.SLIDING:
        reach = window(config)
        if reach is None:
            raise ConfigError(f'{config.architecture}: sliding layers without a "sliding_window" in the model config')
        reach += offset
    return Attention(index, kind, heads, size, size_v or size, reach)


dense = decoder()
cohere2_moe = decoder(all_full, window_offset_since=Release(0, 0, 0))
cohere2 = decoder(every(4, "sliding_window_pattern"), window_offset_since=_COHERE_WINDOW_PLUS_ONE)


def dflash(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """DFlash drafters: as listed, or all sliding where they say so (qwen3_dflash.py _resolve_layer_attention)."""
    count, heads, size = layer_count(config), kv_heads(config), head_size(config)
    own = config.get("dflash_config")
    said = own if isinstance(own, Mapping) else {}
    kinds = layer_kinds(config, count, all_full)
    if said.get("use_swa") and LayerKind.SLIDING not in kinds:
        kinds = (LayerKind.SLIDING,) * count
    named = said.get("swa_window_size")
    slid = {"sliding_window": named, "use_sliding_window": True} if named is not None else {}
    widened = replace(config, text={**config.text, **slid})
    return tuple(attention_layer(widened, i, kind, heads, size) for i, kind in enumerate(kinds))


def llama4(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Chunked layers with RoPE, full ones without (llama4.py); before 0.10.0 vLLM knew no chunked cache."""
    count, heads, size = layer_count(config), kv_heads(config), head_size(config)
    chunk = config.optional(0, "attention_chunk_size") if "attention_chunk_size" in config.text else 8192
    roped = with_rope(config, count)
    chunked = bool(chunk) and shards.release >= CHUNKED_LAYERS_KNOWN
    return tuple(
        Attention(i, LayerKind.CHUNKED, heads, size, size, chunk)
        if roped[i] and chunked
        else Attention(i, LayerKind.FULL, heads, size, size)
        for i in range(count)
    )


def gemma3n(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """As Gemma 3, every fifth layer full; the last layers read an earlier layer's cache."""
    layers = decoder(every(5, "sliding_window_pattern"))(config, shards)
    return sharing_tail(config, layers, default=15)


def gemma4(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """Two geometries: wide global heads and narrow local ones (gemma4.py); the last layers may share."""
    if config.get("per_layer_config") is not None:
        return sharing_tail(config, per_layer(config), default=0)
    count, heads, size = layer_count(config), kv_heads(config), head_size(config)
    global_size = config.optional(512, "global_head_dim")
    global_heads = config.optional(heads, "num_global_key_value_heads") if config.get("attention_k_eq_v") else heads
    kinds = layer_kinds(config, count, every(6, "sliding_window_pattern"))
    layers = tuple(
        attention_layer(config, i, kind, *((global_heads, global_size) if kind is LayerKind.FULL else (heads, size)))
        for i, kind in enumerate(kinds)
    )
    return sharing_tail(config, layers, default=0)


def per_layer(config: ModelConfig) -> tuple[Layer, ...]:
    """Heads that differ by layer, as transformers 5 writes them: the exceptions, by the layer's number ("05")."""
    exceptions = {int(name): own for name, own in config.section("per_layer_config").text.items() if name.isdigit()}
    heads, size = kv_heads(config), head_size(config)
    kinds = layer_kinds(config, layer_count(config), every(6, "sliding_window_pattern"))
    layers = []
    for i, kind in enumerate(kinds):
        own = config.section("per_layer_config", exceptions.get(i, {}))
        widths = (own.optional(heads, "num_key_value_heads", least=1), own.optional(size, "head_dim"))
        layers.append(attention_layer(config, i, kind, *widths))
    return tuple(layers)


def sharing_tail(config: ModelConfig, layers: tuple[Layer, ...], default: int) -> tuple[Layer, ...]:
    """The same with the last `num_kv_shared_layers` without a cache of their own."""
    first = len(layers) - config.optional(default, "num_kv_shared_layers")
    return tuple(layer if layer.index < first else NoCache(layer.index, LayerKind.SHARED) for layer in layers)


def mimo_v2(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """MiMo V2: sliding and full layers with KV heads and value sizes of their own."""
    pattern = config.listed("hybrid_layer_pattern", length=layer_count(config))
    heads, size = kv_heads(config), head_size(config)
    swa_heads = config.optional(heads, "swa_num_key_value_heads")
    swa_size = config.optional(size, "swa_head_dim")
    size_v, swa_size_v = config.optional(size, "v_head_dim"), config.optional(swa_size, "swa_v_head_dim")
    return tuple(
        attention_layer(config, i, LayerKind.SLIDING, swa_heads, swa_size, size_v=swa_size_v)
        if pattern[i] == 1
        else attention_layer(config, i, LayerKind.FULL, heads, size, size_v=size_v)
        for i in range(layer_count(config))
    )


def step3p5(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """Step 3.5: the sliding layers have a head setting of their own."""
    other = config.section("attention_other_setting", config.get("attention_other_setting") or {})
    heads, size = kv_heads(config), head_size(config)
    local = (other.optional(heads, "num_attention_groups", least=1), other.optional(size, "head_dim"))
    kinds = layer_kinds(config, layer_count(config), every(4))
    return tuple(
        attention_layer(config, i, kind, *(local if kind is LayerKind.SLIDING else (heads, size)))
        for i, kind in enumerate(kinds)
    )


def plamo3(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """PLaMo 3: a window for each layer, null where it is full."""
    heads, size = kv_heads(config), head_size(config)
    windows = config.need("interleaved_sliding_window", "sliding_window")
    if not isinstance(windows, list) or len(windows) < layer_count(config):
        raise ConfigError(f'{config.architecture}: "interleaved_sliding_window" is no list of a window for each layer')
    return tuple(
        Attention(i, LayerKind.FULL if reach is None else LayerKind.SLIDING, heads, size, size, reach)
        for i, reach in enumerate(windows[: layer_count(config)])
    )


def hunyuan(config: ModelConfig, shards: Shards) -> tuple[Layer, ...]:
    """Hunyuan; its cross-layer attention is refused: vLLM gives those layers caches that differ by release."""
    if config.get("use_cla"):
        raise ConfigError(
            f'{config.architecture}: "use_cla" (cross-layer KV sharing) is a layer kind that is not known'
        )
    return dense(config, shards)


def nemotron_nas(config: ModelConfig, _: Shards) -> tuple[Layer, ...]:
    """Nemotron-NAS (DeciLM): layers of different KV heads, some without attention."""
    size, queries = head_size(config), config.integer("num_attention_heads")
    layers: list[Layer] = []
    for i, block in enumerate(config.listed("block_configs", of=dict)):
        attention = config.section("block_configs", block).section("attention")
        if attention.get("no_op") or attention.get("replace_with_linear"):
            continue
        heads = queries // attention.integer("n_heads_in_group", least=1)
        layers.append(Attention(i, LayerKind.FULL, heads, size, size))
    return tuple(layers)
