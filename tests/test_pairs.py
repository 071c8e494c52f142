"""Pairs of starts that people reported in public: the comparison names each cause as the report does."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvguard.slo.baselines.baseline import Baseline
from kvguard.slo.baselines.difference import difference
from kvguard.slo.evaluate import evaluate
from kvguard.slo.settings import Settings, slo_of
from kvguard.slo.verdict import Verdict
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


RUNS = Path("fixtures/logs/runs")


@pytest.mark.parametrize(
    "before, now",
    [
        ("vllm-0.8.5.post2-cpu-base-load", "vllm-0.10.2.post2-cpu-base-load"),
        ("vllm-0.10.2.post2-cpu-base-load", "vllm-0.13.0-cpu-base-load"),
        ("vllm-0.13.0-cpu-base-load", "vllm-0.20.2-cpu-base-load"),
        ("vllm-0.20.2-cpu-base-load", "vllm-0.27.1-cpu-base-load"),
        ("vllm-0.27.1-cpu-base-load", "vllm-0.32.0-cpu-base"),
    ],
)
def test_real_upgrades_that_lost_nothing_raise_no_alarm(before: str, now: str) -> None:
    baseline = held(RUNS / before / "server.log")
    asked = slo_of(Settings({"baseline": "old", "max_drop": 0.0}), baseline=baseline)
    verdict = evaluate(read_log(str(RUNS / now / "server.log")), asked)
    assert (verdict.outcome.value, verdict.checks[0].observed) == ("pass", 0.0)
