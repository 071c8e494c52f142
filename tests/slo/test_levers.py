"""What to change: each missed objective and refused start ends with changes that a search has computed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.kvcache.models import named_config
from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Slo, Workload
from kvguard.slo.verdict import CheckResult, Lever, Outcome, Verdict
from kvguard.startup.report import Failure, FailureKind, Memory, Phase, Start
from kvguard.units import GIB
from tests.slo.reports import ENGINE, judged, place, report, slo, start, without_capacity

LLAMA = json.loads(Path("fixtures/models/llama-3.1-8b.json").read_text())


def spelt(levers: tuple[Lever, ...]) -> list[str]:
    return [lever.spelt for lever in levers]


def the_check(verdict: Verdict) -> CheckResult:
    return verdict.checks[0]


# --- the story --------------------------------------------------------------------------------------------------------

TWENTY = slo(concurrent_requests=20, workload=Workload(7_500, 1_000, model_config=LLAMA))


def with_block_size(verdict: Verdict, asked: Slo, size: int = 16) -> CheckResult:
    """The check, had the log told its block size."""
    assert verdict.report.start is not None
    told = replace(verdict.report, start=replace(verdict.report.start, block_size=size))
    return the_check(evaluate(told, asked))


def test_the_way_to_twenty_takes_two_changes_or_more_cards() -> None:
    check = with_block_size(judged("story/rag-24gb.log", TWENTY), TWENTY)
    assert str(check.remedy).startswith("no single change meets it at this price, these two do: --kv-cache-dtype fp8 +")
    found = {lever.spelt: lever for lever in check.levers}
    assert found["--kv-cache-dtype fp8 + --quantization awq"].enough
    assert found["--tensor-parallel-size 2"].enough
    assert found["--data-parallel-size 5"].gives == "20 requests of 8,500 tokens"
    assert found["--quantization awq"].gives == "13.29 to 14.47 requests of 8,500 tokens"
    assert found["--kv-cache-dtype fp8"].gives == "9.62 requests of 8,500 tokens"


def test_a_lever_spans_every_block_size_that_the_check_spans() -> None:
    check = the_check(judged("story/rag-24gb.log", TWENTY))
    fp8 = next(lever for lever in check.levers if lever.spelt == "--kv-cache-dtype fp8")
    assert (check.low, check.high) == (pytest.approx(319 / 67), pytest.approx(2_559 / 532))
    assert (fp8.low, fp8.high) == (pytest.approx(639 / 67), pytest.approx(5_119 / 532))


@pytest.mark.parametrize("load", [Workload(7_500, 1_000, model_config=LLAMA), Workload(7_500, 1_000, 1_500)])
@pytest.mark.parametrize("asked", [5, 9, 10, 11, 20])
def test_a_change_that_is_enough_is_enough_for_the_check_of_the_changed_server(load: Workload, asked: int) -> None:
    wanted = slo(concurrent_requests=asked, workload=replace(load, uniform_layers=True))
    before = the_check(judged("story/rag-24gb.log", wanted))
    told = Path("fixtures/logs/story/rag-24gb.log").read_text().replace("40,960", "81,920").replace("1.25x", "2.50x")
    guard = Guard(wanted)
    guard.feed(told.encode())
    guard.end()
    after = the_check(guard.verdict)
    fp8 = [lever for lever in before.levers if lever.spelt == "--kv-cache-dtype fp8"]
    assert [lever.enough for lever in fp8] == [after.outcome is Outcome.PASS] * len(fp8)
    assert [(lever.low, lever.high) for lever in fp8] == [pytest.approx((after.low, after.high))] * len(fp8)


def test_a_change_that_may_be_enough_is_not_called_either() -> None:
    open_layers = the_check(judged("story/rag-24gb.log", slo(concurrent_requests=9, workload=Workload(7_500, 1_000))))
    fp8 = next(lever for lever in open_layers.levers if lever.spelt == "--kv-cache-dtype fp8")
    assert (fp8.enough, fp8.figure) == (None, "1.25 to 9.62")


def test_a_shorter_context_is_said_not_to_enlarge_the_pool() -> None:
    last = the_check(judged("story/rag-24gb.log", TWENTY)).levers[-1]
    assert (last.spelt, last.enough) == ("--max-model-len 8500", False)
    assert last.gives == "nothing: no more requests fit, only the printed concurrency rises"
    assert last.price == "the pool is not enlarged"


@pytest.mark.parametrize(
    "beside, left_out, first",
    [
        ({}, set(), "--kv-cache-dtype fp8"),
        ({"expect_max_model_len": 16_384}, {"--max-model-len"}, "--kv-cache-dtype fp8"),
        ({"expect_max_model_len": 1_048_576}, {"--max-model-len"}, "--kv-cache-dtype fp8"),
        ({"expect_kv_cache_dtype": "auto"}, {"--kv-cache-dtype"}, "--max-model-len 11795"),
        ({"expect_kv_cache_dtype": "fp8_e4m3"}, set(), "--kv-cache-dtype fp8"),
        ({"workload": Workload(15_000, 1_000)}, {"--max-model-len"}, "--kv-cache-dtype fp8"),
        ({"workload": Workload(11_000, 700)}, set(), "--kv-cache-dtype fp8"),
    ],
)
def test_no_lever_breaks_what_the_slo_asks_beside(beside: dict[str, object], left_out: set[str], first: str) -> None:
    check = the_check(judged("story/16k-bf16-cache.log", slo(min_concurrency=2.5, **beside)))
    flags = {flag for lever in check.levers for flag in lever.flags}
    assert {"--max-model-len", "--kv-cache-dtype"} - flags == left_out
    assert next(lever.spelt for lever in check.levers if lever.enough) == first


def test_another_engine_breaks_the_number_that_is_expected() -> None:
    load = Workload(7_500, 1_000, uniform_layers=True)
    open_to_it = the_check(judged("story/16k-fp8-cache.log", slo(concurrent_requests=12, workload=load)))
    assert "--data-parallel-size" in {lever.flag for lever in open_to_it.levers}
    one = judged("story/16k-fp8-cache.log", slo(concurrent_requests=12, workload=load, expect_engines=1))
    fixed = next(check for check in one.checks if check.objective == "concurrent_requests")
    assert "--data-parallel-size" not in {flag for lever in fixed.levers for flag in lever.flags}


def test_a_longer_context_is_no_way_out_where_another_is_expected() -> None:
    load = Workload(16_000, 1_000, uniform_layers=True)
    asked = slo(concurrent_requests=1, workload=load, expect_max_model_len=16_384)
    check = the_check(judged("story/16k-fp8-cache.log", asked))
    assert (check.objective, check.outcome) == ("concurrent_requests", Outcome.FAIL)
    assert spelt(check.levers) == ["at most 16,384 tokens a request"]


def test_a_refused_context_that_is_expected_needs_more_memory() -> None:
    verdict = judged("story/l4-default-context.log", slo(expect_max_model_len=131_072))
    needs = "give the KV cache more memory: the SLO expects a context of 131,072 tokens"
    assert verdict.reasons[0].remedy == needs
    assert "--max-model-len" not in {lever.flag for lever in verdict.levers}


def test_what_the_log_is_silent_on_is_assumed_aloud() -> None:
    levers = the_check(judged("story/rag-24gb.log", TWENTY)).levers
    fp8 = next(lever for lever in levers if lever.spelt == "--kv-cache-dtype fp8")
    assert fp8.assumes == ("the cache",)
    assert "if 16-bit now, which the log does not say: the cache" in fp8.whole_price


@pytest.mark.parametrize(
    ("own", "proposed"),
    [(8_192, []), (9_500, ["--max-model-len 9500"]), (131_072, ["--max-model-len 9500"])],
)
def test_no_context_beyond_the_model_s_own_is_proposed(own: int, proposed: list[str]) -> None:
    log = "runs/vllm-0.20.2-cpu-base-load/server.log"  # 4,096 of the model's 8,192
    config = json.loads(Path("fixtures/models/tiny-llama.json").read_text()) | {"max_position_embeddings": own}
    check = the_check(judged(log, slo(concurrent_requests=4, workload=Workload(8_500, 1_000, model_config=config))))
    assert spelt(check.levers) == [*proposed, "at most 4,096 tokens a request"]
    assert not [lever for lever in check.levers if "not known" in lever.price]


def test_a_longer_context_says_that_the_model_s_own_is_not_known() -> None:
    log = "runs/vllm-0.20.2-cpu-base-load/server.log"
    check = the_check(judged(log, slo(concurrent_requests=4, workload=Workload(8_500, 1_000))))
    assert check.levers[0].spelt == "--max-model-len 9500"
    assert check.levers[0].price.endswith("beyond the model's own length, which is not known here")


def test_a_change_says_which_other_objective_it_leaves_missed() -> None:
    both = slo(min_concurrency=2.5, concurrent_requests=10, workload=Workload(7_500, 1_000, model_config=LLAMA))
    concurrency, load = judged("story/16k-bf16-cache.log", both).checks
    prices = {lever.spelt: lever.price for lever in concurrency.levers if lever.enough}
    assert prices["--kv-cache-dtype fp8"] == "a little accuracy; concurrent_requests stays missed"
    assert prices["--max-model-len 11795"].endswith("concurrent_requests stays missed")
    assert prices["--quantization awq"] == "another checkpoint, a little quality"  # 12.25 requests of 8,500 as well
    shorter = next(lever for lever in load.levers if lever.flag == "tokens a request")
    assert shorter.price == "shorter prompts or answers; min_concurrency stays missed"
    alone = the_check(judged("story/16k-bf16-cache.log", slo(min_concurrency=2.5)))
    assert not [lever for lever in alone.levers if "stays missed" in lever.price]


def test_a_scheduler_s_cap_is_the_cheapest_to_raise() -> None:
    six = slo(concurrent_requests=6, workload=Workload(3_000, 1_000, uniform_layers=True))
    capped = judged("story/rag-24gb.log", six).report
    assert capped.start is not None
    check = the_check(evaluate(replace(capped, start=replace(capped.start, max_num_seqs=4)), six))
    assert check.remedy == "--max-num-seqs 6 meets it: 6 requests of 4,000 tokens"


@pytest.mark.parametrize(
    ("asked", "lengths"),
    [
        (2.5, "28432 or less to start, 11372 or less to hold 2.50 requests"),
        (1, "28432 or less"),
        (None, "28432 or less"),
    ],
)
def test_the_remedy_of_a_refused_context_holds_the_requests_asked_for(asked: float | None, lengths: str) -> None:
    wanted = Slo() if asked is None else slo(min_concurrency=asked)
    remedy = judged("story/l4-default-context.log", wanted).reasons[0].remedy
    assert remedy == f"set --max-model-len {lengths}, or give the KV cache more memory"


def test_a_refused_context_ends_with_what_would_let_it_start() -> None:
    verdict = judged("story/l4-default-context.log", Slo())
    found = {lever.flag: lever for lever in verdict.levers}
    assert (found["--max-model-len"].value, found["--max-model-len"].enough) == ("28432", True)
    assert found["--kv-cache-dtype"].gives == "0.43 requests of 131,072 tokens"  # twice the tokens, still not 131,072
    assert {"--quantization", "--gpu-memory-utilization", "--tensor-parallel-size"} <= set(found)


def test_a_refusal_s_own_tokens_count_not_the_digits_of_its_concurrency() -> None:
    verdict = judged("runs/vllm-0.8.5.post2-cpu-toolong/server.log", Slo())
    found = {lever.flag: lever for lever in verdict.levers}["--max-model-len"]
    assert (found.value, found.gives, found.enough) == ("16384", "1 request of 16,384 tokens", True)


def test_a_refused_context_is_solved_for_what_the_slo_asks() -> None:
    verdict = judged("story/l4-default-context.log", slo(min_concurrency=2.5))
    assert verdict.levers[0].spelt == "--max-model-len 11372"
    assert verdict.levers[0].gives == "2.50 requests of 11,372 tokens"


def test_an_fp8_cache_mends_the_sixteen_thousand_context() -> None:
    check = the_check(judged("story/16k-bf16-cache.log", slo(min_concurrency=2.5)))
    assert check.outcome is Outcome.FAIL
    assert check.remedy == "--kv-cache-dtype fp8 meets it: 3.60 requests of 16,384 tokens"


# --- each objective in its own unit -----------------------------------------------------------------------------------

MEASURED = start(
    memory=Memory(
        total_gpu=24 * GIB, utilization=0.9, weights=round(14.99 * GIB), kv_cache=round(3.47 * GIB), free=23 * GIB
    ),
    block_size=16,
)


@pytest.mark.parametrize(
    "asked, flag, gives",
    [
        (slo(min_concurrency=2.6), "--gpu-memory-utilization 0.91", "requests of 16,384 tokens"),
        (slo(min_total_concurrency=2.6), "--gpu-memory-utilization 0.91", "requests of 16,384 tokens"),
        (slo(min_kv_cache_tokens=43_000), "--gpu-memory-utilization 0.91", "tokens"),
        (slo(min_kv_cache=round(3.7 * GIB)), "--gpu-memory-utilization 0.91", "GiB"),
        (
            slo(max_request_share=0.3, workload=Workload(7_500, 1_000)),
            "--gpu-memory-utilization 0.95",
            "% of the pool",
        ),
    ],
)
def test_a_lever_gives_its_objective_s_unit(asked: Slo, flag: str, gives: str) -> None:
    check = the_check(evaluate(report(MEASURED), asked))
    lever = next(lever for lever in check.levers if lever.enough)
    assert lever.spelt == flag
    assert lever.gives.endswith(gives)


def test_utilisation_never_goes_past_what_was_free() -> None:
    crowded = replace(MEASURED, memory=replace(MEASURED.memory, free=round(21.9 * GIB)))
    levers = the_check(evaluate(report(crowded), slo(min_concurrency=9))).levers
    assert [lever.value for lever in levers if lever.flag == "--gpu-memory-utilization"] == ["0.91"]


def test_a_cache_s_bytes_are_not_enlarged_by_what_only_halves_tokens() -> None:
    levers = the_check(evaluate(report(MEASURED), slo(min_kv_cache=8 * GIB))).levers
    assert not {"--kv-cache-dtype", "--max-model-len"} & {lever.flag for lever in levers}


def test_bytes_of_a_rank_grow_by_what_leaves_it_and_no_more() -> None:
    check = the_check(evaluate(report(MEASURED), slo(min_kv_cache=8 * GIB)))
    cards = next(lever for lever in check.levers if lever.flag == "--tensor-parallel-size")
    assert cards.gives == "10.96 GiB to 10.97 GiB"  # half of the weights: 3.47 + 14.99 / 2


def test_a_gap_of_the_graphs_is_given_back_where_the_card_s_size_is_not_known() -> None:
    run = Path("fixtures/logs/pairs/a10-graphs-estimated-far-too-high/new.log")
    guard = Guard(slo(min_concurrency=60))
    guard.feed(run.read_bytes())
    guard.end()
    best = the_check(guard.verdict).levers[0]
    assert (best.spelt, best.enough) == ("--gpu-memory-utilization higher by that much", True)
    assert best.price == "none: 24.40 GiB set aside for CUDA graphs stayed unused"


def test_graphs_that_were_estimated_too_high_are_given_back() -> None:
    memory = replace(MEASURED.memory, cuda_graphs_estimated=3 * GIB, cuda_graphs=GIB)
    counted = replace(MEASURED, memory=memory, vllm_version="0.20.0")
    levers = the_check(evaluate(report(counted), slo(min_concurrency=3.5))).levers
    (graphs,) = [lever for lever in levers if "CUDA graphs" in lever.price]
    assert graphs.spelt == "--gpu-memory-utilization 0.95"  # 0.983 would give it all back, 0.95 of the card was free
    assert graphs.price == "none: 2.00 GiB set aside for CUDA graphs stayed unused"


def test_graphs_whose_estimate_the_log_leaves_out_are_a_direction() -> None:
    captured = replace(MEASURED, memory=replace(MEASURED.memory, cuda_graphs=GIB))
    wanted = slo(min_concurrency=100_000)
    for version, eager, named in (("0.20.0", None, True), ("0.20.0", True, False), ("0.17.0", None, False)):
        told = replace(captured, vllm_version=version, enforce_eager=eager)
        levers = {lever.flag: lever for lever in the_check(evaluate(report(told), wanted)).levers}
        assert ("--enforce-eager" in levers) is named
    assert the_check(evaluate(report(replace(captured, vllm_version="0.20.0")), wanted)).levers[-1].low is None


@pytest.mark.parametrize(
    ("log", "gives"),
    [
        ("pairs/a08-graphs-taken-off-the-cache/new.log", ["13.60 requests of 32,768 tokens"]),  # 0.21.0
        ("public/cb-negative-graph-memory-0112.log", []),  # 0.11.2, "took -0.41 GiB"
        ("public/cb-wsl-profile-override-0191.log", []),  # 0.19.1 says that it takes nothing off
        ("public/ca-graphs-announced-mamba-cap.log", []),
        ("public/v0110-blackwell-blocks.log", []),
    ],
)
def test_going_without_graphs_frees_cache_only_where_they_are_taken_off_it(log: str, gives: list[str]) -> None:
    check = the_check(judged(log, slo(min_concurrency=100_000)))
    assert [lever.gives for lever in check.levers if lever.flag == "--enforce-eager"] == gives


def test_what_no_release_is_known_to_set_aside_is_not_given_back() -> None:
    memory = replace(MEASURED.memory, cuda_graphs_estimated=3 * GIB, cuda_graphs=GIB)
    for version in ("0.19.1", None):
        silent = replace(MEASURED, memory=memory, vllm_version=version)
        levers = the_check(evaluate(report(silent), slo(min_concurrency=100))).levers
        assert not [lever for lever in levers if "CUDA graphs" in lever.price]


def test_engines_share_a_total() -> None:
    twin = replace(ENGINE, engine="1")
    both = replace(MEASURED, engines=(ENGINE, twin), capacity=start(engines=(ENGINE, twin)).capacity)
    check = the_check(evaluate(report(both), slo(min_total_concurrency=5.2)))
    assert check.levers[0].gives.endswith("requests of 16,384 tokens, on each of 2 engines")


def test_requests_that_waited_end_with_what_would_hold_them() -> None:
    asked = slo(max_waiting_requests=10, workload=Workload(7_500, 1_000, model_config=LLAMA))
    check = the_check(judged("story/rag-24gb.log", asked))
    assert check.levers[0].spelt == "--quantization fp8"  # four ran, sixteen waited: ten must run
    assert check.levers[0].low == pytest.approx(10.64, abs=0.01)


def test_an_override_that_fixes_the_blocks_is_dropped_first() -> None:
    run = Path("fixtures/logs/runs/vllm-0.13.0-cpu-blocks-override-load/server.log")
    guard = Guard(slo(concurrent_requests=30, workload=Workload(500, 100)))
    guard.feed(run.read_bytes())
    guard.end()
    check = the_check(guard.verdict)
    assert check.remedy == "drop --num-gpu-blocks-override meets it: 1,638.20 requests of 600 tokens"
    assert "--kv-cache-dtype" not in {lever.flag for lever in check.levers}  # 100 blocks are 100 blocks


@pytest.mark.parametrize(
    "model, quantised",
    [
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", True),
        ("RedHatAI/Llama-3.1-8B-Instruct-quantized.w4a16", True),
        ("neuralmagic/Meta-Llama-3.1-8B-FP8", True),
        ("meta-llama/Llama-3.1-8B-Instruct", False),
        ("acme/Int-40B", False),
    ],
)
def test_a_checkpoint_whose_name_says_so_is_not_quantised_again(model: str, quantised: bool) -> None:
    levers = the_check(evaluate(report(replace(MEASURED, model=model)), slo(min_concurrency=9))).levers
    assert any("--quantization" in lever.flag for lever in levers) is not quantised


# --- what has none ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [slo(expect_kv_cache_dtype="fp8"), slo(max_weights=GIB), slo(expect_engines=2)])
def test_an_objective_that_no_cache_meets_has_no_levers(asked: Slo) -> None:
    assert the_check(evaluate(report(), asked)).levers == ()


def test_a_met_objective_has_none() -> None:
    assert evaluate(report(), slo(min_concurrency=2.5)).levers == ()


def test_a_start_without_room_names_directions_where_it_cannot_count() -> None:
    failure = Failure(FailureKind.NO_KV_MEMORY, "No available memory for the cache blocks.", place(20))
    verdict = evaluate(without_capacity(Phase.FAILED, failure=failure), Slo())
    assert verdict.levers
    assert all(lever.enough is None for lever in verdict.levers)
    assert all(lever.gives == "how much, the log does not tell" for lever in verdict.levers)


def of_sequences(blocks: int, **changes: object) -> Verdict:
    """A start refused because each of 1,024 sequences needs a state block of a recurrent layer."""
    failure = Failure(FailureKind.KV_CACHE_TOO_SMALL, "…", place(20), requested_max_num_seqs=1024, mamba_blocks=blocks)
    return evaluate(report(start(phase=Phase.FAILED, failure=failure, **changes)), Slo())


def test_sequences_without_a_state_block_are_fewer_or_get_more_memory() -> None:
    roomy = Memory(total_gpu=80 * GIB, utilization=0.5, free=79 * GIB)
    fewer, *more = of_sequences(524, memory=roomy).levers
    assert (fewer.spelt, fewer.gives, fewer.enough) == ("--max-num-seqs 524", "524 sequences at once", True)
    (share,) = [lever for lever in more if lever.flag == "--gpu-memory-utilization"]
    # 1,024 / 524 of 3.47 GiB are 3.32 GiB more, 0.05 of the card
    assert (share.value, share.enough) == ("0.55", True)
    assert share.gives == "1,125 to 1,132 Mamba cache blocks"
    assert all(lever.flag not in ("--max-model-len", "--kv-cache-dtype") for lever in more)


def test_more_cards_make_a_state_block_smaller_by_an_unknown_amount() -> None:
    verdict = of_sequences(524, memory=Memory(total_gpu=24 * GIB, utilization=0.9))
    (cards,) = [lever for lever in verdict.levers if lever.flag == "--tensor-parallel-size"]
    assert (cards.value, cards.enough) == ("2", True)  # half of 14.99 GiB of weights is room for more than 1,024
    few = of_sequences(100, memory=Memory(total_gpu=24 * GIB, utilization=0.9))
    assert "--quantization" in {lever.flag for lever in few.levers}
    assert all(lever.enough is not False for lever in few.levers if "--tensor-parallel-size" in lever.flags)


def test_no_state_block_at_all_is_not_mended_by_no_sequence_at_all() -> None:
    verdict = of_sequences(0)
    assert verdict.levers == ()
    assert verdict.reasons[0].remedy == "do what the message asks, or give the KV cache more memory"


@pytest.mark.parametrize("log, blocks", [("issue-49064-mamba", 969), ("ca-mamba-blocks", 614)])
def test_a_real_refusal_of_sequences_is_told_in_its_own_numbers(log: str, blocks: int) -> None:
    verdict = judged(f"public/{log}.log", Slo())
    (reason,) = verdict.reasons
    found = f"max_num_seqs 1,024 asks for a Mamba cache block for each sequence, {blocks} are there"
    assert reason.message == f"the start failed: {found}"
    assert reason.remedy == f"set --max-num-seqs {blocks} or less, or give the KV cache more memory"
    assert verdict.levers[0].spelt == f"--max-num-seqs {blocks}"


def test_a_refusal_that_is_not_of_the_context_is_told_in_its_words() -> None:
    """RBLN's plugin, of a number of blocks that was set: no shorter context mends it."""
    text = Path("fixtures/logs/lines/fail-rbln-blocks.log").read_text()
    line = next(line for line in text.splitlines() if not line.startswith("#"))
    guard = Guard(source="rbln.log")
    guard.feed(f"{line}\n".encode())
    guard.end()
    (reason,) = guard.verdict.reasons
    said = "RuntimeError: Not enough memory for 2048 blocks of KV cache."
    assert reason.message.startswith(f"the start failed: the KV cache is too small: {said}")
    assert reason.remedy == "do what the message asks, or give the KV cache more memory"
    assert guard.verdict.levers == ()


def test_a_crash_has_none() -> None:
    failure = Failure(FailureKind.ENGINE_CRASH, "boom", place(20))
    assert evaluate(without_capacity(Phase.FAILED, failure=failure), Slo()).levers == ()


def test_a_page_lists_one_lever_of_a_flag_and_those_that_are_enough_first() -> None:
    levers = judged("story/l4-default-context.log", Slo()).levers
    assert len({lever.flag for lever in levers}) == len(levers)
    assert [lever.enough for lever in levers] == sorted(
        (lever.enough for lever in levers), key=lambda enough: not enough
    )


def test_of_several_kinds_of_layers_a_lever_gives_at_least_so_much() -> None:
    """The model's own config proves 215.55 of these requests where a share of the length would be 180.89."""
    asked = slo(concurrent_requests=106, workload=Workload(2_500, 1_000))
    guard = Guard(asked)
    guard.feed(Path("fixtures/logs/runs/vllm-0.20.2-cpu-gemma3-hybrid/server.log").read_bytes())
    guard.end()
    twice = next(lever for lever in the_check(guard.verdict).levers if lever.flag == "--data-parallel-size")

    assert (twice.low, twice.high, twice.gives) == (154, None, "at least 154 requests of 3,500 tokens")


# --- a longer context -------------------------------------------------------------------------------------------------


def with_length(length: int, concurrency: float) -> Start:
    """2,560 blocks of 16 tokens at that context."""
    engine = replace(ENGINE, kv_cache_bytes=None, max_model_len=length, max_concurrency=concurrency)
    return start(engines=(engine,), max_model_len=length, vllm_version="0.20.0", block_size=16)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, ""),
        ({"min_concurrency": 2.0}, ""),
        ({"min_concurrency": 2.4}, "; min_concurrency would be missed: 2.15"),
        ({"min_total_concurrency": 2.4}, "; min_total_concurrency would be missed: 2.15"),
    ],
)
@pytest.mark.parametrize("config", [LLAMA, None])
def test_a_longer_context_says_which_concurrency_it_then_misses(
    asked: dict[str, object], says: str, config: dict[str, object] | None
) -> None:
    """2,560 blocks hold 2.50 requests of 16,384 tokens, and 2.15 of 19,000: the check of the longer server says so."""
    wanted = slo(concurrent_requests=1, workload=Workload(18_000, 1_000, model_config=config), **asked)
    checks = evaluate(report(with_length(16_384, 2.5)), wanted).checks
    check = next(check for check in checks if check.objective == "concurrent_requests")
    longer = next(lever for lever in check.levers if lever.flag == "--max-model-len")
    assert longer.value == "19000"
    by_share = says and config is None  # one block more or less
    beyond = "" if config else ", as beyond the model's own length, which is not known here"
    assert longer.price.endswith(f"or the start is refused{beyond}{says}{' to 2.16' if by_share else ''}")
    after = evaluate(report(with_length(19_000, round(2_560 / 1_188, 2))), wanted)
    assert (after.outcome is Outcome.FAIL) is bool(says)


def test_a_context_that_the_pool_would_refuse_is_not_proposed() -> None:
    """Gemma 3 keeps tokens in flight for each of its windows: start-up counts more than a decoding request holds."""
    gemma = named_config("gemma-3-27b")
    assert gemma is not None
    engine = replace(
        ENGINE, kv_cache_tokens=None, gpu_blocks=1_000, kv_cache_bytes=None, max_model_len=1_024, max_concurrency=None
    )
    told = replace(start(engines=(engine,)), vllm_version="0.32.0", max_num_batched_tokens=2_048, block_size=16)
    asked = slo(concurrent_requests=1, workload=Workload(3_000, 1_000, model_config=gemma.whole))
    check = the_check(evaluate(report(told), asked))
    assert spelt(check.levers) == ["at most 1,024 tokens a request"]
