"""What people do to a message when they paste it: align it, quote it in a sentence, write a note behind it."""

from kvguard.lines.patterns import compiled

_NOTE = (
    r"(?P<message>\S.{7,}?)"
    r"(?: {1,40}(?:\([^()]*+\)|（[^（）]*+）|\[[\w./-]{1,120}+:\d++\]"
    r"|(?:<[-=~]{1,40}+|←|⟵|⬅)(?!\S*+>).*+)| {2,40}# .*+)"
)
_QUOTED = r"`?(?P<message>[^`]{8,})` {0,3}[:：=—–→-].*+"

_BAR = (
    r"(?P<message>\S.{7,}?) (?:Capturing|Loading|Fetching|Profiling|Compiling|Processed)\b[^|%]{0,60}: {1,4}+\d{1,3}%"
    r"\|[^|]*+\| \d{1,9}/\d{1,9} \[[^\]]{1,60}+\]"
)
"""A whole progress bar, which another stream has written behind the message."""

_BOLD = "**"
"""Stands around a figure in Markdown."""

_TRACEBACK = ", Traceback (most recent call last):"
"""What a worker of V0's multiprocessing says behind its exception, in the same record."""
SHORTEST = 8
"""Characters of a message that may be quoted."""


def quoted(sentence: str) -> list[str]:
    """The texts that backticks divide a sentence into: each may be a message, if it has any."""
    parts = [part.strip() for part in sentence.split("`")]
    return [part for part in parts if len(part) >= SHORTEST] if len(parts) > 1 else []


def readings(message: str) -> tuple[str, ...]:
    """Other texts that the message may stand for, each to be matched whole as the message is.

    Blanks that align a column become one, bold figures plain; of a quotation (`…`: what it means) and of a message with
    a note behind it (an arrow, something in brackets, the source line) or a progress bar only the message is left.
    """
    texts = [" ".join(message.split())] if "  " in message else []
    if _BOLD in message:
        texts.append(message.replace(_BOLD, ""))
    if message.endswith(_TRACEBACK):
        texts.append(message.removesuffix(_TRACEBACK))
    for form, signs in ((_BAR, "%"), (_QUOTED, "`"), (_NOTE, "(（<←⟵⬅#]")):
        if not any(sign in message for sign in signs):
            continue
        match = compiled(form).fullmatch(message.strip())
        if match is not None:
            texts.append(match["message"])
    return tuple(texts)
