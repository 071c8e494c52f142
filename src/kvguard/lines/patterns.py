"""Patterns, compiled at their first use: one log asks for a tenth of what the tables hold.

`re` compiles in a third of the time that `regex` takes, and is there already. What a text could become if it went on,
only `regex` can tell; it is loaded when that is first asked.
"""

import functools
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import regex


@functools.cache
def compiled(pattern: str) -> "re.Pattern[str]":
    """The pattern, to match texts that are whole."""
    if sys.version_info < (3, 11, 5):  # its `re` backtracks into possessive groups (cpython 100061, 101955, 106052)
        return _for_beginnings(pattern)  # type: ignore[return-value]
    return re.compile(pattern)


def could_become(pattern: str, text: str) -> bool:
    """Whether the text is a proper beginning of what the pattern describes: with more behind it, it would match."""
    found = _for_beginnings(pattern).fullmatch(text, partial=True)
    return found is not None and bool(found.partial)


@functools.cache
def _for_beginnings(pattern: str) -> "regex.Pattern[str]":
    import regex

    return regex.compile(pattern, regex.VERSION1)
