"""The pages of help: every command has examples that it can read, and says what its exit status means."""

import re
import shlex

import pytest

from kvguard.cli import COMMANDS, main
from kvguard.cli.command_line import parser
from kvguard.cli.help_pages import EXAMPLES, STATUSES

Capture = pytest.CaptureFixture[str]
LINES = [line for examples in EXAMPLES.values() for line in examples]


def test_every_command_has_its_page() -> None:
    assert list(EXAMPLES) == list(STATUSES) == list(COMMANDS)
    assert all(any(f"kvguard {name} " in line for line in lines) for name, lines in EXAMPLES.items())


@pytest.mark.parametrize("line", LINES)
def test_an_example_can_be_typed(line: str) -> None:
    typed = re.sub(r"\\\n", " ", line.rpartition("| ")[2]).partition(" > ")[0]
    program, *words = shlex.split(typed)
    arguments, unknown = parser(words).parse_known_args(words)

    assert program == "kvguard"
    assert arguments.command in COMMANDS
    assert unknown == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal_and_ends_with_the_statuses(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    page = capsys.readouterr().out

    assert "\nexamples:\n  k" in page
    assert page.partition("\nexit status:\n")[2].strip()
    assert max(map(len, page.splitlines())) <= 100


@pytest.mark.parametrize(
    "words, told",
    [
        (["chekc", "x.log"], "no command 'chekc'; did you mean check? "),
        (["frobnicate"], "no command 'frobnicate'; there are: check, plan, "),
        (["check", "x.log", "--warnings", "thin-margin"], "write what it does behind it, as thin-margin=note "),
    ],
)
def test_a_slip_is_told_with_what_was_meant(words: list[str], told: str, capsys: Capture) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err
