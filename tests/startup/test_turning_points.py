"""What turns on one number or one name: the row names that rules ask for, the order of causes, and the bounds."""

import pytest

from kvguard.lines.formats import FORMATS
from kvguard.startup import boundaries, failures, state
from kvguard.startup.report import FailureKind
from tests.startup.lines import BOOT, READY, SIZED, log, start_of
from tests.startup.test_cut_heads import RUNS

NAMES = {row.name for row in FORMATS}
ASKED_FOR = {
    "said by any server": boundaries.ANYBODYS - {"exception"},  # the last line of any traceback, no row
    "of one call": boundaries.OF_ONE_CALL,
    "at an end": boundaries.AT_AN_END,
    "once an engine": boundaries._ONCE_PER_ENGINE,
    "not started": failures._NOT_STARTED,
    "of one that served": state.OF_ONE_THAT_SERVED,
    "first of a process": ("platform-detected",),
    "an engine's shut-down": ("shutdown-engine",),
}


@pytest.mark.parametrize("rule", ASKED_FOR)
def test_every_row_that_a_rule_asks_for_is_in_the_table(rule: str) -> None:
    assert set(ASKED_FOR[rule]) <= NAMES


def test_the_weights_are_those_of_the_largest_rank() -> None:
    weights = "(Worker_TP{rank} pid=14{rank}) INFO 12-08 10:15:03 [gpu_model_runner.py:3549] Model loading took {gib} GiB memory and 17.36 seconds\n"
    start = start_of(weights.format(rank=0, gib="14.5") + weights.format(rank=1, gib="15.5") + log(SIZED))

    assert start.capacity.weakest.weights_bytes == round(15.5 * 2**30)


def test_memory_that_has_run_out_outweighs_who_was_killed_for_it() -> None:
    killed = "(APIServer pid=100) ERROR 12-08 10:15:10 [utils.py:5] Process EngineCore_DP0 (PID: 130) died with exit code -9\n"
    memory = (
        "(EngineCore_DP0 pid=130) ERROR 12-08 10:15:11 [core.py:868] torch.OutOfMemoryError: CUDA out of memory. Tried to "
        "allocate 1.02 GiB.\n"
    )
    start = start_of(log(BOOT) + killed + memory)

    assert start.failure is not None
    assert start.failure.kind is FailureKind.OOM


def test_a_context_that_was_cut_is_in_force_whatever_the_banner_says() -> None:
    lines = (RUNS / "vllm-0.32.0-cpu-auto-maxlen-reduced" / "server.log").read_text(encoding="utf-8").splitlines(True)
    cut = next(index for index, line in enumerate(lines) if "Auto-fit max_model_len" in line)
    start = start_of("".join(lines[: cut + 1]))

    assert start.requested_max_model_len is not None
    assert start.max_model_len is not None
    assert start.max_model_len < start.requested_max_model_len


@pytest.mark.parametrize(("tensor", "missing"), [(1, ()), (2, ("engine 1",))])
def test_an_engine_speaks_for_the_others_only_without_tensor_parallelism(tensor: int, missing: tuple[str, ...]) -> None:
    two = BOOT.replace("'max_model_len': 8192", "'max_model_len': 8192, 'data_parallel_size': 2").replace(
        "tensor_parallel_size=1", f"tensor_parallel_size={tensor}"
    )

    assert start_of(log(two, SIZED, READY)).missing == missing


def test_scaling_down_lowers_what_is_expected() -> None:
    other = SIZED.replace("EngineCore_DP0 pid={core}", "EngineCore_DP1 pid=131")
    scaled = (
        "(APIServer pid=100) INFO 12-08 11:00:00 [core_client.py:1465] [Elastic EP] Scale down completed, new data parallel "
        "size: 1\n"
    )
    start = start_of(log(BOOT, SIZED, other, READY) + scaled)

    assert start.capacity.engines_expected == 1


@pytest.mark.parametrize(("concurrency", "hybrid"), [("8.05", False), ("8.40", True)])
def test_a_pool_that_lies_some_percent_from_its_concurrency_is_of_several_kinds(concurrency: str, hybrid: bool) -> None:
    start = start_of(
        "INFO 01-23 15:50:11 [api_server.py:1351] vLLM API server version 0.13.0\n"
        "(EngineCore_DP0 pid=164) INFO 01-23 15:50:29 [kv_cache_utils.py:1291] GPU KV cache size: 65,536 tokens\n"
        "(EngineCore_DP0 pid=164) INFO 01-23 15:50:29 [kv_cache_utils.py:1296] Maximum concurrency for 8,192 tokens per "
        f"request: {concurrency}x\n"
    )

    assert ("hybrid-token-figure" in [warning.code for warning in start.warnings]) is hybrid
