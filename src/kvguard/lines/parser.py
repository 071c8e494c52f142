"""`StartupLogParser`: bytes in, events out; every message is told by exactly one format or by none.

Rules that must stay true here:
- Input never raises; what is skipped is counted.
- A message is matched whole. Before ready it may be completed by the lines that follow (a terminal's wrapping, CRI
  parts), and one physical line may hold several records; once the server serves, neither is done: users can write then.
- A record of a source file that prints users' text tells nothing, nor do the raw lines behind it.
"""

from collections.abc import Iterator

import regex

from kvguard.events import Event, ExceptionRaised, LineUnrecognized, Origin, ProcessSpoke, Trust
from kvguard.lines import prefixes
from kvguard.lines.formats import FORMATS
from kvguard.lines.framing import LineFramer
from kvguard.lines.line_format import LineFormat, match
from kvguard.lines.secrets import redact
from kvguard.lines.wrapped import OpenMessage, opens

MAX_PARTS = 2**18
"""Characters joined from CRI or docker parts of one record."""
MAX_PROCESSES = 4096
"""Pids whose first line is remembered."""

USER_TEXT_FILES = frozenset(
    {"logger.py", "protocol.py", "chat_utils.py", "preprocess.py", "async_llm_engine.py", "sampling_params.py"}
)
"""Source files whose records repeat prompts, model names or other text of a client."""
_USER_TEXT_STEMS = regex.compile(r"serving\w*+|\w*+(?:tool|reasoning)_parser|\w*+_engine_client", regex.VERSION1)

_RECORD_START = regex.compile(
    r"(?:\([A-Za-z_][\w.:-]*+(?: \w++)?(?: rank=\d++)? pid=\d++(?:, ip=[\w.:-]++)?\) ?)*+"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d++)? (?:\[[^\]\s]++\]|[\w./-]++:\d++\])",
    regex.VERSION1,
)
_CAPACITY_WORDS = regex.compile(
    r"(?i)(?:kv[ _-]?cache|cache blocks|[gc]pu blocks|maximum concurrency|tokens per request)", regex.VERSION1
)
_EXCEPTION = regex.compile(r"(?P<kind>[A-Za-z_][\w.]*+)(?:: (?P<text>.*+)|$)", regex.VERSION1)
_TRACEBACK = "Traceback (most recent call last):"


class StartupLogParser:
    """Parse one log, fed as it comes.

    Attributes:
        serving: set by whoever follows the start: the server takes requests, so users can write into the log.
        doubtful: set likewise: tell of every process that speaks, for a boundary believed by its pids alone.
    """

    def __init__(self, formats: tuple[LineFormat, ...] = FORMATS) -> None:
        self.serving = False
        self.doubtful = False
        self.matched = 0
        self.unrecognized = 0
        self.records = 0
        self._formats = formats
        self._framer = LineFramer()
        self._parts: list[str] = []
        self._open: OpenMessage | None = None
        self._user_text = False
        self._traceback_of: int | None = -1
        self._processes: dict[tuple[str | None, int], int] = {}
        self._last_unrecognized = ""

    @property
    def framer(self) -> LineFramer:
        """The byte and line counts."""
        return self._framer

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take the next bytes, split anywhere, and give what the lines that they complete tell, in order."""
        for number, raw in self._framer.feed(data):
            yield from self._line(number, raw)

    def end(self) -> Iterator[Event]:
        """No more bytes: the last line needs no newline."""
        for number, raw in self._framer.end():
            yield from self._line(number, raw)

    def boundary(self) -> None:
        """The source says that another process writes from here on: nothing of the old one is continued."""
        self._framer.reset()
        self._parts.clear()
        self._open = None
        self._user_text = False
        self._traceback_of = -1
        self._processes.clear()

    def _line(self, number: int, raw: bytes) -> Iterator[Event]:
        text = raw.decode("utf-8", "replace")
        pieces = text.split("\r") if "\r" in text else (text,)
        for piece in pieces:
            if piece and not piece.isspace():
                yield from self._physical(number, piece)

    def _physical(self, number: int, text: str) -> Iterator[Event]:
        joined = self._joined_parts(text)
        if joined is None:
            return
        if self.serving or len(starts := [found.start() for found in _RECORD_START.finditer(joined)]) == 0:
            yield from self._record(number, joined)
            return
        if starts[0] > 0 and prefixes.strip(joined[: starts[0]]).message.strip():
            starts.insert(0, 0)  # something of its own stands before the first record: a progress bar, another record
        else:
            starts[0] = 0
        for start, end in zip(starts, [*starts[1:], len(joined)], strict=True):
            yield from self._record(number, joined[start:end])
            if self._user_text:
                return  # what looks like another record behind it may be the user's

    def _joined_parts(self, text: str) -> str | None:
        """A record that the container runtime cut, once its last part is there; any other text as it is."""
        if not self._parts and " P " not in text and '"log"' not in text:
            return text
        head = prefixes.strip(text, framing_only=True)
        if head.partial:
            if sum(map(len, self._parts)) < MAX_PARTS:
                self._parts.append(head.message)
            return None
        if not self._parts:
            return text
        joined = "".join((*self._parts, head.message))
        self._parts.clear()
        return joined

    def _record(self, number: int, text: str) -> Iterator[Event]:
        """Tell of one record."""
        head = prefixes.strip(text)
        own_record = head.trust is Trust.RECORD
        if own_record:
            self.records += 1
            self._user_text = _prints_user_text(head.file)
        if self._user_text:
            self._open = None
            return
        origin = self._origin(number, head)
        if self.doubtful and origin.pid is not None and own_record:
            yield ProcessSpoke(format="process", origin=origin)
        for message in head.message.split("\n") if head.json else (head.message,):
            yield from self._message(message, head, origin)

    def _message(self, message: str, head: prefixes.Head, origin: Origin) -> Iterator[Event]:
        origin = self._in_traceback(message, origin)
        candidates = (message.strip(), *head.others) if head.others else (message.strip(),)
        events = self._match(candidates, origin)
        if events is None and not self.serving and self._open is not None and self._continues(head):
            events = self._open.extend(candidates, self._formats)
            if events is not None:
                yield from self._counted(events)
                return
        self._open = None
        if events is not None:
            yield from self._counted(events)
        else:
            yield from self._unmatched(message, origin)
        if not self.serving and opens(message, head.trust, matched=events is not None, formats=self._formats):
            self._open = OpenMessage(message, origin, head.pid)

    def _match(self, candidates: tuple[str, ...], origin: Origin) -> list[Event] | None:
        for candidate in candidates:
            for row in self._formats:
                if row.literal in candidate:
                    events = match(row, candidate, origin)
                    if events is not None:
                        return events
        return None

    def _counted(self, events: list[Event]) -> list[Event]:
        self.matched += 1
        return events

    def _continues(self, head: prefixes.Head) -> bool:
        """Whether the line can be the rest of the open message: it brings no logger's prefix of its own."""
        assert self._open is not None
        return head.trust is not Trust.RECORD and head.level is None and head.pid in (None, self._open.pid)

    def _unmatched(self, message: str, origin: Origin) -> Iterator[Event]:
        if origin.trust is Trust.RECORD and not self.serving and _looks_like_capacity(message):
            text = redact(message)
            self.unrecognized += 1
            if text != self._last_unrecognized:
                self._last_unrecognized = text
                yield LineUnrecognized(format="unrecognized", origin=origin, text=text)
        if self._traceback_of != -1 and self._ends_traceback(message, origin):
            self._traceback_of = -1
            yield ExceptionRaised(format="exception", origin=origin, message=redact(message.strip()))

    def _in_traceback(self, message: str, origin: Origin) -> Origin:
        """Follow tracebacks: a raw line inside one is more than a print."""
        if message.startswith(_TRACEBACK):
            self._traceback_of = origin.pid
        elif self._traceback_of == origin.pid and origin.trust is Trust.RAW and self._traceback_of != -1:
            return Origin(line=origin.line, trust=Trust.TRACEBACK)
        return origin

    def _ends_traceback(self, message: str, origin: Origin) -> bool:
        found = _EXCEPTION.fullmatch(message)
        return found is not None and self._traceback_of == origin.pid and found["kind"] != "Traceback"

    def _origin(self, number: int, head: prefixes.Head) -> Origin:
        first = None
        if head.pid is not None:
            if len(self._processes) >= MAX_PROCESSES:
                self._processes.clear()
            first = self._processes.setdefault((head.tag, head.pid), number)
        return Origin(
            line=number,
            role=head.role,
            tag=head.tag,
            pid=head.pid,
            engine=head.engine,
            rank=head.rank,
            node=head.node,
            stamp=head.stamp,
            level=head.level,
            file=head.file,
            trust=head.trust,
            process_line=first,
            repeated=head.repeated,
        )


def _prints_user_text(file: str | None) -> bool:
    return file is not None and (
        file in USER_TEXT_FILES or _USER_TEXT_STEMS.fullmatch(file.removesuffix(".py")) is not None
    )


def _looks_like_capacity(message: str) -> bool:
    """The words of a capacity line beside a number; a traceback's source lines are indented."""
    return (
        not message.startswith("  ")
        and _CAPACITY_WORDS.search(message) is not None
        and any(character.isdigit() for character in message)
    )
