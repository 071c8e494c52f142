"""GitHub workflow commands: one annotation an objective that is not met, within what GitHub shows of a step."""

from collections.abc import Iterable

from kvguard.render.layout import Terminal
from kvguard.render.log_text import shown
from kvguard.render.quantities import show_observed, show_target
from kvguard.render.start_facts import file_of, headline_of
from kvguard.slo.objectives import Severity
from kvguard.slo.verdict import CheckResult, JudgedWarning, Outcome, Verdict
from kvguard.startup.report import Place

MOST = 10
"""GitHub shows the first ten errors and the first ten warnings of a step, and drops the rest without a word."""


def render_github(verdict: Verdict, terminal: Terminal) -> str:
    """Errors for what is missed or unknown, warnings for the rest; one notice when all is met."""
    checks = [c for c in verdict.checks if c.outcome is not Outcome.PASS and c.severity is Severity.FAIL]
    told = {check.reason for check in checks}
    reasons = [reason for reason in verdict.reasons if reason.message not in told]
    told |= {reason.message for reason in reasons}
    errors = [
        _command("error", f"kvguard: {verdict.outcome}", _advised(reason.message, reason.remedy), reason.place)
        for reason in (reasons if verdict.outcome is not Outcome.PASS else ())
    ]
    errors += [_of_check(check) for check in checks]
    errors += [_of_warning("error", warning) for warning in verdict.warnings if _counts(warning, told)]
    warnings = [_of_warning("warning", warning) for warning in verdict.warnings if warning.severity is Severity.WARN]
    lines = [*_bounded(errors, "error"), *_bounded(warnings, "warning")]
    if verdict.outcome is Outcome.PASS:
        lines.append(_command("notice", "kvguard: pass", _met(verdict), None))
    return "".join(line + "\n" for line in lines)


def _counts(warning: JudgedWarning, told: set[str]) -> bool:
    return warning.severity is Severity.FAIL and warning.message not in told


def _of_warning(level: str, warning: JudgedWarning) -> str:
    return _command(level, f"kvguard: {warning.code}", shown(warning.message), warning.place)


def _met(verdict: Verdict) -> str:
    figures = [f"{check.objective} {show_observed(check)} ({show_target(check)})" for check in verdict.checks]
    return ", ".join(figures) or shown(headline_of(verdict).message)


def _of_check(check: CheckResult) -> str:
    message = _advised(f"{check.reason} (observed {show_observed(check)}, target {show_target(check)})", check.remedy)
    return _command("error", f"kvguard: {check.objective} {check.outcome}", message, check.place)


def _advised(message: str, remedy: str | None) -> str:
    return f"{shown(message)}\n→ {shown(remedy)}" if remedy else shown(message)


def _bounded(lines: list[str], level: str) -> Iterable[str]:
    if len(lines) <= MOST:
        return lines
    rest = len(lines) - (MOST - 1)
    return [*lines[: MOST - 1], _command(level, "kvguard", f"{rest} more: see the whole report", None)]


def _command(level: str, title: str, message: str, place: Place | None) -> str:
    where = f"file={_property(file)},line={place.line}," if place and (file := file_of(place)) else ""
    return f"::{level} {where}title={_property(title)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(shown(text)).replace(":", "%3A").replace(",", "%2C")
