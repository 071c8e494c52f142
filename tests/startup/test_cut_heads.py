"""The end of a container's log (`--tail`): the first start has lost its head, and the next one has the same pids."""

import re
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import FailureKind, Phase
from tests.slo.reports import slo
from tests.startup.lines import BOOT, READY, SIZED, STATS, log, read

RUNS = Path(__file__).parents[2] / "fixtures" / "logs" / "runs"
TAIL = log(SIZED, READY, STATS)
AGAIN = {"hour": 12, "concurrency": "26.85"}
HEAD = BOOT.splitlines(keepends=True)


def judged(text: str) -> tuple[Outcome, int, Phase]:
    guard = Guard(slo(min_concurrency=40))
    guard.feed(text.encode())
    assert guard.report.start is not None
    return guard.verdict.outcome, guard.report.starts, guard.report.start.phase


@pytest.mark.parametrize("shown", [1, 2, 3], ids=["version", "arguments", "banner"])
@pytest.mark.parametrize("first", [TAIL, log(SIZED), log(READY, STATS)], ids=["serving", "allocated", "ready alone"])
def test_a_container_that_starts_again_is_not_yesterdays_pass(first: str, shown: int) -> None:
    assert judged(first + log("".join(HEAD[:shown]), **AGAIN)) == (Outcome.UNKNOWN, 2, Phase.LOADING)


def test_its_whole_restart_is_told_with_its_head() -> None:
    start = read(TAIL + log(BOOT, SIZED, READY, **AGAIN)).start

    assert start is not None
    assert (start.vllm_version, start.model, start.max_model_len) == ("0.12.0", "acme/Quill-8B", 8192)
    assert start.capacity.weakest.max_concurrency == 26.85


def test_a_head_that_stands_behind_its_start_by_its_stamps_is_that_starts() -> None:
    assert judged(log(SIZED) + log(HEAD[1])) == (Outcome.PASS, 1, Phase.ALLOCATED)


def test_a_restart_in_a_log_that_shows_tags_alone_is_seen() -> None:
    """RL frameworks print records without level and time."""
    text = (RUNS / "vllm-0.32.0-cpu-concat-ok-then-fail" / "server.log").read_text(encoding="utf-8")
    report = read(re.sub(r"(?m)(INFO|WARNING|ERROR) \d\d-\d\d [\d:]{8} ", "", text))

    assert report.start is not None
    assert report.start.failure is not None
    assert (report.starts, report.start.failure.kind) == (2, FailureKind.KV_CACHE_TOO_SMALL)
