"""Stages of vllm-omni: several models in one server, each an engine of its own."""

from kvguard.startup.report import FailureKind
from tests.startup.lines import read, start_of


def test_another_stage_is_no_restart():
    report = read(
        "(Worker pid=2291010) [Stage-0] ERROR 03-12 08:22:28 [multiproc_executor.py:800] ValueError: Free memory on device "
        "cuda:0 (111.99/139.8 GiB) on startup is less than desired GPU memory utilization (0.95, 132.81 GiB). Decrease GPU "
        "memory utilization or reduce GPU memory used by other processes.\n"
        "[Stage-1] INFO 03-12 08:22:28 [diffusion_model_runner.py:133] Model loading took 26.4738 GiB and 13.178609 seconds\n"
    )

    assert report.starts == 1
    assert report.start is not None
    assert report.start.failure is not None
    assert report.start.failure.kind is FailureKind.FREE_MEMORY_BELOW_UTILIZATION


def test_what_one_stage_says_of_its_options_is_no_fact_of_another() -> None:
    start = start_of(
        "[Stage-1] INFO 12-08 10:15:00 [model.py:1692] Using max model len 512\n"
        "[Stage-0] INFO 12-08 10:15:20 [kv_cache_utils.py:1286] GPU KV cache size: 65,536 tokens\n"
    )

    assert start.max_model_len is None
