"""The formats of a report by name: `--format NAME`; one that is not asked for is not loaded."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvguard.render.layout import Terminal
from kvguard.render.start_facts import why_not
from kvguard.render.text import render_report, render_verdict
from kvguard.slo.verdict import Verdict

Renderer = Callable[[Verdict, Terminal], str]


def _github(verdict: Verdict, terminal: Terminal) -> str:
    from kvguard.render.github import render_github

    return render_github(verdict, terminal)


def _json(verdict: Verdict, _terminal: Terminal) -> str:
    from kvguard.render.json_report import render_json, verdict_document

    return render_json(verdict_document(verdict))


def _junit(verdict: Verdict, terminal: Terminal) -> str:
    from kvguard.render.junit import render_junit

    return render_junit(verdict, terminal)


def _markdown(verdict: Verdict, terminal: Terminal) -> str:
    from kvguard.render.markdown import render_markdown

    return render_markdown(verdict, terminal)


def _page(verdict: Verdict, _terminal: Terminal) -> str:
    from kvguard.render.html import render_html

    return render_html(verdict)


def _report_text(verdict: Verdict, terminal: Terminal) -> str:
    return render_report(verdict.report, terminal, why_not(verdict))


def _report_json(verdict: Verdict, _terminal: Terminal) -> str:
    from kvguard.render.json_report import render_json, report_document

    return render_json(report_document(verdict.report))


def _report_page(verdict: Verdict, _terminal: Terminal) -> str:
    from kvguard.render.html import render_html_report

    return render_html_report(verdict.report, why_not(verdict))


RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "text": render_verdict,
        "json": _json,
        "markdown": _markdown,
        "junit": _junit,
        "github": _github,
        "html": _page,
    }
)
"""Every format of a verdict."""

REPORT_RENDERERS: Mapping[str, Renderer] = MappingProxyType(
    {
        "text": _report_text,
        "json": _report_json,
        "html": _report_page,
    }
)
"""The formats of the report alone; of a verdict of which nothing was asked only why there is no capacity is told."""
