"""The JSON report's keys: others build on them, so that one may come and none may go or change its kind."""

from typing import Any

from kvguard.render.json_report import verdict_document
from tests.conftest import FIXTURES, Golden
from tests.render.verdicts import VERDICTS

KEYED_BY_DATA = {"lines", "arguments", "rounding", "derived"}
"""Objects whose keys are facts, options or figures of one start."""


def paths(value: Any, at: str = "") -> set[str]:
    """Each key's way from the root."""
    if isinstance(value, dict):
        inner = "{}" if at.rpartition(".")[2] in KEYED_BY_DATA else None
        return {at, *(path for key, item in value.items() for path in paths(item, f"{at}.{inner or key}"))}
    if isinstance(value, list):
        return {at, *(path for item in value for path in paths(item, f"{at}[]"))}
    return {at}


def test_no_key_goes_without_being_seen(golden: Golden) -> None:
    found = {path for verdict in VERDICTS.values() for path in paths(verdict_document(verdict))}

    golden(FIXTURES / "render-keys.txt", "\n".join(sorted(path.lstrip(".") for path in found - {""})) + "\n")
