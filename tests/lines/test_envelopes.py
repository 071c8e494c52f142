"""Whole runs of real servers in every envelope, alone and nested: it must change nothing but where a fact stands.

By default each run is tried in a quarter of the envelopes and each envelope around a quarter of the runs; with
KVGUARD_EVERY_ENVELOPE=1 in the environment every run in every envelope.
"""

import dataclasses
import functools
import os
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from kvguard import Guard
from tests.lines.envelopes import DATING, ENVELOPES, nested

RUNS = Path(__file__).parents[2] / "fixtures" / "logs" / "runs"
NAMES = sorted(folder.name for folder in RUNS.iterdir())
UNDATED = {"vllm-0.32.0-cpu-json", "vllm-0.32.0-cpu-level-warning"}
WHERE = frozenset(
    {"place", "first_place", "last_place", "lines", "counts", "first_line", "last_line", "sources", "how", "quotes"}
)
"""Fields that say where a fact stands, and how much was read."""
LOGO_CUT = ("vllm-0.32.0-cpu-prefix-debug", "viewer 100, at spaces")
"""The logo's second half matches by itself, without the stamp of the first: the start seems to begin later."""
EVERY = 1 if "KVGUARD_EVERY_ENVELOPE" in os.environ else 4
NESTS = (
    ("github", "docker compose"),
    ("gitlab", "docker compose"),
    ("github", "caret notation"),
    ("kubectl --timestamps", "json message"),
    ("cri", "json log"),
    ("docker json-file", "escaped colours"),
    ("journald", "docker compose"),
    ("docker compose", "stage tag"),
    ("quoted", "docker compose"),
    ("indented", "quoted"),
    ("commented", "docker -t"),
    ("fenced", "kubectl --prefix"),
    ("utf-16 le", "docker desktop"),
    ("crlf", "tmux 120"),
    ("slurm --label", "progress bar"),
    ("terminal 120", "docker compose"),
    ("quoted", "terminal 100"),
)
"""An envelope, and what stands inside it."""
NESTED_RUNS = (
    "0.10.2.post2-cpu-tp2",
    "0.20.2-cpu-restart",
    "0.27.1-cpu-dp2",
    "0.32.0-cpu-toolong",
    "0.8.5.post2-cpu-base-load",
)


def facts(value: Any) -> Any:
    """A report without its places."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
        told = {name: facts(item) for name, item in items.items() if name not in WHERE}
        if told.get("message"):  # a row that lets any words follow cannot tell whether a wrap has eaten a blank
            told["message"] = "".join(told["message"].split())[:400]
        return told
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [facts(item) for item in value]
    return {key: facts(item) for key, item in value.items()} if hasattr(value, "items") else value


def read(log: bytes) -> Any:
    guard = Guard()
    guard.feed(log)
    guard.end()
    return facts(guard.report)


@functools.cache
def run(name: str) -> str:
    return (RUNS / name / "server.log").read_text(encoding="utf-8", errors="replace")


@functools.cache
def bare(name: str) -> Any:
    return read(run(name).encode())


def applies(name: str, envelope: str) -> bool:
    """A JSON object that a terminal has cut is no object; a log without stamps is dated by its envelope."""
    cut = envelope.startswith(("terminal", "viewer", "tmux"))
    dated = name in UNDATED and envelope in DATING
    return not (cut and "json" in name) and not dated and (name, envelope) != LOGO_CUT


CASES = [
    (name, envelope)
    for index, name in enumerate(NAMES)
    for number, envelope in enumerate(ENVELOPES)
    if (index + number) % EVERY == 0 and applies(name, envelope)
]


@pytest.mark.parametrize(("name", "envelope"), CASES)
def test_an_envelope_changes_nothing(name: str, envelope: str) -> None:
    assert read(ENVELOPES[envelope](run(name))) == bare(name)


@pytest.mark.parametrize(("outer", "inner"), NESTS)
@pytest.mark.parametrize("version", NESTED_RUNS)
def test_nested_envelopes_change_nothing(version: str, outer: str, inner: str) -> None:
    name = f"vllm-{version}"

    assert read(nested(ENVELOPES[outer], ENVELOPES[inner])(run(name))) == bare(name)
