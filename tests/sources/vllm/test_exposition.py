"""What real servers' `/metrics` say, with the traps of each release."""

import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvguard.sources.vllm.answers import CacheInfo, EngineLoad
from kvguard.sources.vllm.exposition import parse_metrics

RUNS = Path(__file__).parents[3] / "fixtures" / "logs" / "runs"


def read(run: str) -> tuple[CacheInfo | None, tuple[EngineLoad, ...]]:
    return parse_metrics((RUNS / run / "metrics.txt").read_bytes())


@pytest.mark.parametrize(
    "run, engines, total_gpu_blocks, gpu_blocks, kv_cache_tokens, max_concurrency",
    [
        ("vllm-0.8.5.post2-cpu-base-load", ("0",), 65536, 65536, None, None),  # V0: no engine label
        ("vllm-0.10.2.post2-cpu-tp2", ("0",), 16384, 16384, None, None),
        ("vllm-0.13.0-cpu-dp2", ("0", "1"), 16384, None, None, None),  # the sum over both, told by each
        ("vllm-0.13.0-cpu-blocks-override-load", ("0",), 100, 100, None, None),
        ("vllm-0.20.2-cpu-gemma3-hybrid", ("0",), 8192, 8192, None, None),
        (
            "vllm-0.27.1-cpu-dp2",
            ("0", "1"),
            16384,
            None,
            1048576,
            256.0,
        ),  # one engine's tokens beside both engines' blocks
        ("vllm-0.32.0-cpu-gemma3-hybrid", ("0",), 8192, 8192, 900790, 27.48993288590604),
        ("vllm-0.32.0-cpu-blocks-override", ("0",), 100, 100, 12800, 1.5625),
    ],
)
def test_capacity(
    run: str,
    engines: tuple[str, ...],
    total_gpu_blocks: int,
    gpu_blocks: int | None,
    kv_cache_tokens: int | None,
    max_concurrency: float | None,
) -> None:
    cache, _ = read(run)
    assert cache is not None
    assert (cache.engines, cache.total_gpu_blocks, cache.gpu_blocks) == (engines, total_gpu_blocks, gpu_blocks)
    assert (cache.kv_cache_tokens, cache.max_concurrency) == (kv_cache_tokens, max_concurrency)


def test_the_other_labels() -> None:
    cache, _ = read("vllm-0.32.0-cpu-blocks-override")
    assert cache == CacheInfo(
        engines=("0",),
        total_gpu_blocks=100,
        gpu_blocks_override=100,
        block_size=128,
        block_size_resolved=True,
        kv_cache_tokens=12800,
        max_concurrency=1.5625,
        kv_cache_dtype="auto",
        kv_cache_memory_bytes=1073741824,
        gpu_memory_utilization=0.92,
    )


def test_the_block_size_of_older_releases_is_the_argument() -> None:
    cache, _ = read("vllm-0.13.0-cpu-dp2")
    assert cache is not None
    assert (cache.block_size, cache.block_size_resolved) == (128, False)


@pytest.mark.parametrize(
    "run, loads",
    [
        ("vllm-0.8.5.post2-cpu-base-load", (EngineLoad("0", 0, 0, 0.0, 0),)),
        ("vllm-0.10.2.post2-cpu-tp2", (EngineLoad("0", 0, 0, 0.0, 0),)),
        ("vllm-0.13.0-cpu-dp2", (EngineLoad("0", 0, 0, 0.0, 0), EngineLoad("1", 0, 0, 0.0, 0))),
        ("vllm-0.13.0-cpu-blocks-override-load", (EngineLoad("0", 0, 0, 0.0, 15),)),
    ],
)
def test_load(run: str, loads: tuple[EngineLoad, ...]) -> None:
    assert read(run)[1] == loads


def test_a_server_without_statistics_says_nothing() -> None:
    assert read("vllm-0.32.0-cpu-nologstats") == (None, ())


@pytest.mark.parametrize("newer_first", [True, False])
def test_the_newer_name_of_the_usage_wins(newer_first: bool) -> None:
    lines = ['vllm:kv_cache_usage_perc{engine="0"} 0.7', 'vllm:gpu_cache_usage_perc{engine="0"} 0.0']
    text = "\n".join(lines if newer_first else reversed(lines))
    assert parse_metrics(text.encode())[1] == (EngineLoad("0", kv_cache_usage=0.7),)


def test_engines_are_in_the_order_of_their_numbers() -> None:
    text = "\n".join(f'vllm:num_requests_running{{engine="{engine}"}} {engine}' for engine in (10, 9, 0))
    assert [load.engine for load in parse_metrics(text.encode())[1]] == ["0", "9", "10"]


def test_engines_that_differ_are_told_by_the_weakest() -> None:
    text = "".join(
        f'vllm:cache_config_info{{engine="{engine}",kv_cache_size_tokens="{tokens}",num_gpu_blocks="30"}} 1.0\n'
        for engine, tokens in (("0", 2000), ("1", 1000))
    )
    cache, _ = parse_metrics(text.encode())
    assert cache is not None
    assert cache.kv_cache_tokens == 1000


@pytest.mark.parametrize("value", ["None", "many", "1e999", "nan", ""])
def test_a_label_that_is_no_number_is_not_known(value: str) -> None:
    cache, _ = parse_metrics(f'vllm:cache_config_info{{engine="0",num_gpu_blocks="{value}"}} 1.0'.encode())
    assert cache == CacheInfo(engines=("0",))


def test_a_gauge_that_nobody_has_set_is_not_known() -> None:
    assert parse_metrics(b'vllm:num_requests_waiting{engine="0"} NaN') == (None, ())


def test_names_that_only_begin_alike_are_others() -> None:
    assert parse_metrics(b'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 5.0') == (None, ())


@given(st.text('{}=",\\\\ \\n0aé#', max_size=30))
def test_what_is_no_exposition_is_an_error_of_one_kind(rest: str) -> None:
    with suppress(ValueError):
        parse_metrics(b"vllm:num_requests_waiting{" + rest.encode())


ONE = b'vllm:num_requests_running{engine="%d"} 1\n'


@pytest.mark.parametrize(
    "body",
    [
        b"".join(ONE % number for number in range(10_000)),
        b'vllm:num_requests_running{engine="' + b"x" * 100_000 + b'"} 1\n',
        b"vllm:cache_config_info{" + b",".join(b'l%d="x"' % number for number in range(100_000)) + b"} 1\n",
        b"vllm:cache_config_info{" + b'a="' * 100_000 + b"} 1\n",
    ],
    ids=["series", "a label", "labels", "quotes"],
)
def test_more_than_any_vllm_exposes_is_refused_before_it_is_read(body: bytes) -> None:
    """The format's own parser takes minutes for a hundred thousand labels."""
    began = time.process_time()
    with pytest.raises(ValueError, match="no vLLM exposes so much"):
        parse_metrics(body)
    assert time.process_time() - began < 1.0


def test_what_is_not_wanted_may_be_as_much_as_it_likes() -> None:
    body = b"# HELP x y\n\n" * 100_000 + ONE % 0 + b'vllm:e2e_request_latency_seconds{le="1"} 5\n' * 100_000
    assert parse_metrics(body)[1] == (EngineLoad("0", running=1),)
