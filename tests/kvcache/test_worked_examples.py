"""Figures from public logs that are no case of their own: whole blocks, heads replicated by TP, layers by stage."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kvcache.asking import plan, refusal_of


def written(folder: Path, **config: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def llama(folder: Path, layers: int = 2, heads: int = 64, kv_heads: int = 8, **more: Any) -> Path:
    return written(
        folder,
        architectures=["LlamaForCausalLM"],
        num_hidden_layers=layers,
        hidden_size=heads * 128,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        torch_dtype="bfloat16",
        max_position_embeddings=131072,
        **more,
    )


def test_concurrency_counts_whole_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--num-gpu-blocks-override", "29220", "--max-model-len", "5000", "--vllm-version", "0.9.2")
    _, document = plan(capsys, "llama-3.1-8b", *words, "--data-parallel-size", "2")
    capacity = document["capacity"]
    assert capacity["printed"]["low"][1].endswith("93.35x")
    assert capacity["total_max_concurrency"]["low"] == pytest.approx(2 * 29220 / 313)


def test_a_pool_of_one_kind_holds_fewer_requests_than_tokens_say(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--num-gpu-blocks-override", "4818", "--prompt-tokens", "1000", "--output-tokens", "70")
    _, document = plan(capsys, "qwen2.5-7b", *words)
    assert document["workload"]["service_concurrency"]["low"] == 71


@pytest.mark.parametrize(("tp", "bytes_per_token"), [(1, 327680), (4, 81920), (8, 40960), (16, 40960)])
def test_beyond_its_kv_heads_tensor_parallelism_adds_nothing(
    tp: int, bytes_per_token: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = plan(capsys, "llama-3.1-70b", "--tensor-parallel-size", str(tp))
    assert document["layout"]["bytes_per_token"] == bytes_per_token


def test_latents_are_not_split(capsys: pytest.CaptureFixture[str]) -> None:
    _, one = plan(capsys, "deepseek-v3", "--block-size", "64")
    _, eight = plan(capsys, "deepseek-v3", "--block-size", "64", "--tensor-parallel-size", "8")
    assert one["layout"]["bytes_per_block"] == eight["layout"]["bytes_per_block"] == 61 * 64 * 576 * 2


def test_sparse_latents_carry_their_indexer(capsys: pytest.CaptureFixture[str]) -> None:
    _, plain = plan(capsys, "deepseek-v3.2")
    _, packed = plan(capsys, "deepseek-v3.2", "--kv-cache-dtype", "fp8")
    assert plain["layout"]["bytes_per_block"] == 61 * 64 * (576 * 2 + 132)
    assert packed["layout"]["bytes_per_block"] == 61 * 64 * (656 + 132)
    assert packed["options"]["kv_cache_dtype"] == "fp8_ds_mla"
    assert plain["model"]["layers"] == {"mla_attention": 61, "mla_indexer": 61}


@pytest.mark.parametrize(
    ("dtype", "row"),
    [
        ("auto", 2 * 128 * 2),
        ("fp8", 2 * 128),
        ("int8_per_token_head", 2 * (128 + 4)),
        ("int4_per_token_head", 2 * (64 + 4)),
        ("nvfp4", 2 * (64 + 8)),
    ],
)
def test_each_kv_dtype_has_its_page(dtype: str, row: int, capsys: pytest.CaptureFixture[str]) -> None:
    _, document = plan(capsys, "llama-3.1-8b", "--kv-cache-dtype", dtype)
    assert document["layout"]["bytes_per_block"] == 32 * 8 * 16 * row


def test_stages_hold_their_own_layers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = llama(tmp_path, layers=61)
    _, even = plan(capsys, config, "--pipeline-parallel-size", "4")
    _, given = plan(capsys, config, "--pipeline-parallel-size", "2", "--pp-layer-partition", "40,21")
    assert [stage["layers"] for stage in even["layout"]["stages"]] == [15, 15, 16, 15]
    assert [stage["layers"] for stage in given["layout"]["stages"]] == [40, 21]


def test_the_smallest_stage_decides(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = llama(tmp_path, layers=4)
    words = ("--pipeline-parallel-size", "2", "--kv-cache-memory-bytes", "2GiB", "--kv-cache-memory-bytes", "1GiB")
    _, document = plan(capsys, config, *words)
    assert document["capacity"]["limiting_stage"] == 1
    assert document["capacity"]["gpu_blocks"]["low"] == 2**30 // (2 * 65536)


def test_ranks_take_the_minimum(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--tensor-parallel-size", "2", "--kv-cache-memory-bytes", "8GiB", "--kv-cache-memory-bytes", "7GiB")
    _, document = plan(capsys, "llama-3.1-8b", *words)
    assert document["capacity"]["gpu_blocks"]["low"] == 7 * 2**30 // (32 * 32768)


@pytest.mark.parametrize(("tp", "word"), [(3, "32 attention heads"), (5, "32 attention heads")])
def test_heads_that_do_not_divide_are_refused(tp: int, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert word in refusal_of(capsys, "llama-3.1-8b", "--tensor-parallel-size", str(tp))


def test_a_drafter_s_layers_pad_the_groups(capsys: pytest.CaptureFixture[str]) -> None:
    _, document = plan(capsys, "gpt-oss-20b", "--draft-layers", "1", "--block-size", "16")
    rows = {row["kind"]: row for row in document["layout"]["groups"]}
    assert (rows["sliding_window"]["layers"], rows["sliding_window"]["padding_layers"]) == (12, 1)
    assert (rows["full_attention"]["layers"], rows["full_attention"]["padding_layers"]) == (13, 0)


def test_llama4_frees_its_chunks_where_the_release_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = written(
        tmp_path,
        architectures=["Llama4ForConditionalGeneration"],
        text_config={
            "model_type": "llama4_text",
            "num_hidden_layers": 48,
            "hidden_size": 5120,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "attention_chunk_size": 8192,
            "max_position_embeddings": 1048576,
            "torch_dtype": "bfloat16",
        },
    )
    words = ("--max-model-len", "131072", "--max-num-batched-tokens", "8192", "--block-size", "16")
    _, kept = plan(capsys, config, *words, "--vllm-version", "0.12.0")
    _, freed = plan(capsys, config, *words, "--vllm-version", "0.19.0")
    assert [row["kind"] for row in kept["layout"]["groups"]] == ["full_attention"]
    assert [(row["kind"], row["groups"], row["blocks_per_request"]) for row in freed["layout"]["groups"]] == [
        ("chunked_local_attention", 3, 1024),
        ("full_attention", 1, 8192),
    ]


def test_an_encoder_keeps_no_cache(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = written(
        tmp_path,
        architectures=["BertModel"],
        num_hidden_layers=12,
        hidden_size=768,
        num_attention_heads=12,
        max_position_embeddings=512,
    )
    status, document = plan(capsys, config, "--kv-cache-memory-bytes", "1GiB")
    assert status == 0
    assert document["capacity"] is None
    assert document["layout"]["groups"] == []


@pytest.mark.parametrize(
    "both_ways, groups",
    [(True, []), *((no, [("sliding_window", 5), ("full_attention", 1)]) for no in (False, None))],
)
def test_a_gemma_that_attends_both_ways_is_an_encoder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, both_ways: bool | None, groups: list[tuple[str, int]]
) -> None:
    config = written(
        tmp_path,
        architectures=["Gemma3TextModel"],
        model_type="gemma3_text",
        num_hidden_layers=24,
        hidden_size=768,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=256,
        sliding_window=512,
        sliding_window_pattern=6,
        max_position_embeddings=2048,
        torch_dtype="bfloat16",
        **({} if both_ways is None else {"use_bidirectional_attention": both_ways}),
    )
    document = plan(capsys, config, "--kv-cache-memory-bytes", "1GiB")[1]
    assert [(group["kind"], group["groups"]) for group in document["layout"]["groups"]] == groups


def test_layers_that_share_have_no_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = written(
        tmp_path,
        architectures=["Gemma3nForConditionalGeneration"],
        text_config={
            "model_type": "gemma3n_text",
            "num_hidden_layers": 35,
            "hidden_size": 2048,
            "num_kv_shared_layers": 15,
            "sliding_window": 512,
            "max_position_embeddings": 32768,
        },
    )
    _, document = plan(capsys, config, "--dtype", "bfloat16")
    assert document["model"]["layers"] == {"sliding_window": 16, "full_attention": 4, "kv_sharing": 15}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"layer_types": ["full_attention", "wavelet_attention"]}, "wavelet_attention"),
        ({"num_hidden_layers": None}, "num_hidden_layers"),
        ({"num_key_value_heads": "eight"}, "eight"),
    ],
)
def test_what_is_not_known_is_named(
    change: dict[str, Any], named: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = llama(tmp_path)
    config.write_text(json.dumps(json.loads(config.read_text()) | change))
    assert named in refusal_of(capsys, config)
