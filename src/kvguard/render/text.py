"""The report a person reads in a terminal: the verdict, each objective, where the memory went, what to do."""

from collections.abc import Mapping, Sequence, Set
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
from kvguard.render.memory_bar import memory_bar, memory_line
from kvguard.render.quantities import show_observed, show_target
from kvguard.render.start_facts import headline_of, identity, origin_line, place_of, refusal, warnings_of
from kvguard.render.text_levers import levers_section
from kvguard.slo.objectives import Severity
from kvguard.slo.verdict import CheckResult, JudgedWarning, Outcome, Reason, Verdict
from kvguard.startup.report import CapacityReport, Start

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
    """The page of a judged start: why, and what to do. What only helps to understand it comes with `verbose`."""
    report = verdict.report
    what = [*_headline(verdict, terminal), *_what_it_was(report, terminal)]
    start, details = report.start, []
    if start is not None and terminal.verbose:
        details = [_refused(start, terminal), memory_bar(start, terminal, INDENT), engines_section(start, terminal)]
    elif start is not None and verdict.outcome is not Outcome.PASS:
        what += memory_line(start, terminal, INDENT)
    what += _warnings([warning for warning in verdict.warnings if not _is_told(warning, verdict)], report, terminal)
    return _page([what, _objectives(verdict, terminal), *details, levers_section(verdict, terminal)], terminal)


def render_report(report: CapacityReport, terminal: Terminal, why: Reason | None = None) -> str:
    """The page of a start that nobody judged: the figures, and the probe budget that its time asks for.

    Args:
        report: what the log says.
        terminal: what the page is drawn for.
        why: why there is no capacity to show, and what to do.
    """
    start = report.start
    what = [*_why_not(why, report, terminal), *_what_it_was(report, terminal)]
    if start is None:
        return _page([what], terminal)
    sections = [
        what,
        _refused(start, terminal),
        capacity_section(start, report, terminal),
        memory_bar(start, terminal, INDENT),
        engines_section(start, terminal),
        starts_section(report, terminal),
        probes_section(start, terminal),
        _warnings(warnings_of(report), report, terminal, "Warnings"),
    ]
    return _page(sections, terminal)


def _page(sections: Sequence[Sequence[str]], terminal: Terminal) -> str:
    lines: list[str] = []
    for section in sections:
        if section:
            lines.extend(["", *section] if lines else section)
    return terminal.finish(lines)


def _headline(verdict: Verdict, terminal: Terminal) -> list[str]:
    """The outcome and why, then the reasons that no objective's own line below says."""
    word, _, tone = OUTCOME_TONES[verdict.outcome]
    hang = " " * (len(word) + 2)
    of_checks = {check.reason: check for check in verdict.checks}
    lines: list[str] = []
    for reason in verdict.reasons:
        check = of_checks.get(reason.message)
        if lines and check is not None:
            continue
        text = reason.message if check is None else check.finding
        text = shown(text, LONGEST_REASON) + _in_brackets(place_of(reason.place, verdict.report))
        lines += wrap(text, terminal.width, hang if lines else f"{word}  ", hang)
        if check is None:
            lines += _arrow(reason.remedy, hang, terminal)
        else:
            told = {reason.message for reason in verdict.reasons} - {check.reason} | {text}
            lines += [*_noted(check, told, hang, terminal), *_arrow(_advice(check, verdict), hang, terminal)]
    first = lines[0] if lines else word
    return [terminal.paint(word, tone) + first[len(word) :], *lines[1:]]


def _noted(check: CheckResult, told: Set[str], indent: str, terminal: Terminal) -> list[str]:
    """How a figure came about, or why it is not known, unless told already; of one that is met only the first."""
    if check.note is None or any(check.note in text for text in told):
        return []
    note = check.note.partition("; ")[0] if check.outcome is Outcome.PASS else check.note
    return wrap(shown(note, LONGEST_REASON), terminal.width, indent)


def _advice(check: CheckResult, verdict: Verdict) -> str | None:
    """What to do about a check; where the levers below are its own, they say it."""
    if check.outcome is Outcome.PASS:
        return None
    return check.settles if verdict.levers and set(verdict.levers) <= set(check.levers) else check.remedy


def _arrow(remedy: str | None, indent: str, terminal: Terminal) -> list[str]:
    return wrap(shown(remedy, LONGEST_REASON), terminal.width, f"{indent}→ ", f"{indent}  ") if remedy else []


def _what_it_was(report: CapacityReport, terminal: Terminal) -> list[str]:
    what = identity(report.start) if report.start else []
    facts = [origin_line(report).replace("line ", f"line{NO_BREAK}"), *(fact.replace(" ", NO_BREAK) for fact in what)]
    lines = wrap(" · ".join(facts), terminal.width, INDENT)
    return [terminal.paint(line, Tone.QUIET) for line in lines]


def _why_not(reason: Reason | None, report: CapacityReport, terminal: Terminal) -> list[str]:
    if reason is None:
        return []
    text = shown(reason.message, LONGEST_REASON) + _in_brackets(place_of(reason.place, report))
    told = [terminal.paint(line, Tone.STRONG) for line in wrap(text[:1].upper() + text[1:], terminal.width)]
    return [*told, *_arrow(reason.remedy, INDENT, terminal)]


def _refused(start: Start, terminal: Terminal) -> list[str]:
    """What a failed start asked for and what fits, row by row."""
    return [line for row in (refusal(start.failure) if start.failure else ()) for line in _pair(row, terminal)]


def _pair(row: tuple[str, str], terminal: Terminal) -> list[str]:
    name, text = row
    return wrap(text, terminal.width, f"{INDENT}{name:<11} ", INDENT + " " * 12)


def _objectives(verdict: Verdict, terminal: Terminal) -> list[str]:
    """Each objective on a line; none where the headline has said the only one."""
    headline = headline_of(verdict).message
    if not verdict.checks or [check.reason for check in verdict.checks] == [headline]:
        return []
    drawn = columns([_objective_row(check, verdict.report) for check in verdict.checks], terminal, INDENT)
    lines = [terminal.paint("Objectives", Tone.STRONG)]
    advised = {reason.remedy for reason in verdict.reasons if reason.message == headline}
    told = {reason.message for reason in verdict.reasons} - {check.reason for check in verdict.checks}
    for line, check in zip(drawn, verdict.checks, strict=True):
        lines.append(line)
        if check.outcome is not Outcome.PASS and check.reason != headline:
            lines += _noted(check, told, INDENT * 3, terminal)
            told |= {check.note or ""}
            advice = _advice(check, verdict)
            lines += [] if advice in advised else _arrow(advice, INDENT * 2, terminal)
            advised.add(advice)
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


def _warnings(
    warnings: Sequence[JudgedWarning], report: CapacityReport, terminal: Terminal, title: str | None = None
) -> list[str]:
    visible = [warning for warning in warnings if warning.severity is not Severity.IGNORE]
    lines = [terminal.paint(title, Tone.STRONG)] if title and visible else []
    for warning in visible:
        mark, tone = SEVERITY_TONES[warning.severity]
        # the code is what the SLO would name; a note changes nothing anyway
        code = "" if warning.severity is Severity.NOTE and not terminal.verbose else f"{warning.code}: "
        text = shown(f"{code}{warning.message}") + _in_brackets(place_of(warning.place, report))
        wrapped = wrap(text, terminal.width, f"{INDENT}{mark} ", INDENT * 2)
        lines += [INDENT + terminal.paint(mark, tone) + wrapped[0][len(INDENT) + len(mark) :], *wrapped[1:]]
    return lines


def _is_told(warning: JudgedWarning, verdict: Verdict) -> bool:
    """Whether the headline says it already: a warning that fails a verdict is a reason as well."""
    return any(warning.message == reason.message for reason in verdict.reasons)


def _in_brackets(text: str) -> str:
    return f" ({text})".replace("line ", f"line{NO_BREAK}") if text else ""
