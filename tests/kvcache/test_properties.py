"""What must hold for every deployment: more room never holds less, longer requests never need fewer blocks."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.fit import check_fit, longest_fit
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.load import Request
from kvguard.kvcache.models import MODELS, named_config
from kvguard.kvcache.options import Options, resolve, with_max_model_len
from kvguard.kvcache.pool import blocks_per_request, describe_pool, pool_blocks
from kvguard.kvcache.releases import Release
from kvguard.kvcache.requests import held_blocks
from kvguard.kvcache.workload import serve
from kvguard.units import GIB

NAMES = st.sampled_from(sorted(MODELS))
TOKENS_ONLY = st.sampled_from([name for name in sorted(MODELS) if "linear_num_key_heads" not in MODELS[name]])
"""Models without states: a shared prefix costs a recurrent model one more state in each of its groups."""
RELEASES = st.sampled_from(
    [Release(0, 12, 0), Release(0, 15, 1), Release(0, 19, 0), Release(0, 26, 0), Release(0, 32, 0)]
)
LENGTHS = st.integers(1, 200_000)
FAST = settings(max_examples=60, deadline=None)


def layout(name: str, release: Release, length: int = 32768) -> Layout:
    config = named_config(name)
    assert config is not None
    options = Options(vllm_version=release, max_model_len=length)
    model = read_model(config, options)
    return lay_out(model, resolve(options, model)[0])


@FAST
@given(NAMES, RELEASES, LENGTHS, LENGTHS)
def test_a_longer_request_never_needs_fewer_blocks(name: str, release: Release, one: int, other: int) -> None:
    laid = layout(name, release)
    assert blocks_per_request(laid, min(one, other)) <= blocks_per_request(laid, max(one, other))


@FAST
@given(NAMES, RELEASES, LENGTHS)
def test_a_decoding_request_never_holds_more_than_start_up_counted(name: str, release: Release, length: int) -> None:
    laid = layout(name, release)
    held = sum(held_blocks(group.spec, length, laid.serving, None) for group in laid.groups)
    assert held <= blocks_per_request(laid, length)


@FAST
@given(NAMES, RELEASES, st.integers(0, 64 * GIB), st.integers(0, 64 * GIB))
def test_more_bytes_never_hold_less(name: str, release: Release, one: int, other: int) -> None:
    laid = layout(name, release)
    low, high = (describe_pool(laid, pool_blocks(laid, [size])[0]) for size in sorted((one, other)))
    assert low.blocks <= high.blocks
    assert low.tokens <= high.tokens
    assert (low.concurrency or 0) <= (high.concurrency or 0)


@FAST
@given(NAMES, RELEASES, st.integers(1, 80).map(lambda gib: gib * GIB))
def test_the_longest_context_starts_and_one_token_more_does_not(name: str, release: Release, size: int) -> None:
    laid = layout(name, release)
    longest = longest_fit(laid, [size], None, 1 << 20)
    if longest:
        assert check_fit(replace(laid, serving=with_max_model_len(laid.serving, longest)), [size], None) is None
    if longest < 1 << 20:
        longer = replace(laid, serving=with_max_model_len(laid.serving, longest + 1))
        assert check_fit(longer, [size], None) is not None


@FAST
@given(TOKENS_ONLY, st.integers(2, 100_000), st.integers(1, 8000), st.integers(1, 2000), st.integers(0, 8000))
def test_a_shared_prefix_never_costs_requests(name: str, blocks: int, prompt: int, output: int, shared: int) -> None:
    laid = layout(name, Release(0, 32, 0))
    alone = serve(laid, blocks, Request(prompt, output))
    together = serve(laid, blocks, Request(prompt, output, min(shared, prompt)))
    assert together.blocks.each <= alone.blocks.each
    if alone.concurrency >= 1:
        assert together.concurrency >= alone.concurrency - 1e-9
