"""Our own stdin, stdout and stderr, which whoever started us may have closed, left, or sent to a full disk."""

import io
import os
import sys

from kvguard.errors import SourceError

TYPE_CHECKING = False  # typing's own would load typing, which `kvguard --version` can do without
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

_STREAMS = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDWR), ("stderr", "w", os.O_RDWR))
_needs_break: "Callable[[], bool]" = bool  # bool() is False
LONGEST_SAID = 2000
"""Characters of one line: an error may list every key that there is."""


def stand_in_for_closed() -> None:
    """Let what is closed swallow all: the next file that is opened would get its number, and every page with it.

    A closed stdin is one that cannot be read, and no empty one.
    """
    for number, (name, mode, access) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            setattr(sys, name, _nowhere(mode, access))  # the lowest number that is free: this one
            os.set_inheritable(number, True)


def take() -> str:
    """All that stands at stdin.

    Raises:
        SourceError: it is closed, or no text.
    """
    try:
        return sys.stdin.read()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a text"
        raise SourceError(f"stdin: cannot be read ({reason.lower()})") from None


def beside(needs_break: "Callable[[], bool]" = bool) -> None:
    """Begin what is said on stderr from now on at the beginning of a line, beside somebody who writes there too.

    Args:
        needs_break: asked before each line and each page, whether the other has left stderr in the middle of a line;
            by default there is nobody.
    """
    global _needs_break
    _needs_break = needs_break


def say(line: str) -> None:
    """Say one line on stderr, in which no name or value of a user's does or betrays anything; nobody who hears it is no
    reason to fail."""
    from kvguard.render.log_text import shown

    begin = "\n" if _needs_break() else ""
    try:
        print(begin + shown(line, LONGEST_SAID), file=sys.stderr, flush=True)
    except OSError:
        _forget(sys.stderr)


def put(text: str, stream: "TextIO | None" = None) -> None:
    """Write a page, UTF-8 whatever the locale, to stdout, or to stderr, where nobody who hears it is as for `say`.

    Raises:
        BrokenPipeError: the reader of stdout has left.
        SourceError: stdout takes nothing more, as a full disk.
    """
    page = stream or sys.stdout
    talk = page is sys.stderr
    begin = "\n" if talk and text and _needs_break() else ""
    try:
        page.flush()
        page.buffer.write((begin + text).encode("utf-8"))
        page.buffer.flush()
    except OSError as error:
        _forget(page)
        if talk:
            return
        if isinstance(error, BrokenPipeError):
            raise
        raise SourceError(f"stdout: cannot be written ({(error.strerror or str(error)).lower()})") from None


def _forget(stream: "TextIO") -> None:
    """What it still holds back would be tried again at the interpreter's end, which then changes the exit status."""
    name = "stderr" if stream is sys.stderr else "stdout"
    setattr(sys, name, _nowhere("w", os.O_RDWR))


def _nowhere(mode: str, access: int) -> "TextIO":
    return io.TextIOWrapper(os.fdopen(os.open(os.devnull, access), f"{mode}b"), encoding="utf-8")
