"""What is kept of a start, its spread over several, and the document that carries it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvguard.errors import ConfigError
from kvguard.lines.option_text import OPTIONS
from kvguard.render.json_report import report_document
from kvguard.slo import told_options
from kvguard.slo.baselines.baseline import ARGUMENTS, Baseline, Figure, baseline_of
from kvguard.slo.baselines.document import baseline_from, document_of
from kvguard.startup.report import CapacityReport, Memory, TokenFigure
from kvguard.units import GIB
from tests.slo.reports import ENGINE, refused, report, start

MEASURED = start(
    memory=Memory(total_gpu=24 * GIB, weights=15 * GIB, non_torch=GIB // 8, activation_peak=GIB, kv_cache=3 * GIB),
    gpu_memory_utilization=0.9,
    tensor_parallel_size=1,
    model="acme/Quill-8B-Instruct",
    arguments={"max_num_seqs": 32, "enable_lora": False, "num_speculative_tokens": 3},
)


def again(tokens: int) -> CapacityReport:
    engine = replace(ENGINE, kv_cache_tokens=tokens)
    return report(replace(MEASURED, engines=(engine,), capacity=start(engines=(engine,)).capacity))


def test_capacity_memory_and_options_are_kept() -> None:
    kept = baseline_of([report(MEASURED)])
    assert kept.weakest["kv_cache_tokens"] == Figure(40_960, 40_960)
    assert kept.weakest["max_concurrency"] == Figure(2.5, 2.5, 0.005)
    assert kept.memory["activation_peak"].low == GIB
    assert kept.options["gpu_memory_utilization"] == 0.9
    assert kept.options["num_speculative_tokens"] == 3
    assert "enable_lora" not in kept.options
    assert (kept.token_figure, kept.layers, kept.arguments_told) == (TokenFigure.POOL, "uniform", True)


def test_several_starts_give_their_spread() -> None:
    kept = baseline_of([again(40_960), again(40_800), again(41_120)])
    assert (kept.starts, kept.weakest["kv_cache_tokens"]) == (3, Figure(40_800, 41_120))
    assert kept.engines["0"]["kv_cache_tokens"] == Figure(40_800, 41_120)


def test_starts_of_different_deployments_make_no_baseline() -> None:
    other = report(replace(MEASURED, gpu_memory_utilization=0.85), sources=("other.log",))
    with pytest.raises(ConfigError, match=r"other\.log: differs from vllm\.log in gpu_memory_utilization"):
        baseline_of([report(MEASURED), other])
    with pytest.raises(ConfigError, match="vllm_version"):
        baseline_of([report(MEASURED), report(replace(MEASURED, vllm_version="0.20.2"))])


def test_a_log_without_a_start_makes_no_baseline() -> None:
    with pytest.raises(ConfigError, match="no start of a vLLM server"):
        baseline_of([CapacityReport(sources=("empty.log",))])


@pytest.mark.parametrize("reports", [[report(MEASURED)], [again(40_960), again(40_800)]], ids=["one", "several"])
def test_a_document_is_read_back_as_it_was(reports: list[CapacityReport]) -> None:
    kept = baseline_of(reports)
    assert baseline_from(json.loads(json.dumps(document_of(kept))), "baseline.json") == kept


def test_a_document_is_small_and_plain() -> None:
    document = document_of(baseline_of([again(40_960), again(40_800)]))
    assert document["kind"] == "baseline"
    assert document["weakest"]["kv_cache_tokens"] == [40_800, 40_960]
    assert document["weakest"]["max_concurrency"] == 2.5
    assert document["rounding"]["max_concurrency"] == 0.005
    assert len(json.dumps(document)) < 2_000


def test_a_stored_report_serves_as_a_baseline() -> None:
    written = json.loads(json.dumps(report_document(report(MEASURED))))
    kept, read = baseline_of([report(MEASURED)]), baseline_from(written, "report.json")
    assert read.weakest == kept.weakest
    assert read.memory == kept.memory
    assert read.options == kept.options
    assert (read.vllm_version, read.token_figure) == (kept.vllm_version, kept.token_figure)


def test_a_stored_report_keeps_why_a_start_failed() -> None:
    read = baseline_from(json.loads(json.dumps(report_document(refused()))), "report.json")
    assert read.failure is not None
    assert read.failure.kv_cache_tokens == 28_432


@pytest.mark.parametrize(
    "document, told",
    [
        ({}, "b.json: neither a baseline nor a report of kvguard"),
        ({"kind": "diff"}, "b.json: neither a baseline nor a report of kvguard"),
        ({"kind": "baseline", "schema_version": 9}, "b.json: schema_version 9 is not 1"),
        (
            {"kind": "baseline", "schema_version": 1, "weakest": {"kv_cache_tokens": "many"}},
            "b.json: a damaged baseline",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "weakest": []},
            "b.json: a damaged baseline: weakest is no mapping",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "engines": []},
            "b.json: a damaged baseline: engines is no mapping",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "weakest": {"kv_cache_tokens": -5}},
            "b.json: a damaged baseline: kv_cache_tokens is -5, which no server holds",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "engines": {"0": {"max_concurrency": 0}}},
            "b.json: a damaged baseline: max_concurrency is 0, which no server holds",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "weakest": {"kv_cache_bytes": 10**400}},
            f"b.json: a damaged baseline: kv_cache_bytes is 1{'0' * 59}, which is no number of a server",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "memory": {"weights": float("inf")}},
            "b.json: a damaged baseline: weights is inf, which is no number of a server",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "rounding": {"kv_cache_bytes": "x"}, "memory": {}, "starts": 0},
            "b.json: a damaged baseline: starts is 0, which is no number of them",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "options": {"enforce_eager": []}},
            "b.json: a damaged baseline: enforce_eager is neither true nor false",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "options": {"dtype": 16}},
            "b.json: a damaged baseline: dtype is no text",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "options": {"max_model_len": "long"}},
            "b.json: a damaged baseline: max_model_len is long, which is no number of a server",
        ),
        (
            {"kind": "baseline", "schema_version": 1, "sources": [7]},
            "b.json: a damaged baseline: sources is no list of texts",
        ),
        ({"kind": "report", "schema_version": 1, "start": 7}, "b.json: a damaged report: start is no mapping"),
        (
            {"kind": "baseline", "schema_version": 1, "weakest": {"kv_cache_tokens": [5, 1]}},
            "b.json: a damaged baseline: kv_cache_tokens is written as [5, 1], the smallest comes first",
        ),
        ({"kind": "baseline", "schema_version": 1, "token_figure": "x"}, "b.json: a damaged baseline"),
        ({"kind": "report", "schema_version": 1}, "b.json: a damaged report"),
        ({"kind": "report", "schema_version": 1, "start": None}, "b.json: no start of a vLLM server in this report"),
    ],
)
def test_a_document_that_is_none_is_told_in_one_line(document: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        baseline_from(document, "b.json")
    assert str(error.value).startswith(told)
    assert "\n" not in str(error.value)


def test_every_real_run_survives_the_round_trip() -> None:
    from kvguard.sources.documents import read_log

    for folder in sorted(Path("fixtures/logs/runs").glob("*base*")):
        kept: Baseline = baseline_of([read_log(str(folder / "server.log"))])
        assert baseline_from(json.loads(json.dumps(document_of(kept))), folder.name) == kept


def test_the_page_names_every_key_of_the_document() -> None:
    page = Path("docs/baselines.md").read_text().split("## The document")[1]
    document = document_of(replace(baseline_of([report(MEASURED)]), basis="profiled", engines_expected=1))
    assert [key for key in document if f"`{key}`" not in page] == []


def test_every_argument_that_is_asked_for_is_one_that_a_log_delivers() -> None:
    asked = {*ARGUMENTS, *told_options.TOLD_ARGUMENTS, "num_speculative_tokens", "disable_hybrid_kv_cache_manager"}
    assert asked <= OPTIONS
