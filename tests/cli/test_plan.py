"""`kvguard plan`: statuses, what CONFIG may be, pools, logs as pools, and what is refused in one line."""

import argparse
import io
import json
import os
import re
import struct
import threading
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.plan import configure
from kvguard.units import GIB
from tests.conftest import FIXTURES
from tests.kvcache.asking import MODELS, plan, refusal_of

Capture = pytest.CaptureFixture[str]

STORY = FIXTURES / "logs/story"
LLAMA = "llama-3.1-8b"
BAMBA = str(MODELS / "tiny-bamba.json")
CARD = ("--gpu-memory", "24GiB", "--max-model-len", "8192")


def page(capsys: Capture, *words: str) -> tuple[int, str]:
    """The exit status and the text for people, in one line, so that no break matters."""
    status = main(["plan", *words])
    return status, " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "words, status",
    [
        ((), 0),
        (("--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192"), 0),
        (("--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192", "--min-concurrency", "4"), 0),
        (("--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192", "--min-concurrency", "4.1"), 1),
        (("--kv-cache-memory-bytes", "4GiB"), 1),  # 131,072 tokens do not fit: vLLM refuses to start
        (("--kv-cache-memory-bytes", "15GiB..17GiB"), 3),  # one end starts, the other does not
        ((*CARD, "--min-concurrency", "5"), 3),  # inside the uncertainty of the estimate
        ((*CARD, "--min-concurrency", "3"), 0),
        (("--min-concurrency", "1"), 3),  # without a pool nothing can be said
    ],
)
def test_the_status_is_that_of_the_start_and_the_target(words: tuple[str, ...], status: int, capsys: Capture) -> None:
    assert main(["plan", LLAMA, *words]) == status


@pytest.mark.parametrize(
    "words, told",
    [
        (("no-such-model",), "no such file or folder, and no model known by that name"),
        (("lama-3.1-8b",), "did you mean llama-3.1-8b? (`kvguard plan --models` lists them)"),
        ((LLAMA, "--kv-cache-memory-bytes", "4GiB", "--gpu-memory", "24GiB"), "at most one"),
        ((LLAMA, "--from-log", str(STORY / "rag-24gb.log"), "--gpu-memory", "24GiB"), "give at most one pool"),
        ((LLAMA, "--vllm-version", "0.10.1", "--decode-context-parallel-size", "2"), "it came with 0.10.2"),
        ((LLAMA, "--vllm-version", "0.13.0", "--max-model-len", "auto"), "it came with 0.14.0"),
        ((LLAMA, "--vllm-version", "0.11.0", "--engine", "v0"), "the last release with it is 0.10.2"),
        ((LLAMA, "--vllm-version", "0.5.0"), "older than 0.6.3"),
        ((LLAMA, "--vllm-version", "newest"), "not a vLLM version"),
        ((LLAMA, "--tensor-parallel-size", "3"), "32 attention heads; use a divisor"),
        ((LLAMA, "--block-size", "0"), "at least 1 is needed"),
        ((LLAMA, "--block-size", "7"), "no attention backend takes it"),
        ((LLAMA, "--max-model-len", "0"), "at least 1 is needed"),
        ((LLAMA, "--prompt-tokens", "10", "--concurrent-requests", "0"), "nothing is asked for"),
        ((LLAMA, "--pipeline-parallel-size", "33"), "more stages than the model has layers"),
        ((LLAMA, "--draft-layers", "9999999"), "more than any model has"),
        ((LLAMA, "--kv-cache-dtype", "fp7"), "fp7"),
        ((LLAMA, "--gpu-memory", "24GiB", "--quantization", "magic"), "its bits a weight are not known"),
        ((LLAMA, "--from-log", "no-such.log"), "no-such.log"),
        ((BAMBA, "--vllm-version", "0.9.1", "--engine", "v1"), "with V0 only"),
    ],
)
def test_what_cannot_be_planned_is_one_line(words: tuple[str, ...], told: str, capsys: Capture) -> None:
    line = refusal_of(capsys, *words)

    assert told in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "words",
    [
        ("--gpu-memory", "24 apples"),
        ("--gpu-memory", "24"),
        ("--kv-cache-memory-bytes", "4GiB..3GiB"),
        ("--gpu-memory-utilization", "5"),
        ("--min-concurrency", "nan"),
    ],
)
def test_a_figure_that_is_none_is_a_usage_error(words: tuple[str, ...], capsys: Capture) -> None:
    assert main(["plan", LLAMA, *words]) == 2
    assert words[0] in capsys.readouterr().err


@pytest.mark.parametrize("written, length", [("8192", 8192), ("8,192", 8192), ("8K", 8192), ("8k", 8000)])
def test_a_length_is_read_as_vllm_reads_it(written: str, length: int, capsys: Capture) -> None:
    _, document = plan(capsys, LLAMA, "--max-model-len", written)

    assert document["options"]["max_model_len"] == length


def test_an_architecture_that_is_not_known_is_named(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["NewThingForCausalLM"], "num_hidden_layers": 2}))

    assert "NewThingForCausalLM" in refusal_of(capsys, config)


def test_a_layer_type_that_is_not_known_is_named(tmp_path: Path, capsys: Capture) -> None:
    document = json.loads((MODELS / "tiny-gemma3.json").read_text())
    kinds = ["full_attention"] * (document["num_hidden_layers"] - 1) + ["quantum_attention"]
    config = tmp_path / "config.json"
    config.write_text(json.dumps(document | {"layer_types": kinds}))

    assert "quantum_attention" in refusal_of(capsys, config)


@pytest.mark.parametrize("window", [[4096, None], "4096", True])
def test_a_window_that_is_no_number_is_refused(window: object, tmp_path: Path, capsys: Capture) -> None:
    document = json.loads((MODELS / "tiny-mistral-sw.json").read_text())
    config = tmp_path / "config.json"
    config.write_text(json.dumps(document | {"sliding_window": window}))

    assert '"sliding_window" of the model config is' in refusal_of(capsys, config)


def test_a_nested_config_takes_what_it_is_silent_on_from_its_class(tmp_path: Path, capsys: Capture) -> None:
    text = {"model_type": "llama", "vocab_size": 32064, "max_position_embeddings": 4096}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["LlavaForConditionalGeneration"], "text_config": text}))
    _, document = plan(capsys, config)

    assert document["layout"]["bytes_per_token"] == 2 * 32 * 32 * 128 * 2


def test_the_config_may_come_from_stdin(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO((MODELS / "tiny-llama.json").read_text()))
    status, document = plan(capsys, "-")
    _, same = plan(capsys, MODELS / "tiny-llama.json")

    assert status == 0
    assert document["layout"] == same["layout"]


def model_folder(folder: Path) -> Path:
    (folder / "config.json").write_text((MODELS / "tiny-llama.json").read_text())
    return folder


def test_a_folder_tells_the_weights_by_its_index(tmp_path: Path, capsys: Capture) -> None:
    folder = model_folder(tmp_path)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 3 * GIB}}))
    _, document = plan(capsys, folder, "--gpu-memory", "8GiB")

    weights = document["budget"]["weights_bytes"]
    assert weights["source"] == "checkpoint"
    assert weights["low"] <= 3 * GIB <= weights["high"]


def test_a_folder_without_an_index_tells_them_by_its_headers(tmp_path: Path, capsys: Capture) -> None:
    folder = model_folder(tmp_path)
    header = json.dumps(
        {"__metadata__": {"format": "pt"}, "a": {"data_offsets": [0, GIB]}, "b": {"data_offsets": [GIB, 2 * GIB]}}
    ).encode()
    (folder / "model-00001.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    _, document = plan(capsys, folder, "--gpu-memory", "8GiB")

    weights = document["budget"]["weights_bytes"]
    assert weights["low"] <= 2 * GIB <= weights["high"]


def test_a_broken_index_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    folder = model_folder(tmp_path)
    (folder / "model.safetensors.index.json").write_text("{")

    assert "model.safetensors.index.json:1: not JSON" in refusal_of(capsys, folder, "--gpu-memory", "8GiB")


def test_a_log_for_a_config_is_told_where_it_goes(capsys: Capture) -> None:
    told = refusal_of(capsys, str(STORY / "rag-24gb.log"), "--gpu-memory", "8GiB")

    assert told.endswith("not a model's config.json, which is JSON; a log goes behind --from-log")


def test_a_broken_checkpoint_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    folder = model_folder(tmp_path)
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)

    assert "not a safetensors file" in refusal_of(capsys, folder, "--gpu-memory", "8GiB")


def test_every_part_of_the_card_is_there_with_its_source(capsys: Capture) -> None:
    _, document = plan(capsys, LLAMA, *CARD, "--weights", "~14.99GiB", "--gpu-memory-utilization", "0.9")
    budget = document["budget"]

    assert {name: part["source"] for name, part in budget.items() if isinstance(part, dict)} == {
        "total_bytes": "given",
        "usable_bytes": "given",
        "weights_bytes": "given",
        "reserve_bytes": "estimate",
        "kv_cache_bytes": "computed",
    }
    assert budget["usable_bytes"]["low"] == int(24 * GIB * 0.9)
    assert budget["weights_bytes"]["high"] - budget["weights_bytes"]["low"] < 0.011 * GIB


def test_a_nominal_card_is_a_listed_assumption(capsys: Capture) -> None:
    _, nominal = plan(capsys, LLAMA, *CARD)
    _, measured = plan(capsys, LLAMA, "--gpu-memory", "~22.05GiB", "--max-model-len", "8192")

    assert "nominal size" in next(row["why"] for row in nominal["assumptions"] if "gpu" in row["option"])
    assert not [row for row in measured["assumptions"] if "gpu" in row["option"]]


@pytest.mark.parametrize(
    ("memory", "release", "batch"),
    [
        ("119.6GiB", "0.33.0", 2048),
        ("119.6GiB", "0.32.0", 8192),
        ("119.2GiB", "0.33.0", 8192),
        ("24GiB", "0.33.0", 2048),
    ],
)
def test_a_dgx_spark_is_told_from_cards_of_128_gb(memory: str, release: str, batch: int, capsys: Capture) -> None:
    words = ("llama-3.1-8b", "--gpu-memory", memory, "--max-model-len", "8192", "--vllm-version", release)

    _, told = page(capsys, *words)

    assert re.search(r"--max-num-batched-tokens +(\d+)", told)[1] == str(batch)  # type: ignore[index]


def test_the_page_says_what_fits_and_what_is_assumed(capsys: Capture) -> None:
    status, text = page(capsys, LLAMA, "--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192")

    assert status == 0
    assert text.startswith("PASS would start; maximum concurrency at 8,192 tokens is 4 requests llama-3.1-8b · ")
    assert "131,072 bytes a token" in text
    assert "GPU blocks 2,048" in text
    assert "KV cache size 32,768 tokens" in text
    assert "maximum concurrency 4.00 requests of 8,192 tokens" in text
    assert "longest context 32,752 tokens: the max_model_len with which it would start" in text
    assert "--vllm-version 0.33.0 the newest that was tested" in text


def test_without_a_pool_the_page_is_the_layout(capsys: Capture) -> None:
    status, text = page(capsys, LLAMA)

    assert status == 0
    assert "A block costs 2,097,152 bytes a rank" in text
    assert "One engine holds" not in text


@pytest.mark.parametrize(
    "words, headline",
    [
        ("", "no pool given, so the layout only llama-3.1-8b · "),
        ("--min-concurrency 2", "UNKNOWN no pool given, so the layout only → give the card, --gpu-memory SIZE, or"),
        ("--kv-cache-memory-bytes 4GiB", "FAIL would not start: a context of 131,072 tokens is asked for, 32,752 fit"),
        ("--gpu-memory 12GiB", "FAIL would not start: nothing is left for the KV cache llama-3.1-8b · "),
        (
            "--kv-cache-memory-bytes 4GiB --max-model-len 200000",
            "FAIL would not start: a context of 200,000 tokens is asked for, the model has no more than 131,072 llama",
        ),
        (
            "--kv-cache-memory-bytes 4GiB --max-model-len 8192 --min-concurrency 4.5",
            "FAIL would start; maximum concurrency at 8,192 tokens is 4 requests, below the 4.50 asked for llama",
        ),
        (
            "--kv-cache-memory-bytes 3GiB..5GiB --max-model-len 8192 --min-concurrency 4",
            "UNKNOWN would start; maximum concurrency at 8,192 tokens is 3 to 5 requests; whether the 4 asked for, the",
        ),
        (
            "--gpu-memory 24GiB --max-model-len 45000",
            "UNKNOWN may not start: a context of 45,000 tokens is asked for, 34,240 to 57,568 fit in the KV cache → "
            "--from-log LOG of any start on that machine, or --reserve SIZE, narrows what is estimated llama",
        ),
        (
            "--kv-cache-memory-bytes 4GiB --max-model-len 8192 --prompt-tokens 6000 --output-tokens 500 "
            "--concurrent-requests 5 --data-parallel-size 2",
            "PASS would start; 10 requests of 6,500 tokens run at once, at least the 5 asked for llama",
        ),
        (
            "--kv-cache-memory-bytes 4GiB --max-model-len 8192 --max-num-batched-tokens 9000 --max-num-seqs 9001",
            "FAIL would not start: max_num_batched_tokens (9000) must be greater than or equal to max_num_seqs (9001)",
        ),
    ],
)
def test_the_first_line_is_the_answer(words: str, headline: str, capsys: Capture) -> None:
    assert page(capsys, LLAMA, *words.split())[1].startswith(headline)


def test_a_miss_ends_with_what_to_change(capsys: Capture) -> None:
    words = (LLAMA, "--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192", "--min-concurrency", "6")
    status, text = page(capsys, *words)

    assert status == 1
    assert "Target, 6 requests of max_model_len an engine: missed" in text
    assert "✔ --kv-cache-dtype fp8 8 a little accuracy" in text
    assert "the pool is not enlarged" in text


def test_a_card_that_the_weights_do_not_fit_on_holds_nothing_not_less(capsys: Capture) -> None:
    words = ("llama-3.1-70b", "--gpu-memory", "24GiB")
    status, document = plan(capsys, *words)
    _, text = page(capsys, *words)

    assert status == 1
    assert document["capacity"]["gpu_blocks"] == {"low": 0, "high": 0}
    assert document["capacity"]["max_concurrency"] == {"low": 0, "high": 0}
    assert "gives -" not in text
    assert max(len(word) for word in text.split() if "█" in word) == 40


def test_of_requests_longer_than_the_context_none_is_served(capsys: Capture) -> None:
    words = (LLAMA, "--kv-cache-memory-bytes", "20GiB", "--max-model-len", "4096", "--prompt-tokens", "5000")
    status, document = plan(capsys, *words, "--output-tokens", "500", "--concurrent-requests", "4")
    gains = {lever["flag"]: lever for lever in document["target"]["levers"]}

    assert status == 1
    assert document["workload"]["service_concurrency"] == {"low": 0, "high": 0}
    assert document["target"]["outcome"] == "fail"
    assert gains["tokens a request"]["value"] == "at most 4,096"
    assert not gains["--kv-cache-dtype"]["meets"]


def test_a_load_is_helped_by_nothing_that_leaves_the_start_refused(capsys: Capture) -> None:
    words = (LLAMA, "--kv-cache-memory-bytes", "10GiB", "--prompt-tokens", "3000", "--output-tokens", "500")
    status, document = plan(capsys, *words, "--concurrent-requests", "40")
    helps = {lever["flag"] for lever in document["target"]["levers"] if lever["meets"]}

    assert status == 1
    assert document["starts"] is False
    assert "--kv-cache-dtype" in helps
    assert "tokens a request" not in helps


def test_no_request_is_said_to_run_on_a_server_that_would_not_start(capsys: Capture) -> None:
    words = ("--kv-cache-memory-bytes", "10GiB", "--prompt-tokens", "3000", "--output-tokens", "500")
    _, text = page(capsys, LLAMA, *words)

    assert "23.37 would fit, but the server would not start" in text
    assert "run at once" not in text


def test_memory_that_a_declared_cache_does_not_take_helps_nobody(capsys: Capture) -> None:
    words = (LLAMA, "--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192", "--min-concurrency", "6")
    _, document = plan(capsys, *words)
    flags = {lever["flag"] for lever in document["target"]["levers"]}

    assert "--kv-cache-memory-bytes" in flags
    assert not flags & {"--quantization", "--gpu-memory-utilization", "--max-num-seqs"}


def test_a_release_that_nobody_has_tested_is_said_to_be_one(capsys: Capture) -> None:
    _, text = page(capsys, LLAMA, "--vllm-version", "0.99")

    assert "--vllm-version 0.99.0 by the rules of 0.33.0, the newest that was tested" in text


def test_a_load_is_counted_in_whole_blocks(capsys: Capture) -> None:
    words = ("--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192", "--prompt-tokens", "6000")
    _, document = plan(capsys, LLAMA, *words, "--output-tokens", "500", "--concurrent-requests", "6")

    load = document["workload"]
    assert load["blocks_per_request"] == 407
    assert load["concurrency"]["low"] == pytest.approx(2047 / 407)
    assert load["limited_by"] == "kv_cache"
    assert document["target"]["outcome"] == "fail"


def test_a_refused_log_gives_its_measured_parts(capsys: Capture) -> None:
    status, document = plan(capsys, LLAMA, "--from-log", str(STORY / "l4-default-context.log"))
    budget = document["budget"]

    assert status == 1
    assert budget["weights_bytes"]["low"] <= 14.99 * GIB <= budget["weights_bytes"]["high"]
    assert budget["kv_cache_bytes"]["source"] == "measured"
    assert document["capacity"]["largest_max_model_len"]["low"] <= 28368 <= 28448
    assert ("max_model_len", 131072, "as in the log") in [tuple(row.values()) for row in document["assumptions"]]


def test_a_log_answers_for_other_flags(capsys: Capture) -> None:
    log = ("--from-log", str(STORY / "l4-default-context.log"))
    status, shorter = plan(capsys, LLAMA, *log, "--max-model-len", "16384")
    _, lighter = plan(capsys, LLAMA, *log, "--max-model-len", "16384", "--weights", "~5.37GiB")
    _, higher = plan(capsys, LLAMA, *log, "--max-model-len", "16384", "--gpu-memory-utilization", "0.95")

    assert status == 0
    assert shorter["starts"] is True
    gained = {
        name: document["budget"]["kv_cache_bytes"]["low"] - shorter["budget"]["kv_cache_bytes"]["low"]
        for name, document in {"lighter": lighter, "higher": higher}.items()
    }
    assert gained["lighter"] / GIB == pytest.approx(14.99 - 5.37, abs=0.04)
    assert gained["higher"] / GIB == pytest.approx(22.05 * 0.05, abs=0.04)


def test_parts_that_a_release_prints_together_are_told_apart(capsys: Capture) -> None:
    log = str(STORY.parent / "public/cb-colab-v2runner-0310.log")
    _, document = plan(capsys, "qwen2.5-1.5b", "--from-log", log, "--gpu-memory-utilization", "0.92")
    budget = document["budget"]

    # 3.31 GiB consumed of which 2.98 weights, a peak of 0.79 with 0.35 of CUDA graphs in it: 0.33 + 0.44 + 0.35
    assert budget["reserve_bytes"]["low"] < 1.12 * GIB < budget["reserve_bytes"]["high"]
    assert budget["reserve_bytes"]["high"] - budget["reserve_bytes"]["low"] < 0.04 * GIB


def test_a_log_without_bytes_still_tells_its_blocks(capsys: Capture) -> None:
    status, document = plan(capsys, LLAMA, "--from-log", str(STORY / "rag-24gb.log"))

    assert status == 0
    assert document["capacity"]["gpu_blocks"] == {"low": 2560, "high": 2560}
    assert document["capacity"]["printed"]["low"][-1].endswith("1.25x")


def test_the_memory_of_a_log_holds_twice_the_blocks_at_half_the_bytes(capsys: Capture) -> None:
    """As the same server did with an FP8 cache: 3,686 blocks, 3.60x (fixtures/logs/story/16k-fp8-cache.log)."""
    _, document = plan(capsys, LLAMA, "--from-log", str(STORY / "16k-bf16-cache.log"), "--kv-cache-dtype", "fp8")

    assert document["capacity"]["gpu_blocks"] == {"low": 3686, "high": 3687}
    assert document["capacity"]["max_concurrency"]["low"] == pytest.approx(3.5996, abs=1e-4)


def test_a_log_s_ranks_are_not_those_of_another_number(capsys: Capture) -> None:
    words = ("--from-log", str(STORY / "16k-bf16-cache.log"), "--tensor-parallel-size", "2")

    assert "--tensor-parallel-size 2: the log measured ranks of 1" in refusal_of(capsys, LLAMA, *words)


def test_what_a_log_does_not_say_and_its_blocks_hang_on_is_named(capsys: Capture) -> None:
    _, text = page(capsys, LLAMA, "--from-log", str(STORY / "rag-24gb.log"), "--kv-cache-dtype", "fp8")

    assert "--kv-cache-dtype fp8 taken to be the log's as well, which does not say" in text
    assert "blocks 2,560" in text


def test_a_config_that_does_not_give_what_its_log_printed_is_refused(capsys: Capture) -> None:
    log = FIXTURES / "logs/runs/vllm-0.32.0-cpu-base/server.log"  # of tiny-llama: 256.00x

    assert "it printed 256.00x, this config gives 1.99x to 2.01x" in refusal_of(capsys, LLAMA, "--from-log", str(log))
    assert main(["plan", str(MODELS / "tiny-llama.json"), "--from-log", str(log)]) == 0


def test_flags_that_a_log_does_not_tell_follow_from_its_figures(capsys: Capture) -> None:
    log = ("--from-log", str(FIXTURES / "logs/runs/vllm-0.32.0-cpu-gemma3-hybrid/server.log"))
    config = str(MODELS / "tiny-gemma3.json")

    _, document = plan(capsys, config, *log)
    settled = {note["option"]: note["value"] for note in document["assumptions"] if "figures" in note["why"]}
    assert settled == {"block_size": 128, "max_num_batched_tokens": 2048, "async_scheduling": False}
    _, said = plan(capsys, config, *log, "--block-size", "128", "--no-async-scheduling")
    assert said["capacity"] == document["capacity"]


def test_another_value_than_the_one_that_the_log_s_figures_prove_is_a_question(capsys: Capture) -> None:
    """Smaller blocks over the same bytes: less is lost in each request's last ones."""
    log = ("--from-log", str(FIXTURES / "logs/runs/vllm-0.32.0-cpu-gemma3-hybrid/server.log"))
    then, now = (
        plan(capsys, str(MODELS / "tiny-gemma3.json"), *log, *flags)[1]["capacity"]["max_concurrency"]["low"]
        for flags in ((), ("--block-size", "64"))
    )

    assert now > then


@pytest.mark.parametrize(
    "run, printed",
    [("vllm-0.32.0-cpu-blocks-override", 1.56), ("vllm-0.13.0-cpu-blocks-override-load", 6.25)],
)
def test_blocks_that_an_option_set_are_the_log_s_as_well(run: str, printed: float, capsys: Capture) -> None:
    log = FIXTURES / f"logs/runs/{run}/server.log"
    _, document = plan(capsys, str(MODELS / "tiny-llama.json"), "--from-log", str(log))

    assert document["capacity"]["gpu_blocks"] == {"low": 100, "high": 100}
    assert round(document["capacity"]["max_concurrency"]["low"], 2) == printed
    assert ("num_gpu_blocks_override", 100) in [(row["option"], row["value"]) for row in document["assumptions"]]


def test_a_log_that_is_no_start_is_refused(tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "other.log"
    other.write_text("nothing of vLLM\n")

    assert "no start of a vLLM server" in refusal_of(capsys, LLAMA, "--from-log", str(other))


def test_the_page_is_drawn_for_the_terminal_that_it_goes_to(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    main(["plan", LLAMA, "--gpu-memory", "24GiB"])
    refusal = capsys.readouterr().out.partition("vLLM would say")[2].partition("\n\n")[0]

    assert {len(line) <= 60 for line in refusal.splitlines() if "https://" not in line} == {True}


def test_every_flag_is_documented() -> None:
    parser = argparse.ArgumentParser()
    configure(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")}
    text = (FIXTURES.parent / "docs/plan.md").read_text()

    assert {flag for flag in flags - {"--help"} if flag not in text} == set()


def test_the_public_models_are_listed_each_with_its_repository(capsys: Capture) -> None:
    assert main(["plan", "--models"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]

    assert ["llama-3.1-8b", "meta-llama/Llama-3.1-8B"] in rows
    assert all(len(row) == 2 and "/" in row[1] for row in rows)


def test_a_model_is_known_by_its_repository_too(capsys: Capture) -> None:
    _, by_name = plan(capsys, LLAMA)
    _, by_repository = plan(capsys, "meta-llama/Llama-3.1-8B")

    assert by_repository["layout"] == by_name["layout"]


def test_without_a_model_the_list_of_them_is_named(capsys: Capture) -> None:
    assert main(["plan"]) == 2
    assert "which model? Give a config.json, a folder or a name" in capsys.readouterr().err


def test_a_server_that_would_not_start_serves_nothing(capsys: Capture) -> None:
    """Of the two ends of a pool that straddles the answer, one starts."""
    load = ("--prompt-tokens", "7500", "--output-tokens", "1000")
    refused = plan(capsys, LLAMA, "--kv-cache-memory-bytes", "4GiB", *load)[1]["workload"]
    open_ = plan(capsys, LLAMA, "--kv-cache-memory-bytes", "15GiB..17GiB", *load)[1]["workload"]

    assert (refused["concurrency"]["low"], refused["service_concurrency"]) == (2047 / 532, {"low": 0, "high": 0})
    assert open_["service_concurrency"] == {"low": 0, "high": 16}


def test_a_length_beyond_the_model_s_own_is_met_by_that_alone(capsys: Capture) -> None:
    """No memory makes vLLM take it."""
    _, ample = plan(capsys, LLAMA, "--gpu-memory", "200GiB", "--max-model-len", "262144")
    _, scarce = plan(capsys, LLAMA, "--kv-cache-memory-bytes", "4GiB", "--max-model-len", "262144")

    assert ample["capacity"]["largest_max_model_len"]["low"] == 131_072
    assert [(one["flag"], one["value"], one["meets"]) for one in ample["target"]["levers"]] == [
        ("--max-model-len", "131072", True)
    ]
    assert [one["value"] for one in scarce["target"]["levers"]] == ["32752"]


def test_a_load_is_served_by_a_context_that_starts(capsys: Capture) -> None:
    words = ("--kv-cache-memory-bytes", "4GiB", "--prompt-tokens", "1000", "--concurrent-requests", "10")
    _, document = plan(capsys, LLAMA, *words)

    first = document["target"]["levers"][0]
    assert (first["flag"], first["value"], first["meets"]) == ("--max-model-len", "32752", True)
    assert first["gives"] == {"low": 2047 / 63, "high": 2047 / 63}
    assert plan(capsys, LLAMA, *words, "--max-model-len", "32752")[0] == 0


def test_a_log_of_another_model_is_named(capsys: Capture) -> None:
    _, text = page(capsys, "qwen3-32b", "--from-log", str(STORY / "16k-fp8-cache.log"))

    assert "--model meta-llama/Llama-3.1-8B-Instruct as the log names it; CONFIG is taken to be its" in text


def test_a_config_may_come_from_a_pipe(tmp_path: Path, capsys: Capture) -> None:
    pipe = tmp_path / "config"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes((MODELS / "tiny-llama.json").read_bytes()))
    writer.start()
    status = main(["plan", str(pipe)])
    writer.join()

    assert status == 0


def test_more_sequences_than_tokens_in_a_step_are_refused_and_counted_all_the_same(capsys: Capture) -> None:
    few = ("--kv-cache-memory-bytes", "4GiB", "--max-model-len", "8192", "--max-num-batched-tokens", "128")
    load = ("--prompt-tokens", "1000")
    status, document = plan(capsys, LLAMA, *few, *load, "--max-num-seqs", "256")

    assert (status, document["starts"], document["refusal"]["kind"]) == (1, False, "invalid_config")
    assert document["refusal"]["printed"].startswith("max_num_batched_tokens (128) must be greater than or equal to")
    assert document["workload"]["service_concurrency"] == {"low": 32, "high": 32}
    assert [(one["flag"], one["value"]) for one in document["target"]["levers"]] == [
        ("--max-num-batched-tokens", "256")
    ]
    assert plan(capsys, LLAMA, *few, *load)[0] == 0  # its default then is no more either


def test_of_two_targets_the_worse_decides(capsys: Capture) -> None:
    words = ("--kv-cache-memory-bytes", "4GiB", "--max-model-len", "16384", "--min-concurrency", "8")
    load = ("--prompt-tokens", "100", "--output-tokens", "100", "--concurrent-requests", "2")
    status, document = plan(capsys, LLAMA, *words, *load)

    assert (status, document["target"]["outcome"]) == (1, "fail")
    assert [(one["requests"], one["of"], one["outcome"]) for one in document["target"]["asked"]] == [
        (2, "workload", "pass"),
        (8, "max_model_len", "fail"),
    ]
    assert "Target, 2 requests of the workload: met Target, 8 requests" in page(capsys, LLAMA, *words, *load)[1]


def test_a_refusal_that_names_the_cache_s_bytes_is_a_pool(capsys: Capture) -> None:
    """1.00 GiB was there, and 8.00 GiB was needed."""
    log = str(FIXTURES / "logs/runs/vllm-0.13.0-cpu-toolong/server.log")
    config = str(MODELS / "tiny-llama-big.json")

    assert plan(capsys, config, "--from-log", log)[1]["starts"] is False
    assert main(["plan", config, "--from-log", log, "--max-model-len", "16256"]) == 0
