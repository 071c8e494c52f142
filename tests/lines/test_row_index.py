"""Which rows a text is held against: all that could describe it, and of those that could not hardly any."""

import pytest

from kvguard.lines import row_index
from kvguard.lines.formats import FORMATS
from kvguard.lines.openings import agree, may_open, openings
from kvguard.lines.parser import StartupLogParser
from kvguard.lines.row_index import LEAST_BEGINNING, MAX_CHARACTERS, RowIndex
from tests.lines.corpus import LINES, samples

INDEX = RowIndex(FORMATS)
LINES_OF_SAMPLES = [sample.line for sample in samples(LINES)]
STRANGERS = [
    "FooError: the quick brown fox",
    "C",
    "Killed",
    "ValueError",
    "▀▄ version 1",
    "",
    "memory cache blocks tokens GPU KV size available profiling utilization weights",
    "zq" * 60,
]


def test_every_row_is_found_whose_literal_the_text_holds() -> None:
    for text in [*LINES_OF_SAMPLES, *STRANGERS]:
        assert [row.name for row in INDEX.holding(text)] == [row.name for row in FORMATS if row.literal in text]


def test_every_row_is_found_that_the_text_could_open() -> None:
    messages = {line[place:] for line in LINES_OF_SAMPLES for place in (0, line.find("] ") + 2, line.find(") ") + 2)}
    beginnings = {message[:size] for message in messages for size in (1, 5, len(message) // 2)}
    for text in [*messages, *beginnings, *STRANGERS]:
        could = {row.name for row in FORMATS if may_open(row.pattern, text) and "" not in openings(row.pattern)}

        assert {row.name for row in INDEX.opened_by(text)} == could


def test_a_text_that_ends_with_the_beginning_of_a_literal() -> None:
    literals = sorted({row.literal for row in FORMATS})
    beginnings = {literal[:size] for literal in literals for size in range(LEAST_BEGINNING, len(literal))}
    wholes = {f"a {literal[:size]}" for literal in literals for size in (8, LEAST_BEGINNING - 1, len(literal))}
    others = {text for text in wholes if not text.endswith(tuple(beginnings))}

    assert all(INDEX.ends_with_beginning(f"some words {beginning}") for beginning in beginnings)
    assert not any(INDEX.ends_with_beginning(text) for text in others)
    assert len(others) > len(literals)


def test_a_log_that_is_none_is_held_against_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(row_index, "agree", lambda opening, text: asked.append(text) or agree(opening, text))
    words = [f"{first}{number:03} lorem ipsum dolor sit amet" for number, first in enumerate("abcdefghijCEFW" * 40)]
    parser = StartupLogParser()
    told = list(parser.feed("\n".join(words).encode()))

    assert told == []
    assert len(words) < len(asked) < len(words) * len(FORMATS) / 10


def test_a_log_of_every_sign_fills_no_memory() -> None:
    index = RowIndex(FORMATS)
    signs = [chr(code) for code in range(0x4E00, 0x4E00 + 2 * MAX_CHARACTERS)]

    assert {row.name for sign in signs for row in index.opened_by(f"{sign}!")} == set()
    assert len(index._openings) <= MAX_CHARACTERS


def test_an_exceptions_class_opens_the_rows_that_take_one() -> None:
    found = {row.name for row in INDEX.opened_by("torch.OutOfMemoryError: CUDA out of mem")}

    assert "fail-oom" in found
    assert "kv-memory-available" not in found
