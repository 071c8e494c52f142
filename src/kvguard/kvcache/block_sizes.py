"""Block sizes as vLLM settles them: raised where a recurrent state must fit a page, chosen anew by sliding layers."""

from math import lcm

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.kvcache.layers import Attention, Layer, LayerKind, ModelLayers, State
from kvguard.kvcache.pages import CacheSpec, attention_spec, ceil, state_bytes, state_spec, widest_token
from kvguard.kvcache.serving import Serving
from kvguard.slotted import dataclass

_KERNEL_MINIMUM = 16
_LATENT_KERNEL = 64
_GDN_CHUNK = 64  # v1/attention/backends/gdn_attn.py FLASHINFER_GDN_CHECKPOINT_ALIGNMENT


@dataclass(frozen=True, slots=True)
class BlockSizes:
    """Tokens of an attention block and of a state's block, and the page that a state is padded to (0: not)."""

    attention: int
    state: int
    state_page: int


def cache_specs(model: ModelLayers, serving: Serving) -> tuple[tuple[Layer, CacheSpec], ...]:
    """Each layer that keeps something, with its cache on one rank; in the order of registration.

    Raises:
        ConfigError: a combination that vLLM refuses.
    """
    sizes = block_sizes(model, serving)
    specs: list[tuple[Layer, CacheSpec]] = []
    for layer in model.layers:
        if isinstance(layer, Attention):
            specs.append((layer, attention_spec(layer, serving, _attention_block(layer, serving, sizes.attention))))
        elif isinstance(layer, State) and serving.engine == "v1":  # V0 keeps states outside its pool
            page = sizes.state_page or state_bytes(layer, serving)
            specs.append((layer, state_spec(layer, serving, sizes.state, page)))
    return tuple(specs)


def block_sizes(model: ModelLayers, serving: Serving) -> BlockSizes:
    """What --block-size and --mamba-block-size become for this model."""
    states = [state_bytes(layer, serving) for layer in model.layers if isinstance(layer, State)]
    if not states or serving.engine == "v0":
        return BlockSizes(serving.block_size, 0, 0)
    if not model.keeps_tokens:
        named = serving.release >= releases.STATE_BLOCK_FOLLOWS or serving.mamba_cache_mode == "none"
        block = _state_block(serving, serving.block_size if named else serving.max_model_len)
        return BlockSizes(serving.block_size, block, 0)
    token, state = widest_token(model, serving), max(states)
    if serving.release < releases.BLOCK_RAISED_FOR_STATES:
        return _as_given(serving, token, state)
    raised, state_block = _raised(model, serving, token, state)
    attention = max(serving.block_size, raised)
    if serving.mamba_cache_mode == "align":
        state_block = attention
    return BlockSizes(attention, state_block or _state_block(serving, attention), attention * token)


def _as_given(serving: Serving, token: int, state: int) -> BlockSizes:
    page = serving.block_size * token
    if page < state:
        raise ConfigError(
            f"--block-size {serving.block_size}: vLLM {serving.release} does not raise it for recurrent layers; "
            f"at least {ceil(state, token)} tokens are needed"
        )
    return BlockSizes(serving.block_size, _state_block(serving, serving.block_size), page)


def _raised(model: ModelLayers, serving: Serving, token: int, state: int) -> tuple[int, int]:
    """The attention block whose page covers the state, and the state's own block where mode "all" sets it."""
    step = kernel_alignment(model, serving)
    if serving.mamba_cache_mode != "all":
        return step * ceil(state, step * token), 0
    chunk = lcm(serving.mamba_block_size or model.mamba_chunk, step)
    block = chunk * ceil(ceil(state, token), chunk)
    return block, block


def kernel_alignment(model: ModelLayers, serving: Serving) -> int:
    """The multiple that a raised block must be, by the attention kernels of the release."""
    latent = any(layer.kind is LayerKind.MLA for layer in model.layers)
    minimum = serving.kernel_block_alignment
    if serving.release < releases.BLOCK_SIZE_ALIGNS:
        aligned = serving.release >= releases.STATES_BY_BLOCK and latent
        return minimum or (_LATENT_KERNEL if aligned else _KERNEL_MINIMUM)
    step = max(minimum or _KERNEL_MINIMUM, serving.block_size)
    if latent and serving.release >= releases.LATENT_BLOCK_128:
        step = max(step, 128)
    return lcm(step, _GDN_CHUNK) if _checkpoints_gdn(model, serving) else step


def _checkpoints_gdn(model: ModelLayers, serving: Serving) -> bool:
    """Whether states are exported at block boundaries by Gated DeltaNet, whose kernel goes in chunks of its own."""
    states = [layer for layer in model.layers if isinstance(layer, State)]
    exported = all(layer.kind is LayerKind.GDN and layer.checkpoints for layer in states)
    return bool(states) and exported and serving.mamba_cache_mode == "align"


def _state_block(serving: Serving, attention: int) -> int:
    """Tokens that one state's block stands for: all of a request, unless states are kept on the way."""
    if serving.mamba_cache_mode in ("align", "all"):
        return serving.mamba_block_size or attention
    return serving.mamba_block_size or serving.max_model_len


def _attention_block(layer: Attention, serving: Serving, block: int) -> int:
    """From 0.25 sliding layers start from the smallest block of their kernel, from 0.30 from the largest that fits."""
    chooses = layer.kind is LayerKind.SLIDING and serving.engine == "v1"
    if not chooses or serving.release < releases.SLIDING_PICKS_ITS_BLOCK:
        return block
    step = serving.kernel_block_alignment or _KERNEL_MINIMUM
    if serving.release < releases.SLIDING_FILLS_THE_BLOCK:
        return step
    return max(step, block // step * step)
