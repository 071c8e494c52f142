"""Releases as a log names them, and as the arithmetic does: one reading, one set of turning points."""

import pytest

from kvguard.errors import ConfigError
from kvguard.kvcache import releases
from kvguard.startup import versions
from kvguard.startup.report import TokenFigure
from tests.startup.lines import start_of


@pytest.mark.parametrize(
    "text, release",
    [
        ("0.10.2.post2", (0, 10, 2)),
        ("v0.32.0+cpu", (0, 32, 0)),
        ("0.11.1rc2.dev3+gabc1234", (0, 11, 1)),
        ("0.10.1.dev2081+gc44ef9fc0.d20250930", (0, 10, 1)),
        ("0.9", (0, 9, 0)),
    ],
)
def test_a_version_names_the_same_release_to_the_log_and_to_the_arithmetic(
    text: str, release: tuple[int, int, int]
) -> None:
    assert versions.release(text) == release
    assert releases.parse_release(text) == release


@pytest.mark.parametrize("text", ["0.1.dev1+g1234567", "v0.1.dev12", "dev", ""])
def test_a_build_that_names_no_release_is_taken_for_none(text: str) -> None:
    assert versions.release(text) is None
    assert versions.token_figure(text) is None
    with pytest.raises(ConfigError, match="not a vLLM version"):
        releases.parse_release(text)


def test_the_log_and_the_arithmetic_turn_at_the_same_releases() -> None:
    assert versions.TOKENS_OF_A_GROUP == releases.KV_HYBRID_MANAGER
    assert versions.ONE_TOKEN_LINE_AN_ENGINE == releases.TOKENS_PER_ENGINE
    assert versions.TOKENS_FROM_CONCURRENCY == releases.TOKENS_FROM_CONCURRENCY


@pytest.mark.parametrize(
    "version, meaning",
    [("0.20.0", TokenFigure.POOL), ("0.20.1", TokenFigure.CONCURRENCY_TIMES_LEN), (None, None)],
)
def test_what_the_token_figure_means_changes_at_0_20_1(version: str | None, meaning: TokenFigure | None) -> None:
    assert versions.token_figure(version) == meaning


def test_an_override_that_0_9_1_loses_leaves_the_profiled_blocks():
    def blocks(version: str) -> int | None:
        banner = f"INFO 06-12 08:00:00 [core.py:70] Initializing a V1 LLM engine (v{version}) with config: model='m'\n"
        told = "INFO 06-12 08:01:00 [kv_cache_utils.py:659] Overriding num_gpu_blocks=9362 with num_gpu_blocks_override=500\n"
        return start_of(banner + told).capacity.weakest.gpu_blocks

    assert blocks("0.9.1") == 9362
    assert blocks("0.9.2") == 500
