"""What stands in a text twice: lines that are quoted or written twice are one start's, another run's are another's."""

from pathlib import Path

from kvguard.startup.report import FailureKind, Phase
from tests.startup.lines import BOOT, READY, SIZED, log, read, start_of

SHAPES = Path(__file__).parents[2] / "fixtures" / "logs" / "shapes"
WHOLE = log(BOOT, SIZED, READY)
DIGEST = "".join(f"{line}\n" for line in WHOLE.splitlines() if "args" in line or "KV cache" in line)
PROFILE = (
    "Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory={peak}GiB "
    "memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size={cache}GiB gpu_memory_utilization=0.90\n"
)
FIRST_RUN = (
    "Loading model weights took 14.9888 GB\n"
    + PROFILE.format(peak="17.06", cache="3.81")
    + "# GPU blocks: 1952, # CPU blocks: 2048\nMaximum concurrency for 20000 tokens per request: 1.56x\n"
)
SECOND_RUN = (
    "Loading model weights took 14.9888 GB\n"
    + PROFILE.format(peak="17.98", cache="2.89")
    + "# GPU blocks: 1478, # CPU blocks: 2048\nMaximum concurrency for 29000 tokens per request: 0.82x\n"
)


def test_lines_that_are_quoted_behind_their_log_begin_no_start():
    report = read(f"{WHOLE}\nImportant information:\n{DIGEST}")

    assert report.starts == 1
    assert report.start == start_of(WHOLE)


def test_lines_that_are_quoted_before_their_log_are_of_its_start():
    report = read(f"Important information:\n{DIGEST}\n{WHOLE}")

    assert report.starts == 1
    assert report.start is not None
    assert report.start.phase is Phase.READY


def test_a_rank_whose_line_two_handlers_have_written_is_one():
    text = (SHAPES / "tp4-one-rank-missing.log").read_text(encoding="utf-8")
    doubled = "".join(f"{line}\n{line}\n" for line in text.splitlines())

    assert start_of(text).missing == start_of(doubled).missing == ("1 of 4 ranks' token lines",)


def test_a_run_in_an_excerpt_has_what_it_told_before_its_capacity():
    report = read(f"20k:\n{FIRST_RUN}\n29k:\n{SECOND_RUN}")

    assert report.starts == 2
    start = report.start
    assert start is not None
    assert start.capacity.weakest.gpu_blocks == 1478
    assert start.capacity.weakest.weights_bytes == round(14.9888 * 2**30)
    assert start.memory.kv_cache == round(2.89 * 2**30)
    assert start.capacity.weakest.max_concurrency == 0.82


def test_a_run_in_an_excerpt_is_told_by_its_other_length():
    first = "Available KV cache memory: 10.55 GiB\nGPU KV cache size: 230,528 tokens\n"
    first += "Maximum concurrency for 100,000 tokens per request: 2.31x\n"
    second = first.replace("10.55", "5.59").replace("230,528", "122,080").replace("100,000", "50,000")

    report = read(first + second.replace("2.31", "2.44"))

    assert report.starts == 2
    assert report.start is not None
    weakest = report.start.capacity.weakest
    assert (weakest.kv_cache_bytes, weakest.kv_cache_tokens, weakest.max_concurrency) == (
        round(5.59 * 2**30),
        122080,
        2.44,
    )
    assert report.start.warnings[0].code == "restarted"


def test_a_refusal_for_another_length_is_another_runs():
    first = "Available KV cache memory: 10.55 GiB\nGPU KV cache size: 230,528 tokens\n"
    first += "Maximum concurrency for 100,000 tokens per request: 2.31x\n"
    refusal = (
        "ValueError: To serve at least one request with the models's max seq len (221000), (10.12 GiB KV cache is needed, "
        "which is larger than the available KV cache memory (5.59 GiB). Based on the available memory, the estimated "
        "maximum model length is 122080.\n"
    )

    start = start_of(first + refusal)

    assert start.failure is not None
    assert start.failure.kind is FailureKind.KV_CACHE_TOO_SMALL
    assert start.max_model_len == 221000
    assert start.capacity.weakest.kv_cache_tokens is None


def test_ranks_that_print_by_turns_are_one_run():
    pair = "GPU KV cache size: 230,528 tokens\nMaximum concurrency for 100,000 tokens per request: 2.31x\n"

    assert read(pair + pair.replace("230,528", "230,400").replace("2.31", "2.30")).starts == 1


def test_what_led_to_a_failure_may_stand_behind_it():
    note = (
        "- **Qwen2.5-32B** (`e3.json`): ValueError: To serve at least one request with the model's max seq len (4096), (1.0 "
        "GiB KV cache is needed, which is larger than the available KV cache memory (0.58 GiB).\n"
        "  - Model loading took 18.14 GiB memory and 11.465340 seconds\n  - Available KV cache memory: 0.58 GiB\n"
    )
    report = read(note)

    assert report.starts == 1
    assert report.start is not None
    assert report.start.phase is Phase.FAILED
    assert report.start.capacity.weakest.weights_bytes == round(18.14 * 2**30)
