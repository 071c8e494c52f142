"""The README tells the truth: every console block is what the program prints, every command is named."""

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

import pytest

from kvguard.cli import main

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
CONSOLE = re.compile(r"```console\n(\$ kvguard (?P<command>[^\n]+)\n)(?P<output>.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(?P<code>.*?)```", re.DOTALL)


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")


def printed(command: str) -> str:
    raw = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(raw, encoding="utf-8", write_through=True)) as output:
        main(shlex.split(command))
        output.flush()
    return raw.getvalue().decode("utf-8")


def test_every_console_block_is_what_the_program_prints(request: pytest.FixtureRequest) -> None:
    text = README.read_text(encoding="utf-8")

    def renewed(block: re.Match[str]) -> str:
        return f"```console\n{block[1]}{printed(block['command'])}```"

    actual = CONSOLE.sub(renewed, text)
    if request.config.getoption("--update-goldens"):
        README.write_text(actual, encoding="utf-8")
    else:
        assert text == actual
    assert len(CONSOLE.findall(text)) == 4


def test_every_command_is_in_the_table() -> None:
    from kvguard.cli import COMMANDS

    table = README.read_text(encoding="utf-8").partition("## Commands")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z]+)[ `]", table))

    assert set(COMMANDS) <= named


def test_the_python_example_prints_what_its_comment_says() -> None:
    (code,) = PYTHON.findall(README.read_text(encoding="utf-8"))
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})

    assert output.getvalue().strip() == code.rpartition("# ")[2].strip()


def test_the_readme_names_the_scripts_that_are_there() -> None:
    for script in re.findall(r"^scripts/\w+", README.read_text(encoding="utf-8"), re.MULTILINE):
        assert os.access(ROOT / script, os.X_OK)
