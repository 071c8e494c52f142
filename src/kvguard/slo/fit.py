"""How many requests of one length one engine holds: the answer's type, and the words that it is told in."""

from collections.abc import Sequence
from math import floor, inf

from kvguard.slotted import dataclass, replace
from kvguard.units import Interval, format_count


@dataclass(frozen=True, slots=True)
class Fit:
    """Requests that one engine holds at once without preemption, unrounded, before any cap of the scheduler."""

    interval: Interval
    how: str
    """The arithmetic in words: which pool, how much of it one request takes."""
    best: float | None = None
    """The single figure that most likely holds, where the interval is wide for a small reason."""
    settles: str | None = None
    """What would tell the kinds of layers, where the two ends differ because they are not known."""

    @property
    def layers_open(self) -> bool:
        """Whether the kinds of layers are not known: then the low end is the judge."""
        return self.settles is not None

    @property
    def most(self) -> float:
        """More than this surely do not fit: of unknown kinds of layers there is no such number."""
        return inf if self.layers_open else self.interval.high


def spanned(fits: Sequence[Fit], counted: str) -> Fit | None:
    """One fit over all that the evidence may mean, told as the first, which is the most likely; `None` of none.

    Args:
        fits: the most likely first.
        counted: by what the blocks are counted, in words.
    """
    if not fits:
        return None
    first, worst = fits[0], min(fits, key=lambda fit: fit.interval.low)
    interval = Interval(worst.interval.low, max(fit.interval.high for fit in fits))
    how = first.how if worst.how == first.how else f"{first.how}, or {worst.how.replace(_BLOCKS, ' larger ones')}"
    best = None if interval.is_exact else first.interval.low
    return replace(first, interval=interval, how=f"a request takes {how}, {counted}", best=best)


_BLOCKS = " usable blocks"


def in_blocks(usable: float, each: int, shared: int) -> str:
    """ "532 of 2,559 usable blocks", with what a shared prefix takes once."""
    prefix = f" beside {format_count(shared)} that all share" if shared else ""
    return f"{format_count(each)} of {format_count(floor(usable))}{_BLOCKS}{prefix}"
