"""The one place that knows about speed: which lines of a log that serves must be read, and which only be counted.

A server that serves prints gigabytes of access and stats lines behind forty lines of start-up. While it does, only a
record can tell anything (`startup.boundaries`), and in nearly every log a record shows a mark: the bracket behind its
source file. A line without the mark is counted and passed over. In a log whose records are JSON objects without it,
access lines are known by what stands behind their request, as far as the lines read so far end alike; where none do, it
is searched for the table's literals. Stats lines that differ from one already read by stamp and figures are added up,
and figures that have come before are passed over unread. Line numbers are worked out once a block, for the few lines
that need one. Finding and counting take most of the time; the `fast` extra does both.

What is told is the same as without skimming, line numbers included: a property test compares the two.
"""

import re
from collections.abc import Callable

from kvguard.events import Event, ProcessSpoke, StatsLogged
from kvguard.lines import stamps
from kvguard.slotted import dataclass, field, replace

count: Callable[..., int]
find: Callable[..., int]
try:
    import stringzilla

    count, find = stringzilla.count, stringzilla.find
except ImportError:  # without the `fast` extra
    count, find = bytes.count, bytes.find
COUNTS_BY_TABLE = count is not bytes.count and "icelake" in stringzilla.__capabilities__
"""Whether the processor looks bytes up in a table faster than it finds one newline after the other."""

MARK = b"]"
"""Closes the source file's bracket in every release's record; access lines and progress bars have none."""
CUT = b" P "
"""Stands in every line that the kubelet's runtime has cut: the mark may be in its next part."""
MAX_KNOWN = 512
"""Kinds of stats lines remembered: one an engine and front end, of each process."""
MAX_ENDINGS = 8
"""Endings of access lines remembered: one a status code that is common."""
MAX_SEEN = 16384
"""Figures remembered, of all kinds of stats lines."""

_NEWLINE_IS_ONE = bytes(byte == ord("\n") for byte in range(256))
_SUMMED = 2**16
"""Bytes that are looked up and summed at once: what is written stays in the core's cache."""
_ONES = memoryview(bytearray(_SUMMED))

_REQUEST = b" HTTP/1."
_BEFORE_FIGURES = b"Avg prompt throughput: "
_STAMP = rb"\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_FIGURES = (
    _BEFORE_FIGURES + rb"[\d.]{1,12} tokens/s, Avg generation throughput: [\d.]{1,12} tokens/s, "
    rb"Running: (?P<figures>\d{1,9} reqs, Waiting: \d{1,9} reqs, \w{1,8} KV cache usage: \d{1,3}\.\d)%"
)
_RATE = rb", ([A-Z][\w ]{1,40}): [\d.]{1,8}%"
_STATS = rb"(?P<before>[^\n]{0,512}?)" + _FIGURES + rb"(?P<rates>(?:" + _RATE + rb"){0,4})(?P<after>[^\n]{0,200}\n)"

Manner = tuple[tuple[bytes, ...], bool]
_Wording = tuple[tuple[bytes, ...], tuple[bytes, ...], bytes]
"""What stands before the figures, cut at its stamps; the names of the rates behind them; what stands behind those."""


def lines_between(data: bytes, start: int, end: int) -> int:
    """How many lines end in this part of a block."""
    if not COUNTS_BY_TABLE or end - start < _SUMMED:
        return count(data, b"\n", start, end)
    lines = 0
    for at in range(start, end, _SUMMED):
        stop = min(at + _SUMMED, end)
        stringzilla.translate(data, _NEWLINE_IS_ONE, start=at, end=stop, out=_ONES)
        lines += stringzilla.bytesum(_ONES[: stop - at])
    return lines


@dataclass(slots=True)
class _Kind:
    """Stats lines of one wording, and their peaks since the last line that was read."""

    example: StatsLogged
    pattern: "re.Pattern[bytes]"
    lines: int = 0
    """Since the last event."""
    last: int | None = None
    """Where the last of them begins in the block; `None` once its number is known."""
    last_line: int = 0
    stamp: bytes | None = None
    """Of the last of them."""
    seen: set[bytes] = field(default_factory=set)
    """Figures that the peaks cover."""
    room: int = 0
    """How many of them are remembered."""
    running: int = 0
    waiting: int = 0
    usage: float = -1.0
    peak: int | None = None
    """Where the first line with the highest usage begins in the block; `None` once its number is known."""
    peak_line: int = 0

    def take(self, found: "re.Match[bytes]") -> None:
        """Take in one line."""
        self.lines += 1
        self.last = found.start()
        if found[1] not in self.seen:
            self._raise_peaks(found[1], self.last)

    def take_run(self, data: bytes, start: int, mark: bytes, limit: int) -> int:
        """Take in lines as long as all that hold the mark are of this kind.

        Returns:
            Where the last of them ends.
        """
        match, seen = self.pattern.match, self.seen
        lines, at = 0, start
        while 0 <= (place := find(data, mark, at)) < limit:
            line = data.rfind(b"\n", at, place) + 1 or at
            found = match(data, line)
            if found is None:
                break
            lines += 1
            self.last, at = line, found.end()
            if (figures := found[1]) not in seen:
                self._raise_peaks(figures, line)
        self.lines += lines
        return at

    def _raise_peaks(self, figures: bytes, line: int) -> None:
        if len(self.seen) >= self.room:
            self.seen.clear()
        self.seen.add(figures)
        words = figures.split()
        running, waiting, usage = int(words[0]), int(words[3]), float(words[-1])
        self.running = max(self.running, running)
        self.waiting = max(self.waiting, waiting)
        if usage > self.usage:
            self.usage, self.peak = usage, line

    def settle(self, data: bytes, end: int, number: int) -> None:
        """Work out line numbers while the block is there.

        Args:
            data: the block that the lines stand in.
            end: where a line behind the last of them begins.
            number: of the line before that one.
        """
        if self.last is None:
            return
        if self.peak is not None:
            self.peak_line, self.peak = number + 1 - lines_between(data, self.peak, end), None
        found = re.findall(_STAMP, data[self.last : data.index(_BEFORE_FIGURES, self.last)])
        self.stamp = found[-1] if found else None
        self.last_line, self.last = number + 1 - lines_between(data, self.last, end), None

    def event(self) -> StatsLogged:
        """What the lines since the last event tell together."""
        origin = self.example.origin
        latest = origin.stamp if self.stamp is None or origin.stamp is None else stamps.seconds(self.stamp.decode())
        samples, self.lines = self.lines, 0
        return replace(
            self.example,
            origin=replace(origin, line=self.last_line, stamp=latest),
            running=self.running,
            waiting=self.waiting,
            kv_cache_usage=round(self.usage / 100, 6),
            samples=samples,
            peak_line=self.peak_line,
        )

    def forget(self) -> None:
        """Begin anew: what comes may be of another start, with peaks of its own."""
        self.seen.clear()
        self.running = self.waiting = 0
        self.usage = -1.0


@dataclass(slots=True)
class Skimmer:
    """Pass over the lines of a block that tell nothing while the server serves."""

    anchors: tuple[bytes, ...] = (MARK,)
    """Every line that must be read holds one of them."""
    _kinds: dict[_Wording, _Kind] = field(default_factory=dict)
    _latest: _Kind | None = None
    _asked: _Wording | None = None
    _endings: set[bytes] = field(default_factory=set)
    _last_ending: bytes = b""
    _searched: tuple[bytes, tuple[bytes, ...]] = (b"", ())
    _places: dict[bytes, int] = field(default_factory=dict)

    @property
    def manner(self) -> Manner:
        """The anchors, and whether lines are passed over by their endings instead."""
        return self.anchors, MARK not in self.anchors and bool(self._endings)

    def skim(self, data: bytes, start: int, number: int) -> tuple[int, int]:
        """Find the next line to read.

        Args:
            data: a block.
            start: where a line begins in it.
            number: of the line before that one.

        Returns:
            Where the line to read begins (the block's last, unfinished line if there is none), and the number of the
            line before it.
        """
        self._asked = None
        _, by_endings = self.manner
        line, lines = self._pass_known(data, start) if by_endings else self._pass_unmarked(data, start)
        number += lines
        for kind in self._kinds.values():
            kind.settle(data, line, number)
        return line, number

    def learn(self, raw: bytes, events: list[Event]) -> None:
        """A line has been read: if it told its stats, or a request and nothing else, its like need not be."""
        self.forget_peaks()
        asked, self._asked = self._asked, None
        if _REQUEST in raw:
            if not events:
                self._learn_ending(raw[raw.rindex(_REQUEST) :] + b"\n")
        elif asked is not None and len(self._kinds) < MAX_KNOWN and (told := _stats_alone(events)) is not None:
            before, rates, after = asked
            names = b"".join(b", " + name + rb": [\d.]{1,8}%" for name in rates)
            pattern = _STAMP.join(map(re.escape, before)) + _FIGURES + names + re.escape(after)
            self._kinds[asked] = _Kind(told, re.compile(pattern))
            for kind in self._kinds.values():
                kind.room = MAX_SEEN // len(self._kinds)

    def told(self) -> list[StatsLogged]:
        """What the stats lines since the last call tell, in the order of their last lines."""
        kinds = sorted((kind for kind in self._kinds.values() if kind.lines), key=lambda kind: kind.last_line)
        return [kind.event() for kind in kinds]

    def forget_peaks(self) -> None:
        """What comes is told by itself."""
        for kind in self._kinds.values():
            kind.forget()

    def _learn_ending(self, ending: bytes) -> None:
        """Two access lines in a row that end alike: no stamp or other figure of their own stands in it."""
        if ending == self._last_ending and len(self._endings) < MAX_ENDINGS:
            self._endings.add(ending)
        self._last_ending = ending

    def _pass_unmarked(self, data: bytes, start: int) -> tuple[int, int]:
        """Pass over the lines that hold no anchor and those of known stats: where that ends, and how many they are."""
        at = start
        while (anchor := self._nearest(data, at)) >= 0:
            line = data.rfind(b"\n", at, anchor) + 1 or at
            found = self._stats(data, line)
            if found is None:
                break
            kind, match = found
            kind.take(match)
            at = self._pass_run(kind, data, match.end())
        else:
            line = data.rfind(b"\n", at) + 1 or at
        return line, lines_between(data, start, line)

    def _pass_run(self, kind: _Kind, data: bytes, start: int) -> int:
        """Pass over more of the same kind, up to where another anchor than the mark stands."""
        if MARK not in self.anchors:
            return start
        others = (place for anchor, place in self._ahead(data, start).items() if anchor != MARK)
        return kind.take_run(data, start, MARK, min(others, default=len(data)))

    def _pass_known(self, data: bytes, start: int) -> tuple[int, int]:
        """Pass over whole lines as long as there are as many known endings and stats: an ending holds the newline."""
        at, passed, reach = start, 0, len(data)
        while (end := data.rfind(b"\n", at, reach) + 1) > at:
            lines = lines_between(data, at, end)
            stats = self._stats_between(data, at, end)
            if lines == len(stats) + sum(count(data, ending, at, end) for ending in self._endings):
                for kind, match in stats:
                    kind.take(match)
                at, passed, reach = end, passed + lines, len(data)
            elif lines == 1:
                break
            else:  # halve what is looked at, down to one line
                reach = max(at + (end - at) // 2, data.find(b"\n", at) + 1)
        return at, passed

    def _stats_between(self, data: bytes, start: int, end: int) -> list[tuple[_Kind, "re.Match[bytes]"]]:
        """The stats lines of known wordings, up to the first of another."""
        found: list[tuple[_Kind, re.Match[bytes]]] = []
        self._asked = None
        while (figures := find(data, _BEFORE_FIGURES, start, end)) >= 0:
            stats = self._stats(data, data.rfind(b"\n", start, figures) + 1 or start)
            if stats is None:
                break
            found.append(stats)
            start = stats[1].end()
        return found

    def _stats(self, data: bytes, line: int) -> tuple[_Kind, "re.Match[bytes]"] | None:
        """The line that begins here, if it is a stats line whose wording has been read before."""
        if self._latest is not None and (match := self._latest.pattern.match(data, line)) is not None:
            return self._latest, match
        found = re.compile(_STATS).match(data, line)
        if found is None:
            return None
        wording = tuple(re.split(_STAMP, found["before"])), tuple(re.findall(_RATE, found["rates"])), found["after"]
        kind = self._kinds.get(wording)
        if kind is None:
            self._asked = wording
            return None
        self._latest = kind
        match = kind.pattern.match(data, line)
        return None if match is None else (kind, match)

    def _nearest(self, data: bytes, start: int) -> int:
        """Where the nearest anchor stands, less than nothing if none does."""
        if len(self.anchors) == 1:
            return find(data, self.anchors[0], start)
        return min(self._ahead(data, start).values(), default=-1)

    def _ahead(self, data: bytes, start: int) -> dict[bytes, int]:
        """Where each anchor stands that does; what one has found is good until passed."""
        if len(self.anchors) == 1:
            return {}
        if self._searched[0] is not data or self._searched[1] is not self.anchors:
            self._searched = data, self.anchors
            self._places = dict.fromkeys(self.anchors, -1)
        passed = [anchor for anchor, place in self._places.items() if place < start]
        for anchor in passed:
            self._places[anchor] = find(data, anchor, start)
            if self._places[anchor] < 0:
                del self._places[anchor]
        return self._places


def _stats_alone(events: list[Event]) -> StatsLogged | None:
    """The stats that a line has told, if that is all that any line of its wording can tell.

    Who speaks, which is told of each process while a start is in doubt, stands in the wording.
    """
    *spoken, told = events or (None,)
    alone = all(isinstance(event, ProcessSpoke) for event in spoken)
    return told if alone and isinstance(told, StatsLogged) and told.preemptions is None else None
