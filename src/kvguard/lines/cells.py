"""Rows of a table that a log store has exported: one of the cells holds what was printed."""

from kvguard.lines import stamps
from kvguard.lines.patterns import compiled

SHORTEST = 6
"""Characters of a cell that may hold a line."""
_CELL = r'(?:"(?P<quoted>(?:[^"]|"")*+)"|[^",]*+)'
_ROW = r'(?:"(?:[^"]|"")*+"|[^",]*+)(?:,(?:"(?:[^"]|"")*+"|[^",]*+))*+'
_LISTED = r"'([^']++)',?"
"""An item of a list that Python or YAML has written."""


def line_of(text: str) -> tuple[str, float | None] | None:
    """The longest of the quoted cells, and the stamp of the first; `None` if the text is no row with one.

    Cells that hold a comma or a quote are quoted by every store, and so is each line that tells a fact: a line without
    either stands behind its stamp as behind a runtime's.
    """
    if text.startswith("'"):
        listed = compiled(_LISTED).fullmatch(text.strip())
        return None if listed is None else (listed[1], None)
    if '"' not in text or compiled(_ROW).fullmatch(text) is None:
        return None
    cells = [found["quoted"] for found in compiled(_CELL).finditer(text) if found["quoted"] is not None]
    line = max(cells, key=len)
    if len(line) < SHORTEST:
        return None
    return line.replace('""', '"'), stamps.seconds(text.removeprefix('"'))
