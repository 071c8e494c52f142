"""Whole logs of real servers against the values that a perfect reader finds."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvguard import Guard
from kvguard.startup.report import CapacityReport, Phase
from kvguard.units import GIB

RUNS = Path(__file__).parent.parent / "fixtures" / "logs" / "runs"
NAMES = sorted(folder.name for folder in RUNS.iterdir())
NOT_IN_THE_LOG = {
    # the level hides every INFO line: the truth was completed from the command and from the server's endpoints
    "vllm-0.32.0-cpu-level-warning": {"model", "data_parallel_size"},
}


def read(name: str) -> CapacityReport:
    guard = Guard(source=name)
    guard.feed((RUNS / name / "server.log").read_bytes())
    guard.end()
    return guard.report


def found(report: CapacityReport) -> dict[str, Any]:
    """The report's figures under the names of the truth."""
    start = report.start
    assert start is not None
    weakest = start.capacity.weakest
    failure = start.failure
    return {
        "vllm_version": start.vllm_version,
        "engine_generation": start.generation,
        "model": start.model,
        "served_model_name": start.served_model_name,
        "max_model_len": start.max_model_len,
        "weights_gib": gib(weakest.weights_bytes),
        "kv_cache_gib": gib(weakest.kv_cache_bytes),
        "kv_cache_tokens": weakest.kv_cache_tokens,
        "gpu_blocks": weakest.gpu_blocks,
        "max_concurrency": weakest.max_concurrency,
        "tensor_parallel_size": start.tensor_parallel_size,
        "pipeline_parallel_size": start.pipeline_parallel_size,
        "data_parallel_size": start.data_parallel_size,
        "kv_cache_dtype": start.kv_cache_dtype,
        "started_ok": start.phase in (Phase.READY, Phase.STOPPED),
        "engines": start.capacity.engines_expected,
        "failure": failure
        and {
            "kind": failure.kind,
            "needed_gib": gib(failure.needed_bytes),
            "available_gib": gib(failure.available_bytes),
            "estimated_max_len": failure.estimated_max_model_len,
            "capacity_tokens": failure.kv_cache_tokens,
        },
    }


def gib(count: int | None) -> float | None:
    return None if count is None else round(count / GIB, 2)


@pytest.mark.parametrize("name", NAMES)
def test_every_run_gives_its_true_values(name: str) -> None:
    truth = json.loads((RUNS / name / "truth.json").read_text())
    if truth["failure"] is not None:
        keys = ("kind", "needed_gib", "available_gib", "estimated_max_len", "capacity_tokens")
        truth["failure"] = {key: truth["failure"].get(key) for key in keys}

    actual = found(read(name))

    told = [key for key in actual if key not in NOT_IN_THE_LOG.get(name, set())]
    assert {key: truth.get(key) for key in told} == {key: actual[key] for key in told}


@pytest.mark.parametrize("name", NAMES)
def test_every_run_counts_its_starts(name: str) -> None:
    truth = json.loads((RUNS / name / "truth.json").read_text())

    # the truth counts engines' banners: a start that ends before its engine is configured has none
    assert read(name).starts == max(truth["engine_starts"], 1)
