"""Pairs of starts that people reported in public: the comparison names each cause as the report does."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from kvguard.slo.baselines.baseline import Baseline
from kvguard.slo.baselines.difference import difference
from kvguard.slo.evaluate import evaluate
from kvguard.slo.settings import Settings, slo_of
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.sources.documents import read_baseline, read_log
from kvguard.startup.report import Phase

PAIRS = Path("fixtures/logs/pairs")
NAMES = sorted(folder.name for folder in PAIRS.iterdir() if folder.is_dir())


def case(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((PAIRS / name / "case.json").read_text())
    return document


def held(path: Path) -> Baseline:
    return read_baseline(path.name, path.parent)


def old(name: str) -> Baseline:
    return held(next((PAIRS / name).glob("old.*")))


def judged(name: str) -> Verdict:
    asked = slo_of(Settings({"baseline": "old", "max_drop": 0.05}), baseline=old(name))
    return evaluate(read_log(str(PAIRS / name / "new.log")), asked)


def test_every_report_of_both_parts_has_its_pair() -> None:
    assert [name.split("-")[0] for name in NAMES] == [
        *(f"a{number:02d}" for number in range(1, 11)),
        *(f"b{number}" for number in range(11, 21)),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_causes_are_those_that_the_report_names(name: str) -> None:
    found = difference(old(name), held(PAIRS / name / "new.log"))
    told = "\n".join(found.causes)
    assert [cause for cause in case(name)["causes"] if cause not in told] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_check_judges_the_loss(name: str) -> None:
    expected, verdict = case(name), judged(name)
    assert verdict.outcome.value == expected["outcome"]
    assert set(expected.get("warnings", [])) <= {warning.code for warning in verdict.warnings}
    if expected["drop"] is not None:
        low, high = expected["drop"]
        assert low <= verdict.checks[0].observed <= high  # type: ignore[operator]


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_capacity_in_the_logs_is_recognised(name: str) -> None:
    for log in (PAIRS / name).glob("*.log"):
        report = read_log(str(log))
        assert report.unrecognized == ()
        assert report.start is not None
        assert report.start.phase in (Phase.READY, Phase.FAILED)


def test_a_missed_bound_says_what_took_the_cache() -> None:
    (check,) = judged("a05-activation-peak-took-the-cache").checks
    assert "KV cache −6.65 GiB (×0.55): activation peak +6.65 GiB" in check.reason


@pytest.mark.parametrize(
    "name, shown",
    [
        ("a08-graphs-taken-off-the-cache", "--gpu-memory-utilization 0.9019 keeps its size"),
        ("a09-npu-graphs-counted", "captured graphs +0.81 GiB"),
        ("b14-log-and-metrics-contradict", "no capacity is lost against the baseline"),
    ],
)
def test_the_check_says_it_as_the_report_does(name: str, shown: str) -> None:
    assert shown in judged(name).checks[0].reason


def test_of_a_cache_below_nothing_all_is_lost() -> None:
    assert judged("a04-no-memory-left-after-an-upgrade").checks[0].observed == 1.0


RUNS = Path("fixtures/logs/runs")


def release(run: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", run.split("-")[1])))


def upgrades() -> list[tuple[str, str]]:
    """Every two real runs of one shape, the older version first."""
    runs = sorted((folder.name for folder in RUNS.iterdir() if (folder / "server.log").is_file()), key=release)
    return [(old, new) for old, new in combinations(runs, 2) if old.split("-")[2:] == new.split("-")[2:]]


@pytest.mark.parametrize("before, now", upgrades())
def test_two_real_versions_compare_without_a_false_alarm(before: str, now: str) -> None:
    asked = slo_of(Settings({"baseline": "old", "max_drop": 0.0}), baseline=held(RUNS / before / "server.log"))
    report = read_log(str(RUNS / now / "server.log"))
    verdict = evaluate(report, asked)
    (check,) = verdict.checks
    assert report.start is not None
    refused = report.start.phase is Phase.FAILED
    assert check.outcome in ((Outcome.PASS, Outcome.UNKNOWN) if refused else (Outcome.PASS,))
    assert check.observed in (0.0, None)
    told = [warning.message for warning in verdict.warnings if warning.code == "arguments-differ"]
    # what these runs really differ in: a release's new defaults are no option that somebody gave
    assert [text for text in told if "block_size 16 → 128" not in text and "max_model_len" not in text] == []
    assert "implausible-gain" not in {warning.code for warning in verdict.warnings}
