"""A start that ended anywhere, and the same container's next one behind it, an hour later and under the same pids."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.slo.verdict import Outcome
from tests.attacks.strangers import RUNS

LOGS = RUNS.parent
ANNOUNCED = re.compile(rb"Initializing (?:an? )?(?:V[01] )?LLM engine|API server version")
NAMES = (
    *(f"runs/vllm-{run}/server" for run in ("0.8.5.post2-cpu-base-load", "0.10.2.post2-cpu-tp2", "0.13.0-cpu-dp2")),
    *(
        f"runs/vllm-{run}/server"
        for run in ("0.32.0-cpu-base", "0.32.0-cpu-dp2", "0.32.0-cpu-json", "0.32.0-cpu-toolong")
    ),
    *(f"story/{name}" for name in ("16k-bf16-cache", "16k-fp8-cache")),
    *sorted(f"shapes/{file.stem}" for file in (LOGS / "shapes").glob("*.log")),
)


def an_hour_later(log: bytes) -> bytes:
    return re.sub(
        rb"(\d\d-\d\d) (\d\d)(:\d\d:\d\d)", lambda s: b"%s %02d%s" % (s[1], min(23, int(s[2]) + 1), s[3]), log
    )


def told(log: bytes) -> tuple[object, ...]:
    """What is told of the newest start, its place in the log aside."""
    guard = Guard()
    guard.feed(log)
    guard.end()
    start = guard.report.start
    assert start is not None
    capacity = start.capacity
    return (
        guard.verdict.outcome,
        start.phase,
        start.model,
        start.max_model_len,
        capacity.weakest.max_concurrency,
        capacity.weakest.kv_cache_tokens,
        capacity.weakest.kv_cache_bytes,
        capacity.total_max_concurrency,
        len(start.engines),
    )


def announced(names: tuple[str, ...]) -> Iterator[str]:
    """The logs in whose first lines a process announces itself: without, nothing says where a start begins."""
    for name in names:
        if ANNOUNCED.search(b"".join((LOGS / f"{name}.log").read_bytes().splitlines(keepends=True)[:40])):
            yield name


@pytest.mark.parametrize("name", list(announced(NAMES)))
def test_a_start_behind_one_that_ended_anywhere_is_told_as_if_it_stood_alone(name: str) -> None:
    log = Path(LOGS / f"{name}.log").read_bytes().rstrip(b"\n") + b"\n"
    lines = log.splitlines(keepends=True)
    alone = told(log)

    for cut in sorted({max(2, len(lines) * eighth // 8) for eighth in range(1, 9)}):
        assert told(b"".join(lines[:cut]) + an_hour_later(log)) == alone, cut


def test_the_old_start_does_not_pass_for_a_new_one_that_is_still_loading() -> None:
    log = (LOGS / "runs" / "vllm-0.32.0-cpu-base" / "server.log").read_bytes()
    lines = an_hour_later(log).splitlines(keepends=True)

    assert told(log + b"".join(lines[:30]))[0] is Outcome.UNKNOWN
