"""How many requests fit by the model's config: the layout to the byte, held against every figure that the log prints.

Of the flags that the log leaves open (block size, version, drafter) those count that reproduce its figures. Where none
does, the config is not the served model's, or its layout is not known: that is said, and the log alone decides.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple

from kvguard.errors import ConfigError
from kvguard.kvcache.layout import Layout, lay_out
from kvguard.kvcache.load import Request
from kvguard.kvcache.options import Options, resolve
from kvguard.kvcache.pool import recover_blocks
from kvguard.kvcache.workload import serve
from kvguard.slo.fit import Fit, in_blocks, spanned
from kvguard.slo.served_model import ServedModel
from kvguard.slo.told_options import in_flight_options, possible_options
from kvguard.slotted import dataclass
from kvguard.startup.report import Capacity, Start
from kvguard.units import Interval

_MOST_BLOCKS = 1 << 32


@dataclass(frozen=True, slots=True)
class Explained:
    """One engine's pool as the model's layout explains it."""

    options: Options
    layout: Layout
    blocks: Interval
    """Whole block ids, the null block included."""


class Figures(NamedTuple):
    """What one engine printed of its pool, and what rounding hides; `None` where the log does not say."""

    gpu_blocks: int | None
    kv_cache_tokens: int | None
    max_concurrency: float | None
    concurrency_rounding: float
    kv_cache_bytes: int | None
    bytes_rounding: float


def explain(start: Start, engine: Capacity, config: Mapping[str, object]) -> tuple[Explained, ...]:
    """The layouts under which the model prints what this engine printed, most likely first; none where it printed none.

    Raises:
        ConfigError: the architecture is not known, a key is missing, or no layout gives the log's figures; one line.
    """
    # blocks that an option set are fewer than the bytes would hold
    declared = any(warning.code == "blocks-overridden" for warning in start.warnings)
    figures = Figures(
        engine.gpu_blocks,
        engine.kv_cache_tokens,
        engine.max_concurrency,
        engine.rounding.get("max_concurrency", 0.0),
        None if declared else engine.kv_cache_bytes,
        engine.rounding.get("kv_cache_bytes", 0.0),
    )
    told = (figures.gpu_blocks, figures.kv_cache_tokens, figures.max_concurrency, figures.kv_cache_bytes)
    if all(figure is None for figure in told):
        return ()
    return _explained(ServedModel.of(config), tuple(possible_options(start, engine)), figures)


@lru_cache(maxsize=64)
def _explained(model: ServedModel, options: tuple[Options, ...], figures: Figures) -> tuple[Explained, ...]:
    """As `explain`; a log that goes on asks the same again and again."""
    refused = None
    for tried in (options, in_flight_options(options)):
        found = []
        for one in tried:
            try:
                layers = model(one)
                layout = lay_out(layers, resolve(one, layers)[0])
            except ConfigError as error:
                refused = refused or error
                continue
            blocks = _blocks(layout, figures)
            if blocks is not None:
                found.append(Explained(one, layout, blocks))
        if found:
            return tuple(found)
    raise refused or ConfigError(
        f"a {model.config.architecture} of these dimensions does not print the log's figures: is it the model served?"
    )


def fit_by_model(explained: tuple[Explained, ...], request: Request) -> Fit:
    """Requests of that length on an engine whose pool is explained: exact but for what the log leaves open."""
    groups = len(explained[0].layout.groups)
    counted = "by config.json" if groups == 1 else f"by config.json: {groups} groups of layers"
    found = spanned([_fit(one, request) for one in explained], counted)
    assert found is not None, "no layout explains the log: the log alone counts"
    return found


def _fit(explained: Explained, load: Request) -> Fit:
    low, high = (serve(explained.layout, floor(end), load) for end in (explained.blocks.low, explained.blocks.high))
    how = in_blocks(explained.blocks.low - 1, low.blocks.each, low.blocks.shared)
    return Fit(Interval(low.concurrency, high.concurrency), how)


def _blocks(layout: Layout, figures: Figures) -> Interval | None:
    """Block counts that give every printed figure; `None` where there is none."""
    span = _by_figures(layout, figures)
    by_bytes = _by_bytes(layout, figures)
    if span is None or (by_bytes is not None and (by_bytes.high < span.low or span.high < by_bytes.low)):
        return None
    if by_bytes is None:
        return span if span.high < _MOST_BLOCKS else None
    return Interval(max(span.low, by_bytes.low), min(span.high, by_bytes.high))


def _by_figures(layout: Layout, figures: Figures) -> Interval | None:
    """Blocks by the printed block count, tokens and concurrency."""
    low, high = (1, _MOST_BLOCKS) if figures.gpu_blocks is None else (figures.gpu_blocks, figures.gpu_blocks)
    concurrency, half = figures.max_concurrency, figures.concurrency_rounding + 1e-9
    printed = None if concurrency is None else Interval(concurrency - half, concurrency + half)
    if figures.kv_cache_tokens is not None or printed is not None:
        found = recover_blocks(layout, figures.kv_cache_tokens, printed)
        if found is None:
            return None
        low, high = max(low, found[0], 1), min(high, found[1])  # a pool without a block explains nothing
    return Interval(low, high) if low <= high else None


def _by_bytes(layout: Layout, figures: Figures) -> Interval | None:
    """Blocks by the printed bytes of a rank, where one stage holds all layers."""
    if figures.kv_cache_bytes is None or len(layout.stages) != 1 or not layout.bytes_per_block:
        return None
    low, high = figures.kv_cache_bytes - figures.bytes_rounding, figures.kv_cache_bytes + figures.bytes_rounding
    return Interval(floor(low / layout.bytes_per_block), ceil(high / layout.bytes_per_block))
