"""Every format of every hand-built verdict, to the last character."""

import pytest

from kvguard.render.formats import RENDERERS, REPORT_RENDERERS
from kvguard.render.layout import Terminal
from tests.conftest import FIXTURES, Golden
from tests.render.verdicts import VERDICTS

SUFFIXES = {"text": "txt", "json": "json", "markdown": "md", "junit": "xml", "github": "github"}
GOLDENS = FIXTURES / "render"


@pytest.mark.parametrize("name", VERDICTS)
@pytest.mark.parametrize("form", [form for form in RENDERERS if form != "html"])  # the page: see test_html
def test_a_verdict_looks_as_expected(form: str, name: str, golden: Golden) -> None:
    golden(GOLDENS / name / f"report.{SUFFIXES[form]}", RENDERERS[form](VERDICTS[name], Terminal()))


@pytest.mark.parametrize("name", VERDICTS)
def test_a_report_without_a_verdict_looks_as_expected(name: str, golden: Golden) -> None:
    golden(GOLDENS / name / "inspect.txt", REPORT_RENDERERS["text"](VERDICTS[name].report, Terminal()))


def test_every_golden_belongs_to_a_verdict() -> None:
    assert {path.name for path in GOLDENS.iterdir()} == set(VERDICTS)
