"""A start that failed for want of memory ends with what would make room, as far as its own lines can count it."""

from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Lever, Verdict
from kvguard.startup.report import Failure, FailureKind, Memory, Phase, Start
from kvguard.units import GIB
from tests.slo.reports import ENGINE, judged, place, report, start, without_capacity

OUT = Failure(FailureKind.OOM, "CUDA out of memory. Tried to allocate …", place(30))
LACKING = replace(OUT, needed_bytes=round(1.74 * GIB), available_bytes=round(0.59 * GIB))
"""1.15 GiB were lacking."""
CARD = Memory(total_gpu=24 * GIB, utilization=0.9)


def of(failed: Start) -> Verdict:
    return evaluate(report(failed), Slo())


def sized(failure: Failure = LACKING, **changes: object) -> Start:
    """2.50x at 16,384 tokens in 3.47 GiB, and then the device ran out of memory."""
    return start(phase=Phase.FAILED, failure=failure, memory=CARD, **changes)


def loading(**changes: object) -> Start:
    failed = without_capacity(Phase.FAILED, failure=LACKING, **changes).start
    assert failed is not None
    return failed


def by_flag(verdict: Verdict) -> dict[str, Lever]:
    return {lever.flag: lever for lever in verdict.levers}


# --- a share of the device that is not free ---------------------------------------------------------------------------


def refusal_of(total: int, free: int, share: float) -> str:
    """vLLM's words where more is asked for than is free (v1/worker/utils.py, request_memory); "" where it goes on."""
    asked = ceil(total * share)
    if free >= asked:
        return ""
    figures = f"({free / GIB:.2f}/{total / GIB:.2f} GiB) on startup"
    return (
        f"ValueError: Free memory on device cuda:0 {figures} is less than desired GPU memory utilization "
        f"({share}, {asked / GIB:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory used by other "
        "processes."
    )


def told_by(line: str) -> Verdict:
    guard = Guard(source="vllm.log")
    guard.feed(f"(Worker_TP0 pid=71) ERROR 11-24 09:02:14 [multiproc_executor.py:1057] {line}\n".encode())
    guard.end()
    return guard.verdict


@pytest.mark.parametrize("share", [0.9, 0.92, 0.95, 0.99])
@pytest.mark.parametrize(
    ("total", "free"),
    [
        (25_297_357_373, 21_000_000_000),
        (85_018_877_624, 72_266_045_980),  # a hair below 0.85 of the card
        (85_018_877_624, 72_266_045_981),
        (150_754_820_096, 68_740_951_572),
        (8_546_984_919, 7_269_232_148),
        (25_769_803_776, 23_192_823_397),  # both figures print as 21.60 GiB
    ],
)
def test_with_the_share_that_is_proposed_the_same_device_is_not_refused(total: int, free: int, share: float) -> None:
    verdict = told_by(refusal_of(total, free, share))
    (lever,) = verdict.levers
    assert lever.flag == "--gpu-memory-utilization"
    assert refusal_of(total, free, float(lever.value or 0)) == ""
    assert float(lever.value or 0) > free / total - 0.012  # and not much less
    assert lever.low == pytest.approx(total * float(lever.value or 0) / GIB, abs=0.02)
    assert lever.enough is None  # whether the model fits in that, nothing has measured yet


def test_what_the_smaller_share_holds_and_takes_is_told() -> None:
    (lever,) = judged("public/cb-worker-free-memory-0290.log", Slo()).levers
    assert lever.spelt == "--gpu-memory-utilization 0.85"
    assert lever.gives == "27.08 GiB for weights, activations and cache"
    assert lever.price == "3.82 GiB less for the KV cache"


@pytest.mark.parametrize("name", ["ca-free-memory-quoted-path", "ci-quoted-free-memory"])
def test_a_device_that_is_all_taken_is_not_shared(name: str) -> None:
    verdict = judged(f"public/{name}.log", Slo())
    values = [float(lever.value or 0) for lever in verdict.levers]
    remedy = str(verdict.reasons[0].remedy)
    assert remedy.startswith("another process holds device memory: end it or wait for it to go, then start again")
    assert all(value > 0 for value in values)
    assert ("at most" in remedy) == bool(values)


def test_weights_that_another_process_holds_stay_taken_off() -> None:
    """0.9 of 24 GiB less 10 GiB of theirs are asked for, 11 GiB are free: 0.6 GiB short, 0.025 of the card."""
    asked = round(11.6 * GIB)
    short = Failure(
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION, "…", place(9), needed_bytes=asked, available_bytes=11 * GIB
    )
    (lever,) = of(replace(loading(memory=CARD), failure=short)).levers
    assert (lever.value, lever.low) == ("0.87", pytest.approx(11.6 - 0.03 * 24))


def test_a_measurement_that_another_process_disturbed_is_repeated() -> None:
    disturbed = Failure(
        FailureKind.FREE_MEMORY_BELOW_UTILIZATION, "Error in memory profiling.", place(9), transient=True
    )
    verdict = of(replace(loading(), failure=disturbed))
    assert str(verdict.reasons[0].remedy).startswith("another process gave memory back while this one measured")
    assert verdict.levers == ()


# --- a device that ran out of memory ----------------------------------------------------------------------------------


def test_after_the_cache_a_smaller_one_leaves_what_was_lacking() -> None:
    found = by_flag(of(sized()))
    lower = found["--gpu-memory-utilization"]
    # 1.16 GiB and more of 24 are five hundredths; 3.47 - 1.2 GiB hold 2.27 / 3.47 of 2.50
    assert (lower.value, lower.enough) == ("0.85", None)
    assert lower.low == pytest.approx(2.5 * 2.27 / 3.47, abs=0.01)
    assert lower.unit == "requests of 16,384 tokens"
    assert {"--max-num-seqs", "--enforce-eager"} <= set(found)


def test_the_allocator_s_own_two_figures_say_how_much_smaller() -> None:
    """The story's start, whose capture lacks 1.25 of the card's 22.05 GiB: six hundredths, and a bit of rounding."""
    lines = Path("fixtures/logs/story/16k-bf16-cache.log").read_text().splitlines()
    sized_at = next(number for number, line in enumerate(lines) if "Maximum concurrency" in line)
    refused = (
        "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 22.05 GiB of which 256.00 MiB"
    )
    failed = f"ERROR 03-21 10:14:40 [engine.py:443] torch.OutOfMemoryError: {refused} is free."
    guard = Guard(source="vllm.log")
    guard.feed("\n".join([*lines[: sized_at + 1], failed, ""]).encode())
    guard.end()
    lower = by_flag(guard.verdict)["--gpu-memory-utilization"]
    assert (lower.value, lower.low) == ("0.86", None)  # V0 told blocks, not the cache's bytes


@pytest.mark.parametrize("basis", ["profiled", "declared"])
@pytest.mark.parametrize("lacking", [6, 9, 30])
def test_no_share_is_proposed_that_leaves_less_than_the_weights(lacking: int, basis: str) -> None:
    """14.99 GiB of weights are 0.63 of the card."""
    blocks = replace(ENGINE, kv_cache_bytes=None, gpu_blocks=2_560)
    failed = replace(LACKING, needed_bytes=(lacking + 1) * GIB, available_bytes=GIB)
    for engine in (ENGINE, blocks):
        found = of(sized(failed, engines=(engine,), kv_cache_basis=basis)).levers[0]
        value = found.value or ""
        assert value == "lower" or float(value) > 0.62, found.spelt


def test_a_cache_too_small_for_one_request_then_would_be_refused() -> None:
    """7 GiB were lacking: the 3.47 GiB of the cache are not that much; 2.2 leave 0.9 of a request."""
    more = replace(LACKING, needed_bytes=round(2.8 * GIB), available_bytes=round(0.6 * GIB))
    lower = by_flag(of(sized(more)))["--gpu-memory-utilization"]
    assert lower.enough is False
    assert lower.high is not None
    assert lower.high < 1
    all_of_it = replace(LACKING, needed_bytes=7 * GIB, available_bytes=0)
    assert by_flag(of(sized(all_of_it)))["--gpu-memory-utilization"].low is None


def test_bytes_that_an_option_sets_are_lowered_themselves() -> None:
    found = by_flag(of(sized(kv_cache_basis="declared")))
    assert "--gpu-memory-utilization" not in found
    assert int(found["--kv-cache-memory-bytes"].value or 0) == pytest.approx((3.47 - 1.15) * GIB, abs=0.02 * GIB)


@pytest.mark.parametrize("name", ["pairs/a03-sampler-warm-up-out-of-memory/new", "public/v084-nccl-oom-worker"])
def test_without_the_card_s_size_directions_are_named(name: str) -> None:
    levers = judged(f"{name}.log", Slo()).levers
    assert [lever.spelt for lever in levers] == [
        "--gpu-memory-utilization lower",
        "--max-num-seqs lower",
        "--enforce-eager",
    ]
    assert all(lever.low is None and lever.enough is None for lever in levers)


def test_before_the_cache_a_lower_utilisation_is_no_help() -> None:
    verdict = of(loading(memory=replace(CARD, weights=15 * GIB)))
    found = by_flag(verdict)
    assert "--gpu-memory-utilization" not in found
    assert "does not help" in str(verdict.reasons[0].remedy)
    assert found["--tensor-parallel-size"].gives == "7.50 GiB more beside the weights of each card"
    assert all(lever.enough is None for lever in found.values())


def test_lighter_weights_that_free_less_than_was_lacking_are_not_enough() -> None:
    small = replace(loading(memory=replace(CARD, weights=2 * GIB)), failure=replace(LACKING, needed_bytes=20 * GIB))
    cards = by_flag(of(small))["--tensor-parallel-size"]
    assert (cards.low, cards.enough) == (pytest.approx(1.0, abs=0.01), False)


def test_weights_that_do_not_fit_are_split_or_quantised() -> None:
    verdict = of(loading(memory=CARD))
    assert {lever.flag for lever in verdict.levers} == {"--quantization", "--tensor-parallel-size"}
    assert str(verdict.reasons[0].remedy).startswith("the weights do not fit")


def test_an_excerpt_that_shows_no_start_gets_no_levers() -> None:
    assert judged("public/ca-oom-rank-1.log", Slo()).levers == ()


def test_a_device_that_had_more_free_than_was_asked_for_lacked_an_unknown_amount() -> None:
    in_pieces = replace(OUT, needed_bytes=192 << 20, available_bytes=13 * GIB)
    assert by_flag(of(sized(in_pieces)))["--gpu-memory-utilization"].value == "lower"


# --- nothing left for the cache ---------------------------------------------------------------------------------------


def test_what_each_change_leaves_of_a_cache_below_nothing() -> None:
    found = by_flag(judged("pairs/a04-no-memory-left-after-an-upgrade/new.log", Slo()))  # 15.27 GiB and -0.35 GiB
    assert found["--tensor-parallel-size"].low == pytest.approx(15.27 / 2 - 0.35, abs=0.01)
    assert found["--tensor-parallel-size"].unit == "GiB for the KV cache of a rank"
    assert found["--gpu-memory-utilization"].low is None
    assert not any(lever.enough for lever in found.values())


def test_a_change_that_still_leaves_less_than_nothing_is_not_enough() -> None:
    found = by_flag(judged("public/compose-one-refused.log", Slo()))  # 3.85 GiB and -8.59 GiB
    assert found["--tensor-parallel-size"].enough is False


def test_an_engine_that_died_without_a_word_of_its_cache_is_explained_by_it() -> None:
    verdict = judged("public/cb-tags-lost-negative-0110.log", Slo())
    assert verdict.reasons[0].message == "the start failed: weights and activations leave -1.81 GiB for the KV cache"
    assert {"--quantization", "--tensor-parallel-size"} <= set(by_flag(verdict))


# --- a process that was killed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generation", "gives"),
    [
        ("V1", {"--cpu-offload-gb": "20 GiB of the host's memory"}),
        ("V0", {"--cpu-offload-gb": "20 GiB of the host's memory", "--swap-space": "8 GiB of the host's memory"}),
    ],
)
def test_what_options_take_of_the_host_is_counted_over_its_ranks(generation: str, gives: dict[str, str]) -> None:
    killed = replace(
        loading(generation=generation, tensor_parallel_size=2, arguments={"cpu_offload_gb": 10, "swap_space": 4}),
        failure=Failure(FailureKind.KILLED, "Killed", place(7)),
    )
    assert {lever.flag: lever.gives for lever in of(killed).levers} == gives


def test_a_kill_that_nothing_explains_has_a_remedy_alone() -> None:
    verdict = judged("public/jetson-killed.log", Slo())
    assert verdict.levers == ()
    assert "whether the host ran out of memory" in str(verdict.reasons[0].remedy)
