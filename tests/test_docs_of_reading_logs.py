"""The page on reading logs names every envelope and every shape that the tests hold, and nothing that they do not."""

import re

from kvguard.lines.tags import TAGS
from kvguard.startup.report import TokenFigure
from tests.conftest import FIXTURES
from tests.lines.envelopes import ENVELOPES

PAGE = (FIXTURES.parent / "docs" / "reading-logs.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_envelope_is_named_and_none_that_is_not_tested() -> None:
    rows = [row.split("|") for row in section("What stands around a line").splitlines() if row.startswith("| ")]

    assert sorted(name for row in rows for name in quoted(row[2])) == sorted(ENVELOPES)


def test_every_shape_of_a_deployment_is_named() -> None:
    held = section("From lines to figures").partition("Held by")[2].partition("(under")[0]
    shapes = {file.stem for file in (FIXTURES / "logs" / "shapes").glob("*.json")}

    assert set(quoted(held)) == shapes


def test_every_tag_in_the_table_is_one_that_the_reader_knows() -> None:
    tags = re.findall(r"`\((\w+) (?:rank=\d )?pid=", section("Who speaks"))

    assert len(tags) == 10
    assert [tag for tag in tags if not any(re.fullmatch(pattern, tag) for pattern, _ in TAGS)] == []


def test_every_meaning_of_the_token_figure_is_told() -> None:
    assert {figure.value for figure in TokenFigure} <= set(quoted(section("What the figures mean")))
