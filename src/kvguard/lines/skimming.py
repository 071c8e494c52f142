"""The one place that knows about speed: which lines of a log that serves must be read, and which only be counted.

A server that serves prints gigabytes of access and stats lines behind forty lines of start-up. While it does, only a
record can tell anything (`startup.boundaries`), and in nearly every log a record shows a mark: the bracket behind its
source file. A line without the mark is counted and passed over; a log whose records are JSON objects without it is
searched for the table's literals. Stats lines that differ from one already read by stamp and figures are added up.

What is told is the same as without skimming, line numbers included: a property test compares the two.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kvguard.events import Event, StatsLogged
from kvguard.lines import stamps

MARK = b"]"
"""Closes the source file's bracket in every release's record; access lines and progress bars have none."""
CUT = b" P "
"""Stands in every line that the kubelet's runtime has cut: the mark may be in its next part."""
MAX_KNOWN = 64
"""Kinds of stats lines remembered: one an engine and front end."""

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
        find = self._next_anchor(data)
        while True:
            anchor = find(start)
            if anchor < 0:
                rest = max(data.rfind(b"\n", start) + 1, start)
                return rest, number + data.count(b"\n", start, rest)
            line = max(data.rfind(b"\n", start, anchor) + 1, start)
            number += data.count(b"\n", start, line)
            start = line
            found = _STATS.match(data, line)
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

    def learn(self, events: list[Event]) -> None:
        """The line that was asked for has been read: if it told its stats, its like need not be."""
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

    def _next_anchor(self, data: bytes) -> Callable[[int], int]:
        """The nearest anchor from a place on; what one has found stays good until it is passed."""
        if len(self.anchors) == 1:
            anchor = self.anchors[0]
            return lambda start: data.find(anchor, start)
        ahead = dict.fromkeys(self.anchors, -2)

        def nearest(start: int) -> int:
            best = -1
            for anchor, place in ahead.items():
                if place != -1 and place < start:
                    place = ahead[anchor] = data.find(anchor, start)
                if place != -1 and (best < 0 or place < best):
                    best = place
            return best

        return nearest
