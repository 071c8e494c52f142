"""Several logs of one command line: nodes of one deployment, or what shows that they are not."""

from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.guard import judge
from kvguard.slo.settings import Settings, slo_of
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.startup.report import Capacity, Phase, Place, together

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
BF16, FP8 = LOGS / "story" / "16k-bf16-cache.log", LOGS / "story" / "16k-fp8-cache.log"
BASE = LOGS / "runs" / "vllm-0.32.0-cpu-base" / "server.log"
OFFLINE = LOGS / "runs" / "vllm-0.32.0-cpu-offline" / "server.log"
REFUSED = LOGS / "story" / "l4-default-context.log"


def verdict(*logs: Path, **objectives: float | int | str) -> Verdict:
    slo = slo_of(Settings(objectives))
    return judge([_read(log) for log in logs], slo)


def _read(log: Path) -> Guard:
    guard = Guard(source=log.parent.name)
    guard.feed(log.read_bytes())
    guard.end()
    return guard


def codes(found: Verdict) -> list[str]:
    return [warning.code for warning in found.warnings]


BOTH_WAYS = pytest.mark.parametrize("turn", [1, -1], ids=["as named", "the other way round"])


@BOTH_WAYS
def test_what_is_expected_holds_for_every_node(turn: int) -> None:
    found = verdict(*[FP8, BF16][::turn], expect_kv_cache_dtype="fp8")

    assert found.outcome is Outcome.FAIL
    assert found.checks[0].reason.startswith("kv_cache_dtype is auto, not the fp8 expected")


@BOTH_WAYS
def test_requests_of_different_lengths_are_not_added_up(turn: int) -> None:
    found = verdict(*[BASE, OFFLINE][::turn], min_total_concurrency=300)

    assert found.outcome is Outcome.UNKNOWN
    assert found.report.start is not None
    assert found.report.start.capacity.total_max_concurrency is None
    assert sorted(engine.max_concurrency or 0 for engine in found.report.start.engines) == [256, 512]


@BOTH_WAYS
def test_the_weakest_nodes_figure_stands_in_the_weakest_nodes_log(turn: int) -> None:
    start = verdict(*[BASE, OFFLINE][::turn]).report.start

    assert start is not None
    assert start.capacity.weakest.max_concurrency == 256
    place = start.lines["max_concurrency"]
    assert place == Place(BASE.parent.name, _line_of(BASE, "Maximum concurrency for 4,096 tokens"))
    assert "256.00x" in start.quotes[place]


def test_the_weakest_engines_figure_stands_in_its_own_line() -> None:
    start = verdict(LOGS / "shapes" / "dp2-tp2-interleaved.log").report.start

    assert start is not None
    weakest = start.capacity.weakest
    assert weakest.engine == "1"
    assert f"{weakest.kv_cache_tokens:,} tokens" in start.quotes[start.lines["kv_cache_tokens"]]


def test_logs_of_several_deployments_are_told_apart() -> None:
    found = verdict(BF16, FP8)

    told = next(warning for warning in found.warnings if warning.code == "nodes-differ")
    assert told.message == "the logs are not of one deployment: they differ in kv_cache_dtype auto, fp8"


def test_replicas_that_are_alike_are_added_up_and_raise_nothing() -> None:
    nodes = LOGS / "shapes" / "two-nodes.log", LOGS / "shapes" / "two-nodes.second.log"

    start = verdict(*nodes).report.start

    assert start is not None
    assert start.capacity.total_kv_cache_tokens == 927_520
    assert not {"nodes-differ", "log-without-start"} & {warning.code for warning in start.warnings}


def test_a_log_with_no_start_in_it_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other" / "messages"
    other.parent.mkdir()
    other.write_text("nothing of ours\n")

    found = verdict(BASE, other)

    assert [w.message for w in found.warnings if w.code == "log-without-start"] == ["other: nothing of a start in it"]


@BOTH_WAYS
def test_a_node_that_was_refused_tells_the_course(turn: int) -> None:
    found = verdict(*[BF16, REFUSED][::turn])

    assert found.outcome is Outcome.FAIL
    assert found.report.start is not None
    assert found.report.start.phase is Phase.FAILED
    assert found.report.start.failure is not None
    assert found.report.start.failure.kv_cache_tokens == 28_432


def _line_of(log: Path, words: str) -> int:
    return next(number for number, line in enumerate(log.read_text().splitlines(), 1) if words in line)


def test_an_empty_pool_is_told_and_counts() -> None:
    empty, whole = (
        Capacity("0", kv_cache_tokens=0, max_concurrency=0.0),
        Capacity("1", kv_cache_tokens=100, max_concurrency=2),
    )

    both = together((empty, whole), 2, addable=True)

    assert (both.engines, both.weakest.engine, both.total_kv_cache_tokens, both.total_max_concurrency) == (
        2,
        "0",
        100,
        2,
    )


def test_a_silent_engine_is_never_the_weakest_of_those_that_have_told() -> None:
    assert together((Capacity("0"), Capacity("1", gpu_blocks=7)), 2, addable=False).weakest.engine == "1"
    assert together((), 1, addable=True).total_kv_cache_tokens is None
