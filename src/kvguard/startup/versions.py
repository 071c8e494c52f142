"""vLLM's release numbers, as far as the meaning of its lines turns on them."""

from kvguard.lines.patterns import compiled
from kvguard.startup.report import TokenFigure

NEWEST_TESTED = (0, 33, 0)
"""The newest release whose wordings the table holds."""
OVERRIDE_LOST = (0, 9, 1)
"""V1 of this release tells of `num_gpu_blocks_override` and goes on with what it has profiled
(`get_num_blocks` of v1/core/kv_cache_utils.py assigns nothing)."""
TOKENS_OF_A_GROUP = (0, 9, 1)
"""From here the token figure is of one group of layers, and of all ranks that share a context; before, of the pool."""
ONE_TOKEN_LINE_AN_ENGINE = (0, 11, 1)
"""From here the token line is printed once an engine; before, once a rank."""
TOKENS_FROM_CONCURRENCY = (0, 20, 1)
"""From here the token figure is concurrency times max_model_len; before, the pool."""

_RELEASE = r"v?(?!0\.1\.dev|0\.0\.0)(\d{1,2})\.(\d{1,4})(?:\.(\d{1,4}))?"

Release = tuple[int, int, int]


def release(version: str | None) -> Release | None:
    """The release of a version text ("0.10.2.post2", "0.11.1rc2.dev3+gabc"); `None` where it names none.

    A development build "0.1.dev…" of a shallow checkout names no release either, nor do the placeholders "0.0.0" and
    "999.999.999" of builds without a tag.
    """
    match = compiled(_RELEASE).match(version or "")
    if match is None:
        return None
    return int(match[1]), int(match[2]), int(match[3] or 0)


def at_least(version: str | None, bound: Release) -> bool | None:
    """Whether the version is that release or a later one; `None` where it is unknown."""
    known = release(version)
    return None if known is None else known >= bound


def token_figure(version: str | None) -> TokenFigure | None:
    """What the token figure means in that release; `None` where it is unknown."""
    later = at_least(version, TOKENS_FROM_CONCURRENCY)
    if later is None:
        return None
    return TokenFigure.CONCURRENCY_TIMES_LEN if later else TokenFigure.POOL
