"""No pattern of the program can be made to backtrack: steps are counted on texts made from each to cost it most."""

import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass

import pytest
import regex

import kvguard
from kvguard.lines.formats import FORMATS
from kvguard.lines.prefixes import PREFIXES
from kvguard.lines.tags import TAGS
from tests.attacks.worst_cases import worst_cases
from tests.lines.possessive import starved
from tests.lines.step_counter import StepCounter

FLAGS = re.IGNORECASE | re.VERBOSE | re.DOTALL
BOUND = 12
"""Of every repeat that has one: beyond its own a pattern costs what it costs up to it."""
ANYWHERE = ("search", "sub", "find", "split")
"""How the methods are called that look for a pattern from each character on."""
OF_WHOLE_LINES = frozenset({"kvguard.sources.kube.stamps._LINE"})
"""Given nothing but lines with their ends, which it always matches: it is never tried from the next character."""


OF_OUR_OWN_TEXTS = frozenset({"kvguard.lines.openings._STRUCTURE"})
"""Looked for in the patterns of the table, which no stranger writes."""


@dataclass(frozen=True)
class Used:
    """A pattern, its flags, and whether it is looked for anywhere in a text."""

    pattern: str
    flags: int = 0
    anywhere: bool = False


def patterns() -> dict[str, Used]:
    """Every pattern that stands in a module, compiled or to be, and those of the tables of prefixes and of tags."""
    found = {f"prefix {prefix.name}": Used(prefix.pattern) for prefix in PREFIXES}
    found |= {f"tag {number}": Used(pattern) for number, (pattern, _) in enumerate(TAGS)}
    for module in pkgutil.walk_packages(kvguard.__path__, "kvguard."):
        if not module.name.endswith("__main__"):
            loaded = importlib.import_module(module.name)
            source = inspect.getsource(loaded)
            for name, value in vars(loaded).items():
                uses = set(re.findall(rf"\b(?:re\.(\w+)\({name},|(?:compiled\()?{name}\)?\.(\w+)\()", source))
                if is_pattern_to_be(name, value, source):
                    value = re.compile(value)
                if isinstance(value, re.Pattern | regex.Pattern):
                    text = value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")
                    anywhere = any("".join(use).startswith(ANYWHERE) for use in uses)
                    found[f"{module.name}.{name}"] = Used(text, value.flags & FLAGS, anywhere)
    return found


def is_pattern_to_be(name: str, value: object, source: str) -> bool:
    """Whether a text is compiled where it is first used."""
    private = name.startswith("_") and not name.startswith("__") and isinstance(value, str | bytes)
    used = rf"\b(?:re\.\w+|compiled|could_become)\({name}\b|kvguard\.lines\.patterns"
    return private and "\\" in repr(value) and re.search(used, source) is not None


PATTERNS = patterns()


@pytest.mark.parametrize("name", sorted(set(PATTERNS) - OF_WHOLE_LINES - OF_OUR_OWN_TEXTS))
def test_twice_the_text_costs_twice_the_steps(name: str) -> None:
    used = PATTERNS[name]
    counter = StepCounter(used.pattern, used.flags, BOUND)

    cases = worst_cases(used.pattern, used.flags)
    slow = {case: costs for case in cases if not linear(costs := steps(counter, used.anywhere, *case))}

    assert slow == {}


def steps(counter: StepCounter, anywhere: bool, before: str, repeated: str, behind: str) -> list[int]:
    costs = []
    for times in (15, 30, 60):
        counter.steps = 0
        text = f"{before}{repeated * times}{behind}\x01"
        if anywhere:
            counter.search(text)
        else:
            counter.fullmatch(text)
        costs.append(counter.steps)
    return costs


def linear(costs: list[int]) -> bool:
    return costs[2] - costs[1] <= 2.6 * max(costs[1] - costs[0], 0) + 64


@pytest.mark.parametrize("pattern", [r"a*a*b", r"a+b", r"(?:ab?)*c", r"x?a*$"])
def test_what_backtracks_is_seen(pattern: str) -> None:
    costs = [steps(StepCounter(pattern, 0, BOUND), True, *case) for case in worst_cases(pattern, 0)]

    assert not all(map(linear, costs))


EVERY_PATTERN = {name: (used.pattern, used.flags) for name, used in PATTERNS.items()} | {
    f"row {row.name}": (row.pattern, 0) for row in FORMATS
}


def test_no_possessive_repeat_eats_what_must_follow_it() -> None:
    assert {name: found for name, used in EVERY_PATTERN.items() if (found := starved(*used))} == {}


def test_one_that_does_would_be_seen() -> None:
    assert starved(r"serving\w*+|\w*+(?:tool|reasoning)_parser") == ["t", "r"]
    assert starved(r"[^ ]*+(?: x)?y") == ["y"]
    assert starved(r"\d++\.\d|[^)]*+\)|\S*+ ") == []
