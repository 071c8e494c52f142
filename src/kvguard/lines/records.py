"""Several records on one physical line: a progress bar glued to a record, a paste that has lost its line ends.

Only a server that starts is read so; behind a serving one's line a user may have written what looks like a record.
"""

import regex

from kvguard.lines.prefixes import CLOCK, TAG

NARROWEST_TERMINAL = 30
WIDEST_TERMINAL = 400
"""Columns: a line of another width was not wrapped by anybody."""

_LEVEL = r"(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_UVICORN = (
    r"(?:Started server process|Waiting for application|Application startup|Uvicorn running|Shutting down"
    r"|Finished server process)"
)
_FATAL = (
    r"(?:To serve at least one request|The model's max seq len|No available memory for the cache|CUDA out of memory"
    r"|Free memory on device)"
)
_TAGS = regex.compile(rf"(?:{TAG})*+", regex.VERSION1)
_PREFIX = regex.compile(
    rf"(?:{TAG})*+(?:{_LEVEL} \d\d-\d\d {CLOCK} (?:\[[^\]\s]++\]|[\w./-]++:\d++\])|{_LEVEL}: {{1,5}}\S)", regex.VERSION1
)
"""A record's whole prefix."""
_START = regex.compile(
    rf"(?:{TAG})*+"
    rf"(?:{_LEVEL} (?:\d\d-\d\d \d\d:\d\d|\[?[\w./-]++\.py:\d++\])|{_LEVEL}: {{1,5}}{_UVICORN}|[\w.]*?Error: {_FATAL})",
    regex.VERSION1,
)
"""Where a record begins: process tags, and a level with time or file as vLLM prints them (or uvicorn, or a failure)."""
_GLUED_ESCAPES = regex.compile(r"(?:\\[nrt]|[\"',\s])++$")
_FREE_TEXT = regex.compile(r"(?:[^\s%|]{1,60} ?){0,4}")
"""What VLLM_LOGGING_PREFIX may put between a process tag and the level."""


def split(text: str) -> tuple[str, ...]:
    """The records of one line, each with its tags; text before the first is a piece of its own.

    Tags before free text or a progress bar (`(EngineCore pid=7) my-node INFO …`) are those of the record behind it.
    """
    starts = [found.start() for found in _START.finditer(text)]
    if not starts or starts == [0] or (text.startswith("{") and text.rstrip().endswith("}")):
        return (text,)
    pieces = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    pieces[:-1] = [_GLUED_ESCAPES.sub("", piece) for piece in pieces[:-1]]
    before = text[: starts[0]]
    if not before.strip():
        return tuple(pieces)
    tags = _TAGS.match(before)
    if tags is not None and tags[0] and not pieces[0].startswith("("):
        pieces[0] = tags[0] + pieces[0]
    if _FREE_TEXT.fullmatch(before, tags.end() if tags is not None else 0) is not None:
        return tuple(pieces)
    return (before, *pieces)


def begins(text: str) -> bool:
    """Whether the text begins with a record's whole prefix."""
    return _PREFIX.match(text) is not None


def is_torn(text: str) -> bool:
    """Whether the text is the beginning of a record's prefix and no more: its rest stands on the next line."""
    return (
        NARROWEST_TERMINAL <= len(text) <= WIDEST_TERMINAL
        and _PREFIX.match(text) is None
        and _PREFIX.fullmatch(text, partial=True) is not None
    )
