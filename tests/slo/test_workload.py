"""Workloads by the log alone: exact where it proves one kind of layer, both answers where it does not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kvguard.kvcache.models import named_config
from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Slo, Workload
from kvguard.slo.verdict import CheckKind, CheckResult, Outcome, Verdict
from kvguard.startup.report import Capacity, Runtime, Start, TokenFigure
from tests.slo.reports import ENGINE, deployment, judged, place, report, slo, start

RAG = Capacity(
    engine="0",
    kv_cache_tokens=40_960,
    max_model_len=32_768,
    max_concurrency=1.25,
    rounding={"max_concurrency": 0.005},
)
"""Three bare lines of the story: no version, so that the token figure may mean either."""
LOAD = Runtime(samples=1, peak_running=4, peak_waiting=16, peak_kv_cache_usage=0.981, place=place(3))


def rag(**changes: object) -> Start:
    bare = start(
        engines=(replace(RAG),),
        vllm_version=None,
        generation=None,
        max_model_len=None,
        kv_cache_dtype=None,
        runtime=LOAD,
    )
    return replace(bare, **changes)  # type: ignore[arg-type]


def asked(requests: float, prompt: int = 7_500, output: int = 1_000, **workload: object) -> Slo:
    return slo(concurrent_requests=requests, workload=Workload(prompt, output, **workload))  # type: ignore[arg-type]


def check(of: Start, asked_for: Slo) -> CheckResult:
    return evaluate(report(of), asked_for).checks[0]


def codes(verdict: Verdict) -> list[str]:
    return [warning.code for warning in verdict.warnings]


# --- the story: four run, sixteen wait --------------------------------------------------------------------------------


def test_without_knowing_the_layers_both_answers_are_shown_and_the_low_end_decides() -> None:
    result = check(rag(), asked(4))
    assert (result.outcome, result.kind) == (Outcome.FAIL, CheckKind.COMPUTED)
    assert (result.low, result.high) == (pytest.approx(1.25, abs=0.0001), pytest.approx(4.81, abs=0.01))
    assert "one kind of layer: 4.81; hybrid: at least 1.25" in result.reason
    assert "by its worse end" in result.reason
    assert "--model-config" in str(result.remedy)


def test_what_the_low_end_meets_passes() -> None:
    assert check(rag(), asked(1)).outcome is Outcome.PASS


def test_declared_uniform_layers_settle_it() -> None:
    result = check(rag(block_size=16), asked(4, uniform_layers=True))
    assert (result.outcome, result.observed) == (Outcome.PASS, pytest.approx(2_559 / 532))
    assert "(a request takes 532 of 2,559 usable blocks, in blocks of 16 tokens)" in result.reason


def test_an_unknown_block_size_leaves_a_narrow_interval() -> None:
    result = check(rag(), asked(4, uniform_layers=True))
    assert result.outcome is Outcome.PASS
    assert (result.low, result.high) == (pytest.approx(319 / 67), pytest.approx(2_559 / 532))
    assert result.observed == pytest.approx(2_559 / 532)
    assert "532 of 2,559 usable blocks, or 67 of 319 larger ones, in blocks of 16 to 128 tokens" in result.reason


def test_twenty_do_not_fit_either_way() -> None:
    assert check(rag(), asked(20)).outcome is Outcome.FAIL
    assert "below the 20 asked for" in check(rag(), asked(20)).reason


def test_an_fp8_cache_and_a_shared_prefix_are_counted_in_whole_blocks() -> None:
    fp8 = replace(RAG, kv_cache_tokens=81_920, max_concurrency=2.5)
    result = check(rag(engines=(fp8,), block_size=16), asked(11, shared_prefix_tokens=1_500, uniform_layers=True))
    assert (result.outcome, result.observed) == (Outcome.PASS, pytest.approx((5_120 - 1 - 93) / (532 - 93)))
    assert (
        "a request takes 439 of 5,119 usable blocks beside 93 that all share, in blocks of 16 tokens" in result.reason
    )


def test_a_prefix_is_not_shared_where_prefix_caching_is_off() -> None:
    off = rag(block_size=16, enable_prefix_caching=False)
    assert check(off, asked(4, shared_prefix_tokens=1_500, uniform_layers=True)).observed == pytest.approx(2_559 / 532)


def test_load_is_held_against_the_plan() -> None:
    verdict = evaluate(report(rag(block_size=16)), asked(4, uniform_layers=True))
    (warning,) = verdict.warnings
    assert (warning.code, warning.place) == ("load-matches-plan", place(3))
    assert warning.message == "4 running at 98.1 %, 16 waiting: the pool holds 4.8 of your 8,500-token requests"


# --- what proves one kind of layer ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine, changes",
    [
        (replace(RAG, token_figure=TokenFigure.POOL), {}),
        (replace(RAG, kv_cache_tokens=None, gpu_blocks=2_560), {"generation": "V0", "block_size": 16}),
        (
            replace(RAG, gpu_blocks=2_560, token_figure=TokenFigure.CONCURRENCY_TIMES_LEN),
            {"block_size": 16},
        ),
    ],
    ids=["pool figure agrees", "V0", "blocks agree"],
)
def test_a_log_that_proves_one_kind_is_exact(engine: Capacity, changes: dict[str, object]) -> None:
    result = check(rag(engines=(engine,), **changes), asked(4))
    assert result.outcome is Outcome.PASS
    assert result.high == pytest.approx(2_559 / 532)


def test_blocks_and_tokens_together_tell_the_block_size() -> None:
    # a real 0.13.0 run with overridden blocks: 12,800 tokens in 100 blocks
    engine = replace(RAG, kv_cache_tokens=12_800, gpu_blocks=100, max_model_len=2_048, max_concurrency=6.25)
    pool = replace(engine, token_figure=TokenFigure.POOL)
    result = check(rag(engines=(pool,), runtime=Runtime()), asked(10, 500, 100))
    assert (result.outcome, result.observed) == (Outcome.PASS, pytest.approx(99 / 5))


def test_a_token_figure_that_follows_from_concurrency_proves_nothing() -> None:
    engine = replace(RAG, token_figure=TokenFigure.CONCURRENCY_TIMES_LEN)
    assert check(rag(engines=(engine,), block_size=16), asked(4)).outcome is Outcome.FAIL


def test_figures_that_contradict_one_kind_prove_several() -> None:
    # vllm#40691: 290,864 tokens beside 33.04x at 32,768 (four groups, 0.19)
    engine = replace(RAG, kv_cache_tokens=290_864, max_concurrency=33.04, token_figure=TokenFigure.POOL)
    result = check(rag(engines=(engine,)), asked(34))
    assert (result.outcome, result.low) == (Outcome.FAIL, pytest.approx(33.04, abs=0.006))
    assert "several kinds of layers" in result.reason


def test_a_hybrid_of_long_contexts_holds_far_fewer_short_requests_than_division_says() -> None:
    # talos-argocd-proxmox#1995: 302,921 tokens, 2.31x at 131,072; 17.25 requests of 8,192 really fit
    engine = replace(
        RAG,
        kv_cache_tokens=302_921,
        max_concurrency=2.31,
        max_model_len=131_072,
        token_figure=TokenFigure.CONCURRENCY_TIMES_LEN,
    )
    result = check(rag(engines=(engine,), layers="hybrid", runtime=Runtime()), asked(20, 8_000, 192))
    assert result.low is not None
    assert result.low < 17.25
    assert result.high is None  # what each group reserves for tokens in flight is in no log
    assert "hybrid: at least 2.31, about 36.98 if all of a request grows with its length" in result.reason


GEMMA_8K, GEMMA_32K = "vllm-0.20.2-cpu-gemma3-hybrid", "vllm-0.32.0-cpu-gemma3-hybrid"
TINY_GEMMA = json.loads(Path("fixtures/models/tiny-gemma3.json").read_text())


def of_run(name: str, asked_for: Slo) -> Verdict:
    return judged(f"runs/{name}/server.log", asked_for)


def test_a_hybrid_has_no_higher_end_that_its_exact_count_could_pass() -> None:
    exact = of_run(GEMMA_8K, asked(106, 2_500, model_config=TINY_GEMMA)).checks[0]
    by_log = of_run(GEMMA_8K, asked(106, 2_500)).checks[0]
    assert exact.low == exact.high == pytest.approx(8_191 / 38)
    assert (by_log.low, by_log.high) == (pytest.approx(77.28, abs=0.01), None)
    assert (exact.outcome, by_log.outcome) == (Outcome.PASS, Outcome.FAIL)
    assert by_log.finding == (
        "at least 77.28 requests of 3,500 tokens fit without preemption, below the 106 asked for by its worse end"
    )
    assert by_log.settles == "give the model's config (--model-config)"


def test_more_that_ran_than_one_kind_of_layer_holds_were_not_surely_shorter() -> None:
    start_of = of_run(GEMMA_8K, Slo()).report.start
    assert start_of is not None
    load = Runtime(samples=3, peak_running=200, peak_waiting=0, peak_kv_cache_usage=0.5, place=place(60))
    verdict = evaluate(report(replace(start_of, runtime=load)), asked(50, 2_500))
    assert "load-differs-from-plan" not in codes(verdict)


def test_a_share_of_a_hybrid_s_pool_has_no_lower_end() -> None:
    check_of = of_run(GEMMA_8K, slo(max_request_share=0.01, workload=Workload(2_500, 1_000))).checks[0]
    assert (check_of.outcome, check_of.low) == (Outcome.FAIL, 0.0)
    assert check_of.finding == (
        "one request of 8,192 tokens takes at most 1.29 % of the pool, above the 1 % allowed by its worse end"
    )


@pytest.mark.parametrize(
    "run, why, line",
    [
        (GEMMA_8K, "633,102 tokens are no whole blocks of one kind of layer", 42),
        (GEMMA_32K, "900,790 tokens are no whole blocks of one kind of layer", 43),
    ],
)
def test_a_declaration_that_the_log_refutes_is_set_aside(run: str, why: str, line: int) -> None:
    declared = of_run(run, asked(4, 3_000, uniform_layers=True))
    (warning,) = [warning for warning in declared.warnings if warning.code == "layers-not-uniform"]
    assert warning.message == f"workload.layers: uniform is not used: {why}"
    assert warning.place is not None
    assert warning.place.line == line
    assert declared.checks[0].low == of_run(run, asked(4, 3_000)).checks[0].low
    with_config = of_run(run, asked(4, 3_000, uniform_layers=True, model_config=TINY_GEMMA))
    assert "layers-not-uniform" not in codes(with_config)


def test_a_line_that_tells_several_kinds_refutes_a_declaration_as_well() -> None:
    verdict = evaluate(report(rag(layers="hybrid", block_size=16)), asked(4, uniform_layers=True))
    assert "layers-not-uniform" in codes(verdict)
    assert verdict.checks[0].low == pytest.approx(1.245)  # "1.25x" as it is printed


# --- public figures ---------------------------------------------------------------------------------------------------


def test_a_batch_job_runs_what_whole_blocks_allow() -> None:
    # Tandemn-Labs/tandemn-system#11: 77,088 tokens, requests of about 1,070 tokens: 71, where division says 72
    engine = replace(
        RAG, kv_cache_tokens=77_088, max_model_len=32_768, max_concurrency=2.35, token_figure=TokenFigure.POOL
    )
    assert check(rag(engines=(engine,), block_size=16), asked(71, 1_000, 70)).outcome is Outcome.PASS
    assert check(rag(engines=(engine,), block_size=16), asked(72, 1_000, 70)).outcome is Outcome.FAIL


def test_large_blocks_are_counted_whole() -> None:
    # llm-d-planner: 1,444 blocks of 128; a request of 15,049 tokens holds 118 of them, 8.18 % of the usable ones
    engine = replace(
        RAG, kv_cache_tokens=184_832, max_model_len=16_000, max_concurrency=11.55, token_figure=TokenFigure.POOL
    )
    bounded = slo(max_request_share=0.0818, workload=Workload(0, 0, max_prompt_tokens=15_049))
    result = check(rag(engines=(engine,), block_size=128), bounded)
    assert (result.outcome, result.observed) == (Outcome.PASS, pytest.approx(118 / 1_443))


# --- caps, engines, shares --------------------------------------------------------------------------------------------


def test_max_num_seqs_caps_what_the_pool_would_hold() -> None:
    engine = replace(ENGINE, kv_cache_tokens=163_840, max_concurrency=10)
    result = check(start(engines=(engine,), block_size=16, max_num_seqs=8), asked(10))
    assert (result.outcome, result.observed) == (Outcome.FAIL, 8)
    assert "max_num_seqs runs 8 at once" in result.reason


def test_the_smallest_engine_bounds_what_all_serve_together() -> None:
    small = replace(ENGINE, engine="1", kv_cache_tokens=20_480, max_concurrency=1.25)
    both = start(engines=(small, ENGINE), capacity=deployment(small, ENGINE), block_size=16)
    result = check(both, asked(5))
    assert (result.outcome, result.observed) == (Outcome.FAIL, 4)  # 2 on each: a router that balances overloads one
    assert "2 engines, the smallest holds 2.4" in result.reason
    assert check(both, asked(4)).outcome is Outcome.PASS


def test_one_request_may_take_no_more_than_its_share() -> None:
    whole = check(start(block_size=16), slo(max_request_share=0.5, workload=Workload(7_500, 1_000)))
    assert (whole.outcome, whole.observed) == (Outcome.PASS, pytest.approx(1_024 / 2_559))
    bounded = slo(max_request_share=0.25, workload=Workload(0, 1_000, max_prompt_tokens=10_000))
    result = check(start(block_size=16), bounded)
    assert (result.outcome, result.observed) == (Outcome.FAIL, pytest.approx(688 / 2_559))
    assert result.reason.startswith("one request of 11,000 tokens takes 26.89 % of the pool, above the 25 % allowed")
    # what max_model_len refuses takes nothing
    beyond = slo(max_request_share=0.5, workload=Workload(7_500, 1_000, max_prompt_tokens=20_000))
    assert check(start(block_size=16), beyond).observed == whole.observed


def test_too_few_figures_leave_the_workload_unknown() -> None:
    silent = replace(RAG, kv_cache_tokens=None, max_concurrency=None)
    assert check(rag(engines=(silent,)), asked(4)).outcome is Outcome.UNKNOWN
    shares = slo(max_request_share=0.5, workload=Workload(7_500, 1_000))
    assert check(rag(engines=(replace(silent, max_model_len=None),)), shares).outcome is Outcome.UNKNOWN


# --- requests that can never run --------------------------------------------------------------------------------------


def test_a_request_longer_than_the_pool_is_a_failure_of_its_own() -> None:
    # overridden blocks before 0.20.1: the context is never checked against the pool
    engine = replace(ENGINE, kv_cache_tokens=8_192, max_concurrency=0.5)
    verdict = evaluate(report(start(engines=(engine,), block_size=16)), slo(workload=Workload(9_000, 1_000)))
    assert (verdict.outcome, codes(verdict)) == (Outcome.FAIL, ["context-exceeds-pool", "request-exceeds-pool"])
    assert "would wait for ever" in verdict.reasons[0].message


def test_a_request_that_can_never_run_ends_with_what_would_let_it() -> None:
    engine = replace(ENGINE, kv_cache_tokens=8_192, max_concurrency=0.5)
    verdict = evaluate(report(start(engines=(engine,), block_size=16)), slo(workload=Workload(9_000, 1_000)))
    assert (verdict.levers[0].spelt, verdict.levers[0].enough) == ("--kv-cache-dtype fp8", True)


def test_a_request_longer_than_the_context_is_refused() -> None:
    verdict = evaluate(report(), slo(workload=Workload(16_000, 1_000)))
    assert (verdict.outcome, codes(verdict)) == (Outcome.FAIL, ["request-exceeds-context"])


def test_of_requests_that_are_refused_none_is_served() -> None:
    verdict = evaluate(report(start(block_size=16)), asked(2, 16_000, 1_000))
    (result,) = verdict.checks
    assert (result.outcome, result.observed) == (Outcome.FAIL, 0)
    assert result.reason == "no request of 17,000 tokens is served, below the 2 asked for"
    assert [(lever.spelt, lever.figure, lever.enough) for lever in result.levers] == [
        ("--max-model-len 17000", "2.41", True),
        ("at most 16,384 tokens a request", "2.50", True),
    ]


# --- load against plan ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "load, code",
    [
        (Runtime(samples=9, peak_running=4, peak_waiting=16, peak_kv_cache_usage=0.98), ["load-matches-plan"]),
        (Runtime(samples=9, peak_running=2, peak_waiting=0, peak_kv_cache_usage=0.4), []),
        (Runtime(samples=9, peak_running=9, peak_waiting=0, peak_kv_cache_usage=0.7), ["load-differs-from-plan"]),
        (Runtime(samples=9, peak_running=2, peak_waiting=8, peak_kv_cache_usage=0.4), ["load-differs-from-plan"]),
    ],
)
def test_whether_the_plan_matched_is_told(load: Runtime, code: list[str]) -> None:
    assert codes(evaluate(report(start(runtime=load, block_size=16)), asked(4))) == code


def test_a_saturated_load_cuts_the_high_end() -> None:
    engine = replace(RAG, kv_cache_tokens=163_840, max_concurrency=5.0)
    narrowed = check(rag(engines=(engine,)), asked(20))
    open_end = check(rag(engines=(engine,), runtime=Runtime()), asked(20))
    assert open_end.high == pytest.approx(19.2, abs=0.1)
    assert narrowed.high == 5.0


@pytest.mark.parametrize("shared", [1_599, 1_600])
@pytest.mark.parametrize("by_config", [False, True])
def test_a_prompt_that_is_all_shared_has_its_last_token_computed_anew(shared: int, by_config: bool) -> None:
    """102 blocks a request of 1,620 tokens, 99 of them shared whole: the same by the log and by the model."""
    named = named_config("llama-3.1-8b")
    assert named is not None
    config = named.whole if by_config else None
    load = asked(100, 1_600, 20, shared_prefix_tokens=shared, model_config=config, uniform_layers=True)
    result = check(rag(block_size=16, vllm_version="0.20.0"), load)
    assert result.observed == pytest.approx((2_559 - 99) / 3, abs=0.01)


@pytest.mark.parametrize("version", ["0.0.0", "0.0.0.dev1", "999.999.999", "0.1.dev1+gabc1234", "dev", None])
def test_a_version_that_names_no_release_is_none_to_the_arithmetic_too(version: str | None) -> None:
    named = named_config("llama-3.1-8b")
    assert named is not None
    told = replace(RAG, token_figure=TokenFigure.POOL)
    result = check(rag(engines=(told,), block_size=16, vllm_version=version), asked(4, model_config=named.whole))
    assert (result.low, result.high) == (pytest.approx(2_559 / 532), pytest.approx(2_559 / 532))
    assert "by config.json" in result.reason


def test_blocks_of_one_engine_are_said_to_be_of_one() -> None:
    engine = replace(RAG, token_figure=TokenFigure.POOL)
    engines = (engine, replace(engine, engine="1"))
    both = rag(engines=engines, capacity=deployment(*engines), block_size=16)
    result = check(both, asked(8, uniform_layers=True))
    assert result.observed == 8
    assert "each engine: a request takes 532 of 2,559 usable blocks" in result.reason
