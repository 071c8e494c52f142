"""A pool whose layers all keep every token: requests of a length by its blocks alone, without a model's config."""

from math import ceil, floor

from kvguard.kvcache.load import Request
from kvguard.slotted import dataclass
from kvguard.units import Interval


@dataclass(frozen=True, slots=True)
class RequestOfBlocks:
    """Blocks that one more request takes, and blocks that all share, once an engine."""

    added: int
    shared: int


@dataclass(frozen=True, slots=True)
class UniformPool:
    """The blocks of one engine, the null block included, and the tokens of one request that a block holds."""

    blocks: Interval
    block_size: int
    shares_prefixes: bool

    @property
    def usable(self) -> Interval:
        """The blocks that requests can take: one id is vLLM's null block."""
        return Interval(max(self.blocks.low - 1, 0), max(self.blocks.high - 1, 0))

    def scaled(self, factor: Interval) -> "UniformPool":
        """The pool after a change that multiplies its blocks."""
        blocks = Interval(floor(self.blocks.low * factor.low), floor(self.blocks.high * factor.high))
        return UniformPool(blocks, self.block_size, self.shares_prefixes)

    def request(self, load: Request) -> RequestOfBlocks:
        """What one request takes; only whole blocks of a prefix are shared, once an engine."""
        whole = ceil(load.stored_tokens / self.block_size)
        shared = min(load.shareable_tokens // self.block_size, whole) if self.shares_prefixes else 0
        return RequestOfBlocks(max(whole - shared, 1), shared)

    def holds(self, request: RequestOfBlocks) -> Interval:
        """Requests that fit at once without preemption, unrounded."""
        low, high = (max(end - request.shared, 0) / request.added for end in (self.usable.low, self.usable.high))
        return Interval(low, high)
