"""What proves the figures: each fact with its line, what could not be read, and what follows by arithmetic."""

from collections.abc import Iterator

from kvguard.render.html.markup import Markup, element
from kvguard.render.quantities import show
from kvguard.render.start_facts import place_of
from kvguard.startup.report import CapacityReport, Start

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
    """The facts of the newest start and the lines they stand on."""
    start = report.start
    if start is None:
        return None
    rows = list(_facts(start, report))
    failure = start.failure
    if failure is not None:
        message = element("code", failure.message)
        rows.insert(0, _row("failure", message, place_of(failure.place, report)))
    if not rows:
        return None
    head = element("tr", [element("th", title, scope="col") for title in ("fact", "as read", "where")])
    table = element("table", element("thead", head), element("tbody", rows), class_="facts stacked")
    return element(
        "section",
        element("h2", "The lines that prove it", id="evidence"),
        element("p", "Read from ", element("code", ", ".join(report.sources) or "the log"), ".", class_="caption"),
        table,
        aria_labelledby="evidence",
    )


def _facts(start: Start, report: CapacityReport) -> Iterator[Markup]:
    for fact, place in sorted(start.lines.items(), key=lambda item: item[1].line):
        value = _value(start, fact)
        yield _row(fact, value, place_of(place, report))
    for fact, derived in start.capacity.weakest.derived.items():
        yield _row(fact, show(derived.value, _unit(fact)), f"follows: {derived.how}")


def _row(fact: str, value: str | Markup, where: str) -> Markup:
    return element(
        "tr",
        element("th", element("code", fact), scope="row"),
        element("td", value, data_title="as read"),
        element("td", where, data_title="where", class_="place"),
    )


def _value(start: Start, fact: str) -> str:
    """The fact's value, wherever the report keeps it; facts without one (a ready line) are just seen."""
    for holder in (start.capacity.weakest, start, start.memory, start.timings):
        value = getattr(holder, fact, None)
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return show(value, _unit(fact))
    return "seen"


def _unit(fact: str) -> str:
    return next((unit for ending, unit in _UNITS if fact.endswith(ending)), "")


def unrecognized_section(report: CapacityReport) -> Markup | None:
    """Lines that look like capacity and that no format knows: shown, so that nobody trusts a silence."""
    if not report.unrecognized:
        return None
    items = [
        element("li", element("code", line.text), element("span", f" {place_of(line.place, report)}", class_="place"))
        for line in report.unrecognized
    ]
    return element(
        "section",
        element("h2", "Lines that nobody could read", id="unrecognized"),
        element("p", "They look like capacity; no known wording matches. ", element("code", "kvguard explain LOG")),
        element("ul", items),
        aria_labelledby="unrecognized",
    )
