"""What a model's layers keep for a request, before any serving flag: the vocabulary that the readers write in."""

from enum import StrEnum

from kvguard.kvcache.context import Context
from kvguard.slotted import dataclass


class LayerKind(StrEnum):
    """What a layer keeps. The attention kinds carry vLLM's own names (v1/kv_cache_interface.py)."""

    FULL = "full_attention"
    SLIDING = "sliding_window"
    CHUNKED = "chunked_local_attention"
    MLA = "mla_attention"
    MLA_INDEXER = "mla_indexer"
    CROSS = "cross_attention"
    ENCODER_ONLY = "encoder_only_attention"
    SHARED = "kv_sharing"
    MAMBA1 = "mamba1"
    MAMBA2 = "mamba2"
    GDN = "gdn"
    KDA = "kda"
    SHORT_CONV = "short_conv"
    LINEAR = "linear_attention"


FULL_KINDS = (LayerKind.FULL, LayerKind.MLA, LayerKind.MLA_INDEXER)
"""Kinds that keep every token of a request: vLLM's FullAttentionSpec and what descends from it."""


@dataclass(frozen=True, slots=True)
class Attention:
    """A layer that keeps keys and values of tokens.

    `kv_heads` is the model's total; head sizes are in elements. `window` is the sliding window or the chunk, in
    tokens. `row_bytes` fixes the bytes of one token where the row is packed whatever the cache's dtype (indexer keys).
    """

    index: int
    kind: LayerKind
    kv_heads: int
    head_size: int
    head_size_v: int
    window: int | None = None
    row_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class StateTensor:
    """One tensor of a recurrent state: its elements on one rank, and which dtype flag governs it."""

    elements: int
    role: str  # "conv" or "ssm": --mamba-cache-dtype or --mamba-ssm-cache-dtype


@dataclass(frozen=True, slots=True)
class State:
    """A layer that keeps one fixed record a request. `checkpoints`: it can export a state from inside a prefill."""

    index: int
    kind: LayerKind
    tensors: tuple[StateTensor, ...]
    checkpoints: bool = False


@dataclass(frozen=True, slots=True)
class NoCache:
    """A layer without a cache of its own: it reads another layer's, or it attends within one pass only."""

    index: int
    kind: LayerKind


Layer = Attention | State | NoCache


@dataclass(frozen=True, slots=True)
class ModelLayers:
    """All that the arithmetic needs of a model.

    `layers` in the order in which vLLM registers them; `decoder_layers` is what pipeline stages split;
    `attention_heads` is what tensor parallelism must divide; `encoder_tokens` is what one request's encoder input
    occupies in cross-attention (None without one); `mamba_chunk` is the model's own chunk in mode "all".
    """

    architecture: str
    layers: tuple[Layer, ...]
    decoder_layers: int
    attention_heads: int
    context: Context
    dtype: str
    encoder_tokens: int | None = None
    mamba_chunk: int = 1
    ssm_dtype: str | None = None
    caches_states_in_full: bool = False
    default_block_size: int | None = None
    is_moe: bool = False

    @property
    def keeps_states(self) -> bool:
        """Whether any layer is recurrent."""
        return any(isinstance(layer, State) for layer in self.layers)

    @property
    def keeps_tokens(self) -> bool:
        """Whether any layer keeps keys and values."""
        return any(isinstance(layer, Attention) for layer in self.layers)

    def counts(self) -> dict[str, int]:
        """How many layers of each kind, in the order of their first appearance."""
        counted: dict[str, int] = {}
        for layer in self.layers:
            counted[layer.kind.value] = counted.get(layer.kind.value, 0) + 1
        return counted
