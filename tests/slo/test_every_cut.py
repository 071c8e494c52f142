"""A log cut anywhere is judged without a fault, and nothing passes before the capacity is there."""

import json
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Slo
from kvguard.slo.settings import Settings, slo_of
from kvguard.slo.verdict import Outcome
from kvguard.sources.documents import read_baseline
from kvguard.startup.report import Phase

LOGS = sorted(
    path
    for pattern in ("runs/*dp2", "runs/*gemma3-hybrid", "runs/*toolong", "runs/*restart", "runs/*override-load")
    for path in Path("fixtures/logs").glob(pattern + "/server.log")
)
CUTS = 25
EVERYTHING = {
    "min_concurrency": 2.5,
    "min_total_concurrency": 1.0,
    "min_kv_cache_tokens": 1_000,
    "min_kv_cache": 2**28,
    "max_weights": 2**34,
    "expect_max_model_len": 4_096,
    "expect_kv_cache_dtype": "auto",
    "expect_engines": 1,
    "require_ready": True,
    "ready_within": 600.0,
    "prompt_tokens": 500,
    "output_tokens": 100,
    "shared_prefix_tokens": 100,
    "max_prompt_tokens": 3_000,
    "concurrent_requests": 10.0,
    "max_request_share": 0.5,
    "max_waiting_requests": 10.0,
    "max_kv_cache_usage": 0.95,
    "max_preemptions": 0.0,
    "max_drop": 0.05,
}


@pytest.fixture(scope="module")
def slos() -> tuple[Slo, ...]:
    config = json.loads(Path("fixtures/models/tiny-llama.json").read_text())
    baseline = read_baseline("fixtures/logs/runs/vllm-0.13.0-cpu-base-load/server.log", Path())
    asked = Settings({**EVERYTHING, "baseline": "given"})
    return slo_of(asked, config, baseline), slo_of(asked, None, baseline), slo_of(Settings({"min_concurrency": 0.1}))


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.parent.name)
def test_a_log_cut_anywhere_is_judged(log: Path, slos: tuple[Slo, ...]) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    step = max(1, len(lines) // CUTS)
    guard = Guard(source=log.name)
    for index in range(0, len(lines), step):
        guard.feed(b"".join(lines[index : index + step]))
        start = guard.report.start
        too_early = start is None or start.phase in (Phase.NONE, Phase.LOADING, Phase.PROFILING)
        for slo in slos:
            verdict = evaluate(guard.report, slo)
            assert verdict.reasons
            assert all(check.reason for check in verdict.checks)
            assert not (too_early and verdict.outcome is Outcome.PASS)
