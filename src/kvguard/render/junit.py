"""JUnit XML: an objective is a test case; a miss is a failure, what could not be told is an error, never a pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvguard.render.layout import Terminal
from kvguard.render.log_text import shown
from kvguard.render.quantities import show_observed, show_target
from kvguard.render.start_facts import PHASE_WORDS, file_of, headline_of, origin_line
from kvguard.slo.objectives import Severity
from kvguard.slo.verdict import CheckResult, Outcome, Verdict
from kvguard.startup.report import Phase, Place

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

RESULT_TAGS: dict[Outcome, str | None] = {Outcome.PASS: None, Outcome.FAIL: "failure", Outcome.UNKNOWN: "error"}
"""The element inside a test case for each outcome; a pass has none."""
LONGEST_MESSAGE = 2000
ADVISORY = "skipped"
"""The element where the SLO lets a miss change nothing: neither green nor red."""


def render_junit(verdict: Verdict, terminal: Terminal) -> str:
    """One suite: the start itself, each objective, and each warning that the SLO counts as a miss."""
    from xml.etree import ElementTree  # loaded when XML is asked for

    report = verdict.report
    cases = [_start_case(verdict), *(_check_case(check) for check in verdict.checks)]
    cases += [
        _case("warning", warning.code, RESULT_TAGS[Outcome.FAIL], warning.message, "", warning.place)
        for warning in verdict.warnings
        if warning.severity is Severity.FAIL
    ]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": str(sum(case.find(ADVISORY) is not None for case in cases)),
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "kvguard", **counts, "time": "0"})
    suite.extend(cases)
    ElementTree.SubElement(suite, "system-out").text = origin_line(report)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _start_case(verdict: Verdict) -> Element:
    """The start as a case of its own: it carries the verdict where no objective does."""
    outcomes = {check.outcome for check in verdict.checks if check.severity is Severity.FAIL}
    by_warning = any(warning.severity is Severity.FAIL for warning in verdict.warnings)
    explained = verdict.outcome in outcomes or (verdict.outcome is Outcome.FAIL and by_warning)
    start = verdict.report.start
    failed = start is not None and start.phase is Phase.FAILED
    outcome = Outcome.FAIL if failed else (Outcome.PASS if explained else verdict.outcome)
    reason = headline_of(verdict)
    phase = PHASE_WORDS[start.phase if start else Phase.NONE]
    return _case(
        "start",
        "start",
        RESULT_TAGS[outcome],
        reason.message,
        phase,
        reason.place,
    )


def _check_case(check: CheckResult) -> Element:
    figures = f"observed {show_observed(check)}, target {show_target(check)}"
    detail = f"{figures}\n{shown(check.remedy)}" if check.remedy else figures
    tag = RESULT_TAGS[check.outcome]
    tag = ADVISORY if tag and check.severity is not Severity.FAIL else tag
    return _case(check.stage, check.objective, tag, check.reason, detail, check.place)


def _case(group: str, name: str, tag: str | None, message: str, detail: str, place: Place | None) -> Element:
    from xml.etree import ElementTree

    attributes = {"classname": f"kvguard.{group}", "name": name, "time": "0"}
    if place is not None and (file := file_of(place)):
        attributes |= {"file": file, "line": str(place.line)}
    case = ElementTree.Element("testcase", attributes)
    if tag is not None:
        text = shown(message, LONGEST_MESSAGE)
        ElementTree.SubElement(case, tag, {"message": text, "type": tag}).text = f"{text}\n{detail}".rstrip()
    return case
