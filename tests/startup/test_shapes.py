"""Shapes of a deployment, a log each: what its ranks, engines and nodes print comes together as the design says."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvguard import Guard
from kvguard.render.json_report import report_document
from kvguard.startup.deployment import join

SHAPES = Path(__file__).parents[2] / "fixtures" / "logs" / "shapes"
NAMES = sorted(file.stem for file in SHAPES.glob("*.json"))


def report(name: str) -> dict[str, Any]:
    """The report over all logs of a shape: `name.log`, `name.second.log`."""
    guards = []
    for log in sorted(SHAPES.glob(f"{name}.*log")):
        guard = Guard(source=log.name)
        guard.feed(log.read_bytes())
        guard.end()
        guards.append(guard)
    return report_document(join([guard.report for guard in guards]))


def told(document: dict[str, Any], path: str) -> Any:
    """The value at a dotted path; `warnings` are the codes alone."""
    if path == "warnings":
        return [warning["code"] for warning in document["start"]["warnings"]]
    value: Any = document
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else (value or {}).get(key)
    return value


@pytest.mark.parametrize("name", NAMES)
def test_a_shape_gives_its_figures(name: str) -> None:
    expected = json.loads((SHAPES / f"{name}.json").read_text(encoding="utf-8"))["expect"]

    document = report(name)

    assert {path: told(document, path) for path in expected} == expected
