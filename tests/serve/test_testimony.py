"""The second witness: real logs and endpoints agree; what differs is told; what the log lost is stood in for."""

import json
from dataclasses import replace

import pytest

from kvguard.guard import Guard
from kvguard.serve.testimony import amended
from kvguard.slo.objectives import Severity, Slo
from kvguard.slo.verdict import Outcome
from kvguard.sources.vllm.answers import CacheInfo, ServedModel, VllmAnswer
from kvguard.sources.vllm.exposition import parse_metrics
from kvguard.startup.report import CapacityReport, Phase
from tests.serve.driven import LOADING, READY, RUNS, Driven, slo
from tests.serve.test_let_through import STATS

URL = "http://127.0.0.1:8000"
WITH_METRICS = sorted(path.parent.name for path in RUNS.glob("*/metrics.txt"))
READY_MARK = b"Application startup complete"


def answer_of(run: str, asked_at: float = 100.0) -> VllmAnswer:
    folder = RUNS / run
    cache, loads = parse_metrics((folder / "metrics.txt").read_bytes())
    models = json.loads((folder / "models.json").read_text())["data"]
    return VllmAnswer(
        asked_at=asked_at,
        healthy=True,
        version=json.loads((folder / "version.json").read_text())["version"],
        models=tuple(ServedModel(one["id"], one.get("max_model_len"), False) for one in models),
        cache=cache,
        loads=loads,
    )


def serving(run: str) -> CapacityReport:
    """The log up to its ready line."""
    log = (RUNS / run / "server.log").read_bytes()
    end = log.index(b"\n", log.rindex(READY_MARK)) if READY_MARK in log else len(log)
    guard = Guard(source="vllm.log")
    guard.feed(log[: end + 1], 50.0)
    return guard.report


def codes(report: CapacityReport) -> list[str]:
    return [warning.code for warning in report.start.warnings] if report.start else []


@pytest.mark.parametrize("run", WITH_METRICS)
def test_a_real_server_and_its_log_do_not_disagree(run: str) -> None:
    report = amended(serving(run), answer_of(run), URL)

    assert "log-and-metrics-disagree" not in codes(report)


def test_a_server_that_says_less_is_told_and_the_log_is_judged() -> None:
    report, answer = serving("vllm-0.32.0-cpu-base"), answer_of("vllm-0.32.0-cpu-base")
    assert answer.cache is not None

    heard = amended(report, replace(answer, cache=replace(answer.cache, kv_cache_tokens=123_433)), URL)

    assert heard.start is not None
    assert heard.start.warnings[-1].message == (
        "KV cache size: the log says 1,048,576 tokens, http://127.0.0.1:8000/metrics 123,433"
    )
    assert heard.start.capacity.weakest.kv_cache_tokens == 1_048_576


def test_another_release_may_be_another_server() -> None:
    heard = amended(serving("vllm-0.32.0-cpu-base"), replace(answer_of("vllm-0.32.0-cpu-base"), version="0.31.0"), URL)

    assert codes(heard)[-1] == "log-and-metrics-disagree"


def test_a_log_that_lost_its_start_is_stood_in_for() -> None:
    heard = amended(CapacityReport(sources=("vllm.log",)), answer_of("vllm-0.32.0-cpu-base"), URL)

    assert heard.start is not None
    weakest = heard.start.capacity.weakest
    assert (weakest.kv_cache_tokens, weakest.max_concurrency, weakest.max_model_len) == (1_048_576, 256.0, 4096)
    assert (heard.start.phase, heard.sources) == (Phase.READY, ("vllm.log", URL))
    assert codes(heard) == ["capacity-from-metrics"]


def test_a_log_whose_level_hides_the_capacity_is_stood_in_for() -> None:
    run = "vllm-0.32.0-cpu-level-warning"

    heard = amended(serving(run), answer_of(run), URL)

    assert heard.start is not None
    assert heard.start.capacity.weakest.max_concurrency is not None
    assert "capacity-from-metrics" in codes(heard)


def test_of_two_engines_only_what_is_one_engines_is_taken() -> None:
    heard = amended(CapacityReport(), answer_of("vllm-0.32.0-cpu-dp2"), URL)

    assert heard.start is not None
    capacity = heard.start.capacity
    assert (capacity.engines, capacity.weakest.kv_cache_tokens, capacity.weakest.gpu_blocks) == (2, 1_048_576, None)
    assert capacity.total_kv_cache_tokens is None


@pytest.mark.parametrize("tokens, settled", [(1_048_576, True), (1_048_575, False)])
def test_an_engine_that_the_log_left_silent_is_there_where_none_holds_less(tokens: int, settled: bool) -> None:
    log = (RUNS / "vllm-0.32.0-cpu-dp2/server.log").read_bytes()
    lines = log[: log.rindex(READY_MARK)].splitlines(keepends=True)
    guard = Guard(source="vllm.log")
    guard.feed(b"".join(line for line in lines if not (b"_DP1" in line and b"KV cache" in line)), 50.0)
    answer = answer_of("vllm-0.32.0-cpu-dp2")
    assert answer.cache is not None
    heard = amended(guard.report, replace(answer, cache=replace(answer.cache, kv_cache_tokens=tokens)), URL)

    assert "engines-missing" in codes(guard.report)
    assert ("engines-missing" not in codes(heard)) is settled


def test_an_answer_from_before_the_start_is_another_servers() -> None:
    guard = Guard(source="vllm.log")
    guard.feed(LOADING, 200.0)

    assert amended(guard.report, answer_of("vllm-0.32.0-cpu-base", asked_at=150.0), URL) is guard.report


@pytest.mark.parametrize("answer", [VllmAnswer(100.0, healthy=False), VllmAnswer(100.0, cache=CacheInfo(()))])
def test_a_server_that_says_nothing_changes_nothing(answer: VllmAnswer) -> None:
    for report in (serving("vllm-0.32.0-cpu-base"), CapacityReport()):
        assert amended(report, answer, URL) is report


def test_a_failed_start_is_not_talked_away() -> None:
    guard = Guard()
    guard.feed((RUNS / "vllm-0.32.0-cpu-toolong/server.log").read_bytes(), 50.0)

    assert amended(guard.report, answer_of("vllm-0.32.0-cpu-base"), URL) is guard.report


class Heard:
    """Whoever asks vLLM, told by the test what it answers."""

    name = URL

    def __init__(self) -> None:
        self.answer: VllmAnswer | None = None


def test_the_sidecar_judges_what_vllm_says_where_its_log_is_silent() -> None:
    driven = Driven(slo(min_concurrency=300), witness=(heard := Heard()))
    silent = driven.turn().snapshot.verdict.outcome

    heard.answer = answer_of("vllm-0.32.0-cpu-base", asked_at=driven.now)
    told = driven.turn().snapshot.verdict.outcome

    assert (silent, told) == (Outcome.UNKNOWN, Outcome.FAIL)
    assert driven.get("/readyz?verbose").text.startswith("[?]source unknown: ")
    assert "[+]vllm-endpoint ok: answers, version 0.32.0\n" in driven.get("/readyz?verbose").text


def test_a_disagreement_can_be_made_to_fail() -> None:
    asked = replace(Slo(), severities={"log-and-metrics-disagree": Severity.FAIL})
    driven = Driven(asked, witness=(heard := Heard())).read(READY)
    before = driven.snapshot.verdict.outcome

    heard.answer = replace(answer_of("vllm-0.32.0-cpu-base", asked_at=driven.now + 1), version="0.31.0")
    driven.turn()

    assert (before, driven.snapshot.verdict.outcome) == (Outcome.PASS, Outcome.FAIL)


def test_a_server_that_goes_silent_leaves_a_log_that_lost_its_start_unknown_again() -> None:
    driven = Driven(witness=(heard := Heard()))
    heard.answer = answer_of("vllm-0.32.0-cpu-base", asked_at=driven.now)
    told = driven.turn().snapshot.verdict.outcome

    heard.answer = VllmAnswer(driven.now + 10, healthy=False, problems=("/health: no answer (refused)",))
    driven.turn()

    assert (told, driven.snapshot.verdict.outcome) == (Outcome.PASS, Outcome.UNKNOWN)


SLOW = VllmAnswer(110.0, problems=("/metrics: no answer (timed out)",))
GONE = VllmAnswer(110.0, gone=True, problems=("/health: no answer (Connection refused)",))


def stood_in() -> tuple[Driven, Heard]:
    """A sidecar whose log tells nothing, and whose server has been let through by what it says itself."""
    driven = Driven(slo(min_concurrency=2), witness=(heard := Heard()))
    heard.answer = answer_of("vllm-0.32.0-cpu-base", asked_at=driven.now)
    assert driven.turn().snapshot.gate.open
    return driven, heard


def test_a_server_that_is_too_busy_to_answer_stays_in_service() -> None:
    driven, heard = stood_in()

    heard.answer = SLOW
    driven.turn(after=10.0)

    assert (driven.snapshot.verdict.outcome, driven.snapshot.gate.open) == (Outcome.UNKNOWN, True)
    driven.read(STATS)
    assert (driven.snapshot.verdict.outcome, driven.snapshot.gate.open) == (Outcome.UNKNOWN, True)


@pytest.mark.parametrize("concurrency, is_open", [(1.0, False), (3.0, True)])
def test_a_server_that_was_gone_is_judged_anew(concurrency: float, is_open: bool) -> None:
    driven, heard = stood_in()

    heard.answer = GONE
    assert not driven.turn(after=10.0).snapshot.gate.open
    again = answer_of("vllm-0.32.0-cpu-base", asked_at=driven.now + 60)
    assert again.cache is not None
    heard.answer = replace(again, cache=replace(again.cache, kv_cache_tokens=4096, max_concurrency=concurrency))

    assert driven.turn(after=60.0).snapshot.gate.open is is_open


def test_a_start_in_the_log_is_not_the_one_that_stood_in() -> None:
    driven, heard = stood_in()

    heard.answer = SLOW
    driven.turn(after=10.0).read(LOADING)

    assert not driven.snapshot.gate.open
