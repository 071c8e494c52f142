"""The four figures that people look for first, and what stands behind the picture in words."""

from kvguard.render.html.markup import Markup, element
from kvguard.render.quantities import show_bare
from kvguard.render.start_facts import place_of
from kvguard.slo.refusal import cache_there
from kvguard.startup.report import CapacityReport, Failure, Phase, Start

_EARLY = (Phase.NONE, Phase.LOADING, Phase.PROFILING)
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
    weakest = start.capacity.weakest
    value = getattr(weakest, fact)
    if value is None and fact == "max_model_len":
        value = start.max_model_len
    if value is None and start.failure is not None:
        return _of_refusal(name, fact, unit, start.failure, report)
    derived = weakest.derived.get(fact)
    place = place_of(start.lines.get(fact), report)
    if value is None and derived is not None:
        return _drawn(name, show_bare(derived.value, unit), unit, f"follows: {derived.how}")
    if value is None:
        word = "not told yet" if start.phase in _EARLY else "not in the log"
        return element("div", element("dt", name), element("dd", word, class_="missing"))
    return _drawn(name, show_bare(value, unit), unit, " · ".join(filter(None, [_scope(start, fact), place])))


def _of_refusal(name: str, fact: str, unit: str, failure: Failure, report: CapacityReport) -> Markup:
    """What a failure's own message tells, where the start never came to report it."""
    told = {
        "kv_cache_tokens": (failure.kv_cache_tokens, "by the refusal"),
        "kv_cache_bytes": (cache_there(failure), "available, by the refusal"),
        "max_model_len": (failure.requested_max_model_len, "asked for"),
    }
    value, note = told.get(fact, (None, ""))
    if value is None:
        return element("div", element("dt", name), element("dd", "never reported", class_="missing"))
    return _drawn(name, show_bare(value, unit), unit, f"{note} · {place_of(failure.place, report)}")


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
