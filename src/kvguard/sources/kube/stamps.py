"""Lines as the kubelet stamps them: the stamps come off, and after a new request nothing is taken twice.

`timestamps=true` puts the moment at which the container runtime took a line before it. `sinceTime` is cut to whole
seconds on its way to the kubelet, so that a new request repeats up to a second of lines; they are told by their
stamps. Lines without one are the kubelet's own words ("unable to retrieve container logs for …") and no line of the
container.
"""

import re
from datetime import datetime, timedelta

_STAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
_LINE = re.compile(rb"(?:" + _STAMP + rb" (.*+\n)|.*+\n)")
_HEAD = re.compile(rb"(" + _STAMP + rb") ")
_STAMPS = re.compile(rb"^" + _STAMP, re.MULTILINE)
_PARTS = re.compile(r"([^.Z+]{19})(?:\.(\d++))?+(.*+)")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

LONGEST_HELD_BYTES = 1024 * 1024
"""A line that is longer is handed on in pieces; cut off in its middle it cannot be continued."""


def nanoseconds(stamp: str) -> int:
    """An RFC 3339 stamp, with up to nine decimals, as nanoseconds since 1970; 0 for one that no calendar has."""
    match = _PARTS.fullmatch(stamp)
    if match is None:
        return 0
    seconds, fraction, zone = match.groups()
    try:
        whole = (datetime.fromisoformat(seconds + zone) - _EPOCH) // timedelta(seconds=1)
    except ValueError:
        return 0
    return whole * 10**9 + int((fraction or "").ljust(9, "0"))


class StampedLines:
    """The log of one container, over as many requests as it takes."""

    def __init__(self) -> None:
        self._held = b""
        self._in_long_line = False  # its beginning was handed on already
        self._last: str | None = None
        self._same = 0  # how many lines bear the last stamp: a burst can share one
        self._newest = 0  # a clock can be set back: the last stamp is not always the newest
        self._to_skip = 0
        self._skipping = False
        self._cut = False

    @property
    def since(self) -> str | None:
        """The `sinceTime` of the next request: the last line's stamp, which the kubelet cuts to its second."""
        return self._last

    def resume(self) -> None:
        """A new request begins, from `since` on; a line that came in part comes again."""
        self._cut = self._in_long_line
        self._held, self._in_long_line = b"", False
        self._skipping, self._to_skip = self._last is not None, self._same

    def feed(self, data: bytes) -> bytes:
        """The new lines in this part of the answer, without their stamps."""
        data = self._held + data
        end = data.rfind(b"\n") + 1
        lines, self._held = data[:end], data[end:]
        if self._in_long_line:
            return self._rest_of_long_line(lines)
        if self._skipping:
            lines = self._skip(lines)
        told = self._strip(lines)
        if len(self._held) > LONGEST_HELD_BYTES and not self._skipping:
            told += self._begin_long_line()
        return told

    def was_cut(self) -> bool:
        """Whether what `feed` gave last does not continue what it gave before; asking clears it."""
        cut, self._cut = self._cut, False
        return cut

    def rest(self) -> bytes:
        """The line that the log ended in, when its container has ended."""
        head = _HEAD.match(self._held)
        rest = self._held if self._in_long_line else self._held[head.end() :] if head and not self._skipping else b""
        self._held, self._in_long_line = b"", False
        return rest

    def _strip(self, lines: bytes) -> bytes:
        if lines:
            self._note(lines)
        return _LINE.sub(rb"\1", lines)

    def _note(self, lines: bytes) -> None:
        """Remember the last stamp, and how many lines have it."""
        end = len(lines)
        last, same = None, 0
        while end > 0:
            begin = lines.rfind(b"\n", 0, end - 1) + 1
            if head := _HEAD.match(lines, begin, end):
                if last is not None and head[1] != last:
                    break
                last, same = head[1], same + 1
            end = begin
        if last is None:
            return
        stamp = last.decode()
        self._same = self._same + same if stamp == self._last and end == 0 else same
        self._last = stamp
        self._newest = max(self._newest, nanoseconds(max(_STAMPS.findall(lines)).decode()))

    def _skip(self, lines: bytes) -> bytes:
        """Drop what was read before: up to the last line taken, or, where it is gone, up to a newer stamp."""
        begin = 0
        while begin < len(lines):
            end = lines.find(b"\n", begin) + 1
            stamp = head[1].decode() if (head := _HEAD.match(lines, begin, end)) else ""
            if stamp == self._last:
                self._to_skip -= 1
                self._skipping = self._to_skip > 0
                begin = end
            elif nanoseconds(stamp) > self._newest:
                self._skipping, self._cut = False, True
            else:
                begin = end
            if not self._skipping:
                return lines[begin:]
        return b""

    def _begin_long_line(self) -> bytes:
        head = _HEAD.match(self._held)
        if head is None:
            self._held = b""  # the kubelet's own words, and many of them
            return b""
        beginning, self._held, self._in_long_line = self._held[head.end() :], b"", True
        return beginning

    def _rest_of_long_line(self, lines: bytes) -> bytes:
        if not lines:
            told, self._held = self._held, b""
            return told
        end = lines.find(b"\n") + 1
        self._in_long_line = False
        return lines[:end] + self._strip(lines[end:])
