"""From printed figures back to blocks."""

import pytest

from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.models import named_config
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.pool import describe_pool, recover_blocks
from kvguard.units import Interval


def layout(name: str, options: Options) -> Layout:
    config = named_config(name)
    assert config is not None
    model = read_model(config, options)
    return lay_out(model, resolve(options, model)[0])


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt-oss-20b", "gemma-3-12b", "qwen3-next-80b-a3b"])
@pytest.mark.parametrize("blocks", [2, 917, 40_001])
def test_printed_figures_lead_back_to_their_blocks(name: str, blocks: int) -> None:
    laid = layout(name, Options(max_model_len=8192))
    pool = describe_pool(laid, blocks)
    assert pool.concurrency is not None
    found = recover_blocks(laid, pool.tokens, Interval(pool.concurrency - 0.005, pool.concurrency + 0.005))

    assert found is not None
    assert found[0] <= blocks <= found[1]


def test_figures_that_no_pool_prints_lead_nowhere() -> None:
    laid = layout("llama-3.1-8b", Options(max_model_len=8192))

    assert recover_blocks(laid, 16_000, Interval(9.0, 9.01)) is None
    assert recover_blocks(laid, None, None) is None
