"""Shapes of recurrent states on one rank (vLLM's model_executor/layers/mamba/mamba_utils.py)."""

from kvguard.errors import ConfigError
from kvguard.kvcache.layers import StateTensor
from kvguard.kvcache.readers import Shards


def mamba1(shards: Shards, intermediate: int, state_size: int, kernel: int) -> tuple[StateTensor, ...]:
    """Mamba-1: a convolution window and one state a channel."""
    channels = split(intermediate, shards.tp, "Mamba channels")
    return (StateTensor(channels * (kernel - 1), "conv"), StateTensor(channels * state_size, "ssm"))


def mamba2(
    shards: Shards,
    intermediate: int,
    groups: int,
    heads: int,
    head_size: int,
    state_size: int,
    kernel: int,
    drafts: int,
) -> tuple[StateTensor, ...]:
    """Mamba-2: groups are replicated until tensor parallelism divides them."""
    if groups % shards.tp:
        groups = shards.tp
    channels = split(intermediate + 2 * groups * state_size, shards.tp, "Mamba-2 channels")
    return (
        StateTensor(channels * (kernel - 1 + drafts), "conv"),
        StateTensor(split(heads, shards.tp, "Mamba-2 heads") * head_size * state_size, "ssm"),
    )


def gated_delta_net(
    shards: Shards, key_heads: int, value_heads: int, key_size: int, value_size: int, kernel: int
) -> tuple[StateTensor, ...]:
    """Gated DeltaNet (Qwen3-Next, Qwen3.5, OLMo hybrid): the window grows by the draft tokens."""
    channels = split(2 * key_heads * key_size + value_heads * value_size, shards.tp, "GDN channels")
    return (
        StateTensor(channels * (kernel - 1 + shards.speculative_tokens), "conv"),
        StateTensor(split(value_heads, shards.tp, "GDN value heads") * key_size * value_size, "ssm"),
    )


def kimi_delta(shards: Shards, heads: int, head_size: int, kernel: int, drafts: int) -> tuple[StateTensor, ...]:
    """Kimi Delta Attention: three windows (q, k, v) and an fp32 state."""
    local = split(heads, shards.tp, "KDA heads")
    return (
        StateTensor(3 * local * head_size * (kernel - 1 + drafts), "conv"),
        StateTensor(local * head_size * head_size, "ssm"),
    )


def short_conv(shards: Shards, width: int, kernel: int) -> tuple[StateTensor, ...]:
    """A gated short convolution (LFM2)."""
    return (StateTensor(split(width, shards.tp, "convolution channels") * (kernel - 1), "conv"),)


def linear(shards: Shards, heads: int, head_size: int) -> tuple[StateTensor, ...]:
    """Lightning attention (MiniMax-Text-01, Ling 2.5): one matrix a head, in the convolution's dtype."""
    return (StateTensor(split(heads, shards.tp, "linear-attention heads") * head_size * head_size, "conv"),)


def split(total: int, tp: int, what: str) -> int:
    """`total` over the ranks.

    Raises:
        ConfigError: not divisible, which vLLM refuses too.
    """
    if total % tp:
        raise ConfigError(f"--tensor-parallel-size {tp}: vLLM refuses it, as the model has {total} {what}")
    return total // tp
