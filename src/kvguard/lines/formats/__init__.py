"""The table of formats: every wording that kvguard knows, one literal tuple, one file a signal."""

from kvguard.lines.formats import (
    config,
    crashes,
    decoys,
    failures,
    kv_blocks,
    kv_memory,
    kv_tokens,
    lifecycle,
    out_of_memory,
    profiling,
    stats,
    weights,
)
from kvguard.lines.line_format import LineFormat

FORMATS: tuple[LineFormat, ...] = (
    *weights.ROWS,
    *kv_memory.ROWS,
    *kv_tokens.ROWS,
    *kv_blocks.ROWS,
    *profiling.ROWS,
    *config.ROWS,
    *lifecycle.ROWS,
    *failures.ROWS,
    *out_of_memory.ROWS,
    *crashes.ROWS,
    *stats.ROWS,
    *decoys.ROWS,
)
"""Every message matches one row at most: a test holds it over all samples."""
