"""The report a person reads in a terminal: the verdict, each objective, where the memory went, what to do."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kvguard.render.figures import (
    WIDEST_CELL,
    capacity_section,
    engines_section,
    probes_section,
    starts_section,
)
from kvguard.render.layout import INDENT, NO_BREAK, Cell, Terminal, Tone, columns, cut, wrap
from kvguard.render.log_text import shown
from kvguard.render.memory_bar import memory_bar
from kvguard.render.quantities import show_observed, show_target
from kvguard.render.start_facts import identity, origin_line, place_of, refusal
from kvguard.slo.objectives import DEFAULT_SEVERITIES, Severity
from kvguard.slo.verdict import CheckResult, JudgedWarning, Lever, Outcome, Verdict
from kvguard.startup.report import CapacityReport

OUTCOME_TONES: Mapping[Outcome, tuple[str, str, Tone]] = MappingProxyType(
    {
        Outcome.PASS: ("PASS", "✔", Tone.GOOD),
        Outcome.FAIL: ("FAIL", "✘", Tone.BAD),
        Outcome.UNKNOWN: ("UNKNOWN", "?", Tone.DOUBT),
    }
)
"""How an outcome is written over the page, before an objective, and in which colour."""

SEVERITY_TONES: Mapping[Severity, tuple[str, Tone]] = MappingProxyType(
    {
        Severity.FAIL: ("✘", Tone.BAD),
        Severity.WARN: ("!", Tone.DOUBT),
        Severity.NOTE: ("·", Tone.QUIET),
        Severity.IGNORE: (" ", Tone.PLAIN),
    }
)
"""The mark before a warning, and before an objective whose miss does not fail; an ignored warning is not shown."""

LONGEST_REASON = 1000
"""Characters of what a failed start said: several lines of a terminal."""


def render_verdict(verdict: Verdict, terminal: Terminal) -> str:
    """The page of a judged start."""
    report = verdict.report
    sections = [
        _headline(verdict, terminal),
        *_what_it_was(report, terminal),
        _objectives(verdict, terminal),
        *_figures(report, terminal),
        _warnings([warning for warning in verdict.warnings if not _is_told(warning, verdict)], report, terminal),
        _levers(verdict.levers, terminal),
    ]
    return _page(sections, terminal)


def render_report(report: CapacityReport, terminal: Terminal) -> str:
    """The page of a start that nobody judged: the figures, and the probe budget that its time asks for."""
    start = report.start
    warnings = [
        JudgedWarning(warning.code, DEFAULT_SEVERITIES.get(warning.code, Severity.WARN), warning.message, warning.place)
        for warning in (start.warnings if start else ())
    ]
    sections = [
        *_what_it_was(report, terminal),
        capacity_section(start, terminal) if start else ["No start of a vLLM server in this log."],
        *_figures(report, terminal),
        starts_section(report, terminal),
        probes_section(start, terminal) if start else [],
        _warnings(warnings, report, terminal),
    ]
    return _page(sections, terminal)


def _page(sections: Sequence[Sequence[str]], terminal: Terminal) -> str:
    lines: list[str] = []
    for section in sections:
        if section:
            lines.extend(["", *section] if lines else section)
    return terminal.finish(lines)


def _headline(verdict: Verdict, terminal: Terminal) -> list[str]:
    """The outcome and why, then what no objective's own line says below."""
    word, _, tone = OUTCOME_TONES[verdict.outcome]
    hang = " " * (len(word) + 2)
    told = {check.reason for check in verdict.checks}
    lines: list[str] = []
    for reason in verdict.reasons:
        if lines and reason.message in told:
            continue
        text = shown(reason.message, LONGEST_REASON) + _in_brackets(place_of(reason.place, verdict.report))
        lines += wrap(text, terminal.width, hang if lines else f"{word}  ", hang)
        if reason.remedy and reason.message not in told:
            lines += wrap(shown(reason.remedy, LONGEST_REASON), terminal.width, f"{hang}→ ", f"{hang}  ")
    first = lines[0] if lines else word
    return [terminal.paint(word, tone) + first[len(word) :], *lines[1:]]


def _what_it_was(report: CapacityReport, terminal: Terminal) -> list[list[str]]:
    start = report.start
    lines = wrap(origin_line(report).replace("line ", f"line{NO_BREAK}"), terminal.width, INDENT)
    if start is not None and (facts := identity(start)):
        lines = wrap(" · ".join(facts), terminal.width, INDENT) + lines
    refused = [
        line for row in (refusal(start.failure) if start and start.failure else ()) for line in _pair(row, terminal)
    ]
    return [[terminal.paint(line, Tone.QUIET) for line in lines], refused]


def _pair(row: tuple[str, str], terminal: Terminal) -> list[str]:
    name, text = row
    return wrap(text, terminal.width, f"{INDENT}{name:<11} ", INDENT + " " * 12)


def _objectives(verdict: Verdict, terminal: Terminal) -> list[str]:
    if not verdict.checks:
        return []
    rows = [_objective_row(check, verdict.report) for check in verdict.checks]
    drawn = columns(rows, terminal, INDENT)
    lines = [terminal.paint("Objectives", Tone.STRONG)]
    headline = verdict.reasons[0].message if verdict.reasons else ""
    advised = {reason.remedy for reason in verdict.reasons if reason.message not in {c.reason for c in verdict.checks}}
    for line, check in zip(drawn, verdict.checks, strict=True):
        lines.append(line)
        if check.outcome is not Outcome.PASS and check.reason != headline:
            lines += wrap(shown(check.reason), terminal.width, INDENT * 3)
        if check.outcome is not Outcome.PASS and check.remedy and check.remedy not in advised:
            lines += wrap(shown(check.remedy), terminal.width, INDENT * 2 + "→ ", INDENT * 3)
    return lines


def _objective_row(check: CheckResult, report: CapacityReport) -> list[Cell]:
    _, mark, tone = OUTCOME_TONES[check.outcome]
    if check.outcome is not Outcome.PASS and check.severity is not Severity.FAIL:
        mark, tone = SEVERITY_TONES[check.severity]
    observed = cut(show_observed(check), WIDEST_CELL)
    weight = Tone.QUIET if check.observed is None else Tone.STRONG
    return [
        Cell(f"{mark} {check.objective}", tone),
        Cell(observed, weight, right=not isinstance(check.observed, str)),
        Cell(cut(show_target(check), WIDEST_CELL)),
        Cell(place_of(check.place, report), Tone.QUIET),
    ]


def _figures(report: CapacityReport, terminal: Terminal) -> list[list[str]]:
    start = report.start
    if start is None:
        return []
    return [memory_bar(start, terminal, INDENT), engines_section(start, terminal)]


def _warnings(warnings: Sequence[JudgedWarning], report: CapacityReport, terminal: Terminal) -> list[str]:
    visible = [warning for warning in warnings if warning.severity is not Severity.IGNORE]
    if not visible:
        return []
    lines = [terminal.paint("Warnings", Tone.STRONG)]
    for warning in visible:
        mark, tone = SEVERITY_TONES[warning.severity]
        text = shown(f"{warning.code}: {warning.message}") + _in_brackets(place_of(warning.place, report))
        wrapped = wrap(text, terminal.width, f"{INDENT}{mark} ", INDENT * 2)
        lines += [INDENT + terminal.paint(mark, tone) + wrapped[0][len(INDENT) + len(mark) :], *wrapped[1:]]
    return lines


def _is_told(warning: JudgedWarning, verdict: Verdict) -> bool:
    """Whether the headline says it already: a warning that fails a verdict is a reason as well."""
    return any(warning.message == reason.message for reason in verdict.reasons)


def _levers(levers: Sequence[Lever], terminal: Terminal) -> list[str]:
    if not levers:
        return []
    flags = [shown(lever.spelt, 60) for lever in levers]
    margin = min(max(map(len, flags)), max(terminal.width * 2 // 5, 16)) + 2 + len(INDENT)
    lines = [terminal.paint("What would help", Tone.STRONG)]
    for flag, lever in zip(flags, levers, strict=True):
        gives = wrap(_sentence(shown(lever.gives)) + LEVER_WORDS[lever.enough], terminal.width, " " * margin)
        beside = len(INDENT + flag) < margin - 1
        begin = INDENT + terminal.paint(flag, Tone.ACCENT)
        lines += [begin + gives[0][len(INDENT + flag) :], *gives[1:]] if beside else [begin, *gives]
        price = wrap(f"Price: {_sentence(shown(lever.price))}", terminal.width, " " * margin)
        lines += [terminal.paint(line, Tone.QUIET) for line in price]
    return lines


LEVER_WORDS: Mapping[bool | None, str] = MappingProxyType(
    {True: " Enough alone.", False: " Not enough alone.", None: ""}
)
"""What is said of a change that does, does not, or may not meet the target by itself."""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "…")) else text + "."


def _in_brackets(text: str) -> str:
    return f" ({text})".replace("line ", f"line{NO_BREAK}") if text else ""
