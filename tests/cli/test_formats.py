"""`kvguard formats`: the table, its page, and the matrix of what it was tested with."""

import json
import re
from collections import Counter

import pytest

from kvguard.cli import main
from kvguard.lines.formats import FORMATS
from kvguard.lines.tested import TESTED_RUNS
from kvguard.render.format_table import SIGNALS, render_page, version_matrix
from tests.conftest import FIXTURES, Golden

Capture = pytest.CaptureFixture[str]


def test_the_page_of_the_docs_is_the_table(golden: Golden) -> None:
    golden(FIXTURES.parent / "docs" / "formats.md", render_page())


def test_every_row_stands_under_one_signal() -> None:
    assert tuple(row for _, rows in SIGNALS for row in rows) == FORMATS


def test_every_row_is_listed(capsys: Capture) -> None:
    assert main(["formats"]) == 0
    out = capsys.readouterr().out
    assert [row.name for row in FORMATS if not re.search(rf"^  {row.name} ", out, re.MULTILINE)] == []
    assert f"{len(FORMATS)} formats" in out


def test_a_program_gets_the_same(capsys: Capture) -> None:
    assert main(["formats", "--format", "json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)["formats"]] == [row.name for row in FORMATS]


def test_the_whole_logs_are_those_of_the_corpus() -> None:
    names = [re.fullmatch(r"vllm-([^-]+)-([a-z]+)-.+", path.name) for path in (FIXTURES / "logs" / "runs").iterdir()]
    found = Counter((name[1], name[2]) for name in names if name)

    assert {(release, platform): count for release, platform, count in TESTED_RUNS} == dict(found)


def test_every_release_of_the_last_years_has_its_formats(capsys: Capture) -> None:
    assert main(["formats", "--versions"]) == 0
    assert capsys.readouterr().out.startswith("Formats by release and platform\n  release  vllm  cpu")
    assert [row[0] for row in version_matrix() if int(row[1] or 0) < 15] == []
