"""Bytes of a model's weights, estimated from its config where no checkpoint is at hand."""

from collections.abc import Mapping

from kvguard.errors import ConfigError
from kvguard.kvcache.dtypes import torch_bytes
from kvguard.kvcache.layers import Attention, LayerKind, ModelLayers, State
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.readers.heads import HIDDEN_KEYS
from kvguard.kvcache.serving import Serving
from kvguard.kvcache.stages import layer_ranges
from kvguard.slotted import dataclass
from kvguard.units import Interval

QUANTIZED_BITS: Mapping[str, tuple[float, float]] = {
    # method: bits a weight of the linear layers, scales and zero points included (low, high)
    "awq": (4.15, 4.65),
    "awq_marlin": (4.15, 4.65),
    "bitsandbytes": (4.1, 4.6),
    "compressed-tensors": (4.1, 8.2),
    "experts_int8": (8.0, 8.2),
    "fbgemm_fp8": (8.0, 8.1),
    "fp8": (8.0, 8.1),
    "gptq": (4.15, 4.65),
    "gptq_marlin": (4.15, 4.65),
    "int8": (8.0, 8.2),
    "modelopt": (8.0, 8.1),
    "modelopt_fp4": (4.4, 4.6),
    "mxfp4": (4.2, 4.35),
    "nvfp4": (4.4, 4.6),
}
"""Values of --quantization and of a config's quant_method; embeddings and the head stay as they are."""

_UNCERTAIN = 0.02
_UNCERTAIN_MIXED = 0.08  # states, adapters and encoders have tensors of their own that the config does not size


@dataclass(frozen=True, slots=True)
class Parameters:
    """Elements by where they lie: embeddings on the first stage, the head on the last, the rest in layers."""

    embedding: int
    head: int
    attention: int
    feed_forward: int
    mixed: bool

    @property
    def total(self) -> int:
        """All elements of the model."""
        return self.embedding + self.head + self.attention + self.feed_forward


def estimate_weights(config: ModelConfig, model: ModelLayers, serving: Serving, quantization: str | None) -> Interval:
    """Bytes on the rank that holds most, with the uncertainty of the estimate.

    Args:
        config: the model's config.
        model: its layers.
        serving: TP and PP split the weights.
        quantization: --quantization; None: the config's own quantization_config, or none.

    Raises:
        ConfigError: a method whose bits are not known, or a config without the sizes.
    """
    method = quantization or declared_method(config)
    bits_low, bits_high = _bits(method, serving)
    parameters = count_parameters(config, model)
    embedded = torch_bytes(serving.dtype, "--dtype") * (parameters.embedding + parameters.head)
    linear = parameters.attention + parameters.feed_forward
    share = _largest_share(model, serving)
    spread = _UNCERTAIN_MIXED if parameters.mixed else _UNCERTAIN
    ends = [
        (linear * bits / 8 * share + embedded * _embedded_share(serving)) / serving.tp * factor
        for bits, factor in ((bits_low, 1 - spread), (bits_high, 1 + spread))
    ]
    return Interval(round(ends[0]), round(ends[1]))


def count_parameters(config: ModelConfig, model: ModelLayers) -> Parameters:
    """Elements of the matrices that the config sizes.

    Raises:
        ConfigError: a size that the count depends on is missing.
    """
    hidden, vocabulary = config.integer(*HIDDEN_KEYS), config.integer("vocab_size", "padded_vocab_size")
    tied = config.get("tie_word_embeddings")
    embedding = hidden * vocabulary
    attention = sum(_attention_parameters(layer, config, model, hidden) for layer in model.layers)
    wide = any(isinstance(layer, State) for layer in model.layers) or config.nested
    return Parameters(
        embedding=embedding,
        head=0 if tied else embedding,
        attention=attention,
        feed_forward=_feed_forward(config, hidden, model.decoder_layers),
        mixed=wide or model.is_moe,
    )


def declared_method(config: ModelConfig) -> str | None:
    """The quantisation that the checkpoint itself names; None where it names none."""
    declared = config.whole.get("quantization_config") or config.text.get("quantization_config")
    return str(declared.get("quant_method")) if isinstance(declared, Mapping) and declared.get("quant_method") else None


def _bits(method: str | None, serving: Serving) -> tuple[float, float]:
    if method in (None, "none"):
        bits = 8.0 * torch_bytes(serving.dtype, "--dtype")
        return bits, bits
    if method not in QUANTIZED_BITS:
        known = ", ".join(sorted(QUANTIZED_BITS))
        raise ConfigError(f"--quantization {method}: its bits a weight are not known; give --weights. Known: {known}")
    return QUANTIZED_BITS[method]


def _attention_parameters(layer: object, config: ModelConfig, model: ModelLayers, hidden: int) -> int:
    if isinstance(layer, State):
        return 6 * hidden * hidden  # in- and output projections of the usual expansion by two
    if not isinstance(layer, Attention) or layer.kind is LayerKind.MLA_INDEXER:
        return 0
    heads = model.attention_heads
    if layer.kind is LayerKind.MLA:
        return _latent_parameters(config, heads, hidden)
    return hidden * (2 * heads * layer.head_size + layer.kv_heads * (layer.head_size + layer.head_size_v))


def _latent_parameters(config: ModelConfig, heads: int, hidden: int) -> int:
    rank, rope = config.integer("kv_lora_rank"), config.integer("qk_rope_head_dim")
    nope, value = config.optional(128, "qk_nope_head_dim"), config.optional(128, "v_head_dim")
    query = heads * (nope + rope)
    q_rank = config.optional(0, "q_lora_rank")
    queries = q_rank * (hidden + query) if q_rank else hidden * query
    return queries + hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden


def _feed_forward(config: ModelConfig, hidden: int, layers: int) -> int:
    dense = config.optional(
        4 * hidden, "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "inner_hidden_size"
    )
    matrices = 2 if config.get("activation_function", "n_inner", "ffn_dim", "alibi") is not None else 3
    experts = config.optional(0, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    if not experts:
        return layers * matrices * hidden * dense
    width = config.optional(dense, "moe_intermediate_size", "expert_ffn_hidden_size")
    shared = config.optional(0, "n_shared_experts") * width + config.optional(0, "shared_expert_intermediate_size")
    leading = config.optional(0, "first_k_dense_replace")
    sparse = (layers - leading) * (3 * hidden * (experts * width + shared) + hidden * experts)
    return sparse + leading * 3 * hidden * dense


def _largest_share(model: ModelLayers, serving: Serving) -> float:
    longest = max(len(held) for held in layer_ranges(model.decoder_layers, serving))
    return longest / model.decoder_layers


def _embedded_share(serving: Serving) -> float:
    """Embeddings lie on the first stage and the head on the last."""
    return 1.0 if serving.pp == 1 else 0.5
