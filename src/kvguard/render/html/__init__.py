"""The status page: one verdict as one self-contained HTML document, for `serve` and for `inspect --format html`.

Every part is a function from the verdict to markup that is escaped by construction (`markup.element`); drawings are
inline SVG to scale; whatever a drawing shows stands in the text beside it too.
"""

from kvguard.render.html.checks import checks_section, levers_section, warnings_section
from kvguard.render.html.course import course_section, history_section, load_section
from kvguard.render.html.document import content_security_policy, document
from kvguard.render.html.evidence import evidence_section, unrecognized_section
from kvguard.render.html.figures import key_figures
from kvguard.render.html.hero import CLOSED, OUTCOME_WORDS, Live, colour_of, judged, shown_only
from kvguard.render.html.markup import Markup, element, fragment
from kvguard.render.html.memory import memory_section
from kvguard.render.html.pool import pool_section
from kvguard.render.start_facts import identity, origin_line
from kvguard.slo.verdict import Outcome, Reason, Verdict
from kvguard.startup.report import SETTLED, CapacityReport
from kvguard.version import __version__

__all__ = ["Live", "content_security_policy", "render_html", "render_html_report"]

POLL_SECONDS, POLL_SECONDS_SETTLED = 2, 5
"""How often a page asks for news: while a start is under way, and once it has come to something."""


def render_html(verdict: Verdict, live: Live | None = None) -> str:
    """The page of a judged start; `live` adds what only a running sidecar knows."""
    colour = colour_of(verdict, live)
    word = OUTCOME_WORDS[colour] if colour is verdict.outcome else CLOSED
    return document(f"{word} · {_name(verdict.report)} · kvguard", colour, _page(verdict.report, verdict, live))


def render_html_report(report: CapacityReport, why: Reason | None = None) -> str:
    """The page of a start that nobody judged; `why` it holds no capacity."""
    return document(f"{_name(report)} · kvguard", Outcome.UNKNOWN, _page(report, None, None, why))


def _page(report: CapacityReport, verdict: Verdict | None, live: Live | None, why: Reason | None = None) -> Markup:
    start = report.start
    sections = [
        judged(verdict, live) if verdict else shown_only(report, why),
        key_figures(report),
        levers_section(verdict) if verdict else None,
        checks_section(verdict, live is not None) if verdict else None,
        pool_section(verdict, start) if start else None,
        memory_section(start) if start else None,
        load_section(start.runtime) if start else None,
        warnings_section(verdict) if verdict else None,
        course_section(start) if start else None,
        history_section(report),
        unrecognized_section(report),
        evidence_section(report),
    ]
    settled = start is not None and start.phase in SETTLED
    every = POLL_SECONDS_SETTLED if settled else POLL_SECONDS
    main = element(
        "main",
        sections,
        id="page",
        data_every=every if live else None,
        data_revision=live.revision if live else None,
    )
    announce = element("p", id="announce", class_="unseen", role="status") if live else None
    return fragment(_top(report, live), announce, main, _foot(live))


def _top(report: CapacityReport, live: Live | None) -> Markup:
    start = report.start
    link = element("span", id="link") if live else None
    return element(
        "header",
        element("p", element("b", "kvguard"), " ", link, class_="brand"),
        element("p", origin_line(report), class_="origin"),
        element("ul", [element("li", fact) for fact in identity(start)], class_="facts-line") if start else None,
        _source(live) if live else None,
        id="top",
    )


def _source(live: Live) -> Markup:
    return element("p", live.source, class_="source" if live.source_fine else "source problem")


def _foot(live: Live | None) -> Markup:
    links = [
        element("a", text, href=href)
        for text, href in (
            ("report (JSON)", "v1/report"),
            ("metrics", "metrics"),
            ("readiness in detail", "readyz?verbose"),
        )
    ]
    asof = element("p", "As of ", element("time", live.as_of, datetime=live.as_of), ".") if live else None
    still = element("noscript", element("p", "Without JavaScript this page shows that moment: reload it for news."))
    return element(
        "footer",
        asof,
        still if live else None,
        element("nav", links, aria_label="For machines") if live else None,
        element("p", f"kvguard {__version__}"),
        id="foot",
    )


def _name(report: CapacityReport) -> str:
    start = report.start
    return (start.served_model_name or start.model if start else None) or "no start yet"
