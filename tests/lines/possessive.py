"""Possessive repeats that eat what must follow them: a pattern with one compiles, and never matches."""

from collections.abc import Iterable, Iterator
from re import _constants as code
from re import _parser

Items = list[tuple[object, object]]

_ONE = (code.LITERAL, code.NOT_LITERAL, code.IN, code.ANY)
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)
_CATEGORIES = {
    "DIGIT": str.isdigit,
    "SPACE": str.isspace,
    "WORD": lambda character: character.isalnum() or character == "_",
}


def starved(pattern: str, flags: int = 0) -> list[str]:
    """The characters that must follow an unbounded possessive repeat which takes them itself."""
    return list(_walk(_parser.parse(pattern, flags), []))


def _walk(items: Iterable[tuple[object, object]], behind: Items) -> Iterator[str]:
    every = list(items)
    for place, (kind, content) in enumerate(every, 1):
        rest = every[place:] + behind
        if kind in _REPEATS:
            _, most, body = content
            if kind is code.POSSESSIVE_REPEAT and most is code.MAXREPEAT and len(body) == 1:
                yield from (character for character in _firsts(rest) if _takes(*body[0], character))
            yield from _walk(body, [])
        for inside in _ways(kind, content):
            yield from _walk(inside, rest)


def _ways(kind: object, content: object) -> list[Items]:
    """What a group may hold, a list for each alternative."""
    if kind is code.SUBPATTERN:
        return [list(content[3])]
    if kind is code.ATOMIC_GROUP:
        return [list(content)]
    return [list(way) for way in content[1]] if kind is code.BRANCH else []


def _firsts(items: Items) -> Iterator[str]:
    """The literal characters that some way through the items begins with; what may be left out is passed over."""
    for kind, content in items:
        if kind is code.LITERAL:
            yield chr(content)
        for way in _ways(kind, content):
            yield from _firsts(way)
        if not _may_be_empty(kind, content):
            return


def _may_be_empty(kind: object, content: object) -> bool:
    if kind in _ONE:
        return False
    if kind in _REPEATS:
        return content[0] == 0
    ways = _ways(kind, content)
    return not ways or any(all(_may_be_empty(*item) for item in way) for way in ways)


def _takes(kind: object, content: object, character: str) -> bool:
    """Whether a repeat's body of one character takes this one."""
    if kind is code.IN:
        negated = (code.NEGATE, None) in content
        return any(_takes(*item, character) for item in content if item[0] is not code.NEGATE) != negated
    if kind is code.RANGE:
        return content[0] <= ord(character) <= content[1]
    if kind is code.CATEGORY:
        name = str(content)
        return _CATEGORIES[name.rpartition("_")[2]](character) != ("_NOT_" in name)
    same = content == ord(character)
    return {code.LITERAL: same, code.NOT_LITERAL: not same, code.ANY: character != "\n"}.get(kind, False)
