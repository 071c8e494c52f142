"""What a terminal page is made of: width, colour, wrapped text and columns; the page itself is `text.py`."""

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from kvguard.slotted import dataclass


class Tone(StrEnum):
    """What a piece of text means; a terminal may show it by colour."""

    PLAIN = "plain"
    GOOD = "good"
    BAD = "bad"
    DOUBT = "doubt"
    STRONG = "strong"
    QUIET = "quiet"
    ACCENT = "accent"


_CODES: Mapping[Tone, str] = MappingProxyType(
    {
        Tone.PLAIN: "",
        Tone.GOOD: "\x1b[1;32m",
        Tone.BAD: "\x1b[1;31m",
        Tone.DOUBT: "\x1b[1;33m",
        Tone.STRONG: "\x1b[1m",
        Tone.QUIET: "\x1b[2m",
        Tone.ACCENT: "\x1b[36m",
    }
)
INDENT = "  "
"""Of what stands under a heading."""
NO_BREAK = "\u00a0"
"""A space at which `wrap` does not break a line."""
_ASCII = str.maketrans(
    {
        "✔": "+", "✘": "x", "×": "x", "−": "-", "–": "-", "·": "|", "…": "~", "→": ">", "±": "~",
        "█": "#", "▓": "%", "▒": "=", "░": ".", "▏": "|", "│": "|", "─": "-", "▁": "_", "≥": ">",
    }
)  # fmt: skip
"""Each glyph that a page draws with, and the ASCII character in its column where the terminal cannot show it."""


_WORKFLOW_COMMAND = r"^((?:\s|\x1b\[[0-9;]*m)*+:)(?=:)"


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the page is drawn for; the caller looks at the real one."""

    width: int = 100
    color: bool = False
    unicode: bool = True
    verbose: bool = False
    """Whether the page goes into the details: memory drawn, every engine, every lever with all that is to be known."""

    def paint(self, text: str, tone: Tone) -> str:
        """The text in the tone's colour, where the terminal has any."""
        code = _CODES[tone] if self.color and text else ""
        return f"{code}{text}\x1b[0m" if code else text

    def finish(self, lines: Iterable[str]) -> str:
        """The lines as one text, in characters that the terminal can show."""
        text = "".join(_inert(line.rstrip()) + "\n" for line in lines)
        return text if self.unicode else text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


@dataclass(frozen=True, slots=True)
class Cell:
    """A piece of a row."""

    text: str
    tone: Tone = Tone.PLAIN
    right: bool = False
    """Whether figures stand under each other by their last digit."""


def wrap(text: str, width: int, indent: str = "", hang: str | None = None) -> list[str]:
    """The text over lines of at most `width` columns; `hang` stands before all but the first."""
    lines = textwrap.wrap(
        text,
        max(width, len(indent) + 20),
        initial_indent=indent,
        subsequent_indent=indent if hang is None else hang,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def _inert(line: str) -> str:
    """GitHub's runner obeys a line of a step's output that begins with two colons, whatever stands before them."""
    return re.sub(_WORKFLOW_COMMAND, r"\1 ", line)


def cut(text: str, width: int) -> str:
    """The text, or its beginning where it is wider."""
    return text if len(text) <= width else text[: width - 1] + "…"


def columns(rows: Sequence[Sequence[Cell]], terminal: Terminal, indent: str = "", gap: str = "  ") -> list[str]:
    """Rows of cells under each other."""
    count = max((len(row) for row in rows), default=0)
    widths = [max((len(row[i].text) for row in rows if i < len(row)), default=0) for i in range(count)]
    lines = []
    for row in rows:
        pieces = []
        for cell, width in zip(row, widths, strict=False):
            padding = " " * (width - len(cell.text))
            painted = terminal.paint(cell.text, cell.tone)
            pieces.append(padding + painted if cell.right else painted + padding)
        lines.append((indent + gap.join(pieces)).rstrip())
    return lines
