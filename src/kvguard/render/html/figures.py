"""The four figures that people look for first, and what stands behind the picture in words."""

from kvguard.render.html.markup import Markup, element
from kvguard.render.key_figures import key_figure
from kvguard.render.quantities import show_bare
from kvguard.render.start_facts import place_of
from kvguard.startup.report import CapacityReport, Start

_FIGURES = (
    ("Maximum concurrency", "max_concurrency", "requests"),
    ("KV cache size", "kv_cache_tokens", "tokens"),
    ("KV cache memory", "kv_cache_bytes", "bytes"),
    ("Context (max_model_len)", "max_model_len", "tokens"),
)


def key_figures(report: CapacityReport) -> Markup | None:
    """The weakest engine's capacity as a row of tiles; what the log does not say is said to be missing."""
    start = report.start
    if start is None:
        return None
    tiles = [_tile(name, fact, unit, start, report) for name, fact, unit in _FIGURES]
    return element("dl", tiles, class_="tiles")


def _tile(name: str, fact: str, unit: str, start: Start, report: CapacityReport) -> Markup:
    figure = key_figure(start, fact)
    if figure.value is None:
        return element("div", element("dt", name), element("dd", figure.missing, class_="missing"))
    whence = f"follows: {figure.how}" if figure.how else figure.whence or _scope(start, fact)
    note = " · ".join(filter(None, [whence, place_of(figure.place, report)]))
    return _drawn(name, show_bare(figure.value, unit), unit, note)


def _drawn(name: str, figure: str, unit: str, note: str) -> Markup:
    word = None if unit == "bytes" else element("small", unit)
    value = element("dd", element("b", figure), " ", word)
    return element("div", element("dt", name), value, element("dd", note, class_="note") if note else None)


def _scope(start: Start, fact: str) -> str:
    """Whose figure it is, where there are several."""
    if fact == "max_model_len":
        return ""
    if fact == "kv_cache_bytes" and (start.tensor_parallel_size or 1) * (start.pipeline_parallel_size or 1) > 1:
        return "tightest rank"
    return f"engine {start.capacity.weakest.engine}, the weakest" if len(start.engines) > 1 else ""
