"""What a stranger wrote into files and flags: SLOs, formats, configs, baselines; one line each, or the right number."""

import json
from pathlib import Path
from typing import Any

import pytest

from kvguard.cli import main
from kvguard.cli.exit_status import MET, MISSED, UNKNOWN, USAGE
from tests.attacks.strangers import RUNS

STORY = RUNS.parent / "story"
FP8 = STORY / "16k-fp8-cache.log"
"""One engine of 3.60 requests of 16,384 tokens, ready after 51 s."""
BASE = RUNS / "vllm-0.32.0-cpu-base" / "server.log"


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What stands on stderr: one line."""
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("objectives: {min_concurrency: .inf}", "not a number"),
        ("objectives: {min_concurrency: -.inf}", "not a number"),
        ("objectives: {min_concurrency: .nan}", "not a number"),
        ("objectives: {min_concurrency: yes}", "not a number"),
        ("objectives: {min_concurrency: }", "not a number"),
        ("objectives: {min_concurrency: [5]}", "not a number"),
        ("objectives: {min_concurrency: 0o10}", "not a number"),
        ("objectives: {min_concurrency: &x [*x]}", "not a number"),
        ("objectives: {require_ready: 1}", "neither true nor false"),
        ('objectives: {require_ready: "yes"}', "neither true nor false"),
        ("objectives: {ready_within: 2026-11-29}", "not a duration"),
        ("objectives: {expect_max_model_len: 16k}", "not a whole number"),
        ("objectives: {min_kv_cache: 1}", "write the unit"),
        ("objectives: {min_kv_cache: 3,4GiB}", "write the unit"),
        ("objectives: {min_concurrency: 99, min_concurrency: 1}", "written twice"),
        ("objectives: [min_concurrency: 5]", "a mapping of keys"),
        ("objectives: !!set {min_concurrency}", "a mapping of keys"),
        ("objectives: !!python/object:os.system {min_concurrency: 1}", "neither YAML nor JSON"),
        ("objectives: {? [a, b] : 1}", "neither YAML nor JSON"),
        ("objectives: {min_concurrency: 99}\n---\nobjectives: {min_concurrency: 1}", "another document"),
        ("base: &b {min_concurrency: 2.5}\nobjectives: {<<: *b}", "no such key"),
        ("version: 2", "not a version"),
        ("version: true", "not a version"),
        ("gate: {mode: Enforce}", "none of enforce, observe"),
        ("workload: {concurrent_requests: 4}", "needs workload.prompt_tokens"),
        ("workload: {prompt_tokens: 9, shared_prefix_tokens: 10, concurrent_requests: 4}", "is more than"),
        ("workload: {max_request_share: 50}", "write 5% or 0.05"),
        ("workload: {max_request_share: 150%}", "write 5% or 0.05"),
        ("workload: {layers: hybrid}", "none of uniform"),
        ("runtime: {max_kv_cache_usage: 95}", "write 5% or 0.05"),
        ("warnings: {thin-margin: fatal}", "none of fail, warn, note, ignore"),
        ("[]", "is a mapping"),
        ("# nothing", "is a mapping"),
    ],
)
def test_an_slo_file_that_may_mean_two_things_is_refused(
    written: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slo.yaml").write_text(written)

    assert main(["check", str(FP8), "--slo", str(tmp_path / "slo.yaml")]) == USAGE
    assert message in said(capsys)


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("objectives: {min_concurrency: 2.5x}", MET),
        ("objectives: {min_concurrency: 3.6}", MET),
        ("objectives: {min_concurrency: 3.604}", MISSED),
        ("objectives: {min_concurrency: 1_000}", MISSED),
        ("objectives: {min_concurrency: 0x10}", MISSED),
        ("objectives: {<<: {min_concurrency: 99}, require_ready: true}", MISSED),
        ("objectives: {min_kv_cache_tokens: 58_976}", MET),
        ("objectives: {min_kv_cache_tokens: 58977}", MISSED),
        ("objectives: {expect_max_model_len: 1.6384e+4}", MET),
        ("objectives: {ready_within: 50s}", MISSED),
        ("objectives: {ready_within: 1m30}", MET),
        ("objectives: {min_kv_cache: 3.4 gib}", UNKNOWN),
        ("objectives: {min_concurrency: 1, min_total_concurrency: 99}", MISSED),
        ("objectives: {expect_engines: 2}", MISSED),
        ("runtime: {max_preemptions: 0, max_waiting_requests: 0}", UNKNOWN),
        ("workload: {prompt_tokens: 99999999999999999999, output_tokens: 1, concurrent_requests: 1}", MISSED),
        ("workload: {prompt_tokens: 16384, output_tokens: 1, concurrent_requests: 1}", MISSED),
        ("workload: {max_request_share: 0.5%}", MISSED),
    ],
)
def test_an_odd_but_legal_slo_is_judged(written: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(written)

    assert main(["check", str(FP8), "--slo", str(tmp_path / "slo.yaml"), "-q"]) == status


ROW: dict[str, Any] = {
    "name": "acme-pool-tokens",
    "literal": "ACME pool ready: ",
    "pattern": r"ACME pool ready: (?P<kv_cache_tokens>\d{1,15}+(?:,\d{3}){0,5}+) tokens",
    "emits": ["KvCacheSize"],
    "scope": "engine",
    "versions": ["acme 1.0-2.3"],
    "upstream": "acme/worker.py",
    "samples": [
        {
            "line": "(EngineCore pid=7) INFO 11-29 16:54:34 [worker.py:7] ACME pool ready: 40,960 tokens",
            "tells": [{"event": "KvCacheSize", "kv_cache_tokens": 40960}],
        }
    ],
    "near_misses": ["(EngineCore pid=7) INFO 11-29 16:54:34 [worker.py:7] ACME pool ready: soon"],
}
HEAD = r"ACME pool ready: "
TOKENS = r"(?P<kv_cache_tokens>\d{1,15}+(?:,\d{3}){0,5}+)"


@pytest.mark.parametrize(
    "change",
    [
        {"pattern": HEAD + r"(?P<kv_cache_tokens>(\d+)+) tokens"},
        {"pattern": HEAD + r".*" + TOKENS + " tokens"},
        {"pattern": HEAD + TOKENS + r" tokens\s*\s*\s*"},
        {"pattern": HEAD + TOKENS + r" tokens(?:(?:a|a)*b)?"},
        {"pattern": HEAD + r"(?P<kv_cache_tokens>(?:\d{1,9999}){1,9999}) tokens"},
        {"pattern": HEAD + TOKENS + "(?:a|b)?" * 3000 + " tokens"},
        {"pattern": HEAD + r"(?P<kv_cache_tokens>\d{1,15}+)(?P=kv_cache_tokens)? tokens"},
        {"pattern": HEAD + TOKENS + "(?(kv_cache_tokens) tokens|x)"},
        {"pattern": HEAD + r"(?P<bogus>\d++) tokens"},
        {"pattern": "(("},
        {"pattern": ""},
        {"pattern": ".*+", "literal": "INFO"},
        {"literal": ""},
        {"literal": " "},
        {"name": "weights-took"},
        {"name": "\x1b[31mx-y"},
        {"emits": ["Nope"]},
        {"scope": "galaxy"},
        {"samples": []},
        {"near_misses": [ROW["samples"][0]["line"]]},
        {"samples": [{**ROW["samples"][0], "tells": [{"event": "KvCacheSize", "kv_cache_tokens": 1}]}]},
        {"read": "os.system"},
        {
            "literal": "CPU KV cache size: ",
            "pattern": rf"CPU KV cache size: {TOKENS} tokens, "
            r"Maximum concurrency for [\d,]++ tokens per request: [\d.]++x",
            "samples": [
                {
                    "line": "(EngineCore pid=7) INFO 11-29 16:54:34 [worker.py:7] CPU KV cache size: 40,960 tokens, "
                    "Maximum concurrency for 4,096 tokens per request: 10.00x",
                    "tells": [{"event": "KvCacheSize", "kv_cache_tokens": 40960}],
                }
            ],
        },
    ],
)
def test_a_row_that_may_hang_or_deceive_is_refused(
    change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "formats.yaml").write_text(json.dumps({"version": 1, "formats": [ROW | change]}))

    assert main(["check", str(BASE), "--formats", str(tmp_path / "formats.yaml"), "-q"]) == USAGE
    said(capsys)


def test_the_row_itself_is_taken(tmp_path: Path) -> None:
    (tmp_path / "formats.yaml").write_text(json.dumps({"version": 1, "formats": [ROW]}))

    assert main(["check", str(BASE), "--formats", str(tmp_path / "formats.yaml"), "-q"]) == MET


LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "vocab_size": 1000,
    "intermediate_size": 10,
    "max_position_embeddings": 4096,
}


@pytest.mark.parametrize(
    "config",
    [
        {},
        [],
        {"architectures": ["Foo"]},
        LLAMA | {"num_hidden_layers": 0},
        LLAMA | {"num_hidden_layers": -2},
        LLAMA | {"num_hidden_layers": "32"},
        LLAMA | {"num_hidden_layers": 99999999999},
        LLAMA | {"num_hidden_layers": float("inf")},
        LLAMA | {"hidden_size": 4097},
    ],
)
def test_a_config_of_no_model_is_refused(config: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))

    assert main(["plan", str(tmp_path / "config.json"), "--kv-cache-memory-bytes", "1GiB"]) == USAGE
    said(capsys)


@pytest.mark.parametrize(
    "flags",
    [
        "--gpu-memory 24",
        "--gpu-memory ~24",
        "--gpu-memory nanGiB",
        "--gpu-memory infGiB",
        "--gpu-memory 1e5000GiB",
        "--gpu-memory 24GiB..20GiB",
        "--gpu-memory 24GiB --gpu-memory-utilization 90",
        "--gpu-memory 24GiB --gpu-memory-utilization 0",
        "--gpu-memory 24GiB --tensor-parallel-size 3",
        "--gpu-memory 24GiB --tensor-parallel-size 0",
        "--gpu-memory 24GiB --kv-cache-dtype banana",
        "--gpu-memory 24GiB --quantization banana",
        "--gpu-memory 24GiB --kv-cache-memory-bytes 3GiB",
        "--gpu-memory 24GiB --max-model-len 999999999999999999999",
        "--gpu-memory 24GiB --max-num-seqs 0",
        "--gpu-memory 24GiB --vllm-version 99",
        "--weights 14GiB",
    ],
)
def test_no_plan_is_made_of_flags_that_say_nothing(flags: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "llama-3.1-8b", *flags.split()]) == USAGE
    said(capsys)


@pytest.mark.parametrize(
    "run", ["vllm-0.32.0-cpu-gemma3-hybrid", "vllm-0.32.0-cpu-mla-deepseek", "vllm-0.32.0-cpu-fp8kv"]
)
def test_a_baseline_of_another_deployment_is_never_held(run: str) -> None:
    assert main(["check", str(RUNS / run / "server.log"), "--baseline", str(BASE), "-q"]) == UNKNOWN


@pytest.mark.parametrize("written", ["", "{}", '{"kind": "report"}', '{"kind": "baseline", "schema_version": 99}', "x"])
def test_a_baseline_that_is_none_is_refused(written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "baseline.json").write_text(written)

    assert main(["check", str(BASE), "--baseline", str(tmp_path / "baseline.json"), "-q"]) == USAGE
    said(capsys)


def test_a_refused_start_counts_the_devices_memory_as_no_cache(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Free memory over wanted memory was once given as a concurrency of 1.00."""
    log = tmp_path / "vllm.log"
    log.write_text(
        "(EngineCore pid=9) INFO 12-08 21:14:20 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='acme/Quill-8B', dtype=torch.bfloat16, max_seq_len=32768, tensor_parallel_size=1\n"
        "(EngineCore pid=9) ERROR 12-08 21:14:30 [core.py:950] ValueError: Free memory on device cuda:0 "
        "(72.80/79.18 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB). Decrease GPU "
        "memory utilization or reduce GPU memory used by other processes.\n"
    )

    assert main(["check", str(log), "--min-concurrency", "1", "--format", "json", "-q"]) == MISSED
    document = json.loads(capsys.readouterr().out)
    assert [check["observed"] for check in document["checks"]] == [None]
    assert "0.05 GiB short" in document["verdict"]["reasons"][0]["message"]
