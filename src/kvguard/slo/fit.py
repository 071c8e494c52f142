"""How many requests of one length one engine holds: the answer's type, and the words that it is told in."""

from kvguard.frozen import dataclass
from kvguard.units import Interval, format_count


@dataclass(frozen=True, slots=True)
class Request:
    """One request at its longest, in tokens."""

    tokens: int
    shared_prefix_tokens: int = 0

    @property
    def stored_tokens(self) -> int:
        """Tokens in the cache while the last one is being generated: that one is never stored."""
        return max(self.tokens - 1, 1)


@dataclass(frozen=True, slots=True)
class Fit:
    """Requests that one engine holds at once without preemption, unrounded, before any cap of the scheduler."""

    interval: Interval
    how: str
    """The arithmetic in words: which pool, how much of it one request takes."""
    best: float | None = None
    """The single figure that most likely holds, where the interval is wide for a small reason."""
    layers_open: bool = False
    """Whether the two ends differ because the kinds of layers are not known: then the low end is the judge."""
    usable_blocks: float | None = None
    request_blocks: int | None = None
    """Blocks of one request; whole ones, summed over the groups."""

    @property
    def figure(self) -> float:
        """One figure for a sentence: the best, or the low end."""
        return self.interval.low if self.best is None else self.best


def in_blocks(usable: float, each: int, shared: int) -> str:
    """ "2,559 usable blocks, 532 a request", with what a shared prefix saves."""
    prefix = f" and {format_count(shared)} shared by all" if shared else ""
    return f"{format_count(usable)} usable blocks, {format_count(each)} a request{prefix}"
