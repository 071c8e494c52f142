"""Whole cases: logs and flags as a user gives them, and every report to the last character."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvguard.cli import main
from kvguard.version import __version__
from tests.conftest import FIXTURES, Golden

CASES = sorted(folder.name for folder in (FIXTURES / "cases").iterdir())
SUFFIXES = {"text": "txt", "json": "json", "markdown": "md", "junit": "xml", "github": "github"}


def case(name: str) -> tuple[Path, dict[str, Any]]:
    folder = FIXTURES / "cases" / name
    return folder, json.loads((folder / "case.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_case_gives_its_status_and_its_reports(
    name: str, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, asked = case(name)
    monkeypatch.chdir(FIXTURES / "logs")
    written = {form: tmp_path / form for form in asked["formats"]}
    places = [word for form, path in written.items() for word in ("--format", f"{form}={path}")]

    assert main(["check", *asked["logs"], *asked["flags"], *places, "--quiet"]) == asked["status"]
    for form, path in written.items():
        golden(folder / f"report.{SUFFIXES[form]}", path.read_text().replace(f'"{__version__}"', '"VERSION"'))


def test_no_report_of_a_case_is_left_over() -> None:
    for name in CASES:
        folder, asked = case(name)
        expected = {"case.json", *(f"report.{SUFFIXES[form]}" for form in asked["formats"])}
        assert expected == {path.name for path in folder.iterdir() if path.name in expected or "report" in path.name}
