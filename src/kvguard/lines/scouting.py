"""Looking ahead in a long log: which stretches of it hold nothing but lines that a skimmer passes over.

A scout knows what the skimmer of a parser knew when it was made, and looks at every other part of the log. A stretch
that it has passed over need not be read again, if the parser still passes over lines in the same manner when it comes
there: what a skimmer knows only grows. Everything else the parser reads itself.
"""

from collections.abc import Callable, Iterator

from kvguard.events import StatsLogged
from kvguard.lines.skimming import Manner, Skimmer
from kvguard.slotted import dataclass, replace

PART_BYTES = 16 * 2**20
BLOCK_BYTES = 2**20
LONGEST_BYTES = 2**16
"""Of the line that a part begins in; where it is longer, the part is left out."""
SHORTEST_BYTES = 2**18
"""Of a stretch; a shorter one is read as fast as it is taken in."""
MOST_READ = PART_BYTES // SHORTEST_BYTES
"""Lines of one part that must be read; where there are more, no stretch is long enough."""


def parts_ahead(begin: int, end: int) -> range:
    """Where the parts begin that a scout looks at, of a log from a place on; those between are left to the reader."""
    return range(begin + PART_BYTES, end, 2 * PART_BYTES)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole lines of a log that hold nothing to read but known stats."""

    begin: int
    """Where the first of them begins in the log, in bytes."""
    end: int
    lines: int
    events: tuple[StatsLogged, ...]
    """What the stats lines tell together, lines numbered from the stretch's first."""

    def events_behind(self, number: int) -> list[StatsLogged]:
        """The events as they stand in the log, behind the line of this number."""
        return [
            replace(
                event,
                origin=replace(event.origin, line=event.origin.line + number),
                peak_line=event.peak_line and event.peak_line + number,
            )
            for event in self.events
        ]


@dataclass(frozen=True, slots=True)
class Scout:
    """What a parser's skimmer knows, to look ahead with."""

    skimmer: Skimmer
    manner: Manner

    def part(self, read: Callable[[int, int], bytes], first: int, end: int) -> tuple[Stretch, ...]:
        """The stretches of one part; a line belongs to the part that it begins in.

        The skimmer is used up by it: call it in a copy of the process.

        Args:
            read: gives so many bytes (or fewer) of the log from a place on.
            first: where the part begins, in bytes.
            end: where looking ends, at the latest.
        """
        self._told()  # what the reader's lines have told so far
        return tuple(
            found
            for found in self._stretches(read, first, min(first + PART_BYTES, end))
            if found.end - found.begin >= SHORTEST_BYTES
        )

    def _stretches(self, read: Callable[[int, int], bytes], first: int, last: int) -> Iterator[Stretch]:
        newline = read(first - 1, LONGEST_BYTES).find(b"\n")
        if newline < 0:
            return
        here = begin = first + newline
        number = lines_read = 0
        while here < last:
            data = read(here, min(BLOCK_BYTES, last - here))
            end = data.rfind(b"\n") + 1
            if not end:
                break
            start = 0
            while True:
                start, number = self.skimmer.skim(data, start, number)
                if start >= end:
                    break
                yield Stretch(begin, here + start, number, self._told())
                lines_read += 1
                if lines_read > MOST_READ:
                    return
                start = data.find(b"\n", start) + 1
                begin, number = here + start, 0
            here += end
            del data  # two blocks in memory at once, and the allocator gives one back to the kernel each time
        yield Stretch(begin, here, number, self._told())

    def _told(self) -> tuple[StatsLogged, ...]:
        """What the lines since the last call tell by themselves."""
        events = tuple(self.skimmer.told())
        self.skimmer.forget_peaks()
        return events
