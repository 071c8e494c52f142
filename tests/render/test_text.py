"""The terminal page: its width, its colours, its characters, and a mark for every outcome and severity."""

import re

import pytest

from kvguard.render import github, junit, markdown, start_facts, text
from kvguard.render.layout import Cell, Terminal, Tone, columns, wrap
from kvguard.slo.objectives import Severity
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import Phase
from tests.render.verdicts import PASSED, REFUSED, VERDICTS, WEAK_ENGINE

COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("table", [text.OUTCOME_TONES, markdown.MARKS, junit.RESULT_TAGS])
def test_every_outcome_has_its_sign(table: dict[Outcome, object]) -> None:
    assert set(table) == set(Outcome)
    assert len({str(sign) for sign in table.values()}) == len(Outcome)


@pytest.mark.parametrize("table", [text.SEVERITY_TONES, markdown.SEVERITY_MARKS])
def test_every_severity_has_its_sign(table: dict[Severity, object]) -> None:
    assert set(table) == set(Severity)


def test_every_phase_has_its_words() -> None:
    assert set(start_facts.PHASE_WORDS) == set(Phase)


def test_every_tone_has_its_colour() -> None:
    painted = {Terminal(color=True).paint("x", tone) for tone in Tone}

    assert len(painted) == len(Tone)


@pytest.mark.parametrize("width", [68, 72, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    tables = [VERDICTS["passed"], VERDICTS["refused"], VERDICTS["empty"]]
    lines = [line for verdict in tables for line in text.render_verdict(verdict, Terminal(width)).splitlines()]

    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("name", VERDICTS)
def test_colour_changes_nothing_but_the_colour(name: str) -> None:
    plain = text.render_verdict(VERDICTS[name], Terminal())
    colored = text.render_verdict(VERDICTS[name], Terminal(color=True))

    assert COLOR.sub("", colored) == plain
    assert "\x1b[" in colored


@pytest.mark.parametrize("name", VERDICTS)
def test_a_plain_terminal_gets_ascii_in_the_same_columns(name: str) -> None:
    full = text.render_verdict(VERDICTS[name], Terminal())
    plain = text.render_verdict(VERDICTS[name], Terminal(unicode=False))

    assert plain.isascii()
    assert "�" in full or [len(line) for line in plain.splitlines()] == [len(line) for line in full.splitlines()]


def test_a_refused_start_says_what_was_asked_and_what_fits() -> None:
    page = text.render_verdict(REFUSED, Terminal(verbose=True))

    assert "Asked for   131,072 tokens of context\n" in page
    assert "What fits   28,432 tokens in the KV cache\n" in page


def test_the_probe_budget_is_half_as_much_again() -> None:
    page = text.render_report(PASSED.report, Terminal())

    assert "This start took 412 s: a startupProbe of at least 62 × 10 s." in page


def test_an_ignored_warning_is_nowhere() -> None:
    pages = [render(WEAK_ENGINE, Terminal()) for render in (text.render_verdict, markdown.render_markdown)]

    assert [page for page in [*pages, github.render_github(WEAK_ENGINE, Terminal())] if "not shown" in page] == []


def test_columns_stand_under_each_other_by_their_last_digit() -> None:
    rows = [[Cell("a"), Cell("1.80", right=True), Cell("x")], [Cell("long"), Cell("16", right=True)]]

    assert columns(rows, Terminal(), "  ") == ["  a     1.80  x", "  long    16"]


def test_a_word_longer_than_the_line_is_broken() -> None:
    assert wrap("y" * 50, 30, "  ") == ["  " + "y" * 28, "  " + "y" * 22]
