"""Settings of our own after logs seen in public, against what a reader sees in them: every fact, and no other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvguard import Guard
from kvguard.render.json_report import report_document
from kvguard.units import GIB

PUBLIC = Path(__file__).parent.parent / "fixtures" / "logs" / "public"
NAMES = sorted(file.stem for file in PUBLIC.glob("*.log"))
PLACES = frozenset({"index", "began", "first_line", "last_line", "source", "line", "startup_probe", "rounding", "how"})
"""Where a fact stands and how it was derived: not what it says."""


PASTES: dict[str, Callable[[str], str]] = {
    "quoted": lambda line: f"> {line}",
    "indented": lambda line: f"    {line}",
    "from Windows": lambda line: f"{line}\r",
}
"""What a paste may do to every line of a log."""


def reported(name: str, pasted: Callable[[str], str] = str) -> dict[str, Any]:
    """The whole report of a log, without places and what is unknown; sizes in GiB, as vLLM prints them."""
    text = (PUBLIC / f"{name}.log").read_text(encoding="utf-8")
    guard = Guard(source=name)
    guard.feed("\n".join(map(pasted, text.split("\n"))).encode())
    guard.end()
    document = report_document(guard.report)
    start = document["start"]
    if start is None:
        return {}
    shown = _shown(start)
    if len(start["engines"]) == 1:
        del shown["engines"]  # the same as the capacity
    if not start["runtime"]["samples"]:
        shown.pop("runtime", None)
    shown["warnings"] = [warning["code"] for warning in start["warnings"]]
    shown["starts"] = document["starts"] if document["starts"] > 1 else None
    shown["unrecognized"] = [line["text"] for line in document["unrecognized"]]
    return {key: value for key, value in shown.items() if value not in (None, {}, [])}


def _shown(value: Any, key: str = "", of: str = "") -> Any:
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        known = {name: _shown(item, name, key) for name, item in value.items() if name not in PLACES}
        return {name.replace("_bytes", "_gib"): item for name, item in known.items() if item not in (None, {}, [])}
    is_size = key.endswith("_bytes") or (of == "memory" and not key.endswith("utilization"))
    return round(value / GIB, 4) if is_size and value is not None else value


@pytest.mark.parametrize("name", NAMES)
def test_every_fact_that_the_text_tells_is_reported_and_nothing_else(name: str) -> None:
    told = json.loads((PUBLIC / f"{name}.json").read_text(encoding="utf-8"))["facts"]

    assert reported(name) == told


@pytest.mark.parametrize("pasted", PASTES.values(), ids=PASTES)
def test_how_it_is_pasted_changes_no_fact(pasted: Callable[[str], str]) -> None:
    changed = [name for name in NAMES if reported(name, pasted) != reported(name)]

    assert changed == []
