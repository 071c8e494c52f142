"""Two engines read the tables' patterns: they must agree about every message."""

import re

import pytest
import regex

from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat
from kvguard.lines.patterns import compiled, could_become
from kvguard.lines.prefixes import PREFIXES, Prefix
from tests.lines.corpus import LINES
from tests.lines.corpus import PREFIXES as PREFIXED

PRINTABLE = [chr(code) for code in range(32, 127)]


def lines_of(folder: str, name: str) -> list[str]:
    return ({"lines": LINES, "prefixes": PREFIXED}[folder] / f"{name}.log").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_both_engines_read_a_row_alike(row: LineFormat) -> None:
    other = regex.compile(row.pattern, regex.VERSION1)
    ends = [
        line[place:]
        for line in lines_of("lines", row.name)
        for place in range(len(line))
        if row.literal in line[place:]
    ]
    matched = [(one, found) for one in ends if (found := compiled(row.pattern).fullmatch(one)) is not None]

    assert matched
    for message, found in matched:
        also = other.fullmatch(message)
        assert also is not None
        assert also.groupdict() == found.groupdict()
        for size in range(1, len(message)):
            part = message[:size]
            assert (other.fullmatch(part) is None) == (compiled(row.pattern).fullmatch(part) is None)


@pytest.mark.parametrize("prefix", PREFIXES, ids=lambda prefix: prefix.name)
def test_a_prefix_begins_with_one_of_the_texts_that_its_row_names(prefix: Prefix) -> None:
    possible = {
        text for text in parts_of(prefix.begins) if could_become(prefix.pattern, text) or is_match(prefix, text)
    }

    assert {text for text in possible if not text.startswith(prefix.begins)} <= parts_of(prefix.begins, printable=False)


def parts_of(texts: tuple[str, ...], printable: bool = True) -> set[str]:
    """Every beginning of these texts, and each of them with any other character behind it."""
    beginnings = {text[:size] for text in texts for size in range(len(text))}
    return {text + character for text in beginnings for character in PRINTABLE} if printable else beginnings


def is_match(prefix: Prefix, text: str) -> bool:
    found = re.fullmatch(prefix.pattern, text)
    return found is not None


@pytest.mark.parametrize("prefix", [prefix for prefix in PREFIXES if prefix.holds], ids=lambda prefix: prefix.name)
def test_a_line_with_a_prefix_holds_what_its_row_names(prefix: Prefix) -> None:
    lines = [line for path in PREFIXED.glob("*.log") for line in path.read_text(encoding="utf-8").splitlines()]
    found = [line[place:] for line in lines for place in range(len(line)) if re.match(prefix.pattern, line[place:])]

    assert found
    assert all(any(part in line for part in prefix.holds) for line in found)
