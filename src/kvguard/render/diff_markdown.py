"""Two starts compared, as Markdown for a pull request."""

from collections.abc import Sequence

from kvguard.render.diff_rows import Row, capacity_rows, conclusions, memory_rows, option_rows, side
from kvguard.render.layout import Terminal
from kvguard.render.markdown import escape
from kvguard.slo.baselines.difference import Difference


def render_diff_markdown(found: Difference, terminal: Terminal) -> str:
    """The summary; the terminal plays no part in it."""
    first, *others = conclusions(found)
    blocks = [f"### kvguard diff\n\n**{escape(first)}**"]
    if others:
        blocks.append("\n".join(f"- {escape(cause)}" for cause in others))
    blocks.append(f"before: {escape(side(found.old))}<br>\nnow: {escape(side(found.new))}")
    for title, rows in (
        ("capacity of the weakest engine", capacity_rows(found)),
        ("memory of one rank", memory_rows(found)),
        ("options that differ", option_rows(found)),
    ):
        if rows:
            blocks.append(_table(title, rows))
    return "\n\n".join(blocks) + "\n"


def _table(title: str, rows: Sequence[Row]) -> str:
    head = f"| {title} | before | now | change |\n|---|--:|--:|---|"
    lines = (" | ".join(escape(text) for text in (row.name, row.old, row.new, row.change)) for row in rows)
    return "\n".join([head, *(f"| {line} |" for line in lines)])
