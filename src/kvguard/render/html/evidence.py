"""What proves the figures: the lines word for word, the facts that they tell, and what could not be read."""

from collections.abc import Iterator
from itertools import groupby

from kvguard.render.html.markup import Markup, element
from kvguard.render.quantities import show
from kvguard.render.start_facts import log_name, place_of
from kvguard.startup.report import MEMORY_SHARES, CapacityReport, Place, Start

_UNITS = (
    ("max_concurrency", "requests"),
    ("_bytes", "bytes"),
    ("_tokens", "tokens"),
    ("max_model_len", "tokens"),
    ("_blocks", "blocks"),
    ("block_size", "tokens"),
    ("utilization", "ratio"),
)


def evidence_section(report: CapacityReport) -> Markup | None:
    """The lines of the newest start that tell a figure, and all its facts behind a fold."""
    start = report.start
    if start is None:
        return None
    logs = ", ".join(map(log_name, report.sources)) or "the log"
    lines = [*_failure(start, report), *_quoted(start, report)]
    facts = list(_facts(start))
    if not lines and not facts:
        return None
    return element(
        "section",
        element("h2", "The lines that prove it", id="evidence"),
        element("p", "Read from ", element("code", logs), ".", class_="caption"),
        element("ol", lines, class_="quotes") if lines else None,
        _derived(start),
        _all_facts(facts) if facts else None,
        aria_labelledby="evidence",
    )


def _failure(start: Start, report: CapacityReport) -> Iterator[Markup]:
    if start.failure is not None:
        yield _quote(place_of(start.failure.place, report), start.failure.message, "bad")


def _quoted(start: Start, report: CapacityReport) -> Iterator[Markup]:
    """Each line once, in the log's order."""
    places = sorted({place for place in start.lines.values() if place in start.quotes}, key=_line)
    for place in places:
        yield _quote(place_of(place, report), start.quotes[place], None)


def _quote(place: str, text: str, look: str | None) -> Markup:
    return element("li", element("span", place, class_="place"), element("code", text), class_=look)


def _derived(start: Start) -> Markup | None:
    items = [
        element("li", element("code", fact), " ", element("b", show(one.value, _unit(fact))), f" follows: {one.how}")
        for fact, one in start.capacity.weakest.derived.items()
    ]
    return element("ul", items, class_="note") if items else None


def _all_facts(facts: list[tuple[Place, str, str]]) -> Markup:
    rows = [
        element(
            "tr",
            element("th", f"line {line}", scope="row", class_="place"),
            element("td", [element("div", element("code", fact), " ", value) for _, fact, value in found]),
        )
        for line, found in groupby(facts, key=lambda fact: fact[0].line)
    ]
    return element(
        "details",
        element("summary", f"All {len(facts)} facts of this start, line by line"),
        element("table", element("tbody", rows), class_="facts"),
        id="facts",
    )


def _facts(start: Start) -> Iterator[tuple[Place, str, str]]:
    for fact, place in sorted(start.lines.items(), key=lambda item: (item[1].line, item[0])):
        value = _value(start, fact)
        if value is not None:
            yield place, fact, value


def _value(start: Start, fact: str) -> str | None:
    """The fact's value, wherever the report keeps it; `None` where the report has only what follows from it."""
    holders: tuple[object, ...] = (start.capacity.weakest, start, start.timings)
    if fact.startswith("memory."):
        holders, fact = (start.memory,), fact.removeprefix("memory.")
    value = next((found for holder in holders if (found := getattr(holder, fact, None)) is not None), None)
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = "bytes" if holders == (start.memory,) and fact not in MEMORY_SHARES else _unit(fact)
    return show(value, unit) if isinstance(value, int | float | str) else None


def _unit(fact: str) -> str:
    return next((unit for ending, unit in _UNITS if fact.endswith(ending)), "")


def _line(place: Place) -> int:
    return place.line


def unrecognized_section(report: CapacityReport) -> Markup | None:
    """Lines that look like capacity and that no format knows: shown, so that nobody trusts a silence."""
    if not report.unrecognized:
        return None
    items = [_quote(place_of(line.place, report), line.text, None) for line in report.unrecognized]
    return element(
        "section",
        element("h2", "Lines that nobody could read", id="unrecognized"),
        element("p", "They look like capacity, and no known wording matches: kvguard explain LOG.", class_="caption"),
        element("ol", items, class_="quotes"),
        aria_labelledby="unrecognized",
    )
