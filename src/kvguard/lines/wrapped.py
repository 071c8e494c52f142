"""A message that a terminal or a viewer may have wrapped over several physical lines.

It is held back with what it tells so far, so that a figure cut in two is never told by half.
"""

from collections.abc import Sequence
from typing import NamedTuple

from kvguard.events import Event, Origin
from kvguard.lines.format_table import FormatTable
from kvguard.lines.patterns import compiled
from kvguard.lines.records import WIDEST_TERMINAL
from kvguard.slotted import dataclass

RAGGED = 30
"""Columns by which lines wrapped at spaces differ."""
MAX_WRAPPED_LINES = 256
MAX_WRAPPED_CHARACTERS = 2**14
"""An engine's banner of 8 kB on an 80-column terminal needs a hundred lines."""


LEAST_PAGE = 900
"""Columns of a line that a page or an index may have cut: at a thousand characters, wherever that is."""
_OPTIONS = r".{0,300}?[a-z_](?:=|['\"]:)"
"""How the rest of a cut list of options begins: with the other half of a value, and the next option."""


class Width(NamedTuple):
    """How wide a physical line is, whether none before it in its log was wider, and what is seen of the next."""

    columns: int
    at_edge: bool
    followed: bool = False
    """Whether a record is seen to begin behind it."""

    @property
    def may_be_wrapped(self) -> bool:
        """Whether a terminal can be as wide, and its rest can stand on the next line."""
        return self.columns <= WIDEST_TERMINAL and not self.followed

    @property
    def may_be_cut(self) -> bool:
        """Whether a page may have cut it, in the middle of a list of options: nothing else is as long."""
        return self.columns >= LEAST_PAGE and not self.followed


NEVER_WRAPPED = Width(WIDEST_TERMINAL + 1, at_edge=False)


@dataclass(slots=True)
class OpenMessage:
    """A message whose rest may stand on the next line; the whole keeps its first line's origin."""

    text: str
    origin: Origin
    columns: int
    """Width of its last physical line."""
    cut_at_edge: bool
    """Whether that line is as wide as any before it: only then can a word or a figure be cut in two at its end."""
    events: list[Event] | None
    """What it tells so far; `None` while no format describes it."""
    promising: bool
    """Whether a format describes it, or would if it went on."""
    lines: int = 1

    @property
    def is_cut(self) -> bool:
        """Whether it tells nothing yet, and would if it went on: its rest is not to be read by itself."""
        return self.promising and self.events is None

    def extend(self, candidates: Sequence[str], width: Width, table: FormatTable) -> bool:
        """Take the next line as the rest if a format describes the two together, or would if they went on.

        A wrap inside a word leaves nothing between the halves, one at a space has eaten it: both are tried.
        """
        if self.lines >= MAX_WRAPPED_LINES or len(self.text) > MAX_WRAPPED_CHARACTERS:
            return False
        if self.columns >= LEAST_PAGE and not any(compiled(_OPTIONS).match(rest) for rest in candidates):
            return False
        glues = ("", " ") if self.cut_at_edge else (" ",)
        joined = [f"{self.text.lstrip()}{glue}{rest}" for rest in candidates for glue in glues]
        for text in joined:
            events = table.tell((text,), self.origin)
            if events is not None:
                self.events = events
                return self._grow(text, width)
        alike = abs(width.columns - self.columns) <= RAGGED
        for text in joined:
            if table.may_begin(text, by_pattern_alone=alike):
                return self._grow(text, width)
        return False

    def _grow(self, text: str, width: Width) -> bool:
        self.text = text
        self.columns, self.cut_at_edge = width.columns, width.at_edge
        self.lines += 1
        self.promising = True
        return True
