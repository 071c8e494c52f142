"""No event may be invented: whatever is told, a row describes its text whole, and the text stands in the log."""

import regex

from kvguard.events import Event, ExceptionRaised, LineUnrecognized, ProcessSpoke
from kvguard.lines.formats import FORMATS
from kvguard.lines.head import clean
from kvguard.lines.line_format import describes, match_cut, match_quoted

ROWS = {row.name: row for row in FORMATS}
_BY_NO_ROW = (ExceptionRaised, LineUnrecognized, ProcessSpoke)


def assert_told_by_the_text(event: Event, data: bytes) -> None:
    """An event of the table carries a text that its row describes, letter for letter out of the log."""
    if isinstance(event, _BY_NO_ROW):
        return
    row, text = ROWS[event.format], event.origin.text
    assert text is not None
    assert row.literal in text
    # of a text that the log's end has cut, what stands there is told; of a quoted refusal what stands around it is not
    readings = (match_cut(row, text, event.origin), match_quoted(row, text, event.origin))
    assert describes(row, text) or any(readings), (event.format, text)
    if b"\\" in data or b"\x00" in data:
        return  # JSON's escapes and UTF-16 spell a text otherwise
    left = iter(_letters(clean(data.decode("utf-8", "replace"))))
    assert all(letter in left for letter in _letters(text)), (event.format, text)


def _letters(text: str) -> str:
    return regex.sub(r"[^\w.,]+", "", text)
