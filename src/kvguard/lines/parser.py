"""`StartupLogParser`: bytes in, events out; every message is told by exactly one format or by none.

Input never raises; what is skipped is counted. A log that interleaves several containers (docker compose, kubectl
--prefix, stern) is read container by container: another service's ready line is not the server's.
"""

from collections.abc import Iterator

from kvguard.events import Event, Origin, StatsLogged, Trust
from kvguard.lines import annotations, records
from kvguard.lines.format_table import FormatTable
from kvguard.lines.formats import FORMATS
from kvguard.lines.framing import LineFramer
from kvguard.lines.head import Head, clean, envelope, strip
from kvguard.lines.line_format import LineFormat
from kvguard.lines.long_records import TRACEBACK
from kvguard.lines.parts import Tally
from kvguard.lines.reader import RecordReader
from kvguard.lines.scouting import Scout, Stretch
from kvguard.lines.skimming import CUT, MARK, Skimmer
from kvguard.lines.wrapped import Width

MAX_CONTAINERS = 64
"""Containers told apart in one log; further ones are left out."""

LINE_END_MARKS = "⏎↵"
PADDING = " │┃║¦|"
"""What fills a line to the right border of a box."""


class StartupLogParser:
    """Parse one log, fed as it comes.

    Args:
        formats: the table.
        asks_who_serves: whether to tell of records that tell nothing else, until `follow` says that a server serves.
    """

    def __init__(self, formats: tuple[LineFormat, ...] = FORMATS, asks_who_serves: bool = False) -> None:
        self.tally = Tally()
        self._asks_who_serves = asks_who_serves
        self.framer = LineFramer()
        """The byte and line counts."""
        self._table = FormatTable(formats)
        self._readers: dict[str | None, RecordReader] = {}
        self._current: str | None = None
        self._one_container = False
        self._skimmer = Skimmer()
        self._widest = 0
        self._indentation: str | None = None

    def feed(self, data: bytes) -> Iterator[Event]:
        """Take the next bytes, split anywhere, and give what the lines that they complete tell, in order.

        Stats lines that are passed over tell together: before the next line that is read, or when `passed_over` asks.
        """
        for number, raw in self.framer.feed(data):
            yield from self.passed_over()
            told: list[Event] = []
            for event in self._line(number, raw):
                told.append(event)
                yield event
            # a message of an earlier line may have waited for this one
            self._skimmer.learn(raw, [event for event in told if event.origin.line == number])
            self.framer.skim = self._skimmer.skim if self._may_skim() else None

    def end(self) -> Iterator[Event]:
        """No more bytes: the last line needs no newline."""
        yield from self.passed_over()
        for number, raw in self.framer.end():
            yield from self._line(number, raw)
        for reader in self._readers.values():
            yield from reader.flush()

    def scout(self) -> Scout | None:
        """Who can look ahead with what is known of the log so far; `None` where its lines are read one by one."""
        return Scout(self._skimmer, self._skimmer.manner) if self.framer.may_skip else None

    def pass_over(self, stretch: Stretch, scout: Scout) -> Iterator[Event] | None:
        """Take what a scout has passed over as if it had come by `feed`; `None` where the lines must be read."""
        # the scout must be a copy of the very skimmer that is here; what that has learnt since does no harm
        if self.framer.in_line or self.scout() != scout:
            return None
        events = [*self._skimmer.told(), *stretch.events_behind(self.framer.lines)]
        self.framer.skip(stretch.end - stretch.begin, stretch.lines)
        return self._told_unread(events)

    def boundary(self) -> None:
        """The source says that another stream begins here: nothing of the old one is continued."""
        self.framer.reset()
        self._skimmer = Skimmer()
        self.framer.skim = None
        for reader in self._readers.values():
            reader.forget()

    def passed_over(self) -> Iterator[Event]:
        """What the lines that were passed over have told since this was asked last."""
        return self._told_unread(self._skimmer.told())

    def pending(self) -> list[Event]:
        """What the last messages tell if nothing follows them: they are held back while their rest may come."""
        return [event for reader in self._readers.values() for event in reader.pending()]

    def follow(self, container: str | None, serving: bool, doubtful: bool, asks_who_serves: bool = False) -> None:
        """Whoever follows the start says how far it is: what may be believed, and what is asked for, turn on it."""
        reader = self._reader(container)
        if doubtful and not reader.doubtful:
            self._skimmer = Skimmer()  # the first line of each process must be read again: who speaks settles the doubt
        reader.serving, reader.doubtful, reader.asks_who_serves = serving, doubtful, asks_who_serves

    def _may_skim(self) -> bool:
        """Whether lines may be passed over: one server writes the log, serves, and prints records of one known kind."""
        reader = self._readers.get(None)
        tally = self.tally
        if reader is None or len(self._readers) > 1 or not reader.serving or reader.waits or reader.asks_who_serves:
            return False
        if tally.json_parts or (tally.json and (reader.doubtful or tally.parts)):
            return False  # what shows that a line must be read may stand in another part of it
        self._skimmer.anchors = (
            self._table.told_while_serving if tally.json else (MARK, CUT) if tally.framed else (MARK,)
        )
        return tally.records > 0 and tally.unmarked == tally.json

    def _told_unread(self, events: list[StatsLogged]) -> Iterator[Event]:
        if events:
            self._reader(None).pass_over_records(sum(event.samples for event in events))
            yield from events

    def _line(self, number: int, raw: bytes) -> Iterator[Event]:
        text = raw.decode("utf-8", "replace")
        container = None
        pieces = self._pieces(text)
        # nothing need be asked of a message whose rest cannot come: another container's record says nothing of it
        ahead = self.framer.ahead.removeprefix((self._indentation or "").encode())
        followed = len(self._readers) < 2 and records.is_seen(ahead)
        for piece in pieces:
            if not piece or piece.isspace():
                continue
            shown = self._unindented(clean(piece))
            columns = len(shown.rstrip(PADDING)) - piece.count("\t")  # a tab is shown as two spaces
            self._widest = max(self._widest, columns)
            head = envelope(shown)
            container = head.container or container
            room = max(self._widest, records.NARROWEST_TERMINAL) - columns
            width = Width(columns, room, followed=followed and piece is pieces[-1])
            yield from self._routed(number, head._replace(container=container), width)
            if self._reader(self._current).closes_line:
                return

    def _unindented(self, text: str) -> str:
        """The line without the blanks that stand before the first record or traceback: a paste stands in as a whole."""
        if self._indentation is None:
            bare = text.lstrip(" ")
            if TRACEBACK in bare or _is_record(envelope(bare)):
                self._indentation = text[: len(text) - len(bare)]
        return text.removeprefix(self._indentation) if self._indentation else text

    def _pieces(self, text: str) -> list[str]:
        """A physical line cut at its carriage returns, and at the marks that a viewer shows for lost line ends."""
        reader = self._readers.get(self._current)
        if reader is None or not reader.serving:
            for mark in LINE_END_MARKS:
                text = text.replace(mark, "\r")
        return text.split("\r")

    def _routed(self, number: int, head: Head, width: Width) -> Iterator[Event]:
        """Hand the line to the reader of its container, where the log's first record shows that it names them."""
        head = self._without_known_name(head)
        name = head.container
        if name not in self._readers and name is not None:
            known = not self._one_container and len(self._readers) < MAX_CONTAINERS
            name = name if known and self._is_servers(head) else self._current
        elif name is None and self._current is None and not self._one_container and _is_record(head):
            self._one_container = True
        if name is None:
            first_word = head.message.split(" ", 1)[0]  # "vllm-1 exited with code 137", as compose says itself
            name = first_word if first_word in self._readers else self._current
        self._current = name
        head = head if head.container == name else head._replace(container=name)
        yield from self._reader(name).line(number, head, width)

    def _without_known_name(self, head: Head) -> Head:
        """stern puts nothing between its two names and the line: before raw text they are known from the records."""
        names = () if head.container is not None else (name for name in self._readers if name and " " in name)
        name = next((name for name in names if head.message.startswith(f"{name} ")), None)
        return head if name is None else envelope(head.message[len(name) + 1 :])._replace(container=name)

    def _is_servers(self, head: Head) -> bool:
        """Whether a record follows, or a message that a format describes: only then is it a container that is named."""
        text = head.message.strip()
        return _is_record(head) or self._table.tell((text, *annotations.readings(text)), Origin(line=0)) is not None

    def _reader(self, container: str | None) -> RecordReader:
        reader = self._readers.get(container)
        if reader is None:
            reader = self._readers[container] = RecordReader(self._table, self.tally)
            reader.asks_who_serves = self._asks_who_serves
        return reader


def _is_record(head: Head) -> bool:
    """Whether a logger's prefix follows."""
    return strip(head.message, head).trust is not Trust.RAW
