"""Each run of a real server on a tiny model, planned from its command line: what it printed must come out."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from kvguard.units import GIB
from tests.kvcache.asking import FIXTURES, MODELS, ends, plan

RUNS = FIXTURES / "logs" / "runs"
FLAGS = ("--max-model-len", "--block-size", "--kv-cache-dtype", "--tensor-parallel-size", "--data-parallel-size")


def command(name: str) -> list[str]:
    lines = [line for line in (RUNS / name / "cmd.txt").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    return shlex.split(lines[-1])


def model_of(name: str) -> Path | None:
    named = re.search(r"/models/(\S+)", " ".join(command(name)))
    return MODELS / f"{named[1]}.json" if named else None


NAMES = sorted(folder.name for folder in RUNS.iterdir() if model_of(folder.name) is not None)


def truth(name: str) -> dict[str, Any]:
    return json.loads((RUNS / name / "truth.json").read_text(encoding="utf-8"))


def version_of(name: str) -> str:
    """The release, from the path of its environment: a quiet log does not print it."""
    found = re.search(r"/opt/vllm/([0-9.]+[0-9])", " ".join(command(name)))
    assert found is not None
    return found[1]


def words_of(name: str) -> list[str]:
    """The run's own flags, and what its CPU build and its variables decide."""
    given = command(name)
    version = version_of(name)
    old = truth(name)["engine_generation"] == "V0"
    words = ["--vllm-version", version, *(("--engine", "v0") if old else ())]
    for flag in FLAGS:
        if flag in given:
            words += [flag, given[given.index(flag) + 1]]
    offline = next((json.loads(word) for word in given if word.startswith("{")), {})
    if "max_model_len" in offline:
        words += ["--max-model-len", str(offline["max_model_len"])]
    if "--block-size" not in given:
        latent = "deepseek" in str(model_of(name))
        words += ["--block-size", "16" if old or latent else "128"]  # the CPU platform's own default
    words += ["--max-num-batched-tokens", "2048"]
    if "gemma3" in str(model_of(name)) and version == "0.32.0":
        words += ["--no-async-scheduling"]  # the CPU executor of that release does not support it
    pool = "300MiB" if "--kv-cache-memory-bytes" in given else "1GiB"
    words += ["--kv-cache-memory-bytes", pool]
    if "--num-gpu-blocks-override" in given:
        words += ["--num-gpu-blocks-override", given[given.index("--num-gpu-blocks-override") + 1]]
    return words


@pytest.mark.parametrize("name", NAMES)
def test_the_run_comes_out_of_its_command_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    model, real = model_of(name), truth(name)
    assert model is not None
    status, document = plan(capsys, model, *words_of(name))
    capacity = document["capacity"]
    if real["kv_cache_tokens"] is not None:
        assert capacity["kv_cache_tokens"]["low"] == real["kv_cache_tokens"]
    if real["gpu_blocks"] is not None and real["blocks_before_override"] is None:
        assert capacity["gpu_blocks"]["low"] == real["gpu_blocks"]
    if real["max_concurrency"] is not None:
        assert f"{capacity['max_concurrency']['low']:.2f}" == f"{real['max_concurrency']:.2f}"
    if real["max_model_len"] is not None and real["kv_cache_tokens"] is not None:
        assert document["options"]["max_model_len"] == real["max_model_len"]
    failure = real["failure"]
    if failure is None:
        assert document["starts"] is True
        return
    assert status == 1
    refusal = document["refusal"]
    assert refusal["kind"] == failure["kind"]
    for key in ("needed", "available"):
        if failure.get(f"{key}_gib") is not None:
            assert round(ends(refusal[f"{key}_bytes"])[0] / GIB, 2) == failure[f"{key}_gib"]
    if failure.get("estimated_max_len") is not None:
        assert refusal["estimated_max_model_len"] == failure["estimated_max_len"]
    if failure.get("capacity_tokens") is not None:
        assert refusal["kv_cache_tokens"] == failure["capacity_tokens"]


REFUSED = [name for name in NAMES if truth(name)["failure"] and truth(name)["engine_generation"] == "V1"]
"""V0's CPU build names a variable of its own where the GPU builds name gpu_memory_utilization."""


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_worded_as_the_server_worded_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = plan(capsys, model_of(name) or "", *words_of(name))
    log = (RUNS / name / "server.log").read_text(encoding="utf-8", errors="replace")
    assert document["refusal"]["printed"] in re.sub(r"\s+", " ", log)
