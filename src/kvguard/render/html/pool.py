"""The pool against the workload: how many requests of which length fit, a box a request, with the target as a line."""

from itertools import pairwise
from math import ceil, floor

from kvguard.render.html.bars import Mark, Stretch, drawing
from kvguard.render.html.markup import Markup, element
from kvguard.slo.refusal import cache_there, share_of_one_request
from kvguard.slo.verdict import CheckResult, Outcome, Verdict
from kvguard.slotted import dataclass
from kvguard.startup.report import Capacity, Failure, Start
from kvguard.units import format_bytes, format_count, format_quantity

MOST_BOXES = 48
"""Requests drawn one by one; more of them are one long box, because nobody counts them."""


@dataclass(frozen=True, slots=True)
class Row:
    """How many requests fit (`low` to `high` where it was computed), against how many are asked for."""

    title: str
    caption: str
    low: float
    high: float
    target: float | None
    outcome: Outcome | None
    asked: str = "asked for: {}"
    """What the line at the target says."""


def pool_section(verdict: Verdict | None, start: Start) -> Markup | None:
    """A drawing for the longest requests, engine by engine, and one for the declared workload."""
    checks = {check.objective: check for check in verdict.checks} if verdict else {}
    groups = [_longest(start, checks.get("min_concurrency")), _workload(checks.get("concurrent_requests"))]
    if not any(groups):
        return None
    return element(
        "section",
        element("h2", "What fits", id="pool"),
        [_drawn(row, max(_extent(one) for one in rows)) for rows in groups for row in rows],
        aria_labelledby="pool",
    )


def _longest(start: Start, check: CheckResult | None) -> list[Row]:
    target = check.target if check and isinstance(check.target, int | float) else None
    outcome = check.outcome if check else None
    if start.failure is not None:
        return _refused(start.failure)
    engines = start.engines or (start.capacity.weakest,)
    return [row for engine in engines for row in _of_engine(engine, start, target, outcome)]


def _of_engine(engine: Capacity, start: Start, target: float | None, outcome: Outcome | None) -> list[Row]:
    fits, length = engine.max_concurrency, engine.max_model_len or start.max_model_len
    if fits is None:
        return []
    longest = f"{format_count(length)} tokens, the longest allowed" if length else "the longest allowed length"
    several = len(start.engines) > 1
    weakest = engine.engine == start.capacity.weakest.engine
    name = f"Engine {engine.engine}{', the weakest' if weakest else ''}" if several else ""
    asked = f"; {format_count(target)} {'is' if target == 1 else 'are'} asked for" if target is not None else ""
    caption = f"{format_quantity(fits, 'requests')} of {longest}, fit at once{asked}."
    return [Row(name, caption, fits, fits, target, outcome if weakest or not several else None)]


def _refused(failure: Failure) -> list[Row]:
    """A start that was refused because one request does not fit: how much of it would."""
    share, there, tokens = share_of_one_request(failure), cache_there(failure), failure.kv_cache_tokens
    if share is None or not failure.requested_max_model_len:
        return []
    asked = format_count(failure.requested_max_model_len)
    got = f"{format_bytes(there)} of KV cache" if there is not None else f"{format_count(tokens or 0)} tokens"
    caption = f"One request of {asked} tokens must fit; {got} hold {share:.2f} of it."
    return [Row("", caption, share, share, 1, Outcome.FAIL, asked="one request")]


def _workload(check: CheckResult | None) -> list[Row]:
    if check is None or check.low is None or not isinstance(check.target, int | float):
        return []
    high = check.low if check.high is None else check.high
    return [Row("Requests of the workload", check.reason, check.low, high, check.target, check.outcome)]


def _extent(row: Row) -> float:
    """Requests that the drawing has room for: rows of one group share it, so that their lengths compare."""
    return max(row.high, row.target or 0, 1) * 1.04


def _drawn(row: Row, whole: float) -> Markup:
    stretches = _boxes(row, whole)
    marks = [Mark(row.target, row.asked.format(format_count(row.target)))] if row.target is not None else []
    return element(
        "div",
        element("h3", row.title) if row.title else None,
        drawing(stretches, marks, whole, row.caption, height=40, gap=1),
        element("p", row.caption[:1].upper() + row.caption[1:], class_="caption"),
        class_=f"fits {row.outcome or ''}".rstrip(),
    )


def _boxes(row: Row, whole: float) -> list[Stretch]:
    fitting = floor(row.low + 1e-9)
    if whole > MOST_BOXES:
        sure = [Stretch(0, row.low, "request", f"{row.low:,.2f}".removesuffix(".00") + " requests")]
    else:
        sure = [Stretch(i, i + 1, "request", str(i + 1)) for i in range(fitting)]
        if row.low > fitting:
            sure.append(Stretch(fitting, row.low, "partial", hint="part of a request: it has to wait"))
    maybe = [Stretch(row.low, row.high, "maybe", hint="may fit: the log does not settle it")]
    reached = max(row.low, row.high)
    missing = _missing(reached, row.target, whole) if row.target is not None else []
    return sure + (maybe if row.high > row.low else []) + missing


def _missing(reached: float, target: float, whole: float) -> list[Stretch]:
    """What is asked for and does not fit, up to the target: request by request where they are drawn one by one."""
    between = range(floor(reached) + 1, ceil(target)) if whole <= MOST_BOXES else ()
    edges = [reached, *map(float, between), target]
    return [
        Stretch(begin, end, "missing", hint="asked for, does not fit") for begin, end in pairwise(edges) if end > begin
    ]
