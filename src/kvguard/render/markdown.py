"""The Markdown summary for a pull request or a job's summary page."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kvguard.render.layout import Terminal
from kvguard.render.lever_words import enough_words
from kvguard.render.log_text import shown
from kvguard.render.memory_bar import staircase
from kvguard.render.memory_parts import memory_parts
from kvguard.render.quantities import show_observed, show_target
from kvguard.render.start_facts import headline_of, identity, origin_line, place_of, refusal
from kvguard.slo.objectives import Severity
from kvguard.slo.verdict import CheckResult, JudgedWarning, Lever, Outcome, Reason, Verdict
from kvguard.startup.report import CapacityReport, Place, Start
from kvguard.units import format_bytes

MARKS: Mapping[Outcome, str] = MappingProxyType({Outcome.PASS: "✅", Outcome.FAIL: "❌", Outcome.UNKNOWN: "❔"})
SEVERITY_MARKS: Mapping[Severity, str] = MappingProxyType(
    {Severity.FAIL: "❌", Severity.WARN: "⚠️", Severity.NOTE: "ℹ️", Severity.IGNORE: ""}
)
BAR_COLUMNS = 40

_ACTIVE = re.compile(
    # markup and HTML anywhere; a mention, an issue's number, an autolink, an emoji's name; what makes a line a list,
    # a heading or a rule where it begins one
    r"[\\`*{}\[\]#|<>~$&@]|(?<!\w)_|_(?!\w)|:(?=//|:|[\w+-]+:)|(?<=www)\."
    r"|^[-+=](?=\s|[-+=\s]*$)|^\d(?=\d{0,8}[.)](?:\s|$))"
)


def render_markdown(verdict: Verdict, terminal: Terminal) -> str:
    """The summary; the terminal plays no part in it."""
    report = verdict.report
    blocks = [
        _heading(verdict),
        _subject(report),
        *([_table(verdict)] if verdict.checks else []),
        *_advice(verdict),
        *_warnings(verdict.warnings, report),
        *_levers(verdict.levers),
        *(_memory(report.start) if report.start else []),
    ]
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """Text that reads the same in Markdown and does nothing there: no markup, HTML, mention or link."""
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", shown(text))


def _heading(verdict: Verdict) -> str:
    """The outcome and why, then what no objective's own line says below."""
    told = {check.reason for check in verdict.checks}
    first, others = headline_of(verdict), verdict.reasons[1:]
    title = f"### {MARKS[verdict.outcome]} kvguard: {verdict.outcome}\n\n**{escape(first.message)}**"
    rest = [_reason(reason, verdict.report) for reason in others if reason.message not in told]
    advice = [f"→ {escape(first.remedy)}"] if first.remedy and first.message not in told else []
    return "\n\n".join([title, *advice, *(["\n".join(rest)] if rest else [])])


def _reason(reason: Reason, report: CapacityReport) -> str:
    advice = f" → {escape(reason.remedy)}" if reason.remedy else ""
    return f"- {escape(reason.message)}{_where(reason.place, report)}{advice}"


def _where(place: Place | None, report: CapacityReport) -> str:
    text = place_of(place, report)
    return f" ({escape(text)})" if text else ""


def _subject(report: CapacityReport) -> str:
    facts = identity(report.start) if report.start else []
    lines = [" · ".join(map(escape, facts)), escape(origin_line(report))]
    if report.start and report.start.failure:
        lines += [f"{name}: {escape(text)}" for name, text in refusal(report.start.failure)]
    return "<br>\n".join(line for line in lines if line)


def _table(verdict: Verdict) -> str:
    head = "| | objective | observed | target | where |\n|---|---|--:|--:|---|"
    return "\n".join([head, *(_row(check, verdict.report) for check in verdict.checks)])


def _row(check: CheckResult, report: CapacityReport) -> str:
    counts = check.outcome is Outcome.PASS or check.severity is Severity.FAIL
    cells = (
        MARKS[check.outcome] if counts else SEVERITY_MARKS[check.severity],
        f"`{check.objective}`",
        escape(show_observed(check)),
        escape(show_target(check)),
        escape(place_of(check.place, report)),
    )
    return f"| {' | '.join(cells)} |"


def _advice(verdict: Verdict) -> list[str]:
    """What is to be said of each objective that is not met; the heading has said the first one's reason."""
    headline = headline_of(verdict).message
    lines = []
    for check in verdict.checks:
        told = [escape(check.reason)] if check.reason != headline else []
        told += [f"→ {escape(check.remedy)}"] if check.remedy else []
        if check.outcome is not Outcome.PASS and told:
            lines.append(f"- `{check.objective}`: {' '.join(told)}")
    return ["\n".join(lines)] if lines else []


def _warnings(warnings: Sequence[JudgedWarning], report: CapacityReport) -> list[str]:
    lines = [
        f"- {SEVERITY_MARKS[warning.severity]} {escape(warning.code)}: {escape(warning.message)}"
        f"{_where(warning.place, report)}"
        for warning in warnings
        if warning.severity is not Severity.IGNORE
    ]
    return ["\n".join(["**Warnings**", "", *lines])] if lines else []


def _levers(levers: Sequence[Lever]) -> list[str]:
    if not levers:
        return []
    rows = [
        f"| {escape(lever.spelt)} | {escape(lever.gives)} | {enough_words(lever)} | {escape(lever.whole_price)} |"
        for lever in levers
    ]
    return ["\n".join(["**What would help**", "", "| change | gives | enough | price |", "|---|---|---|---|", *rows])]


def _memory(start: Start) -> list[str]:
    parts = memory_parts(start)
    if not parts:
        return []
    name_width = max(len(part.name) for part in parts)
    bars = staircase([part.size for part in parts], BAR_COLUMNS)
    lines = [
        f"{part.name:<{name_width}}  {format_bytes(part.size):>10}  {' ' * blank}{'█' * length}".rstrip()
        for part, (blank, length) in zip(parts, bars, strict=True)
    ]
    drawing = "\n".join(lines)
    return [f"<details><summary>Where the GPU's memory went</summary>\n\n```text\n{drawing}\n```\n\n</details>"]
