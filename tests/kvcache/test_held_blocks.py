"""What a decoding request holds and shares, at the edges of blocks, windows and chunks."""

from dataclasses import replace

import pytest

from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.load import Request
from kvguard.kvcache.model_config import model_config
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.requests import held_blocks
from kvguard.kvcache.workload import request_blocks, serve


def layout_of(window: int | None, **flags: int) -> Layout:
    """Four layers of one kind in blocks of 16 tokens: sliding by that window, or full."""
    config = {
        "architectures": ["MistralForCausalLM"],
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 65_536,
        "dtype": "bfloat16",
        "sliding_window": window,
    }
    options = Options(block_size=16, **flags)
    model = read_model(model_config(config), options)
    return lay_out(model, resolve(options, model)[0])


@pytest.mark.parametrize(("window", "held"), [(4_096, 257), (4_097, 257), (4_098, 258)])
def test_a_window_holds_the_tokens_before_the_last_and_a_block_that_they_begin_in(window: int, held: int) -> None:
    layout = layout_of(window)
    assert held_blocks(layout.groups[0].spec, 20_000, layout.serving, None) == held


@pytest.mark.parametrize(("stored", "held"), [(100, 7), (8_192, 512), (20_000, 512)])
def test_a_chunked_layer_holds_one_chunk_at_most(stored: int, held: int) -> None:
    layout = layout_of(None)
    chunked = replace(layout.groups[0].spec, kind="chunked_local_attention", window=8_192)
    assert held_blocks(chunked, stored, layout.serving, None) == held


def test_a_prefix_is_shared_as_far_as_the_window_still_reaches_back() -> None:
    """Of 64 stored tokens a window of 33 sees those from 32 on: of three whole blocks of the prefix one is inside."""
    blocks = request_blocks(layout_of(33), Request(60, 5, shared_prefix_tokens=49))
    assert (blocks.each, blocks.shared) == (2, 1)


@pytest.mark.parametrize(
    ("blocks", "requests", "limit"),
    [
        (64, 0, "request_exceeds_pool"),  # one of them is the null block
        (65, 1, "kv_cache"),
        (64 * 3 + 1, 3, "max_num_seqs"),
        (64 * 3, 2, "kv_cache"),
    ],
)
def test_what_limits_a_load_at_the_edge(blocks: int, requests: int, limit: str) -> None:
    service = serve(layout_of(None, max_num_seqs=3), blocks, Request(1_000, 25))
    assert (service.requests, service.limited_by) == (requests, limit)
