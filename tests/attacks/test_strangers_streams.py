"""What a stranger let run into one log: kvguard's own words, an old server's last ones, another year."""

from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.cli import main
from kvguard.cli.exit_status import MISSED, UNKNOWN
from kvguard.render.formats import RENDERERS
from kvguard.render.layout import Terminal
from kvguard.slo.verdict import Outcome, Verdict
from tests.attacks.strangers import RUNS, log_of, until_ready
from tests.serve.driven import slo

FIXTURES = RUNS.parent.parent
STORY = FIXTURES / "logs" / "story"
BASE = "vllm-0.32.0-cpu-base"
REFUSED = "vllm-0.32.0-cpu-toolong"
FAR = Terminal()


def judged(log: bytes, min_concurrency: float = 2.5) -> Verdict:
    guard = Guard(slo(min_concurrency=min_concurrency))
    guard.feed(log)
    guard.end()
    return guard.verdict


def told(log: bytes) -> tuple[object, ...]:
    verdict = judged(log)
    start = verdict.report.start
    assert start is not None
    return (
        verdict.outcome,
        verdict.report.starts,
        start.phase,
        start.model,
        start.capacity,
        start.failure,
        start.warnings,
    )


@pytest.mark.parametrize("form", sorted(set(RENDERERS) - {"json"}))
@pytest.mark.parametrize("log", ["l4-default-context", "16k-bf16-cache", "16k-fp8-cache"])
def test_kvguards_own_report_in_the_log_tells_nothing(form: str, log: str) -> None:
    """A pipeline's log holds the server's lines and what kvguard said of the one before."""
    said = RENDERERS[form](judged((STORY / f"{log}.log").read_bytes()), FAR).encode()
    lines = log_of(BASE).splitlines(keepends=True)
    alone = told(log_of(BASE))

    for mixed in (
        said + b"\n" + log_of(BASE),
        b"".join([*lines[:30], said, b"\n", *lines[30:]]),
        b"".join([*lines[:60], said, b"\n", *lines[60:]]),
        log_of(BASE) + said,
    ):
        assert told(mixed)[0:1] + told(mixed)[3:5] == alone[0:1] + alone[3:5]
        assert judged(mixed).report.starts == 1


@pytest.mark.parametrize(
    "page", ["README.md", "docs/reading-logs.md", "docs/formats.md", "docs/check.md", "CHANGELOG.md"]
)
def test_the_documentation_is_no_log(page: str) -> None:
    text = (FIXTURES.parent / page).read_bytes()

    assert judged(text).outcome is Outcome.UNKNOWN
    assert judged(log_of(BASE) + text).outcome is Outcome.PASS


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("fresh", [REFUSED, "vllm-0.32.0-cpu-gemma3-hybrid", "vllm-0.32.0-cpu-fp8kv"])
def test_an_old_servers_last_words_between_the_new_ones_first_ones_are_its_own(fresh: str, every: int) -> None:
    up = until_ready(BASE)
    down = log_of(BASE)[len(up) :].splitlines(keepends=True)
    start = (log_of(fresh) if fresh == REFUSED else until_ready(fresh)).splitlines(keepends=True)
    mixed = [up]
    while down or start:
        mixed += [*start[:every], *down[:1]]
        del start[:every], down[:1]

    verdict, alone = judged(b"".join(mixed)), judged(log_of(fresh))

    assert verdict.report.start is not None
    assert alone.report.start is not None
    assert (verdict.outcome, verdict.report.starts) == (alone.outcome, 2)
    assert verdict.report.start.capacity.weakest.max_concurrency == alone.report.start.capacity.weakest.max_concurrency
    assert verdict.report.start.model == alone.report.start.model


def stamped(*stamps: str) -> bytes:
    """The story's passing start with other stamps: of its banner, its loading and its end."""
    lines = (STORY / "16k-fp8-cache.log").read_text(encoding="utf-8").splitlines()
    parts = (lines[:5], lines[5:9], lines[9:])
    return "".join(
        f"INFO {stamp}{line[19:]}\n" if line.startswith("INFO 0") else f"{line}\n"
        for part, stamp in zip(parts, stamps, strict=True)
        for line in part
    ).encode()


def test_a_start_over_new_year_takes_its_seconds() -> None:
    start = judged(stamped("12-31 23:59:30", "12-31 23:59:58", "01-01 00:00:40")).report.start

    assert start is not None
    assert start.timings.ready == 70


def test_stamps_that_are_no_times_leave_the_time_unknown(tmp_path: Path) -> None:
    (tmp_path / "vllm.log").write_bytes(stamped("99-99 99:99:99", "99-99 99:99:99", "13-32 25:61:61"))

    assert main(["check", str(tmp_path / "vllm.log"), "--ready-within", "2m", "-q"]) == UNKNOWN


def test_a_start_that_waits_for_minutes_behind_its_capacity_is_late(tmp_path: Path) -> None:
    """Only lines that tell nothing say how late it is: a process has been waiting for shared memory since."""
    wait = (
        "(EngineCore_DP0 pid=1200) INFO 10-06 13:0{}:07 [shm_broadcast.py:466] No available shared memory broadcast "
        "block found in 60 seconds. This typically happens when some processes are hanging or doing some "
        "time-consuming work (e.g. compilation).\n"
    )
    (tmp_path / "vllm.log").write_text(
        "(APIServer pid=1) INFO 10-06 12:59:01 [api_server.py:1896] vLLM API server version 0.10.2\n"
        "(EngineCore_DP0 pid=1200) INFO 10-06 13:00:07 [kv_cache_utils.py:864] GPU KV cache size: 98,304 tokens\n"
        "(EngineCore_DP0 pid=1200) INFO 10-06 13:00:07 [kv_cache_utils.py:868] Maximum concurrency for 32,768 tokens "
        "per request: 3.00x\n" + "".join(wait.format(minute) for minute in range(1, 6))
    )

    assert main(["check", str(tmp_path / "vllm.log"), "--ready-within", "2m", "-q"]) == MISSED


def test_of_two_lines_of_the_smallest_rank_the_second_is_waited_for() -> None:
    """A log that ends between a rank's tokens and its concurrency once passed with the other ranks' figure."""
    lines = (FIXTURES / "logs" / "shapes" / "pp2-unequal-stages.log").read_bytes().splitlines(keepends=True)

    assert judged(b"".join(lines[:-1])).outcome is Outcome.UNKNOWN
    assert judged(b"".join(lines)).outcome is Outcome.FAIL
