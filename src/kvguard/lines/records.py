"""Several records on one physical line: a progress bar glued to a record, a paste that has lost its line ends.

Only a server that starts is read so; behind a serving one's line a user may have written what looks like a record.
"""

from kvguard.lines import json_record
from kvguard.lines.patterns import compiled, could_become
from kvguard.lines.prefixes import CLOCK, TAG

NARROWEST_TERMINAL = 30
WIDEST_TERMINAL = 400
"""Columns: a line of another width was not wrapped by anybody."""
MAX_TAGS = 8
"""Tags before one record: nested Ray actors have four. A line of nothing but tags must not be read anew from each."""

_LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_LEVEL = rf"(?:{'|'.join(_LEVELS)})"
_BEGINNINGS = ("(", "[", *_LEVELS)
"""Every record's prefix begins with one of them."""
_SEEN = tuple(beginning.encode() for beginning in ("(", *_LEVELS))
_UVICORN = (
    r"(?:Started server process|Waiting for application|Application startup|Uvicorn running|Shutting down"
    r"|Finished server process)"
)
_FATAL = (
    "To serve at least one request",
    "The model's max seq len",
    "No available memory for the cache",
    "CUDA out of memory",
    "Free memory on device",
)
_MARKS = (*(f"{level} " for level in _LEVELS), *(f"{level}:" for level in _LEVELS), *_FATAL)
"""Every record, and every failure that is glued to one, holds one of them."""
_FENCE = " ```"
"""Ends the code of a page that has lost its line ends: what follows is its author's."""
_BRACKET = r"\[[^\[\]]{1,80}+\] "
_TAGS = rf"(?:{TAG})*+"
_PREFIX = (
    rf"(?:{_BRACKET})?+(?:{TAG})*+"
    rf"(?:{_LEVEL} \d\d-\d\d {CLOCK} (?:\[[^\]\s]++\]|[\w./-]++:\d++\])|{_LEVEL}: {{1,5}}\S)"
)
"""A record's whole prefix."""
_START = (
    rf"(?:{TAG}){{0,{MAX_TAGS}}}+"
    rf"(?:{_LEVEL} (?:\d\d-\d\d \d\d|\[?[\w./-]{{1,80}}?\.py:\d++\])|{_LEVEL}: {{1,5}}{_UVICORN}"
    rf"|(?<![\w.])[A-Za-z][\w.]*+(?<=Error): (?:{'|'.join(_FATAL)}))"
)
"""Where a record begins: process tags, and a level with time or file as vLLM prints them (or uvicorn, or a failure)."""
_FREE_TEXT = r"(?:[^\s%|]{1,60}+ ){0,3}+(?:[^\s%|]{1,60}+ ?)?"
"""What VLLM_LOGGING_PREFIX may put between a process tag and the level."""


def split(text: str) -> tuple[str, tuple[str, ...]]:
    """The records of one line, each with its tags, and the free text that stands between the first one's tags and it.

    Other text before the first (a progress bar) is a piece of its own; the tags before it are those of the record too.
    """
    marks = sum(map(text.count, _MARKS))
    if not marks or (marks == 1 and _FENCE not in text and begins(text)):
        return "", (text,)
    tags = compiled(_TAGS).match(text)
    assert tags is not None
    starts = _starts(text)
    if not starts or (starts == [0] and _FENCE not in text) or json_record.read(text[tags.end() :]) is not None:
        return "", (text,)
    pieces = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    pieces = [part for piece in pieces for part in piece.split(_FENCE) if part]
    pieces[:-1] = map(_without_glue, pieces[:-1])
    before = text[: starts[0]]
    if before.strip() and not pieces[0].startswith("("):
        pieces[0] = tags[0] + pieces[0]
    if not before.strip():
        return "", tuple(pieces)  # a paste that stands in
    free_text = before[tags.end() :]
    if compiled(_FREE_TEXT).fullmatch(free_text) is not None:
        return free_text, tuple(pieces)
    return "", (before, *pieces)


def _starts(text: str) -> list[int]:
    """Where records begin: a failure that stands right behind a record's prefix is that record's message."""
    starts: list[int] = []
    for found in compiled(_START).finditer(text):
        start = found.start()
        behind_prefix = bool(starts) and compiled(_PREFIX).fullmatch(text[starts[-1] : start].rstrip()) is not None
        if not behind_prefix or begins(text[start:]):
            starts.append(start)
    return starts


def _without_glue(piece: str) -> str:
    """The piece without the escapes, quotes, commas and blanks that joined it to the next one."""
    end = len(piece)
    while end > 0:
        last = piece[end - 1]
        if last.isspace() or last in "\"',":
            end -= 1
        elif last in "nrt" and piece[end - 2 : end - 1] == "\\":
            end -= 2
        else:
            break
    return piece[:end]


def without(free_text: str, text: str) -> str:
    """The text without this free text between its tags and what follows."""
    tags = compiled(_TAGS).match(text)
    assert tags is not None
    end = tags.end()
    return text[:end] + text[end + len(free_text) :] if text.startswith(free_text, end) else text


def begins(text: str) -> bool:
    """Whether the text begins with a record's whole prefix."""
    return compiled(_PREFIX).match(text) is not None


def is_seen(ahead: bytes) -> bool:
    """Whether what follows a line begins with a whole prefix, no runtime's or user's text before it."""
    return ahead.startswith(_SEEN) and begins(ahead.decode("utf-8", "replace"))


def is_torn(text: str) -> bool:
    """Whether the text is the beginning of a record's prefix and no more: its rest stands on the next line."""
    if not NARROWEST_TERMINAL <= len(text) <= WIDEST_TERMINAL or begins(text):
        return False
    rest = compiled(_BRACKET).sub("", text, 1)
    return rest.startswith(_BEGINNINGS) and could_become(_PREFIX, text)
