"""The formats of a report by name: `--format NAME`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.render.github import render_github
from kvguard.render.json_report import render_json, report_document, verdict_document
from kvguard.render.junit import render_junit
from kvguard.render.layout import Terminal
from kvguard.render.markdown import render_markdown
from kvguard.render.text import render_report, render_verdict
from kvguard.slo.verdict import Verdict
from kvguard.startup.report import CapacityReport


def _page(verdict: Verdict, _terminal: Terminal) -> str:
    from kvguard.render.html import render_html  # a dozen modules that the other formats do without

    return render_html(verdict)


def _report_page(report: CapacityReport, _terminal: Terminal) -> str:
    from kvguard.render.html import render_html_report

    return render_html_report(report)


Renderer = Callable[[Verdict, Terminal], str]

RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "text": render_verdict,
        "json": lambda verdict, terminal: render_json(verdict_document(verdict)),
        "markdown": render_markdown,
        "junit": render_junit,
        "github": render_github,
        "html": _page,
    }
)
"""Every format of a verdict."""

REPORT_RENDERERS: Mapping[str, Callable[[CapacityReport, Terminal], str]] = MappingProxyType(
    {
        "text": render_report,
        "json": lambda report, terminal: render_json(report_document(report)),
        "html": _report_page,
    }
)
"""The formats of a report that nobody judged."""
