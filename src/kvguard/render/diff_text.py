"""Two starts compared, as a page for a terminal."""

from collections.abc import Sequence

from kvguard.render.diff_rows import Row, capacity_rows, conclusions, memory_rows, option_rows, side
from kvguard.render.layout import INDENT, Cell, Terminal, Tone, columns, wrap
from kvguard.slo.baselines.difference import Difference


def render_diff(found: Difference, terminal: Terminal) -> str:
    """The page: why first, then capacity, memory and options side by side."""
    lines = [line for cause in conclusions(found) for line in wrap(cause, terminal.width, "• ", "  ")]
    lines[0] = terminal.paint(lines[0], Tone.STRONG)
    lines += ["", *wrap(f"before  {side(found.old)}", terminal.width, INDENT, INDENT * 5)]
    lines += wrap(f"now     {side(found.new)}", terminal.width, INDENT, INDENT * 5)
    for title, rows in (
        ("Capacity of the weakest engine", capacity_rows(found)),
        ("Memory of one rank", memory_rows(found)),
        ("Options that differ", option_rows(found)),
    ):
        if rows:
            lines += ["", terminal.paint(title, Tone.STRONG), *columns(_cells(rows), terminal, INDENT)]
    return terminal.finish(lines)


def _cells(rows: Sequence[Row]) -> list[list[Cell]]:
    head = [
        Cell(text, Tone.QUIET, right) for text, right in (("", False), ("before", True), ("now", True), ("", False))
    ]
    return [
        head,
        *(
            [
                Cell(row.name),
                Cell(row.old, right=True),
                Cell(row.new, right=True),
                Cell(row.change, Tone.ACCENT if row.differs else Tone.QUIET),
            ]
            for row in rows
        ),
    ]
