"""The pages on the commands name every flag, every format and every file that there is, and none that is not."""

import argparse
import importlib
import re

import pytest

from kvguard.cli.objective_flags import add_objective_flags
from kvguard.render.formats import RENDERERS
from kvguard.render.json_report import verdict_document
from tests.conftest import FIXTURES
from tests.render.verdicts import PASSED

DOCS = FIXTURES.parent / "docs"


def flags_of(configure: object) -> set[str]:
    parser = argparse.ArgumentParser()
    assert callable(configure)
    configure(parser)
    return {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}


@pytest.mark.parametrize("command", ["check", "inspect", "explain", "formats", "run", "history"])
def test_every_flag_of_a_command_is_documented(command: str) -> None:
    text = (DOCS / "check.md").read_text()
    own = flags_of(importlib.import_module(f"kvguard.cli.{command}").configure)

    asked = flags_of(add_objective_flags)
    assert {flag for flag in own - asked - {"--help"} if flag not in text} == set()


def test_every_format_is_documented() -> None:
    names = re.findall(r"^\| `(\w+)` \| ", (DOCS / "formats-of-output.md").read_text(), re.MULTILINE)

    assert [name for name in names if name in RENDERERS] == list(RENDERERS)


def test_every_key_of_the_report_is_documented() -> None:
    text = (DOCS / "formats-of-output.md").read_text()

    assert [key for key in verdict_document(PASSED) if f"`{key}`" not in text and f"`{key}[]`" not in text] == []


@pytest.mark.parametrize("page", ["check.md", "formats-of-output.md", "pipelines.md"])
def test_every_link_leads_somewhere(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text())

    assert [target for target in targets if not (DOCS / target).resolve().exists()] == []
