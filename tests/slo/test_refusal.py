"""Starts without room: a pool that no request of the context fits, and one that there is no memory for."""

import pytest

from kvguard.slo.objectives import Severity, Slo
from kvguard.slo.verdict import Outcome
from tests.slo.reports import judged, slo

LONGER_THAN_ITS_POOL = "pairs/b18-a-longer-context-shrinks-the-pool/new.log"
"""122,112 tokens for a context of 221,000, ready."""


@pytest.mark.parametrize(
    "asked, outcome, severity",
    [
        (Slo(), Outcome.FAIL, Severity.FAIL),
        (slo(min_kv_cache_tokens=100_000), Outcome.FAIL, Severity.FAIL),
        (slo(min_concurrency=0.5), Outcome.PASS, Severity.WARN),
        (Slo(severities={"context-exceeds-pool": Severity.WARN}), Outcome.PASS, Severity.WARN),
    ],
)
def test_a_context_that_never_fits_fails_unless_the_slo_says_otherwise(
    asked: Slo, outcome: Outcome, severity: Severity
) -> None:
    verdict = judged(LONGER_THAN_ITS_POOL, asked)
    assert verdict.outcome is outcome
    (found,) = [warning for warning in verdict.warnings if warning.code == "context-exceeds-pool"]
    assert (found.severity, found.place and found.place.line) == (severity, 7)
    assert found.message == "a request of 221,000 tokens never fits into the pool (0.55x) and would wait for ever"


def test_a_context_that_never_fits_ends_with_the_longest_that_does() -> None:
    first = judged(LONGER_THAN_ITS_POOL, Slo()).levers[0]
    assert (first.flag, first.value, first.enough) == ("--max-model-len", "122010", True)
    expected = judged(LONGER_THAN_ITS_POOL, slo(expect_max_model_len=221_000)).levers
    assert expected
    assert "--max-model-len" not in {lever.flag for lever in expected}


@pytest.mark.parametrize(
    "log, left, line", [("ascend-issue-9372", "-0.87 GiB", 7), ("wsl-negative-stripped", "-0.94 GiB", 3)]
)
def test_negative_memory_for_the_cache_fails_with_what_would_give_it_some(log: str, left: str, line: int) -> None:
    verdict = judged(f"public/{log}.log", slo(min_kv_cache=2**30))
    assert verdict.outcome is Outcome.FAIL
    (reason,) = [reason for reason in verdict.reasons if reason.code == "no-kv-cache-memory"]
    assert reason.message == f"{left} are left for the KV cache after weights and activations: no block fits"
    assert reason.place is not None
    assert reason.place.line == line
    assert (reason.remedy or "").startswith("raise --gpu-memory-utilization, lower --max-num-batched-tokens")
    flags = {lever.flag for lever in verdict.levers}
    assert {"--gpu-memory-utilization", "--quantization"} <= flags
    assert not flags & {"--max-model-len", "--kv-cache-dtype"}
    assert not any(lever.enough for lever in verdict.levers)  # some room, but how much a request needs no line tells


def test_a_figure_before_the_whole_capacity_decides_no_objective() -> None:
    verdict = judged("public/ascend-issue-9372.log", slo(min_kv_cache=2**30))
    (check,) = verdict.checks
    assert (check.outcome, check.observed, check.place) == (Outcome.UNKNOWN, None, None)


def test_negative_memory_is_still_unknown_where_it_is_not_to_fail() -> None:
    verdict = judged("public/ascend-issue-9372.log", Slo(severities={"no-kv-cache-memory": Severity.IGNORE}))
    assert verdict.outcome is Outcome.UNKNOWN
    assert [reason.code for reason in verdict.reasons] == ["no-kv-cache-memory"]


def test_a_refused_start_is_not_told_twice() -> None:
    verdict = judged("pairs/a04-no-memory-left-after-an-upgrade/new.log", Slo())
    assert [reason.code for reason in verdict.reasons] == ["start-failed"]
    assert "--max-model-len" not in {lever.flag for lever in verdict.levers}
