"""What a server that serves outlives, and what of an error's record a client may have written."""

from pathlib import Path

import pytest

from kvguard.startup.report import FailureKind, Phase
from tests.startup.lines import BOOT, CRASHED, READY, SIZED, STATS, STOPPED, log, read, start_of

RUNS = Path(__file__).parents[2] / "fixtures" / "logs" / "runs"
SERVING = log(BOOT, SIZED, READY)
CALL_FAILED = """\
(Worker pid=140) ERROR 12-08 10:25:00 [multiproc_executor.py:1063] WorkerProc hit an exception.
(EngineCore_DP0 pid=130) ERROR 12-08 10:25:00 [core.py:1750] Invocation of add_lora method failed
(EngineCore_DP0 pid=130) ERROR 12-08 10:25:00 [core.py:1750] RuntimeError: Worker failed with error 'Loading lora
"""
BEHIND_IT = "(EngineCore_DP0 pid=130) ERROR 12-08 10:25:00 [core.py:1750] "


def test_a_call_that_fails_ends_no_server():
    start = start_of(SERVING + CALL_FAILED)

    assert start.phase is Phase.READY
    assert start.warnings == ()


@pytest.mark.parametrize(
    "written",
    [
        "Initializing a V1 LLM engine (v0.9.9) with config: model='evil', max_seq_len=99, seed=0",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.02 GiB.",
        "Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 1.0 tokens/s, Running: 999 reqs, "
        "Waiting: 999 reqs, GPU KV cache usage: 100.0%, Prefix cache hit rate: 0.0%",
    ],
)
def test_the_rest_of_an_errors_record_is_its_clients(written: str):
    assert read(SERVING + CALL_FAILED + BEHIND_IT + written + "\n").start == start_of(SERVING + CALL_FAILED)


def test_an_engine_that_gives_up_is_dead():
    assert start_of(SERVING + log(CRASHED)).phase is Phase.STOPPED


DEAD = (
    "(APIServer pid=100) ERROR 12-08 10:30:00 [{file}] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an "
    "issue. See stack trace (above) for the root cause.\n"
)


@pytest.mark.parametrize("file", ["async_llm.py:906", "api_router.py:72"])
def test_an_engine_that_its_front_end_finds_dead_is_dead(file: str):
    """Its own last words may be lost: it was killed."""
    start = start_of(SERVING + log(STATS) + DEAD.format(file=file))

    assert start.phase is Phase.STOPPED
    assert [warning.code for warning in start.warnings] == ["died-after-ready"]


def test_an_engine_that_is_found_dead_in_a_shut_down_was_shut_down():
    start = start_of(SERVING + log(STOPPED) + DEAD.format(file="async_llm.py:906"))

    assert (start.phase, start.warnings) == (Phase.STOPPED, ())


def test_a_log_that_begins_with_a_shut_down_tells_of_no_start():
    traceback = "(Worker pid=140) Traceback (most recent call last):\n(Worker pid=140) RuntimeError: no driver\n"

    assert read(log(STOPPED) + traceback).start is None


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ("vllm-0.20.2-cpu-base-load", 89),
        ("vllm-0.20.2-cpu-gemma3-hybrid", 72),
        ("vllm-0.20.2-cpu-restart", 180),
        ("vllm-0.32.0-cpu-fp8kv", 114),
    ],
)
def test_the_tail_of_a_server_that_was_shut_down_is_no_failed_start(run: str, line: int):
    """What its processes say of each other comes first; that the HTTP server shuts down shows that it had come up."""
    lines = (RUNS / run / "server.log").read_text(encoding="utf-8").splitlines(keepends=True)
    start = start_of("".join(lines[line - 1 :]))

    assert (start.phase, start.failure) == (Phase.STOPPED, None)


OFFLINE_END = (
    "(EngineCore pid=970) INFO 05-12 11:36:00 [core.py:1201] Shutdown initiated (timeout=0)\n"
    "(EngineCore pid=970) INFO 05-12 11:36:00 [core.py:1224] Shutdown complete\n"
    "ERROR 05-12 11:36:01 [core_client.py:704] Engine core proc EngineCore died unexpectedly, shutting down client.\n"
)


def test_an_engine_that_says_it_shuts_down_is_not_missed_afterwards():
    size = "(EngineCore pid=970) INFO 05-12 11:35:00 [kv_cache_utils.py:1316] GPU KV cache size: 443,648 tokens\n"

    assert read(OFFLINE_END).start is None
    assert (start_of(size + OFFLINE_END).phase, start_of(size + OFFLINE_END).failure) == (Phase.ALLOCATED, None)


def test_a_pool_whose_concurrency_is_still_to_come_has_not_reported():
    pair = (
        "(EngineCore_DP0 pid=130) INFO 12-08 10:15:21 [kv_cache_utils.py:864] GPU KV cache size: {tokens} tokens\n"
        "(EngineCore_DP0 pid=130) INFO 12-08 10:15:21 [kv_cache_utils.py:868] Maximum concurrency for 8,192 tokens per "
        "request: {requests}x\n"
    )
    whole = pair.format(tokens="460,000", requests="56.15") + pair.format(tokens="65,536", requests="8.00")
    cut = "".join(whole.splitlines(keepends=True)[:-1])

    assert start_of(whole).missing == ()
    assert start_of(cut).missing == ("the concurrency of the last KV cache size",)


def test_requests_of_several_lengths_add_up_to_nothing():
    pair = (
        "(EngineCore_DP{index} pid=13{index}) INFO 12-08 10:15:21 [kv_cache_utils.py:1286] GPU KV cache size: 65,536 tokens\n"
        "(EngineCore_DP{index} pid=13{index}) INFO 12-08 10:15:21 [kv_cache_utils.py:1291] Maximum concurrency for {length} "
        "tokens per request: 8.00x\n"
    )

    assert (
        start_of(pair.format(index=0, length=8192) + pair.format(index=1, length=8192)).capacity.total_max_concurrency
        == 16
    )
    assert (
        start_of(pair.format(index=0, length=8192) + pair.format(index=1, length=4096)).capacity.total_max_concurrency
        is None
    )


def test_a_server_that_answers_again_is_alive():
    assert start_of(SERVING + CALL_FAILED + log(STATS)).runtime.samples == 1


def test_a_start_that_fails_shuts_its_workers_down_first():
    text = (
        "(EngineCore pid=12534) INFO 06-13 18:37:33 [multiproc_executor.py:435] [shutdown] Executor: all workers exited "
        "gracefully\n(EngineCore pid=12534) ERROR 06-13 18:37:33 [core.py:1202] EngineCore failed to start.\n"
        "(EngineCore pid=12534) ERROR 06-13 18:37:33 [core.py:1202] ValueError: No available memory for the cache blocks. "
        "Try increasing `gpu_memory_utilization` when initializing the engine.\n"
    )
    start = start_of(text)

    assert start.failure is not None
    assert start.failure.kind is FailureKind.NO_KV_MEMORY


def test_a_refused_configuration_says_what_is_refused():
    head = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
    start = start_of(
        head
        + "  Value error, Eagle3 is only supported for llama models. [type=value_error, input_value=ArgsKwargs((), {})]\n"
    )

    assert start.failure is not None
    assert start.failure.message == "Value error, Eagle3 is only supported for llama models."


def test_the_old_servers_last_words_are_not_the_new_ones():
    replaced = log(BOOT, SIZED, READY, api=200, core=230, hour=12, concurrency="26.85")
    late = "".join(f"{line}\n" for line in log(STOPPED, api=100).splitlines() if "INFO:" in line)

    start = start_of(SERVING + replaced + late)

    assert start.phase is Phase.READY
    assert start.capacity.weakest.max_concurrency == 26.85


def test_a_v0_engine_whose_task_has_failed_is_dead():
    stats = (
        "INFO 08-15 03:15:50 metrics.py:345] Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
        "Running: 3 reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 7.2%, CPU KV cache usage: 0.0%.\n"
    )
    start = start_of(f"{stats}ERROR 08-15 03:15:55 async_llm_engine.py:56] Engine background task failed\n")

    assert start.phase is Phase.STOPPED
    assert [warning.code for warning in start.warnings] == ["died-after-ready"]
