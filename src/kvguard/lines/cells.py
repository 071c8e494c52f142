"""Rows of a table that a log store has exported: one of the cells holds what was printed."""

from kvguard.lines import stamps
from kvguard.lines.patterns import compiled

SHORTEST = 6
"""Characters of a cell that may hold a line."""
_STAMPED = (*"0123456789", *(f'"{digit}' for digit in "0123456789"), *(f'"{month} ' for month in stamps.MONTHS))
"""How a row begins: with when its line was printed. A program's list of texts has no such column."""
_CELL = r'(?:"(?P<quoted>(?:[^"]|"")*+)"|[^",]*+)'
_ROW = r'(?:"(?:[^"]|"")*+"|[^",]*+)(?:,(?:"(?:[^"]|"")*+"|[^",]*+))++'


def line_of(text: str) -> tuple[str, float | None] | None:
    """The longest of the quoted cells behind the stamp, and the stamp; `None` if the text is no row with one.

    Cells that hold a comma or a quote are quoted by every store, and so is each line that tells a fact: a line without
    either stands behind its stamp as behind a runtime's.
    """
    if not text.startswith(_STAMPED) or compiled(_ROW).fullmatch(text) is None:
        return None
    _, *cells = [found["quoted"] or "" for found in compiled(_CELL).finditer(text)]
    line = max(cells, key=len)
    return (line.replace('""', '"'), stamps.seconds(text.removeprefix('"'))) if len(line) >= SHORTEST else None
