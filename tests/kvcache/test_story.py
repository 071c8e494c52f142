"""The accounts of people who run Llama 3.1 8B on 24 GB cards, in exact figures."""

from typing import Any

import pytest

from kvguard.units import GIB
from tests.kvcache.asking import ARITH, plan, refusal_of

KIB = 1024
LOAD = ("--prompt-tokens", "7500", "--output-tokens", "1000")
POOL = ("--num-gpu-blocks-override", "2560", "--max-model-len", "32768")


@pytest.mark.parametrize(
    ("model", "bytes_per_token"), [("llama-3.1-8b", 128 * KIB), ("llama-2-7b", 512 * KIB), ("llama-3.1-70b", 320 * KIB)]
)
def test_a_token_costs_what_the_dimensions_say(
    model: str, bytes_per_token: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = plan(capsys, model)
    assert document["layout"]["bytes_per_token"] == bytes_per_token


@pytest.mark.parametrize(("tokens", "gib"), [(4096, 0.5), (8192, 1), (32768, 4), (131072, 16)])
def test_a_sequence_of_llama_8b_needs_its_gib(tokens: int, gib: float, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = plan(capsys, "llama-3.1-8b", "--max-model-len", str(tokens), "--kv-cache-memory-bytes", "1MiB")
    blocks = document["capacity"]["blocks_per_request"]
    assert blocks * document["layout"]["bytes_per_block"] == gib * GIB


def l4(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The first account: vLLM 0.8.1 on an L4, with the parts that its log prints."""
    parts = ("--gpu-memory", "22.05GiB", "--gpu-memory-utilization", "0.90", "--weights", "14.99GiB")
    reserve = ("--reserve", "1.38GiB")
    return plan(capsys, "llama-3.1-8b", "--vllm-version", "0.8.1", *parts, *reserve, *words)[1]


def test_the_default_context_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    document = l4(capsys)
    refusal = document["refusal"]
    assert document["starts"] is False
    assert refusal["kind"] == "kv_cache_too_small"
    assert refusal["needed_bytes"] == 16 * GIB
    assert round(refusal["available_bytes"] / GIB, 2) == 3.47
    assert "(16.00 GB KV cache is needed" in refusal["printed"]
    assert "(3.47 GB)" in refusal["printed"]
    assert document["capacity"]["largest_max_model_len"] == {"low": 28464, "high": 28464}


def test_the_printed_gib_holds_the_context_that_was_found_to_fit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--vllm-version", "0.8.1", "--kv-cache-memory-bytes", "~3.47GiB")
    _, document = plan(capsys, "llama-3.1-8b", *words)
    longest = document["capacity"]["largest_max_model_len"]
    assert longest["low"] <= 28432 <= longest["high"]


def test_what_would_have_helped_is_named_with_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    levers = {lever["flag"]: lever for lever in l4(capsys)["target"]["levers"]}
    assert levers["--max-model-len"]["value"] == "28464"
    assert "the pool is not enlarged" in levers["--max-model-len"]["price"]
    assert levers["--kv-cache-dtype"]["gives"]["low"] == pytest.approx(0.4344, abs=0.001)
    assert levers["--gpu-memory-utilization"]["value"] == "0.95"
    assert levers["--tensor-parallel-size"]["meets"] is True


def test_sixteen_thousand_tokens_then_fp8(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--max-model-len", "16384", "--kv-cache-memory-bytes", "3.6GiB", "--vllm-version", "0.9.1")
    _, plain = plan(capsys, "llama-3.1-8b", *words)
    _, quantized = plan(capsys, "llama-3.1-8b", *words, "--kv-cache-dtype", "fp8", "--min-concurrency", "2.5")
    assert plain["capacity"]["kv_cache_tokens"]["low"] == 29488
    assert f"{plain['capacity']['max_concurrency']['low']:.2f}" == "1.80"
    assert quantized["capacity"]["kv_cache_tokens"]["low"] == 58976
    assert f"{quantized['capacity']['max_concurrency']['low']:.2f}" == "3.60"
    assert quantized["target"]["outcome"] == "pass"


def test_four_run_and_sixteen_wait(capsys: pytest.CaptureFixture[str]) -> None:
    status, document = plan(capsys, "llama-3.1-8b", *POOL, *LOAD, "--concurrent-requests", "20")
    workload = document["workload"]
    assert document["capacity"]["printed"]["low"][0].startswith("GPU KV cache size: 40,960 tokens")
    assert workload["blocks_per_request"] == 532
    assert workload["concurrency"]["low"] == pytest.approx(2559 / 532)
    assert workload["service_concurrency"] == {"low": 4, "high": 4}
    assert workload["limited_by"] == "kv_cache"
    assert document["target"]["outcome"] == "fail"
    assert status == 1


def test_a_shorter_max_model_len_changes_the_print_and_not_the_pool(capsys: pytest.CaptureFixture[str]) -> None:
    shorter = ("--num-gpu-blocks-override", "2560", "--max-model-len", "16384")
    _, document = plan(capsys, "llama-3.1-8b", *shorter, *LOAD)
    assert document["capacity"]["max_concurrency"]["low"] == 2.5
    assert document["workload"]["service_concurrency"] == {"low": 4, "high": 4}


def test_fp8_and_a_shared_prompt_fit_eleven(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--num-gpu-blocks-override", "5120", "--kv-cache-dtype", "fp8", "--shared-prefix-tokens", "1500")
    _, document = plan(capsys, "llama-3.1-8b", "--max-model-len", "32768", *words, *LOAD)
    workload = document["workload"]
    assert (workload["blocks_per_request"], workload["shared_blocks"]) == (532 - 93, 93)
    assert round(workload["concurrency"]["low"], 2) == 11.45
    assert workload["service_concurrency"]["low"] == 11


@pytest.mark.parametrize(("card", "tokens"), [("24GB", 9155), ("24GiB", 9830)])
def test_five_points_of_utilisation_are_worth_their_tokens(
    card: str, tokens: int, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = ("--gpu-memory", card, "--weights", "15GiB", "--reserve", "1GiB")
    _, before = plan(capsys, "llama-3.1-8b", *parts, "--gpu-memory-utilization", "0.90")
    _, after = plan(capsys, "llama-3.1-8b", *parts, "--gpu-memory-utilization", "0.95")
    gained = after["budget"]["kv_cache_bytes"]["low"] - before["budget"]["kv_cache_bytes"]["low"]
    assert gained // (128 * KIB) == tokens


def test_missing_keys_follow_the_heads(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "hidden_size": 512, "num_attention_heads": 8}'
    )
    _, document = plan(capsys, config, "--dtype", "bfloat16")
    assert document["layout"]["bytes_per_token"] == 2 * 2 * 8 * 64 * 2


def test_an_unknown_architecture_is_refused_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"architectures": ["ZebraForCausalLM"], "num_hidden_layers": 2}')
    assert "ZebraForCausalLM" in refusal_of(capsys, config)


def test_a_flag_that_the_release_does_not_have_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    config = ARITH / "ex9-kimi-k2-tp8" / "config.json"
    words = ("--vllm-version", "0.10.1", "--tensor-parallel-size", "8", "--decode-context-parallel-size", "8")
    assert refusal_of(capsys, config, *words) == (
        "kvguard: --decode-context-parallel-size: vLLM 0.10.1 does not have it; it came with 0.10.2"
    )
