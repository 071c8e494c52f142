"""From the card to the cache: total × utilisation − weights − reserve, each part with its two ends and its origin."""

from kvguard.kvcache import releases
from kvguard.kvcache.model_config import ModelConfig
from kvguard.kvcache.readers.heads import HIDDEN_KEYS
from kvguard.kvcache.serving import Serving
from kvguard.slotted import dataclass
from kvguard.units import GIB, MIB, Interval


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of one rank, and where the figure comes from: given, measured, checkpoint, config or estimate."""

    bytes: Interval
    source: str


@dataclass(frozen=True, slots=True)
class Budget:
    """What one rank's memory goes to; `kv_cache` is what the others leave."""

    total: Part | None
    utilization: float | None
    usable: Part | None
    weights: Part | None
    reserve: Part | None
    kv_cache: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredParts:
    """What a start measured on one rank, in bytes; None where its log does not say.

    `utilization` is the share that the measured start ran with. The parts of a start on the same machine replace the
    estimates; `kv_cache` is the outcome they led to.
    """

    total: Interval | None = None
    utilization: float | None = None
    weights: Interval | None = None
    non_torch: Interval | None = None
    activation_peak: Interval | None = None
    cuda_graphs: Interval | None = None
    kv_cache: Interval | None = None

    @property
    def reserve(self) -> Interval | None:
        """All that is neither weights nor cache: by its parts, else what the equation leaves for it."""
        parts = [part for part in (self.non_torch, self.activation_peak, self.cuda_graphs) if part is not None]
        if self.activation_peak is not None:
            return Interval(sum(part.low for part in parts), sum(part.high for part in parts))
        if self.total is None or self.utilization is None or self.weights is None or self.kv_cache is None:
            return None
        usable = scaled(self.total, self.utilization)
        return Interval(
            usable.low - self.weights.high - self.kv_cache.high, usable.high - self.weights.low - self.kv_cache.low
        )


def declared_budget(kv_cache: Interval) -> Budget:
    """A cache whose bytes are given, as --kv-cache-memory-bytes does."""
    return Budget(None, None, None, None, None, Part(kv_cache, "given"))


def card_budget(total: Part, utilization: float, weights: Part, reserve: Part) -> Budget:
    """The budget equation; ends are combined so that the interval holds."""
    usable = scaled(total.bytes, utilization)
    left = Interval(
        usable.low - weights.bytes.high - reserve.bytes.high, usable.high - weights.bytes.low - reserve.bytes.low
    )
    return Budget(total, utilization, Part(usable, total.source), weights, reserve, Part(left, "computed"))


def measured_budget(parts: MeasuredParts, utilization: float | None, weights: Part | None) -> Budget | None:
    """The budget of the same machine, with another utilisation or other weights where given.

    None where the log does not hold enough: then the measured cache alone can be planned with.
    """
    share = utilization if utilization is not None else parts.utilization
    unchanged = weights is None and share == parts.utilization
    if unchanged and parts.kv_cache is not None:
        known = None if parts.total is None or share is None else Part(scaled(parts.total, share), "measured")
        total = None if parts.total is None else Part(parts.total, "measured")
        own = None if parts.weights is None else Part(parts.weights, "measured")
        reserve = None if parts.reserve is None else Part(parts.reserve, "measured")
        return Budget(total, share, known, own, reserve, Part(parts.kv_cache, "measured"))
    used = weights or (None if parts.weights is None else Part(parts.weights, "measured"))
    if parts.total is None or share is None or used is None or parts.reserve is None:
        return None
    return card_budget(Part(parts.total, "measured"), share, used, Part(parts.reserve, "measured"))


def estimated_reserve(config: ModelConfig, serving: Serving) -> Part:
    """Activation peak, memory outside PyTorch and CUDA graphs, as a wide interval: none of it is in a config.

    The profile run passes max_num_batched_tokens through the widest layer and samples max_num_seqs rows of logits; a
    start that measured them (llama-3.1-8b, 2,048 tokens, one 24 GB card: 1.26 GiB and 0.12 GiB) lies inside.
    """
    hidden = config.optional(4096, *HIDDEN_KEYS)
    inner = config.optional(4 * hidden, "intermediate_size", "moe_intermediate_size", "n_inner", "ffn_dim")
    vocabulary = config.optional(128_000, "vocab_size", "padded_vocab_size")
    forward = serving.max_num_batched_tokens * (4 * hidden + 2 * inner // serving.tp) * 2
    logits = min(serving.max_num_seqs, serving.max_num_batched_tokens) * vocabulary * 4
    graphs = serving.release >= releases.GRAPHS_TAKEN_OFF
    low = forward + logits + 100 * MIB
    high = 4 * forward + 3 * logits + (600 if serving.tp == 1 else 1600) * MIB + (GIB if graphs else 0)
    return Part(Interval(low, high), "estimate")


def scaled(total: Interval, share: float) -> Interval:
    """A share of an interval, in whole bytes."""
    return Interval(int(total.low * share), int(total.high * share))
