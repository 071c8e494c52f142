"""`RecordReader`: the lines that one process group prints (a whole log, or one container's part of it) to events.

Rules that must stay true here:
- A message is matched whole. Before ready it may be completed by the lines that follow, and one physical line may hold
  several records; once the server serves, neither is done: users can write then.
- A record of a source file that prints users' text tells nothing, nor do the raw lines behind it.
- A server's record that goes on over further lines is told by its first one; a traceback by its first exception.
"""

from collections.abc import Iterator

from kvguard.events import (
    Event,
    ExceptionRaised,
    FailureReported,
    LineUnrecognized,
    Origin,
    ProcessFailed,
    ProcessSpoke,
    Role,
    Trust,
)
from kvguard.lines import annotations, records
from kvguard.lines.format_table import FormatTable
from kvguard.lines.head import Head, strip
from kvguard.lines.line_format import has_figure
from kvguard.lines.long_records import SEVERE, TRACEBACK, LongRecords
from kvguard.lines.parts import CutLine, Tally
from kvguard.lines.patterns import compiled
from kvguard.lines.secrets import redact
from kvguard.lines.user_text import prints_user_text, shows_server
from kvguard.lines.wrapped import NEVER_WRAPPED, OpenMessage, Rest, Width

FENCE = "```"
GOES_ON = " \\"
"""How a line ends that its author has broken as in a shell."""
MAX_PROCESSES = 4096
"""Pids whose first line is remembered."""
MAX_TORN_LINES = 4
"""Physical lines over which a record's prefix can be wrapped: Ray's nested actors need three at 80 columns."""

ENGINE_FILES = frozenset({"core.py", "engine.py", "multiproc_executor.py", "multiproc_worker_utils.py"})
"""Source files whose ERROR records are the tracebacks of an engine or a worker that gives up."""

_CAPACITY_WORDS = r"(?i)(?:kv[ _-]?cache|cache blocks|[gc]pu blocks|maximum concurrency|tokens per request)"
_EXCEPTION = r"(?!Traceback\b)(?:[A-Za-z_][\w.]*+: .*+|(?:[A-Za-z_]\w*+\.)*+[A-Z]\w*+)"
"""A name with its words, or alone if it is written as classes are: a frame's function can stand alone on its line."""
_ERROR = r"[A-Za-z_][\w.]*+(?:(?<=Error)|(?<=Exception)): .*+"
_ACCESS = r'\S++ - "[A-Z]++ \S++ HTTP/[\d.]++" \d{3}(?: [A-Za-z -]++)?+'
"""uvicorn's line for a request that was answered."""
_HANDLER = (
    r' *+File "[^"]*?(?:/entrypoints/(?:\w++/)*+serving\w*+|/uvicorn/protocols/(?:\w++/)*+\w++)\.py", line \d++, '
    r"in (?!__init__$)"
)
"""A frame of what handles requests: a server that has those is ready."""
_NONE_OPEN = -1


class RecordReader:
    """Read one container's lines, or a whole log's where no runtime names containers.

    Attributes:
        serving: set by whoever follows the start: the server takes requests, so users can write into the log.
        doubtful: set likewise: tell of every process that speaks, for a boundary believed by the log's words alone.
        asks_who_serves: set likewise: tell of the records that show an API server, or that a start takes its time.
    """

    def __init__(self, table: FormatTable, tally: Tally) -> None:
        self.serving = False
        self.doubtful = False
        self.asks_who_serves = False
        self._table = table
        self._tally = tally
        self._cut_line = CutLine(tally)
        self._torn: list[tuple[int, str]] = []
        self._free_text = ""
        self._open: OpenMessage | None = None
        self._user_text = self._was_record = False
        self._behind_vllm = self._of_request = False
        self._traceback_of: int | None = _NONE_OPEN
        self._processes: dict[tuple[str | None, int], int] = {}
        self._last_unrecognized = ""
        self._long = LongRecords()

    @property
    def waits(self) -> bool:
        """Whether the next line may be the rest of one that was cut."""
        return bool(self._cut_line.waits or self._torn or self._open is not None)

    @property
    def closes_line(self) -> bool:
        """Whether nothing behind the last record on its physical line is read: it may be a user's text."""
        return self._user_text or (self.serving and self._was_record)

    def pass_over_records(self, count: int) -> None:
        """Records like one that was read have been passed over: what they told is told elsewhere."""
        self._tally.records += count
        self._tally.matched += count
        self._user_text = False
        self._long.forget()

    def pending(self) -> list[Event]:
        """What the last message tells if nothing follows it: it is held back while its rest may come."""
        return list(self._open.events or ()) if self._open is not None else []

    def flush(self) -> Iterator[Event]:
        """Nothing follows: tell what was held back."""
        waiting, self._torn = self._torn, []
        for number, text in waiting:
            yield from self._physical(number, text, Head(text), NEVER_WRAPPED)
        yield from self._close()

    def forget(self) -> None:
        """Another process writes from here on: nothing of the old one is continued."""
        self._cut_line.forget()
        self._torn.clear()
        self._open = None
        self._user_text = False
        self._traceback_of = _NONE_OPEN
        self._processes.clear()
        self._long.forget()

    def line(self, number: int, outer: Head, width: Width) -> Iterator[Event]:
        """Take the next line.

        Args:
            number: of the physical line.
            outer: the line without its envelope, and what that told.
            width: of the physical line.
        """
        text = self._cut_line.joined(outer)
        if text is None:
            return
        if text is not outer.message:
            outer, width = outer._replace(others=()), NEVER_WRAPPED
        for first, whole in self._with_whole_prefix(number, text, outer.others):
            yield from self._physical(first, whole, outer if whole is text else outer._replace(others=()), width)

    def _physical(self, number: int, text: str, around: Head, width: Width) -> Iterator[Event]:
        pieces = (self._without_free_text(text),) if self.serving else self._split(text)
        if len(pieces) > 1:
            around = around._replace(others=())
        for index, piece in enumerate(pieces, 1):
            head = strip(piece, around, relayed=not self.serving)
            if head.trust is Trust.RECORD and "]" not in piece:
                self._tally.unmarked += 1
                self._tally.json += head.json
            yield from self._record(number, head, piece, width if index == len(pieces) else NEVER_WRAPPED)
            if self._user_text:
                return  # what looks like another record behind it may be the user's

    def _split(self, text: str) -> tuple[str, ...]:
        free_text, pieces = records.split(text)
        self._free_text = free_text or self._free_text
        return pieces

    def _without_free_text(self, text: str) -> str:
        """While the server serves, only the very text that stood before the records of its start is taken off."""
        return records.without(self._free_text, text) if self._free_text else text

    def _with_whole_prefix(self, number: int, text: str, others: tuple[str, ...]) -> list[tuple[int, str]]:
        """The lines that are ready to be read: one whose prefix is cut waits for the rest, on the next line.

        The rest may look like something that stands before a line ("5:03 [core.py:57]"): `others` have that left on.
        """
        waiting, self._torn = self._torn, []
        if waiting and not self.serving and not records.begins(text):
            start = "".join(part for _, part in waiting)
            rests = [rest.lstrip() for rest in (text, *others)]
            joined = (whole for rest in rests for glue in ("", " ") if records.begins(whole := start + glue + rest))
            if (record := next(joined, None)) is not None:
                return [(waiting[0][0], record)]
            if len(waiting) < MAX_TORN_LINES:
                torn = next((rest for rest in (text, *others) if records.is_torn(start + rest)), None)
                if torn is not None:
                    self._torn = [*waiting, (number, torn)]
                    return []
        if not self.serving and records.is_torn(text):
            self._torn = [(number, text)]
            return waiting
        return [*waiting, (number, text)]

    def _record(self, number: int, head: Head, piece: str, width: Width) -> Iterator[Event]:
        """Tell of one record."""
        own_record = self._was_record = head.trust is Trust.RECORD
        if own_record:
            self._tally.records += 1
            self._user_text = prints_user_text(head.file, head.level)
        origin = self._origin(number, head)
        if self.doubtful and origin.pid is not None:
            answers = compiled(_ACCESS).fullmatch(head.message) is not None
            if own_record or answers:
                yield from self._close()  # what was printed before is told before
                yield ProcessSpoke(format="process", origin=origin, answers=answers)
        elif self.asks_who_serves and own_record and ((of_server := shows_server(head)) or not self.serving):
            yield from self._close()
            yield ProcessSpoke(format="process", origin=origin, of_server=of_server)
        if self._user_text:
            yield from self._close()
            return
        first, *rest = head.message.split("\n") if head.json else (head.message,)
        if self.serving and own_record:
            yield from self._long.believed(piece, head, list(self._message(first, head, origin, width)))
        else:
            yield from self._message(first, head, origin, width)
        for line in () if self.serving else rest:
            inner = strip(line, head._replace(others=()))
            yield from self._message(inner.message, inner, self._origin(number, inner), NEVER_WRAPPED)

    def _message(self, message: str, head: Head, origin: Origin, width: Width) -> Iterator[Event]:
        if not message.strip() and head.trust is Trust.RAW:
            return  # a blank line between the lines of a message ends none, and is no rest of one
        if not self.serving and message.endswith(GOES_ON):
            message = message.removesuffix(GOES_ON)
        candidates = (message.strip(), *head.others)
        rest = Rest(candidates, message.startswith(" ") and not message.startswith("  "), width)
        if not self.serving:
            candidates += tuple(reading for text in candidates for reading in annotations.readings(text))
        continued = self._open if self._continues(message, head, width) else None
        cut = continued if continued is not None and continued.events is None else None
        is_rest = cut is not None and self._may_be_rest(rest, cut)
        if cut is not None and is_rest and cut.extend(rest, self._lasting_table, whole=not cut.promising):
            return  # what is cut is not read by halves
        origin = self._in_traceback(origin)
        table = self._table.of_http_server if head.of_http_server else self._table
        events = table.tell(candidates, origin)
        if events is None and continued is not None and continued.extend(rest, self._lasting_table):
            return
        yield from self._close()
        self._follow_traceback(message, origin)
        opened = self._opens(message, head, events is not None, width)
        if opened is not None:
            readings = (message.rstrip(),)
            self._open = OpenMessage(readings, origin, width, events, promising=opened)
        elif events is None:
            yield from self._unmatched(message, origin)
        else:
            yield from self._counted(events)

    def _follow_traceback(self, message: str, origin: Origin) -> None:
        """Note where one begins, and whether a request's handler has raised it: then no start ends by it."""
        if self.serving:
            return
        if message.startswith(TRACEBACK):
            self._traceback_of, self._of_request = origin.pid, False
        elif self._traceback_of == origin.pid and compiled(_HANDLER).match(message) is not None:
            self._of_request = True

    def _may_be_rest(self, rest: Rest, cut: OpenMessage) -> bool:
        """Whether the line may be the rest of a cut one rather than a message of its own.

        A failure that stands in a line by itself is not hidden in a harmless record which does not ask for a rest.
        """
        if (cut.promising and cut.text.strip()) or cut.origin.level in SEVERE:
            return True
        alone = self._table.tell(rest.candidates, cut.origin) or ()
        return not any(isinstance(event, FailureReported | ProcessFailed) for event in alone)

    def _opens(self, message: str, head: Head, matched: bool, width: Width) -> bool | None:
        """Whether a format would describe more of the message; `None` where nothing can follow it."""
        text = message.strip()
        if not (width.may_be_wrapped or (width.may_be_cut and not self.serving)):
            return None
        if not text:  # a line that its prefix fills
            return True if head.trust is Trust.RECORD and not self.serving else None
        table = self._lasting_table
        if self.serving:
            return True if head.trust is Trust.RECORD and not matched and table.may_begin(text, True) else None
        if matched:
            return True if table.may_grow(text) else None
        cut_early = width.at_edge or compiled(_ERROR).fullmatch(text) is not None  # before the literal of its row
        if table.may_begin(text, cut_early) or table.ends_with_beginning(text):
            return True
        return False if head.trust is Trust.RECORD else None

    @property
    def _lasting_table(self) -> FormatTable:
        """What a wrapped message may be: while the server serves, only what may change its start."""
        return self._table.while_serving if self.serving else self._table

    def _close(self) -> Iterator[Event]:
        """Nothing continues the open message: tell what it is by itself."""
        closed, self._open = self._open, None
        if closed is None:
            return
        if closed.events is None:
            yield from self._unmatched(closed.text, closed.origin)
        else:
            yield from self._counted(closed.events, closed.lines)

    def _counted(self, events: list[Event], lines: int = 1) -> list[Event]:
        self._tally.matched += lines
        return events

    def _continues(self, message: str, head: Head, width: Width) -> bool:
        """Whether the line can be the rest of the open message: it brings no logger's prefix of its own.

        What looks like a level may be the message's next word, if the message asks for more. Behind the end of a quoted
        block its author writes.
        """
        return (
            self._open is not None
            and not message.startswith(FENCE)
            and head.trust is not Trust.RECORD
            and (head.level is None or (bool(head.others) and self._open.asks_for_more))
            and head.pid in (None, self._open.origin.pid)
            and (width.fits or self._open.width.is_a_pages)
            and (not message.startswith(TRACEBACK) or self._open.asks_for_more)
        )

    def _unmatched(self, message: str, origin: Origin) -> Iterator[Event]:
        cut = None if self.serving or self.doubtful else self._told_in_part(message, origin)
        if cut:
            yield from self._counted(cut)
            return
        if origin.trust is Trust.RECORD and not self.serving and _looks_like_capacity(message):
            text = redact(message.strip())
            self._tally.unrecognized += 1
            if text != self._last_unrecognized:
                self._last_unrecognized = text
                yield LineUnrecognized(format="unrecognized", origin=origin, text=text)
        if self._ends_traceback(message, origin):
            self._traceback_of = _NONE_OPEN
            if not self._of_request:
                yield ExceptionRaised(format="exception", origin=origin, message=redact(message.strip()))

    def _told_in_part(self, message: str, origin: Origin) -> list[Event]:
        """What is told by a message that was cut, or by those that a sentence of prose quotes: by figures alone."""
        cut = self._table.tell_cut(message.strip(), origin)
        if cut is not None or origin.trust is not Trust.RAW or origin.pid is not None:
            return cut or []
        quoted = (self._table.tell((text,), origin) or () for text in annotations.quoted(message))
        return [event for told in quoted for event in told if has_figure(event)]

    def _in_traceback(self, origin: Origin) -> Origin:
        """A raw line inside a traceback is more than a print."""
        inside = self._traceback_of == origin.pid and origin.trust is Trust.RAW and self._traceback_of != _NONE_OPEN
        return Origin(line=origin.line, trust=Trust.TRACEBACK, container=origin.container) if inside else origin

    def _ends_traceback(self, message: str, origin: Origin) -> bool:
        """Whether the line is an exception, in a traceback whose head was seen or in an engine's own words."""
        if self._traceback_of == _NONE_OPEN:
            in_record = origin.level == "ERROR" and origin.file in ENGINE_FILES
            of_engine = origin.trust is Trust.TAGGED and origin.role in (Role.ENGINE, Role.WORKER)
            return (in_record or of_engine) and compiled(_ERROR).fullmatch(message) is not None
        return self._traceback_of == origin.pid and compiled(_EXCEPTION).fullmatch(message) is not None

    def _origin(self, number: int, head: Head) -> Origin:
        self._behind_vllm |= head.of_vllm
        first = None
        if head.pid is not None:
            if len(self._processes) >= MAX_PROCESSES:
                self._processes.clear()
            key = (head.tag, head.pid)
            # of a serving server, objects that can tell nothing are passed over unread: none of them is first
            seen_whole = head.trust is Trust.RECORD and not (self.serving and head.json)
            first = self._processes.setdefault(key, number) if seen_whole else self._processes.get(key)
        return Origin(
            line=number,
            role=head.role,
            tag=head.tag,
            pid=head.pid,
            writer=head.writer,
            engine=head.engine,
            rank=head.rank,
            node=head.node,
            stamp=head.stamp,
            outer_stamp=head.outer_stamp,
            level=head.level or (None if self._behind_vllm else head.shipped_level),
            file=head.file,
            trust=head.trust,
            process_line=first,
            repeated=head.repeated,
            behind_vllm=self._behind_vllm,
            stage=head.stage,
            container=head.container,
        )


def _looks_like_capacity(message: str) -> bool:
    """The words of a capacity line beside a number; a traceback's source lines are indented."""
    return (
        not message.startswith("  ")
        and compiled(_CAPACITY_WORDS).search(message) is not None
        and any(character.isdigit() for character in message)
    )
