"""Bytes of one block of one layer on one rank (a page), for each kind of layer and each KV dtype."""

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.dtypes import PACKED_MLA_ROWS, kv_dtype, torch_bytes
from kvguard.kvcache.layers import FULL_KINDS, Attention, LayerKind, ModelLayers, State
from kvguard.kvcache.serving import Serving
from kvguard.slotted import dataclass, replace

_LATENT = (LayerKind.MLA, LayerKind.MLA_INDEXER)


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """One layer's cache on one rank, as vLLM's KVCacheSpec: equal specs share a group.

    `page_bytes` includes padding; `raw_bytes` is without it (for a state: the state itself). `block_size` in tokens.
    `shape` tells apart layers whose pages are equal by chance. `family` is what vLLM calls the uniform base of a spec.
    """

    kind: str
    block_size: int
    page_bytes: int
    raw_bytes: int
    window: int | None
    shape: tuple[int | str, ...]
    family: str
    splits_tokens: bool = False
    checkpoints: int = 0

    @property
    def is_state(self) -> bool:
        """Whether the page is a recurrent state."""
        return self.kind == "mamba"

    @property
    def is_latent(self) -> bool:
        """Whether the page holds latents, which no release pads."""
        return self.family == "full" and self.kind == LayerKind.MLA.value

    def resized(self, block_size: int) -> "CacheSpec":
        """The same layer at another block size."""
        page = self.raw_bytes // self.block_size * block_size
        return replace(self, block_size=block_size, page_bytes=page, raw_bytes=page)

    def padded(self, page_bytes: int) -> "CacheSpec":
        """The same layer with its page padded."""
        return replace(self, page_bytes=page_bytes)


def token_bytes(layer: Attention, serving: Serving) -> int:
    """Bytes that one token takes in this layer on one rank.

    Raises:
        ConfigError: a KV dtype that the layer or the release does not take.
    """
    if layer.row_bytes is not None:
        return layer.row_bytes
    dtype = kv_dtype(serving.kv_cache_dtype, serving.dtype, serving.release)
    if layer.kind in _LATENT:
        return _latent_bytes(layer, serving)
    if serving.kv_cache_dtype in PACKED_MLA_ROWS:
        raise ConfigError(f"--kv-cache-dtype {serving.kv_cache_dtype}: only for latent attention (MLA)")
    heads = max(1, layer.kv_heads // serving.tp)
    sliding = layer.kind is LayerKind.SLIDING
    since = releases.V_HEAD_SIZE_COUNTED_IN_WINDOWS if sliding else releases.V_HEAD_SIZE_COUNTED
    counted = serving.release >= since and serving.engine == "v1"
    size_v = layer.head_size_v if counted else layer.head_size
    return heads * (dtype.row_bytes(layer.head_size) + dtype.row_bytes(size_v))


def _latent_bytes(layer: Attention, serving: Serving) -> int:
    packed = PACKED_MLA_ROWS.get(serving.kv_cache_dtype)
    if packed is not None:
        return packed
    dtype = kv_dtype(serving.kv_cache_dtype, serving.dtype, serving.release)
    twice = serving.engine == "v1" and serving.release < releases.MLA_COUNTED_ONCE_IN_V1
    size = _aligned(layer.head_size, serving) if serving.engine == "v0" else layer.head_size
    return size * dtype.numerator // dtype.denominator * (2 if twice else 1)


def _aligned(size: int, serving: Serving) -> int:
    """0.7.2 and 0.7.3 round a latent up to 256 bytes of the model's dtype (worker/cache_engine.py, on CUDA)."""
    if not releases.LATENTS_ALIGNED_IN_V0 <= serving.release < releases.LATENTS_NOT_ALIGNED_IN_V0:
        return size
    step = 256 // torch_bytes(serving.dtype, "the model's dtype")
    return ceil(size, step) * step


def state_bytes(layer: State, serving: Serving) -> int:
    """Bytes of one recurrent state on one rank, unpadded; before its dtype had flags it was the KV cache's."""
    if serving.release < releases.STATES_HAVE_DTYPES:
        dtype = kv_dtype(serving.kv_cache_dtype, serving.dtype, serving.release)
        return sum(tensor.elements for tensor in layer.tensors) * dtype.numerator // dtype.denominator
    conv = serving.dtype if serving.mamba_cache_dtype == "auto" else serving.mamba_cache_dtype
    ssm = conv if serving.mamba_ssm_cache_dtype == "auto" else serving.mamba_ssm_cache_dtype
    sizes = {"conv": torch_bytes(conv, "--mamba-cache-dtype"), "ssm": torch_bytes(ssm, "--mamba-ssm-cache-dtype")}
    return sum(tensor.elements * sizes[tensor.role] for tensor in layer.tensors)


def attention_spec(layer: Attention, serving: Serving, block_size: int) -> CacheSpec:
    """An attention layer's cache at this block size."""
    page = token_bytes(layer, serving) * block_size
    kind = LayerKind.MLA if layer.kind in _LATENT else layer.kind
    windows = serving.engine == "v1" and serving.release >= releases.WINDOWS_IN_V1
    if not windows and kind is not LayerKind.MLA:
        kind = LayerKind.FULL  # V0 and the first V1 give sliding layers blocks for every token
    return CacheSpec(
        kind=kind.value,
        block_size=block_size,
        page_bytes=page,
        raw_bytes=page,
        window=None if kind in FULL_KINDS else layer.window,
        shape=(max(1, layer.kv_heads // serving.tp), layer.head_size, layer.head_size_v, layer.row_bytes or 0),
        family="full" if kind in FULL_KINDS else f"{kind.value}:{layer.window}",
        splits_tokens=kind in FULL_KINDS,
    )


def state_spec(layer: State, serving: Serving, block_size: int, page_bytes: int) -> CacheSpec:
    """A recurrent layer's cache; `page_bytes` is the state, padded where the model has attention too."""
    raw = state_bytes(layer, serving)
    return CacheSpec(
        kind="mamba",
        block_size=block_size,
        page_bytes=page_bytes,
        raw_bytes=raw,
        window=None,
        shape=(layer.kind.value, *(tensor.elements for tensor in layer.tensors)),
        family="mamba",
        checkpoints=int(layer.checkpoints),
    )


def ceil(numerator: int, denominator: int) -> int:
    """Whole units that cover `numerator`."""
    return -(-numerator // denominator)


def widest_token(model: ModelLayers, serving: Serving) -> int:
    """Bytes of one token in one layer of the model's main attention: what states are measured against.

    vLLM takes the model's nominal head count and size, which is its full attention's.
    """
    main = [layer for layer in model.layers if isinstance(layer, Attention) and layer.kind is not LayerKind.MLA_INDEXER]
    full = [layer for layer in main if layer.kind in FULL_KINDS] or main
    return token_bytes(full[0], serving)
