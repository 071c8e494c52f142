"""Bytes to physical lines: any chunking, CRLF, UTF-8 with or without BOM, UTF-16, in bounded memory.

A line ends at a newline only: the other separators that Unicode knows stay inside it, so a prompt cannot end a record.
"""

import codecs
import re
from collections.abc import Callable, Iterator

from kvguard.lines.objects import Numbered, ObjectJoiner

SEEN_AHEAD = 120
"""Bytes of what follows a line that are told with it: a record's prefix, its tags included, is shorter."""
MAX_LINE_BYTES = 2**20
"""What is kept of one physical line: an engine's banner exceeds 8 kB, nothing that tells a fact comes near this."""

_EMPTY_LINES = re.compile(rb"[\r\n]*\n")
MAX_FRAMES = 64
"""What a spinner may draw over itself in a row: of more than that, only the first can be a message's rest."""
_FRAMES = rb"(?:\r[^\r]{0,5}(?![^\r])){1,4096}"
"""Texts between carriage returns that are shorter than any message."""
_LAST_FIGURE = rb"(?<![\d.,])[\d.,]*\d[.,]?\Z"
_STATUS = rb"(?i)\bcode\W{1,8}\d{1,3}\Z"
"""What a runtime says of a process that has ended, in three digits at most."""
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class LineFramer:
    """Cut a byte stream into lines, numbered from 1, in bounded memory.

    Rules: the same lines for any chunking; a line over `MAX_LINE_BYTES` is given by its beginning and counted; an empty
    one is counted and not given; frames that a spinner draws over each other are given by the first; where others end,
    the last one that does not is torn, and a figure at its end may be half of one: it is left out.
    """

    skim: Callable[[bytes, int, int], tuple[int, int]] | None = None
    """Passes over lines that need not be given: see `lines.skimming`."""

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0
        self.truncated = 0
        self.ahead = b""
        """The beginning of what follows the line just given, as far as it is there already."""
        self._rest = bytearray()
        self._dropping = False
        self._objects = ObjectJoiner()
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Take the next bytes and give the lines that they complete, without their line end."""
        self.bytes += len(data)
        data = self._decoded(data)
        start = self._passed_rest(data)
        while True:
            if (skim := self._skimming) is not None and not self.in_line:
                start, self.lines = skim(data, start, self.lines)
            end = data.find(b"\n", start)
            if end < 0:
                break
            if end - start <= 1 and (empty := _EMPTY_LINES.match(data, start)) and not self._rest:
                self.lines += data.count(b"\n", start, empty.end())
                start = empty.end()
                continue
            self._keep(data, start, end)
            start = end + 1
            self.ahead = data[start : start + SEEN_AHEAD]
            number, line = self._complete()
            if line:
                yield from self._taken(number, line)
        self._keep(data, start, len(data))

    @property
    def in_line(self) -> bool:
        """Whether the beginning of a line waits for its end."""
        return bool(self._rest) or self._dropping or self._objects.waits

    @property
    def may_skip(self) -> bool:
        """Whether lines are passed over, and the log's bytes are those that it was fed."""
        return self._skimming is not None and self._decoder is None

    @property
    def _skimming(self) -> Callable[[bytes, int, int], tuple[int, int]] | None:
        """What passes lines over; nothing where a record is spread over several."""
        return None if self._objects.found else self.skim

    def skip(self, size: int, lines: int) -> None:
        """Count whole lines as if they had been fed."""
        self.bytes += size
        self.lines += lines

    def _passed_rest(self, data: bytes) -> int:
        """Where the first line begins after the one that the last block has cut, where that need not be given."""
        end = data.find(b"\n") + 1
        skim = None if self._dropping or self._objects.waits else self._skimming
        if skim is None or not self._rest or not end or len(self._rest) + end > MAX_LINE_BYTES:
            return 0
        whole = bytes(self._rest) + data[:end]
        passed, number = skim(whole, 0, self.lines)
        if passed < len(whole):
            return 0
        self.lines = number
        self._rest.clear()
        return end

    def end(self) -> Iterator[tuple[int, bytes]]:
        """No more bytes: give the last line, if the stream did not end with a newline."""
        short, self._head = self._head, None
        if short:  # too short a stream to tell its encoding
            self.bytes -= len(short)
            yield from self.feed(short)
        self.ahead = b""
        if self._rest or self._dropping:
            is_torn = self.lines > 0
            number, line = self._complete()
            if is_torn and re.search(_STATUS, line) is None:
                line = re.sub(_LAST_FIGURE, b"", line)
            if line:
                yield from self._taken(number, line)
        yield from self._objects.rest()

    def _taken(self, number: int, line: bytes) -> Numbered:
        """What the line completes; the entries of a list on one line are lines of their own."""
        lines = self._objects.take(number, line)
        if lines:
            self.lines = max(self.lines, lines[-1][0])
        return lines

    def reset(self) -> None:
        """The source begins a new stream: an unfinished line stays unfinished, the numbering goes on."""
        self._rest.clear()
        self._dropping = False
        self._objects = ObjectJoiner()
        self._head = b""
        self._decoder = None

    def _keep(self, data: bytes, start: int, end: int) -> None:
        room = MAX_LINE_BYTES - len(self._rest)
        if end - start > room:
            if not self._dropping:
                self.truncated += 1
            self._dropping = True
            end = start + max(room, 0)
        self._rest += data[start:end]

    def _complete(self) -> tuple[int, bytes]:
        self.lines += 1
        line = bytes(self._rest)
        self._rest.clear()
        self._dropping = False
        line = line.rstrip(b"\r")
        return self.lines, re.sub(_FRAMES, _drawn, line) if line.count(b"\r") > MAX_FRAMES else line

    def _decoded(self, data: bytes) -> bytes:
        """UTF-16 becomes UTF-8, a UTF-8 BOM goes; the first four bytes of the stream tell."""
        if self._head is not None:
            data = self._head + data
            if len(data) < 4:
                self._head = data
                return b""
            self._head = None
            encoding = _UTF16.get(data[:2])
            data = data[2:] if encoding is not None else data.removeprefix(codecs.BOM_UTF8)
            encoding = encoding or _guess_utf16(data[:4])
            if encoding is not None:
                self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        if self._decoder is not None:
            return self._decoder.decode(data).encode("utf-8", "replace")
        return data


def _drawn(frames: "re.Match[bytes]") -> bytes:
    count = frames[0].count(b"\r")
    return frames[0] if count <= MAX_FRAMES else frames[0][: frames[0].index(b"\r", 1)]


def _guess_utf16(head: bytes) -> str | None:
    """PowerShell before 6 may write UTF-16 without a BOM after the first write: every other byte is NUL."""
    if len(head) < 4:
        return None
    if head[1] == head[3] == 0 and head[0] and head[2]:
        return "utf-16-le"
    if head[0] == head[2] == 0 and head[1] and head[3]:
        return "utf-16-be"
    return None
