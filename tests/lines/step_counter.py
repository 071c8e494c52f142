"""How many steps a backtracking engine takes on a pattern and a text: a plain matcher over the pattern's own tree."""

import re
from collections.abc import Callable, Iterator
from re import _constants as op
from re import _parser as grammar
from typing import Any

from kvguard.lines.row_rules import characters_of

Step = Callable[[str, int], Iterator[int]]
"""From a text and a place in it to every place where a part of the pattern may end, the engine's first choice first."""


class StepCounter:
    """Match one pattern, counting every character that is compared.

    Args:
        pattern: as `re` reads it; letters of either case are taken where it is to ignore it.
        flags: those of `re`.
        bound: what stands for a larger one in every repeat that has one: a bound of 2,000 would have to be exceeded to
            be told from none.
    """

    def __init__(self, pattern: str, flags: int = 0, bound: int = 2**16) -> None:
        self.steps = 0
        self._bound, self._ignores_case = bound, bool(flags & re.IGNORECASE)
        self._pattern = self._sequence(grammar.parse(pattern, flags).data)

    def fullmatch(self, text: str) -> bool:
        """Whether the pattern describes the whole text; every way to match is tried until one does."""
        return any(end == len(text) for end in self._pattern(text, 0))

    def search(self, text: str) -> None:
        """Look for the pattern everywhere, as `sub` does: from behind each match, else from the next character."""
        at = 0
        while at <= len(text):
            at = max(next(self._pattern(text, at), at), at + 1)

    def _sequence(self, items: Any) -> Step:
        return _one_after_another([self._item(kind, value) for kind, value in _joined(items)])

    def _item(self, kind: Any, value: Any) -> Step:
        if kind is op.LITERAL:
            return self._word(value)
        if kind in (op.POSSESSIVE_REPEAT, op.MAX_REPEAT):
            least, most, body = value
            most = most if most is op.MAXREPEAT else min(most, max(self._bound, least))
            repeat = self._possessive if kind is op.POSSESSIVE_REPEAT else _greedy
            return repeat(int(least), int(most), self._sequence(body))
        if kind is op.MIN_REPEAT:
            return _lazy(int(value[0]), min(int(value[1]), self._bound), self._sequence(value[2]))
        if kind is op.ATOMIC_GROUP:
            return self._possessive(1, 1, self._sequence(value))
        if kind is op.BRANCH:
            return _either([self._sequence(branch) for branch in value[1]])
        if kind is op.SUBPATTERN:
            return self._sequence(value[3])
        if kind is op.AT:
            return _anchor(value)
        if kind is op.GROUPREF_EXISTS:
            return _either([self._sequence(branch) for branch in value[1:] if branch is not None])
        if kind in (op.ASSERT, op.ASSERT_NOT):
            behind = value[1].getwidth()[0] if value[0] < 0 else 0
            return _look(kind is op.ASSERT, behind, self._sequence(value[1]))
        taken = characters_of(kind, value)
        if self._ignores_case:
            taken |= {one.lower() for one in taken} | {one.upper() for one in taken}
        return self._character(taken)

    def _character(self, taken: frozenset[str]) -> Step:
        def step(text: str, at: int) -> Iterator[int]:
            self.steps += 1
            if at < len(text) and text[at] in taken:
                yield at + 1

        return step

    def _word(self, word: str) -> Step:
        def step(text: str, at: int) -> Iterator[int]:
            self.steps += len(word)
            found = text[at : at + len(word)]
            if found == word or (self._ignores_case and found.lower() == word.lower()):
                yield at + len(word)

        return step

    def _possessive(self, least: int, most: int, body: Step) -> Step:
        """What gives nothing back: the first way to match is the only one."""

        def step(text: str, at: int) -> Iterator[int]:
            count = 0
            while count < most and (end := next(body(text, at), None)) is not None:
                at, count = end, count + 1
            if count >= least:
                yield at

        return step


def _one_after_another(steps: list[Step]) -> Step:
    if len(steps) == 1:
        return steps[0]

    def step(text: str, at: int) -> Iterator[int]:
        yield from run(0, text, at)

    def run(index: int, text: str, at: int) -> Iterator[int]:
        if index == len(steps):
            yield at
            return
        for middle in steps[index](text, at):
            yield from run(index + 1, text, middle)

    return step


def _greedy(least: int, most: int, body: Step) -> Step:
    def step(text: str, at: int, count: int = 0) -> Iterator[int]:
        if count < most:
            for end in body(text, at):
                yield from step(text, end, count + 1)
        if count >= least:
            yield at

    return step


def _lazy(least: int, most: int, body: Step) -> Step:
    def step(text: str, at: int) -> Iterator[int]:
        end: int | None = at
        for count in range(most + 1):
            if end is None:
                return
            if count >= least:
                yield end
            end = next(body(text, end), None)

    return step


def _either(branches: list[Step]) -> Step:
    def step(text: str, at: int) -> Iterator[int]:
        for branch in branches:
            yield from branch(text, at)

    return step


def _look(wanted: bool, behind: int, body: Step) -> Step:
    def step(text: str, at: int) -> Iterator[int]:
        found = at >= behind and next(body(text, at - behind), None) is not None
        if found is wanted:
            yield at

    return step


def _anchor(kind: Any) -> Step:
    def is_word(text: str, at: int) -> bool:
        return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")

    def step(text: str, at: int) -> Iterator[int]:
        boundary = is_word(text, at - 1) != is_word(text, at)
        ends = at == len(text)
        holds = {op.AT_BEGINNING: at == 0, op.AT_END: ends, op.AT_END_STRING: ends, op.AT_BOUNDARY: boundary}
        if holds[kind]:
            yield at

    return step


def _joined(items: Any) -> list[tuple[Any, Any]]:
    """The items with each run of literals as one word: engines compare it as one."""
    joined: list[tuple[Any, Any]] = []
    for kind, value in items:
        if kind is op.LITERAL and joined and joined[-1][0] is op.LITERAL:
            joined[-1] = (op.LITERAL, joined[-1][1] + chr(value))
        else:
            joined.append((kind, chr(value) if kind is op.LITERAL else value))
    return joined
