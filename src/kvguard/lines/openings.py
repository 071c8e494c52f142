"""How the messages of a row can begin, read off its pattern without compiling it.

Compiling the table costs more than reading a start-up log. Whether a text could be a row's message, or go on to be one,
is asked of every row, and nearly all of them begin with other words.
"""

import functools
import re

from kvguard.lines.patterns import compiled

CLASS = r"(?:[A-Za-z_][\w.]*+: )?"
"""The class of the exception, where the line has one."""

_CLASS = r"[A-Za-z_][\w.]*+(?:$|:$|: )"
_GROUP = r"\((?:\?:|\?>|\?P<\w+>)"
_PLAIN = r"(?:[A-Za-z0-9 _,:;'\"#=/<>%!&@~`-]|\\[^A-Za-z0-9])*+"
_CHARACTERS = r"(?:\\.|\[(?:\\.|[^\]\\])++\])(?:[?*+]\+|\{[01],\d+\}\+)?(?![?*+{])"
"""Characters of one kind, as many as there are: a class or an escape whose quantifier gives nothing back."""
_STRUCTURE = r"\\.|\[\^?\]?(?:\\.|[^\]\\])*+\]|[()|]"
"""An escape or a class, whose brackets mean themselves, or what groups and divides."""
_QUANTIFIERS = ("?", "*", "{")

_CLOSED = r"(?:(?<!\\)[A-Za-z0-9 ,:;'\"=/<>%!&@~_-]|\\[^A-Za-z0-9])\Z"

Opening = str | tuple[str, str]
"""A plain text, or a pattern of characters of one kind and the pattern of what follows them."""


def may_open(pattern: str, text: str) -> bool:
    """Whether the text could be the beginning of what the pattern describes; when in doubt it could."""
    behind = behind_class(text) if takes_class(pattern) else None
    return _shares_beginning(pattern, text) or (behind is not None and _shares_beginning(pattern, behind))


def takes_class(pattern: str) -> bool:
    """Whether an exception's class may stand before the message."""
    return CLASS in pattern


def behind_class(text: str) -> str | None:
    """What stands behind the exception's class that the text could begin with; `None` if it could not."""
    found = compiled(_CLASS).match(text)
    return None if found is None else text[found.end() :]


def rules_out(pattern: str, text: str) -> bool:
    """Whether the first letter tells that the two begin with other words, as it does for most rows."""
    first = pattern[:1]
    return first.isalnum() and text[:1] not in ("", first) and not pattern.startswith(_QUANTIFIERS, 1)


def agree(opening: Opening, text: str) -> bool:
    """Whether one of the two begins like the other."""
    if isinstance(opening, str):
        return text.startswith(opening) or opening.startswith(text)
    characters, behind = opening
    found = compiled(characters).match(text)
    return not text or (
        found is not None and (found.end() == len(text) or _shares_beginning(behind, text[found.end() :]))
    )


def is_closed(pattern: str) -> bool:
    """Whether nothing can stand behind a match: its last part is one fixed character, and no row can backtrack."""
    return compiled(_CLOSED).search(pattern) is not None


def _shares_beginning(pattern: str, text: str) -> bool:
    return not rules_out(pattern, text) and any(agree(opening, text) for opening in openings(pattern))


@functools.cache
def openings(pattern: str) -> tuple[Opening, ...]:
    """What every match begins with one of, an exception's class apart; an empty text tells nothing."""
    pattern = pattern.replace(CLASS, "", 1)
    if pattern.startswith("(?!"):  # narrows what follows, and holds none of it
        return openings(_alternatives(pattern, len("(?!"))[1])
    group = compiled(_GROUP).match(pattern)
    if group is None:
        plain = _plain(pattern)
        characters = None if plain else compiled(_CHARACTERS).match(pattern)
        return (plain,) if characters is None else ((characters[0], pattern[characters.end() :]),)
    bodies, rest = _alternatives(pattern, group.end())
    found = [opening for body in bodies for opening in openings(body)]
    if rest.startswith(_QUANTIFIERS):
        found += openings(rest[2:] if rest[1:2] in ("+", "?") else rest[1:]) if rest[0] != "{" else [""]
    return tuple(dict.fromkeys(found))


def _plain(pattern: str) -> str:
    found = compiled(_PLAIN).match(pattern)
    text = found[0] if found is not None else ""
    if pattern.startswith(_QUANTIFIERS, len(text)):
        text = text[:-2] if text[-2:-1] == "\\" else text[:-1]
    return re.sub(r"\\(.)", r"\1", text)


def _alternatives(pattern: str, start: int) -> tuple[list[str], str]:
    """The alternatives of the group whose content begins at `start`, and what stands behind the group."""
    bodies, begin, depth = [], start, 0
    for token in compiled(_STRUCTURE).finditer(pattern, start):
        if token[0] == "(":
            depth += 1
        elif depth and token[0] == ")":
            depth -= 1
        elif not depth and token[0] in ("|", ")"):
            bodies.append(pattern[begin : token.start()])
            begin = token.end()
            if token[0] == ")":
                break
    return bodies, pattern[begin:]
