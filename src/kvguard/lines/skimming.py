"""The one place that knows about speed: which lines of a log that serves must be read, and which only be counted.

A server that serves prints gigabytes of access and stats lines behind forty lines of start-up. While it does, only a
record can tell anything (`startup.boundaries`), and in nearly every log a record shows a mark: the bracket behind its
source file. A line without the mark is counted and passed over. In a log whose records are JSON objects without it,
access lines are known by what stands behind their request, as far as the lines read so far end alike; where none do, it
is searched for the table's literals. Stats lines that differ from one already read by stamp and figures are added up.

What is told is the same as without skimming, line numbers included: a property test compares the two.
"""

import re

from kvguard.events import Event, StatsLogged
from kvguard.lines import stamps
from kvguard.slotted import dataclass, field, replace

MARK = b"]"
"""Closes the source file's bracket in every release's record; access lines and progress bars have none."""
CUT = b" P "
"""Stands in every line that the kubelet's runtime has cut: the mark may be in its next part."""
MAX_KNOWN = 64
"""Kinds of stats lines remembered: one an engine and front end."""
MAX_ENDINGS = 8
"""Endings of access lines remembered: one a status code that is common."""

_REQUEST = b" HTTP/1."
_FIGURES = b"Avg prompt throughput: "

_STATS = re.compile(
    rb"(?P<before>[^\n]{0,512}?)Avg prompt throughput: [\d.]{1,12} tokens/s, "
    rb"Avg generation throughput: [\d.]{1,12} tokens/s, "
    rb"Running: (?P<running>\d{1,9}) reqs, Waiting: (?P<waiting>\d{1,9}) reqs, "
    rb"\w{1,8} KV cache usage: (?P<usage>\d{1,3}\.\d)%"
    rb"(?:, [A-Z][\w ]{1,40}: [\d.]{1,8}%){0,4}(?P<after>[^\n]{0,200}\n)"
)
_STAMP = re.compile(rb"\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")


@dataclass(slots=True)
class _Batch:
    """Stats lines of one kind since the last event: what they add up to, and their last line."""

    example: StatsLogged
    lines: int = 0
    running: int = 0
    waiting: int = 0
    usage: float = -1.0
    peak_line: int = 0
    last_line: int = 0
    last_stamp: bytes = b""

    def add(self, found: "re.Match[bytes]", number: int) -> None:
        """Take one line in."""
        self.lines += 1
        self.running = max(self.running, int(found["running"]))
        self.waiting = max(self.waiting, int(found["waiting"]))
        usage = round(float(found["usage"]) / 100, 6)
        if usage > self.usage:
            self.usage, self.peak_line = usage, number
        self.last_line, self.last_stamp = number, found["before"]

    def event(self) -> StatsLogged:
        """What the lines tell together."""
        stamp = _STAMP.findall(self.last_stamp)
        origin = self.example.origin
        latest = stamps.seconds(stamp[-1].decode()) if stamp and origin.stamp is not None else origin.stamp
        return replace(
            self.example,
            origin=replace(origin, line=self.last_line, stamp=latest),
            running=self.running,
            waiting=self.waiting,
            kv_cache_usage=self.usage,
            samples=self.lines,
            peak_line=self.peak_line,
        )


@dataclass(slots=True)
class Skimmer:
    """Pass over the lines of a block that tell nothing while the server serves."""

    anchors: tuple[bytes, ...] = (MARK,)
    """Every line that must be read holds one of them."""
    _known: dict[tuple[bytes, bytes], _Batch] = field(default_factory=dict)
    _asked: tuple[bytes, bytes] | None = None
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
        while True:
            start, lines, found_one = self._next(data, start)
            number += lines
            found = _STATS.match(data, start) if found_one else None
            if found is None:
                return start, number
            key = (_STAMP.sub(b"", found["before"]), found["after"])
            batch = self._known.get(key)
            if batch is None:
                self._asked = key
                return start, number
            number += 1
            batch.add(found, number)
            start = found.end()

    def learn(self, raw: bytes, events: list[Event]) -> None:
        """A line has been read: if it told its stats, or a request and nothing else, its like need not be."""
        if not events and _REQUEST in raw:
            self._learn_ending(raw[raw.rindex(_REQUEST) :] + b"\n")
        asked, self._asked = self._asked, None
        if asked is None or len(events) != 1 or len(self._known) >= MAX_KNOWN:
            return
        (told,) = events
        if isinstance(told, StatsLogged) and told.preemptions is None:
            self._known[asked] = _Batch(told)

    def told(self) -> list[Event]:
        """What the stats lines since the last call tell, in the order of their last lines."""
        ready = sorted((batch for batch in self._known.values() if batch.lines), key=lambda batch: batch.last_line)
        self.lines_told = sum(batch.lines for batch in ready)
        for key, batch in self._known.items():
            if batch.lines:
                self._known[key] = _Batch(batch.example)
        return [batch.event() for batch in ready]

    def _learn_ending(self, ending: bytes) -> None:
        """Two access lines in a row that end alike: no stamp or other figure of their own stands in it."""
        if ending == self._last_ending and len(self._endings) < MAX_ENDINGS:
            self._endings.add(ending)
        self._last_ending = ending

    def _next(self, data: bytes, start: int) -> tuple[int, int, bool]:
        """Where the next line begins that may have to be read, how many are passed over, and whether there is one."""
        if MARK not in self.anchors and self._endings:
            return self._next_without_ending(data, start)
        anchor = data.find(MARK, start) if len(self.anchors) == 1 else self._next_literal(data, start)
        line = max(data.rfind(b"\n", start, anchor if anchor >= 0 else len(data)) + 1, start)
        return line, data.count(b"\n", start, line), anchor >= 0

    def _next_without_ending(self, data: bytes, start: int) -> tuple[int, int, bool]:
        """Pass over whole lines as long as there are as many known endings as lines: an ending holds the newline."""
        passed = 0
        figures = data.find(_FIGURES, start)
        limit = reach = figures if figures >= 0 else len(data)
        while (end := data.rfind(b"\n", start, reach) + 1) > start:
            lines = data.count(b"\n", start, end)
            if lines == sum(data.count(ending, start, end) for ending in self._endings):
                start, passed, reach = end, passed + lines, limit
            elif lines == 1:
                break
            else:  # halve what is looked at, down to one line
                reach = max(start + (end - start) // 2, data.find(b"\n", start) + 1)
        return start, passed, data.find(b"\n", start) >= 0

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
