"""How the start went: the time of its parts, the load it has seen, and the starts before it."""

from kvguard.render.html.bars import Stretch, drawing
from kvguard.render.html.markup import Markup, element
from kvguard.render.probe_budget import probe_budget_line
from kvguard.render.start_facts import FAILURE_WORDS, PHASE_WORDS
from kvguard.startup.report import ENDED, CapacityReport, Phase, Runtime, Start, StartSummary, Timings
from kvguard.units import format_ratio, format_seconds

_STEPS = (Phase.LOADING, Phase.PROFILING, Phase.ALLOCATED, Phase.READY)
_STEP_NAMES = {
    Phase.LOADING: "loading weights",
    Phase.PROFILING: "profiling",
    Phase.ALLOCATED: "KV cache allocated",
    Phase.READY: "ready",
}
_TIMES = (
    ("load", "load weights", ""),
    ("init", "engine init", "whole"),
    ("compile", "compile", "part"),
    ("profile", "profile", "part"),
    ("graphs", "CUDA graphs", "part"),
    ("ready", "first line to ready", "whole"),
)


def course_section(start: Start) -> Markup | None:
    """The phases as steps and the seconds of each part."""
    rows = _time_rows(start.timings)
    budget = probe_budget_line(start.timings)
    return element(
        "section",
        element("h2", "This start", id="course"),
        _steps(start),
        element("table", element("tbody", rows), class_="times") if rows else None,
        element("p", budget, class_="note") if budget else None,
        aria_labelledby="course",
    )


def _steps(start: Start) -> Markup:
    """The road to ready as a list, with the place where the start stands or where it ended."""
    reached, phase = _reached(start), start.phase
    done = reached if phase in (Phase.LOADING, Phase.PROFILING, Phase.ALLOCATED) else reached + 1
    items = [
        element(
            "li",
            _STEP_NAMES[step],
            class_="done" if index < done else "now" if index == reached else None,
            aria_current="step" if step is phase else None,
        )
        for index, step in enumerate(_STEPS)
        if index <= reached or phase not in ENDED
    ]
    end = element("li", PHASE_WORDS[phase], class_="bad", aria_current="step") if phase in ENDED else None
    return element("ol", items, end, class_="steps")


def _reached(start: Start) -> int:
    """The last step of the road that was entered; of a start that has ended, the last one that left a figure."""
    if start.phase in _STEPS:
        return _STEPS.index(start.phase)
    if start.phase is Phase.STOPPED:
        return len(_STEPS) - 1
    weakest = start.capacity.weakest
    figures = (weakest.weights_bytes, weakest.kv_cache_bytes, weakest.max_concurrency)
    return max((index for index, figure in enumerate(figures) if figure is not None), default=-1)


def _time_rows(timings: Timings) -> list[Markup]:
    known = [(name, look, seconds) for fact, name, look in _TIMES if (seconds := getattr(timings, fact)) is not None]
    longest = max((seconds for _, _, seconds in known), default=0)
    return [
        element(
            "tr",
            element("th", name, scope="row", class_=look or None),
            element("td", drawing([Stretch(0, seconds, f"time {look}")], [], longest, "", height=12)),
            element("td", format_seconds(seconds)),
        )
        for name, look, seconds in known
    ]


def load_section(runtime: Runtime) -> Markup | None:
    """Peaks of the stats lines: shown, never gated by."""
    figures = (
        ("running", _count(runtime.peak_running)),
        ("waiting", _count(runtime.peak_waiting)),
        ("KV cache in use", None if runtime.peak_kv_cache_usage is None else format_ratio(runtime.peak_kv_cache_usage)),
        ("preemptions", _count(runtime.preemptions)),
    )
    tiles = [element("div", element("dt", name), element("dd", element("b", text))) for name, text in figures if text]
    if not tiles:
        return None
    return element(
        "section",
        element("h2", "Under load", id="load"),
        element("p", "Peaks in the log's stats lines. Load never closes the gate.", class_="caption"),
        element("dl", tiles, class_="tiles small"),
        aria_labelledby="load",
    )


def _count(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def history_section(report: CapacityReport) -> Markup | None:
    """The starts that the log holds, the newest first; nothing where there is only one."""
    if report.starts < 2 or len(report.history) < 2:
        return None
    ordered = sorted(report.history, key=lambda one: -one.index)
    most = max((one.max_concurrency or 0 for one in ordered), default=0)
    head = element("tr", [element("th", title, scope="col") for title in ("start", "how far", "fits", "vLLM", "lines")])
    return element(
        "section",
        element("h2", f"{report.starts:,} starts in this log", id="history"),
        element(
            "table",
            element("thead", head),
            element("tbody", [_summary(one, most) for one in ordered]),
            class_="history stacked",
        ),
        aria_labelledby="history",
    )


def _summary(one: StartSummary, most: float) -> Markup:
    ended = PHASE_WORDS[one.phase]
    if one.failure_kind is not None:
        ended += f": {FAILURE_WORDS[one.failure_kind]}"
    fits = None
    if one.max_concurrency is not None:
        bar = drawing([Stretch(0, one.max_concurrency, "time whole")], [], most, "", height=8)
        fits = element("td", f"{one.max_concurrency:,.2f}×", bar, data_title="fits")
    return element(
        "tr",
        element("th", str(one.index), scope="row"),
        element("td", ended, data_title="how far", class_="bad" if one.phase is Phase.FAILED else None),
        fits or element("td", "–", data_title="fits"),
        element("td", one.vllm_version or "–", data_title="vLLM"),
        element("td", f"{one.first_line:,}–{one.last_line:,}", data_title="lines"),
    )
