"""The objectives with what was observed and what was asked for, and what would help."""

from kvguard.render.html.hero import outcome_mark
from kvguard.render.html.markup import Markup, element, prose
from kvguard.render.lever_words import enough_words
from kvguard.render.quantities import show_observed, show_target
from kvguard.render.start_facts import WAITED_OUT, headline_of, place_of
from kvguard.slo.objectives import Severity, Stage
from kvguard.slo.verdict import CheckResult, Lever, Outcome, Verdict

_STAGE_NOTES = {Stage.RUNTIME: "load: shown, never gates", Stage.WORKLOAD: "", Stage.STARTUP: "", Stage.REGRESSION: ""}


def checks_section(verdict: Verdict, live: bool) -> Markup | None:
    """Each objective as a row of a table; `live`: the log is being followed, so what it lacks may still come."""
    if not verdict.checks:
        return None
    titles = ("objective", "outcome", "observed", "asked for", "where")
    head = element("tr", [element("th", title, scope="col") for title in titles])
    return element(
        "section",
        element("h2", "Objectives", id="checks"),
        element(
            "table",
            element("thead", head),
            element("tbody", [_row(check, verdict, live) for check in verdict.checks]),
            class_="checks stacked",
        ),
        aria_labelledby="checks",
    )


def _row(check: CheckResult, verdict: Verdict, live: bool) -> Markup:
    note = _STAGE_NOTES[check.stage]
    headline = headline_of(verdict).message
    waits = live and check.outcome is Outcome.UNKNOWN and any(one.code in WAITED_OUT for one in verdict.reasons)
    told = check.outcome is Outcome.PASS or check.reason == headline  # the headline stands at the top of the page
    said = [] if told else [check.reason, None if waits else check.remedy]
    name = element(
        "th",
        element("code", check.objective),
        element("small", note) if note else None,
        [element("small", prose(text)) for text in said if text],
        scope="row",
    )
    cells = (
        ("outcome", outcome_mark(check.outcome)),
        ("observed", show_observed(check)),
        ("asked for", show_target(check)),
        ("where", place_of(check.place, verdict.report)),
    )
    return element("tr", name, [element("td", text, data_title=title) for title, text in cells if text])


def levers_section(verdict: Verdict) -> Markup | None:
    """What to change, the best first: the verdict's own levers, then those of its checks."""
    levers = list(dict.fromkeys([*verdict.levers, *(one for check in verdict.checks for one in check.levers)]))
    if not levers:
        return None
    reckoned = sorted((one for one in levers if one.enough is not None), key=lambda one: not one.enough)
    open_ones = [one for one in levers if one.enough is None]
    more = element(
        "details",
        element("summary", f"{len(open_ones)} more, of which the log does not tell whether they are enough"),
        element("ul", [_lever(lever) for lever in open_ones], class_="levers"),
        id="more-levers",
        open=not reckoned,
    )
    return element(
        "section",
        element("h2", "What would help", id="levers"),
        element("ul", [_lever(lever) for lever in reckoned], class_="levers") if reckoned else None,
        more if open_ones else None,
        aria_labelledby="levers",
    )


def _lever(lever: Lever) -> Markup:
    enough = enough_words(lever)
    return element(
        "li",
        element(
            "p",
            element("code", prose(lever.spelt, "span")),
            " ",
            element("span", enough, class_=f"badge {str(lever.enough).lower()}") if enough else None,
        ),
        element("div", element("p", lever.gives), element("p", prose(f"Price: {lever.whole_price}"), class_="note")),
    )


def warnings_section(verdict: Verdict) -> Markup | None:
    """What does not change a figure but its worth."""
    visible = [warning for warning in verdict.warnings if warning.severity is not Severity.IGNORE]
    if not visible:
        return None
    items = [
        element(
            "li",
            element("span", warning.severity.value, class_=f"badge {warning.severity}"),
            " ",
            element("code", warning.code),
            " ",
            prose(warning.message),
            _place(place_of(warning.place, verdict.report)),
        )
        for warning in visible
    ]
    return element(
        "section",
        element("h2", "Warnings", id="warnings"),
        element("ul", items, class_="warnings"),
        aria_labelledby="warnings",
    )


def _place(text: str) -> Markup | None:
    return element("span", f" {text}", class_="place") if text else None
