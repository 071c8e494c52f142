"""Looking ahead in a long log: which stretches of it hold nothing but lines that a skimmer passes over.

A scout knows what the skimmer of a parser knew when it was made, and reads further on in the same log. A stretch that
it has passed over need not be read again, if the parser still passes over lines when it comes there: what a skimmer
knows only grows. Every other part of the log is looked at, since the parser itself reads the parts between.
"""

from collections.abc import Callable, Iterator

from kvguard.events import StatsLogged
from kvguard.lines.skimming import Skimmer
from kvguard.slotted import dataclass, replace

PART_BYTES = 16 * 2**20
BLOCK_BYTES = 2**20
LONGEST_BYTES = 2**16
"""Of the line that a part begins in; where it is longer, the part is left out."""
SHORTEST_BYTES = 2**18
"""Of a stretch; a shorter one is read as fast as it is taken in."""


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
    anchors: tuple[bytes, ...]

    def stretches(self, read: Callable[[int, int], bytes], begin: int, end: int) -> Iterator[Stretch]:
        """Look at every other part of a log. The skimmer is used up by it: call it in a copy of the process.

        Args:
            read: gives so many bytes (or fewer) of the log from a place on.
            begin: where the first part begins that is left to the reader, in bytes.
            end: where looking ends.
        """
        self._told()  # what the reader's lines have told so far
        for first in range(begin + PART_BYTES, end, 2 * PART_BYTES):
            yield from self._within(read, first, min(first + PART_BYTES, end))

    def _within(self, read: Callable[[int, int], bytes], first: int, last: int) -> Iterator[Stretch]:
        """The stretches of one part; a line belongs to the part that it begins in."""
        newline = read(first - 1, LONGEST_BYTES).find(b"\n")
        if newline < 0:
            return
        here = begin = first + newline
        number = 0
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
                yield from self._stretch(begin, here + start, number)
                start = data.find(b"\n", start) + 1  # the line is left to the reader
                begin, number = here + start, 0
            here += end
            del data  # two blocks in memory at once, and the allocator gives one back to the kernel each time
        yield from self._stretch(begin, here, number)

    def _stretch(self, begin: int, end: int, lines: int) -> Iterator[Stretch]:
        events = self._told()
        if end - begin >= SHORTEST_BYTES:
            yield Stretch(begin, end, lines, events)

    def _told(self) -> tuple[StatsLogged, ...]:
        """What the lines since the last call tell by themselves."""
        events = tuple(self.skimmer.told())
        self.skimmer.forget_peaks()
        return events
