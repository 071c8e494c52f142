"""The one place that knows about speed: which lines of a log that serves must be read, and which only be counted.

A server that serves prints gigabytes of access and stats lines behind forty lines of start-up. While it does, only a
record can tell anything (`startup.boundaries`), and in nearly every log a record shows a mark: the bracket behind its
source file. A line without the mark is counted and passed over. In a log whose records are JSON objects without it,
access lines are known by what stands behind their request, as far as the lines read so far end alike; where none do, it
is searched for the table's literals. Stats lines that differ from one already read by stamp and figures are added up:
only the first of each triple of figures is kept, and numbers are worked out once a block, for the few lines that need
one. Counting lines takes most of the time; where the `fast` extra is installed, it takes a fifth.

What is told is the same as without skimming, line numbers included: a property test compares the two.
"""

import re

from kvguard.events import Event, StatsLogged
from kvguard.lines import stamps
from kvguard.slotted import dataclass, field, replace

try:
    from stringzilla import count
except ImportError:  # without the `fast` extra
    count = bytes.count

MARK = b"]"
"""Closes the source file's bracket in every release's record; access lines and progress bars have none."""
CUT = b" P "
"""Stands in every line that the kubelet's runtime has cut: the mark may be in its next part."""
MAX_KNOWN = 64
"""Kinds of stats lines remembered: one an engine and front end."""
MAX_ENDINGS = 8
"""Endings of access lines remembered: one a status code that is common."""

_REQUEST = b" HTTP/1."
_BEFORE_FIGURES = b"Avg prompt throughput: "
_STAMP = rb"\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_FIGURES = (
    _BEFORE_FIGURES + rb"[\d.]{1,12} tokens/s, Avg generation throughput: [\d.]{1,12} tokens/s, "
    rb"Running: (\d{1,9}) reqs, Waiting: (\d{1,9}) reqs, \w{1,8} KV cache usage: (\d{1,3}\.\d)%"
    rb"(?:, [A-Z][\w ]{1,40}: [\d.]{1,8}%){0,4}"
)
_STATS = rb"(?P<before>[^\n]{0,512}?)" + _FIGURES + rb"(?P<after>[^\n]{0,200}\n)"

_Wording = tuple[tuple[bytes, ...], bytes]
"""What stands before the figures, cut at its stamps, and what stands behind them."""
_Counted = tuple[int, int]
"""Where a line begins in the block, and how many are before it."""


@dataclass(slots=True)
class _Kind:
    """Stats lines of one wording: the first one with each triple of figures since the last event, and the last one."""

    example: StatsLogged
    pattern: "re.Pattern[bytes]"
    lines: int = 0
    first: dict[tuple[bytes, ...], tuple[int, _Counted]] = field(default_factory=dict)
    """Requests running and waiting, usage: where such a line begins, and a line before it that is counted."""
    last: tuple[int, _Counted] = (0, (0, 0))

    def take(self, data: bytes, line: int, counted: _Counted) -> int:
        """Take in the line that begins here, and tell where it ends; less than nothing if it is of another wording."""
        found = self.pattern.match(data, line)
        if found is None:
            return -1
        self.lines += 1
        self.last = line, counted
        self.first.setdefault(found.groups(), self.last)
        return found.end()

    @property
    def peak(self) -> tuple[int, _Counted]:
        """The first line with the highest usage."""
        return min((-float(usage), place) for (_, _, usage), place in self.first.items())[1]

    def event(self, numbers: dict[int, int], stamp: bytes) -> StatsLogged:
        """What the lines tell together.

        Args:
            numbers: of the lines that begin at these places.
            stamp: of the last line, its own.
        """
        origin = self.example.origin
        latest = stamps.seconds(stamp.decode()) if stamp and origin.stamp is not None else origin.stamp
        running, waiting, usages = zip(*self.first, strict=True)
        return replace(
            self.example,
            origin=replace(origin, line=numbers[self.last[0]], stamp=latest),
            running=max(map(int, running)),
            waiting=max(map(int, waiting)),
            kv_cache_usage=round(max(map(float, usages)) / 100, 6),
            samples=self.lines,
            peak_line=numbers[self.peak[0]],
        )

    def clear(self) -> None:
        """Begin anew."""
        self.lines = 0
        self.first = {}


@dataclass(slots=True)
class Skimmer:
    """Pass over the lines of a block that tell nothing while the server serves."""

    anchors: tuple[bytes, ...] = (MARK,)
    """Every line that must be read holds one of them."""
    _kinds: dict[_Wording, _Kind] = field(default_factory=dict)
    _latest: _Kind | None = None
    _asked: _Wording | None = None
    _counted: _Counted = (0, 0)
    _ready: list[Event] = field(default_factory=list)
    _endings: set[bytes] = field(default_factory=set)
    _last_ending: bytes = b""
    _searched: bytes = b""
    _ahead: dict[bytes, int] = field(default_factory=dict)
    lines_told: int = 0
    """How many lines the last events of `told` stand for."""

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
        self._counted = start, number
        while (line := self._next(data, start)) >= 0:
            end = -1 if self._latest is None else self._latest.take(data, line, self._counted)
            if end < 0:
                end = self._taken_by_another(data, line)
            if end < 0:
                break
            start = end
        else:
            line = data.rfind(b"\n", start) + 1 or start
        return line, self._numbered(data, line)

    def learn(self, raw: bytes, events: list[Event]) -> None:
        """A line has been read: if it told its stats, or a request and nothing else, its like need not be."""
        if not events and _REQUEST in raw:
            self._learn_ending(raw[raw.rindex(_REQUEST) :] + b"\n")
        asked, self._asked = self._asked, None
        if asked is None or len(events) != 1 or len(self._kinds) >= MAX_KNOWN:
            return
        (told,) = events
        if isinstance(told, StatsLogged) and told.preemptions is None:
            before, after = asked
            pattern = _STAMP.join(map(re.escape, before)) + _FIGURES + re.escape(after)
            self._kinds[asked] = _Kind(told, re.compile(pattern))

    def told(self) -> list[Event]:
        """What the stats lines since the last call tell, in the order of their last lines."""
        ready, self._ready = self._ready, []
        self.lines_told = sum(event.samples for event in ready if isinstance(event, StatsLogged))
        return ready

    def _learn_ending(self, ending: bytes) -> None:
        """Two access lines in a row that end alike: no stamp or other figure of their own stands in it."""
        if ending == self._last_ending and len(self._endings) < MAX_ENDINGS:
            self._endings.add(ending)
        self._last_ending = ending

    def _taken_by_another(self, data: bytes, line: int) -> int:
        """Where the line ends that begins here, if it is a stats line whose wording has been read before."""
        found = re.compile(_STATS).match(data, line)
        if found is None:
            return -1
        wording = tuple(re.split(_STAMP, found["before"])), found["after"]
        kind = self._kinds.get(wording)
        if kind is None:
            self._asked = wording
            return -1
        self._latest = kind
        return kind.take(data, line, self._counted)

    def _numbered(self, data: bytes, end: int) -> int:
        """Count the lines up to `end`, once, and make events of the stats lines among them."""
        kinds = sorted((kind for kind in self._kinds.values() if kind.lines), key=lambda kind: kind.last)
        at = number = 0
        numbers: dict[int, int] = {}
        for line, counted in sorted({place for kind in kinds for place in (kind.peak, kind.last)}):
            at, number = max((at, number), counted)
            number += int(count(data, b"\n", at, line))
            at, numbers[line] = line, number + 1
        for kind in kinds:
            figures = data.index(_BEFORE_FIGURES, kind.last[0])
            stamp = re.findall(_STAMP, data[kind.last[0] : figures])
            self._ready.append(kind.event(numbers, stamp[-1] if stamp else b""))
            kind.clear()
        at, number = max((at, number), self._counted)
        return number + int(count(data, b"\n", at, end))

    def _next(self, data: bytes, start: int) -> int:
        """Where the next line begins that may have to be read; less than nothing if the block holds none."""
        if MARK not in self.anchors and self._endings:
            return self._next_without_ending(data, start)
        anchor = data.find(MARK, start) if len(self.anchors) == 1 else self._next_literal(data, start)
        return anchor if anchor < 0 else data.rfind(b"\n", start, anchor) + 1 or start

    def _next_without_ending(self, data: bytes, start: int) -> int:
        """Pass over whole lines as long as there are as many known endings as lines: an ending holds the newline."""
        at, number = self._counted
        number += count(data, b"\n", at, start)
        figures = data.find(_BEFORE_FIGURES, start)
        limit = reach = figures if figures >= 0 else len(data)
        while (end := data.rfind(b"\n", start, reach) + 1) > start:
            lines: int = count(data, b"\n", start, end)
            if lines == sum(count(data, ending, start, end) for ending in self._endings):
                start, number, reach = end, number + lines, limit
            elif lines == 1:
                break
            else:  # halve what is looked at, down to one line
                reach = max(start + (end - start) // 2, data.find(b"\n", start) + 1)
        self._counted = start, number
        return start if data.find(b"\n", start) >= 0 else -1

    def _next_literal(self, data: bytes, start: int) -> int:
        """The nearest of the table's literals; what one of them has found stays good until it is passed."""
        if self._searched is not data:
            self._searched, self._ahead = data, dict.fromkeys(self.anchors, -2)
        best = -1
        for anchor, place in self._ahead.items():
            if place != -1 and place < start:
                place = self._ahead[anchor] = data.find(anchor, start)
            if place != -1 and (best < 0 or place < best):
                best = place
        return best
