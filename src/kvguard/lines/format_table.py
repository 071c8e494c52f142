"""`FormatTable`: the rows as one thing to ask: what does a message tell, and could it go on?"""

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kvguard import events
from kvguard.events import Event, Origin
from kvguard.lines.line_format import LineFormat, describes, match, match_cut, match_quoted, may_continue
from kvguard.lines.openings import is_closed, may_open
from kvguard.lines.row_index import RowIndex
from kvguard.slotted import fields, replace

_WHAT_MAY_FOLLOW = (" ", ",", ".", "0", "x", "(")
"""How the rest of a cut message can begin: the next clause, or the other half of a figure or a word."""
_COURSE = {events.ProcessStarted, events.ServerListening, events.ServerReady, events.ShutdownBegan}
_TURNING = (
    events.ServerAnnounced,
    events.ArgumentsGiven,
    events.EngineConfigured,
    events.ShutdownBegan,
    events.FailureReported,
    events.ProcessFailed,
)


class Told(NamedTuple):
    """A row that describes a text, and what it tells."""

    row: LineFormat
    text: str
    events: list[Event]


class FormatTable:
    """The rows of a table of formats, found by their literals."""

    def __init__(self, rows: Sequence[LineFormat]) -> None:
        self.rows = tuple(rows)
        self._index = RowIndex(self.rows)
        self._asked: str | None = None
        self._known: list[LineFormat] = []

    @functools.cached_property
    def told_while_serving(self) -> tuple[bytes, ...]:
        """The literals of rows that can change a start which serves, or begin another one behind it."""
        return tuple(dict.fromkeys(row.literal.encode() for row in self.while_serving.rows))

    @functools.cached_property
    def while_serving(self) -> "FormatTable":
        """The rows that can change a start which serves, or begin another one behind it."""
        return FormatTable(
            [row for row in self.rows if row.amends or any(issubclass(kind, _TURNING) for kind in row.emits)]
        )

    @functools.cached_property
    def of_http_server(self) -> "FormatTable":
        """The rows that tell the course of a server and no figure."""
        return FormatTable([row for row in self.rows if row.emits and set(row.emits) <= _COURSE])

    def known(self, text: str) -> list[LineFormat]:
        """The rows whose literal the text holds, and whose messages can begin like it."""
        if text != self._asked:  # a line that no row tells is asked for again by what it could become
            known = [row for row in self._index.holding(text) if may_open(row.pattern, text)]
            self._asked, self._known = text, known
        return self._known

    def tell(self, candidates: Iterable[str], origin: Origin) -> list[Event] | None:
        """What the first candidate that a row describes tells (a decoy: nothing), or `None` if none does."""
        for text in candidates:
            for row in self.known(text):
                if (found := match(row, text, replace(origin, text=text))) is not None:
                    return found
        return None

    def tell_cut(self, text: str, origin: Origin) -> list[Event] | None:
        """What is told by a message that nothing continues, though its row describes more, or less."""
        for row in self.known(text):
            whole = replace(origin, text=text)
            if found := match_cut(row, text, whole) or match_quoted(row, text, whole):
                return found
        return None

    def describes(self, text: str) -> bool:
        """Whether any row describes the text."""
        return any(describes(row, text) for row in self.known(text))

    def tell_best(self, readings: Iterable[str], origin: Origin) -> Told | None:
        """Of several readings of one message what the likeliest tells; `None` if no row describes any.

        A row that lets anything follow its words describes a wrong reading as well: the one that names a cause goes
        before one that tells of an end alone, then the one found by most words, then the fullest.
        """
        told = (
            Told(row, text, found)
            for text in readings
            for row in self.known(text)
            if (found := match(row, text, replace(origin, text=text))) is not None
        )
        return max(told, key=_likelihood, default=None)

    def may_begin(self, text: str, by_pattern_alone: bool = False) -> bool:
        """Whether the text is a proper beginning of what a row describes.

        Args:
            text: the message so far.
            by_pattern_alone: ask also the rows whose literal stands further behind.
        """
        rows = self._index.opened_by(text) if by_pattern_alone else self.known(text)
        return any(may_continue(row, text) for row in rows)

    def may_grow(self, message: str) -> bool:
        """Whether a row describes the message with more behind it as well."""
        longer = [message + more for more in _WHAT_MAY_FOLLOW]
        rows = [row for row in self.known(message) if not (is_closed(row.pattern) and describes(row, message))]
        return any(describes(row, text) for row in rows for text in longer) or any(
            may_continue(row, text) for row in rows for text in longer
        )

    def ends_with_beginning(self, text: str) -> bool:
        """Whether the text ends with the beginning of a row's literal."""
        return self._index.ends_with_beginning(text)


def _likelihood(told: Told) -> tuple[bool, int, int]:
    ends_alone = events.ProcessFailed in told.row.emits
    return not ends_alone, len(told.row.literal), fullness(told.events)


def fullness(told: Iterable[Event]) -> int:
    """How much the events tell."""
    return sum(getattr(event, field.name) is not None for event in told for field in fields(event))
