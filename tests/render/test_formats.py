"""Every format of every hand-built verdict, to the last character."""

from xml.etree import ElementTree

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
    golden(GOLDENS / name / "inspect.txt", REPORT_RENDERERS["text"](VERDICTS[name], Terminal()))


@pytest.mark.parametrize("name", VERDICTS)
def test_junit_marks_a_case_only_as_junit_readers_know_it(name: str) -> None:
    suites = ElementTree.fromstring(RENDERERS["junit"](VERDICTS[name], Terminal()))
    marks = [mark.tag for case in suites.iter("testcase") for mark in case]
    assert set(marks) <= {"failure", "error", "skipped"}
    assert marks.count("failure") == int(suites.attrib["failures"])


def test_a_failed_start_is_a_failure_in_junit() -> None:
    case = ElementTree.fromstring(RENDERERS["junit"](VERDICTS["refused"], Terminal())).find(
        ".//testcase[@name='start']"
    )
    assert case is not None
    assert [mark.tag for mark in case] == ["failure"]


def test_every_golden_belongs_to_a_verdict() -> None:
    assert {path.name for path in GOLDENS.iterdir()} == set(VERDICTS)
