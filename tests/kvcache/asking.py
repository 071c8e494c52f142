"""Asking `kvguard plan` as a user does, and reading its JSON."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kvguard.cli import main

FIXTURES = Path(__file__).parents[2] / "fixtures"
ARITH = FIXTURES / "arith"
MODELS = FIXTURES / "models"


def plan(capsys: pytest.CaptureFixture[str], config: Path | str, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the document."""
    status = main(["plan", str(config), "--format", "json", *words])
    return status, json.loads(capsys.readouterr().out)


def refusal_of(capsys: pytest.CaptureFixture[str], config: Path | str, *words: str) -> str:
    """The one line of a user error."""
    assert main(["plan", str(config), *words]) == 2
    return capsys.readouterr().err.strip()


def flags(options: Mapping[str, object]) -> list[str]:
    """A case's options as words of the command line."""
    words: list[str] = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if value is True:
            words.append(f"--{flag}")
        elif value is False:
            words.append(f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", str(value)]
    return words


def ends(value: Any) -> tuple[Any, Any]:
    """Both ends of a figure that may be one."""
    return (value["low"], value["high"]) if isinstance(value, dict) else (value, value)
