"""A message that a terminal or a viewer may have wrapped over several physical lines.

It is held back with what it tells so far, so that a figure cut in two is never told by half.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from kvguard.events import Event, Origin
from kvguard.lines.format_table import FormatTable, Told, fullness
from kvguard.lines.head import without_repeats
from kvguard.lines.patterns import compiled
from kvguard.lines.records import WIDEST_TERMINAL
from kvguard.slotted import dataclass, replace

BLANKS_AT_EDGE = 2
"""Columns that a line cut at the right edge may lack: blanks there are lost, and a wide character does not fit."""
RAGGED = 30
"""Columns by which lines wrapped at spaces differ."""
INDENTATION = 8
"""Columns by which the further lines of a message may stand in: they seem so much wider."""
MAX_READINGS = 6
"""Ways of joining the lines of one message that are followed further."""
MAX_WRAPPED_LINES = 256
MAX_WRAPPED_CHARACTERS = 2**14
"""An engine's banner of 8 kB on an 80-column terminal needs a hundred lines."""
LEAST_PAGE = 900
"""Columns of a line that a page or an index may have cut: at a thousand characters, wherever that is."""
_OPTIONS = r".{0,300}?[a-z_](?:=|['\"]:)"
"""How the rest of a cut list of options begins: with the other half of a value, and the next option."""


class Width(NamedTuple):
    """How wide a physical line is, how much wider the widest of its log so far, and what is seen of the next."""

    columns: int
    room: int
    """Columns between its end and the edge."""
    followed: bool = False
    """Whether a record is seen to begin behind it."""

    @property
    def at_edge(self) -> bool:
        """Whether a word can have been cut at its end."""
        return self.room <= BLANKS_AT_EDGE

    @property
    def fits(self) -> bool:
        """Whether a terminal can be as wide."""
        return self.columns <= WIDEST_TERMINAL

    @property
    def may_be_wrapped(self) -> bool:
        """Whether a terminal can be as wide, and its rest can stand on the next line."""
        return self.fits and not self.followed

    @property
    def is_a_pages(self) -> bool:
        """Whether it is as long as pages leave a line: then its rest may be of any width."""
        return self.columns >= LEAST_PAGE

    @property
    def may_be_cut(self) -> bool:
        """Whether a page may have cut it, in the middle of a list of options: nothing else is as long."""
        return self.is_a_pages and not self.followed


NEVER_WRAPPED = Width(WIDEST_TERMINAL + 1, room=WIDEST_TERMINAL)


class Rest(NamedTuple):
    """A physical line that may go on with the message before it."""

    candidates: Sequence[str]
    """Its text, and what else it may be."""
    spaced: bool
    """Whether it begins with one space, which was cut off the line before; more are an indentation."""
    width: Width


@dataclass(slots=True)
class OpenMessage:
    """A message whose rest may stand on the next line; the whole keeps its first line's origin."""

    readings: tuple[str, ...]
    """What it says so far: a wrap inside a word leaves nothing between the halves, one at a space has eaten it."""
    origin: Origin
    width: Width
    """Of its last physical line: only at the edge can a word or a figure be cut in two at its end."""
    events: list[Event] | None
    """What it tells so far; `None` while no format describes it."""
    promising: bool
    """Whether a format describes it, or would if it went on."""
    lines: int = 1

    @property
    def text(self) -> str:
        """The likeliest reading."""
        return self.readings[0]

    @property
    def asks_for_more(self) -> bool:
        """Whether it is the beginning of what a format describes, and no whole."""
        return self.events is None and self.promising and bool(self.text.strip())

    def extend(self, rest: Rest, table: FormatTable, whole: bool = False) -> bool:
        """Take the next line as the rest if a format describes the two together, or would if they went on.

        Args:
            rest: the next line.
            table: the formats that the message may be of.
            whole: whether only a format that describes the two together counts.
        """
        if self.lines >= MAX_WRAPPED_LINES or len(self.text) > MAX_WRAPPED_CHARACTERS:
            return False
        empty = not self.text.strip()
        if empty and not self._is_filled(rest):
            return False
        if self.width.is_a_pages and not any(compiled(_OPTIONS).match(text) for text in rest.candidates):
            return False
        lost_blank = rest.spaced or self.width.room > 0
        glues = (" ",) if not self.width.at_edge else (" ", "") if lost_blank else ("", " ")
        # of each reading the likeliest first: as many as are kept must not all be of one
        triples = itertools.product(rest.candidates, glues, self.readings)
        joined = [f"{text}{glue}{more}".lstrip() for more, glue, text in triples]
        told = self._told(joined, table)
        if told is not None and fullness(told.events) < fullness(self.events or ()):
            told = None  # a row that lets anything follow would take in what is none of the message
        alike = empty or abs(rest.width.columns - self.width.columns) <= RAGGED
        begun = [text for text in joined if not whole and table.may_begin(text, by_pattern_alone=alike)]
        if told is None and not begun:
            return False
        if told is not None:
            self.events = told.events
            begun = [told.text, *begun, *(text for text in joined if table.describes(text))]
        self.readings = tuple(dict.fromkeys(begun))[:MAX_READINGS]
        self.width = rest.width
        self.lines += 1
        self.promising = True
        return True

    def _is_filled(self, rest: Rest) -> bool:
        """Whether its line, which holds a prefix alone, had no room for the next line's first word."""
        first_word = max(rest.candidates, key=len).partition(" ")[0]
        return self.width.room <= max(RAGGED, len(first_word) + 1 + INDENTATION)

    def _told(self, joined: Sequence[str], table: FormatTable) -> Told | None:
        """What a format tells of the likeliest reading, Ray's note behind it left out."""
        messages = dict(without_repeats(text) for text in joined)
        repeated = max(messages.values())
        if repeated > 1:
            self.origin = replace(self.origin, repeated=repeated)
        return table.tell_best(messages, self.origin)
