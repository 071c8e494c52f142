"""Workloads by the model's config: every case of the arithmetic, found again from the figures that its log prints."""

import json
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache.load import Request
from kvguard.slo.evaluate import evaluate
from kvguard.slo.fit_by_model import explain, fit_by_model
from kvguard.slo.objectives import Workload
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import Capacity, Start, TokenFigure
from tests.slo.reports import report, slo, start

CASES = Path("fixtures/arith")
FACTS = {field for field in Start.__dataclass_fields__ if field != "generation"}


def case(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = CASES / name
    return json.loads((folder / "case.json").read_text()), json.loads((folder / "config.json").read_text())


def printed(name: str) -> tuple[Start, Capacity]:
    """The start as its log told it: the flags, and the figures with their rounding."""
    told, _config = case(name)
    expect, options = told["expect"], told["options"]
    ends = told["kv_cache_bytes"]
    low, high = (ends, ends) if isinstance(ends, int) else ends or (None, None)
    release = tuple(map(int, told["vllm_version"].split(".post")[0].split(".")))
    engine = Capacity(
        engine="0",
        kv_cache_bytes=None if low is None else (low + high) // 2,
        kv_cache_tokens=expect["kv_cache_tokens"],
        max_concurrency=expect["max_concurrency"],
        max_model_len=options.get("max_model_len"),
        token_figure=TokenFigure.CONCURRENCY_TIMES_LEN if release >= (0, 20, 1) else TokenFigure.POOL,
        rounding={"max_concurrency": 0.005, "kv_cache_bytes": 0 if low is None else (high - low) / 2 + 1},
    )
    facts = {key: value for key, value in options.items() if key in FACTS}
    others = {key: value for key, value in options.items() if key not in FACTS}
    bare = start(engines=(engine,), vllm_version=told["vllm_version"], generation=None, kv_cache_dtype=None)
    return replace(bare, **{"max_model_len": None, **facts}, arguments=others), engine


WITH_WORKLOAD = sorted(
    folder.name
    for folder in CASES.iterdir()
    if folder.is_dir()
    and (told := json.loads((folder / "case.json").read_text()))["expect"].get("workload")
    and told["expect"]["kv_cache_tokens"]
    and told["expect"]["printed_num_blocks"]
    and told["options"].get("engine") != "v0"
)


@pytest.mark.parametrize("name", WITH_WORKLOAD)
def test_the_pool_behind_the_printed_figures_is_found_and_the_load_counted(name: str) -> None:
    told, config = case(name)
    of, engine = printed(name)
    explained = explain(of, engine, config)
    low, high = told["expect"]["printed_num_blocks"]
    assert explained[0].blocks.low <= high
    assert explained[0].blocks.high >= low
    for row in told["expect"]["workload"]:
        if low <= row["num_blocks"] <= high and "requests" in row:
            fit = fit_by_model(explained, Request(row["prompt"], row["output"], row["shared_prefix"]))
            assert floor(fit.interval.low) <= row["requests"] <= floor(fit.interval.high)


def test_there_are_cases_of_every_kind() -> None:
    assert len(WITH_WORKLOAD) >= 7


def test_a_hybrid_holds_what_its_groups_leave() -> None:
    told, config = case("ex14-qwen38-27b-fp8kv-tp2")
    of, engine = printed("ex14-qwen38-27b-fp8kv-tp2")
    explained = explain(of, engine, config)
    held = {length: fit_by_model(explained, Request(length, 0)).interval.low for length in (8_192, 32_768, 131_072)}
    assert {length: round(fits, 2) for length, fits in held.items()} == {8_192: 17.25, 32_768: 7.67, 131_072: 2.3}
    assert told["expect"]["max_concurrency"] == 2.31


def test_a_verdict_counts_by_the_config_and_says_so() -> None:
    of, _engine = printed("ex14-qwen38-27b-fp8kv-tp2")
    _told, config = case("ex14-qwen38-27b-fp8kv-tp2")
    asked = slo(concurrent_requests=18, workload=Workload(8_000, 192, model_config=config))
    check = evaluate(report(of), asked).checks[0]
    assert (check.outcome, check.observed) == (Outcome.FAIL, pytest.approx(207 / 12))
    assert "4 groups of layers" in check.reason


def test_a_config_of_another_model_is_set_aside_and_told() -> None:
    of, engine = printed("ex14-qwen38-27b-fp8kv-tp2")
    other = json.loads(Path("fixtures/models/tiny-llama.json").read_text())
    with pytest.raises(ConfigError, match="is it the model served"):
        explain(of, engine, other)
    verdict = evaluate(report(of), slo(concurrent_requests=1, workload=Workload(8_000, 192, model_config=other)))
    assert [warning.code for warning in verdict.warnings] == ["model-config-not-used"]
    assert verdict.checks[0].low is not None


def test_an_architecture_that_nobody_knows_is_refused_by_name() -> None:
    verdict = evaluate(
        report(), slo(concurrent_requests=1, workload=Workload(8_000, 192, model_config={"architectures": ["New"]}))
    )
    assert "New" in verdict.warnings[0].message


def test_an_engine_without_figures_is_explained_by_nothing() -> None:
    _told, config = case("ex14-qwen38-27b-fp8kv-tp2")
    assert explain(start(), Capacity(max_model_len=8_192), config) == ()
