"""What a row of the table must be: a pattern that matches in linear time, and groups that are fields of its events.

Rules for a pattern (`fullmatch` anchors it, so it needs no `^` and `$`):
- A repeat is possessive (`++`, `*+`), of a fixed count, or optional (`?`): nothing is tried twice over a long text.
- Text up to a known word is skipped by `(?>.*?word)`: to the first such word, and never further.
- A possessive repeat gives nothing back. What follows it must not begin with a character that the repeat takes: a row
  that breaks this matches none of its lines, or only some (`[\\d,]++` before ", Maximum concurrency").
"""

import re
from collections.abc import Iterable, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as grammar  # type: ignore[attr-defined]
from typing import Any

from kvguard.lines.line_format import LineFormat, field_of, is_figure
from kvguard.slotted import fields

# CPython's own reader of patterns: private, but the same from 3.11 on, and it knows possessive repeats. A reader of our
# own would be longer than all the rules. `regex` in its VERSION1 dialect reads the same patterns the same way, but for
# sets inside sets and duplicate group names, and both are refused here.

MAX_OPTIONAL = 12
"""Optional parts of one pattern that may be tried with and without: the cost of a match doubles with each at worst."""
MAX_FIGURE = 40
"""Characters of a captured figure: longer ones are no numbers."""
Items = Sequence[tuple[Any, Any]]
_REFUSED = (op.AT, op.GROUPREF, op.GROUPREF_EXISTS)
_ALPHABET = frozenset(chr(code) for code in range(9, 0x250)) | frozenset("–—…█▄▀│·×’“”")


def faults(row: LineFormat) -> list[str]:
    """What is wrong with a row, each in one line; none for a good one."""
    try:
        items = grammar.parse(row.pattern).data
    except (re.error, FutureWarning, RecursionError) as error:
        return [f"its pattern cannot be read: {error}"]
    found = list(_sequence(items, frozenset()))
    if _optionals(items) > MAX_OPTIONAL:
        found.append(f"its pattern has more than {MAX_OPTIONAL} optional parts: split the row")
    if not row.literal.strip():
        found.append("its literal is empty: name a part of the message to find it by")
    return found + _unknown_fields(row) + _boundless_figures(row, items)


def _unknown_fields(row: LineFormat) -> list[str]:
    """Named groups (of rows that convert them by suffix) and implied values that no event of the row takes."""
    known = {field.name for kind in row.emits for field in fields(kind)} | {"engine"}
    told = list(row.fixed) if row.emits else []
    if row.read is None:
        told += [field_of(name) for name in re.compile(row.pattern).groupindex]
    return [f"{name!r} is a field of none of its events" for name in told if name not in known]


def _boundless_figures(row: LineFormat, items: Items) -> list[str]:
    """Named groups that become numbers and may be longer than any number."""
    names = {index: name for name, index in re.compile(row.pattern).groupindex.items()}
    widths = {names[index]: body.getwidth()[1] for index, body in _groups(items) if index in names}
    return [
        f"{name!r} may have any number of digits: use COUNT, INTEGER or NUMBER"
        for name, widest in widths.items()
        if row.read is None and widest > MAX_FIGURE and is_figure(name)
    ]


def _groups(items: Items) -> Iterable[tuple[int, Any]]:
    """Every capturing group with its index, at any depth."""
    for kind, value in items:
        if kind is op.SUBPATTERN and value[0] is not None:
            yield value[0], value[3]
        for body in _bodies(kind, value):
            yield from _groups(body)


def _bodies(kind: Any, value: Any) -> Iterable[Items]:
    """What an item holds inside."""
    if kind in (op.POSSESSIVE_REPEAT, op.MAX_REPEAT, op.MIN_REPEAT):
        yield value[2]
    elif kind is op.SUBPATTERN:
        yield value[3]
    elif kind is op.ATOMIC_GROUP:
        yield value
    elif kind is op.BRANCH:
        yield from value[1]


def _sequence(items: Items, follow: frozenset[str]) -> Iterable[str]:
    """The faults of a sequence that `follow` may come after (the empty set: its end is the end of the message)."""
    for index in range(len(items) - 1, -1, -1):
        yield from _item(items[index], follow)
        follow = _begins(items[index : index + 1], follow)


def _item(item: tuple[Any, Any], follow: frozenset[str]) -> Iterable[str]:
    kind, value = item
    if kind is op.POSSESSIVE_REPEAT:
        yield from _possessive(value, follow)
    elif kind is op.MAX_REPEAT:
        least, most, body = value
        if most is not least and most > 1:
            yield f"a repeat of {least} to {most} may be tried again and again: make it possessive"
        yield from _sequence(body, follow | (_begins(body, frozenset()) if most > 1 else frozenset()))
    elif kind is op.MIN_REPEAT:
        yield "a lazy repeat may be tried again and again: write (?>.*?word)"
    elif kind is op.ATOMIC_GROUP:
        yield from _atomic(value, follow)
    elif kind is op.SUBPATTERN:
        if value[1] or value[2]:
            yield "flags inside a pattern are not read: spell out both cases"
        yield from _sequence(value[3], follow)
    elif kind is op.BRANCH:
        for branch in value[1]:
            yield from _sequence(branch, follow)
    elif kind in _REFUSED:
        yield "anchors and references to groups are not needed: patterns are matched whole"


def _possessive(value: tuple[int, int, Items], follow: frozenset[str]) -> Iterable[str]:
    _, most, body = value
    taken = _begins(body, frozenset())
    if most > 1 and (both := sorted(taken & follow)):
        yield f"a possessive repeat takes {both[0]!r}, with which the text behind it may begin: it gives nothing back"
    yield from _sequence(body, follow | (taken if most > 1 else frozenset()))


def _atomic(items: Items, follow: frozenset[str]) -> Iterable[str]:
    """`(?>.*?word)` is the one lazy repeat that cannot be tried twice."""
    if items and items[0][0] is op.MIN_REPEAT:
        rest = items[1:]
        if not rest or any(kind is not op.LITERAL for kind, _ in rest):
            yield "a lazy repeat must run up to plain text: write (?>.*?word)"
        return
    yield from _sequence(items, follow)


def _begins(items: Items, follow: frozenset[str]) -> frozenset[str]:
    """The characters with which a sequence can begin, `follow` included where it may be empty."""
    found: frozenset[str] = frozenset()
    for kind, value in items:
        characters, may_be_empty = _first(kind, value)
        found |= characters
        if not may_be_empty:
            return found
    return found | follow


def _first(kind: Any, value: Any) -> tuple[frozenset[str], bool]:
    """The characters with which one item can begin, and whether it can be empty."""
    if kind in (op.POSSESSIVE_REPEAT, op.MAX_REPEAT, op.MIN_REPEAT):
        least, _, body = value
        return _begins(body, frozenset()), least == 0 or _may_be_empty(body)
    if kind in (op.SUBPATTERN, op.ATOMIC_GROUP):
        body = value[3] if kind is op.SUBPATTERN else value
        return _begins(body, frozenset()), _may_be_empty(body)
    if kind is op.BRANCH:
        branches = value[1]
        return frozenset().union(*(_begins(branch, frozenset()) for branch in branches)), any(
            _may_be_empty(branch) for branch in branches
        )
    if kind in (op.ASSERT, op.ASSERT_NOT, *_REFUSED):
        return frozenset(), True
    return characters_of(kind, value), False


def _may_be_empty(items: Items) -> bool:
    return all(_first(kind, value)[1] for kind, value in items)


def characters_of(kind: Any, value: Any) -> frozenset[str]:
    """The characters that a single-character item takes, of those that stand in logs' own words."""
    if kind is op.LITERAL:
        return frozenset(chr(value))
    if kind is op.NOT_LITERAL:
        return _ALPHABET - {chr(value)}
    if kind is op.ANY:
        return _ALPHABET - {"\n"}
    negated = value[0][0] is op.NEGATE
    found = frozenset().union(*(_member(*member) for member in value[negated:]))
    return _ALPHABET - found if negated else found


_CATEGORIES = {
    op.CATEGORY_DIGIT: str.isdecimal,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
}
_OTHERS = {
    op.CATEGORY_NOT_DIGIT: op.CATEGORY_DIGIT,
    op.CATEGORY_NOT_SPACE: op.CATEGORY_SPACE,
    op.CATEGORY_NOT_WORD: op.CATEGORY_WORD,
}


def _member(kind: Any, value: Any) -> frozenset[str]:
    if kind is op.RANGE:
        return frozenset(chr(code) for code in range(value[0], value[1] + 1))
    if kind is op.LITERAL:
        return frozenset(chr(value))
    if value in _OTHERS:
        return _ALPHABET - _member(kind, _OTHERS[value])
    return frozenset(filter(_CATEGORIES[value], _ALPHABET))


def _optionals(items: Items) -> int:
    """How many parts may be tried with and without, one after another (of branches: the most of one)."""
    count = 0
    for kind, value in items:
        inside = [_optionals(body) for body in _bodies(kind, value)]
        count += max(inside, default=0) if kind is op.BRANCH else sum(inside)
        count += kind is op.MAX_REPEAT and value[0] != value[1]
    return count
