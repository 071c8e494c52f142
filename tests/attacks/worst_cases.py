"""Texts made from a pattern to cost it most: what it matches up to one of its repeats, and that repeat many times."""

from collections.abc import Iterator
from re import _constants as op
from re import _parser as grammar
from typing import Any

from kvguard.lines.row_rules import characters_of

_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
MOST = 25
"""Worst cases a pattern; the longest one has some hundred repeats."""


def worst_cases(pattern: str, flags: int) -> list[tuple[str, str, str]]:
    """What stands before the repeated text, that text, and what stands behind it."""
    found = list(dict.fromkeys(_cases(grammar.parse(pattern, flags).data, "")))
    return found[:: -(-len(found) // MOST) or 1]


def _cases(items: Any, before: str) -> Iterator[tuple[str, str, str]]:
    for kind, value in items:
        for body in _bodies(kind, value):
            yield from _cases(body, before)
        if kind in _REPEATS:
            for part in _variants(value[2]):
                yield before, part, ""
                yield before, part, " "
                yield "", before + part, ""
        before += _witness(kind, value)


def _bodies(kind: Any, value: Any) -> list[Any]:
    if kind in _REPEATS:
        return [value[2]]
    if kind is op.BRANCH:
        return list(value[1])
    if kind is op.SUBPATTERN:
        return [value[3]]
    return [value] if kind is op.ATOMIC_GROUP else []


def _variants(body: Any) -> list[str]:
    """Several texts that the body of a repeat takes."""
    whole = "".join(_witness(kind, value) for kind, value in body)
    if len(body) == 1 and body[0][0] in (op.IN, op.ANY, op.NOT_LITERAL):
        letters = sorted(characters_of(*body[0]))
        return [letters[0], *[one for one in "a9 .-\\'" if one in letters][:4]]
    return [whole] if whole else []


def _witness(kind: Any, value: Any) -> str:
    """A text that this part of the pattern takes."""
    if kind in (op.LITERAL, op.IN, op.ANY, op.NOT_LITERAL):
        letters = characters_of(kind, value)
        return next((one for one in "a9 .-" if one in letters), min(letters))
    if kind in _REPEATS:
        return "".join(_witness(*item) for item in value[2]) * max(int(value[0]), 1)
    if kind is op.BRANCH:
        return "".join(_witness(*item) for item in value[1][0])
    inside = {op.SUBPATTERN: lambda: value[3], op.ATOMIC_GROUP: lambda: value}.get(kind)
    return "".join(_witness(*item) for item in inside()) if inside else ""
