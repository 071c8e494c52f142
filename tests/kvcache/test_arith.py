"""Every case of fixtures/arith, asked through the command line: layout, blocks, printed figures, fit, loads."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kvguard.units import GIB
from tests.kvcache.asking import ARITH, ends, flags, plan

CASES = sorted(folder.name for folder in ARITH.iterdir() if folder.is_dir())


@cache
def case(name: str) -> dict[str, Any]:
    return json.loads((ARITH / name / "case.json").read_text(encoding="utf-8"))


def config(name: str) -> Path:
    return ARITH / name / "config.json"


def engine_words(name: str) -> list[str]:
    options = {key: value for key, value in case(name)["options"].items() if key != "num_gpu_blocks_override"}
    return ["--vllm-version", case(name)["vllm_version"], *flags(options)]


def pool_words(name: str) -> list[str]:
    given = case(name)["kv_cache_bytes"]
    words = flags({"num_gpu_blocks_override": case(name)["options"].get("num_gpu_blocks_override")})
    if given is None:
        blocks = case(name)["expect"]["printed_num_blocks"]
        return ["--num-gpu-blocks-override", str(blocks[0])]
    ranks = given if isinstance(given, list) and isinstance(given[0], list) else [given]
    for rank in ranks:
        words += ["--kv-cache-memory-bytes", f"{rank[0]}..{rank[1]}" if isinstance(rank, list) else str(rank)]
    return words


def with_expectation(key: str) -> list[str]:
    return [name for name in CASES if case(name)["expect"].get(key)]


@pytest.mark.parametrize("name", CASES)
def test_layout_and_blocks_come_out_exactly(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = case(name)["expect"]
    _, document = plan(capsys, config(name), *engine_words(name), *pool_words(name))
    layout, capacity = document["layout"], document["capacity"]
    for key in ("bytes_per_block", "bytes_per_token"):
        if expected[key] is not None:
            assert layout[key] == expected[key]
    if expected["groups"] is not None:
        assert [trimmed(row, wanted) for row, wanted in pairs(layout["groups"], expected["groups"])] == [
            {key: value for key, value in wanted.items() if value is not None} for wanted in expected["groups"]
        ]
    if expected["num_blocks"] is not None:
        assert list(ends(capacity["gpu_blocks"])) == expected["num_blocks"]
    if expected["blocks_per_request"] is not None:
        assert capacity["blocks_per_request"] == expected["blocks_per_request"]


def pairs(rows: list[Any], wanted: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(rows, wanted, strict=True))


def trimmed(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    return {key: row[key] for key, value in wanted.items() if value is not None}


@pytest.mark.parametrize("name", with_expectation("printed_num_blocks"))
def test_printed_figures_come_out_for_each_block_count(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = case(name)["expect"]
    first, last = expected["printed_num_blocks"]
    for blocks in range(first, last + 1):
        words = [*engine_words(name), "--num-gpu-blocks-override", str(blocks)]
        _, document = plan(capsys, config(name), *words)
        capacity = document["capacity"]
        if expected["kv_cache_tokens"] is not None:
            assert capacity["kv_cache_tokens"] == {
                "low": expected["kv_cache_tokens"],
                "high": expected["kv_cache_tokens"],
            }
        if expected["max_concurrency"] is not None:
            assert f"{capacity['max_concurrency']['low']:.2f}" == f"{expected['max_concurrency']:.2f}"
            assert any(f"{expected['max_concurrency']:.2f}x" in line for line in capacity["printed"]["low"])
        if "max_concurrency_exact" in expected:
            assert capacity["max_concurrency"]["low"] == pytest.approx(expected["max_concurrency_exact"], rel=1e-12)


@pytest.mark.parametrize("name", with_expectation("fit"))
def test_the_start_up_check_comes_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    fit = case(name)["expect"]["fit"]
    words = [*engine_words(name), *pool_words(name)]
    if "requested_max_model_len" in fit:
        words += ["--max-model-len", str(fit["requested_max_model_len"])]
    status, document = plan(capsys, config(name), *words)
    assert document["starts"] is fit["fits"]
    assert status == (0 if fit["fits"] else 1)
    if fit["fits"]:
        assert document["refusal"] is None
        return
    refusal = document["refusal"]
    assert refusal["kind"] == "kv_cache_too_small"
    for key, unit in (("needed", 1), ("available", 1)):
        if f"{key}_gib" in fit:
            low, high = ends(refusal[f"{key}_bytes"])
            assert round(low / GIB, 2) <= fit[f"{key}_gib"] <= round(high / GIB, 2), unit
    low, high = ends(refusal["estimated_max_model_len"])
    assert low <= fit["estimated_max_model_len"] <= high


@pytest.mark.parametrize("name", with_expectation("blocks_at"))
def test_a_request_of_each_length_takes_its_blocks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for length, blocks in case(name)["expect"]["blocks_at"].items():
        words = [*engine_words(name), "--num-gpu-blocks-override", "100000", "--max-model-len", length]
        _, document = plan(capsys, config(name), *words)
        assert document["capacity"]["blocks_per_request"] == blocks


@pytest.mark.parametrize("name", with_expectation("held_at"))
def test_a_decoding_request_holds_its_blocks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for stored, expected in case(name)["expect"]["held_at"].items():
        blocks = expected[0] if isinstance(expected, list) else expected
        words = [*engine_words(name), "--prompt-tokens", str(int(stored)), "--output-tokens", "1"]
        _, document = plan(capsys, config(name), *words)
        assert document["workload"]["blocks_per_request"] == blocks


@pytest.mark.parametrize("name", with_expectation("workload"))
def test_loads_come_out_in_whole_blocks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for row in case(name)["expect"]["workload"]:
        load = {f"{key}_tokens": row[key] for key in ("prompt", "output", "shared_prefix")}
        words = [*flags(load), "--num-gpu-blocks-override", str(row["num_blocks"]), "--max-num-seqs", "1000000"]
        _, document = plan(capsys, config(name), *engine_words(name), *words)
        workload = document["workload"]
        assert workload["blocks_per_request"] == row["blocks_per_request"]
        assert workload["shared_blocks"] == row["shared_blocks"]
        assert workload["service_concurrency"] == {"low": row["requests"], "high": row["requests"]}
        usable = row["num_blocks"] - 1
        exact = (usable - row["shared_blocks"]) / row["blocks_per_request"]
        assert workload["concurrency"]["low"] == pytest.approx(exact, rel=1e-12)
        assert workload["request_share"]["low"] == pytest.approx(row["blocks_per_request"] / usable, rel=1e-12)
