"""The JSON report: every face's one document, in base units, `null` where the log does not say.

Its keys are a contract, only ever added to; `stored_report.py` reads it back.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kvguard.lines.secrets import mask_deep
from kvguard.render.log_text import escape_unshown
from kvguard.render.probe_budget import probe_budget
from kvguard.render.start_facts import warnings_of
from kvguard.slo.verdict import CheckResult, JudgedWarning, Outcome, Reason, Verdict
from kvguard.slotted import fields
from kvguard.startup.report import (
    Capacity,
    CapacityReport,
    DeploymentCapacity,
    Failure,
    Phase,
    Place,
    Runtime,
    Start,
    StartSummary,
)
from kvguard.version import __version__

KIND = "report"
SCHEMA_VERSION = 1
_OF_THE_MOMENT = ("latest", "began_clock", "latest_clock")
"""Clocks of the process that read the log: nothing that a stored report could mean."""


def render_json(document: Mapping[str, Any]) -> str:
    """The document as it stands on stdout and in files: indented, UTF-8, no raw control of a terminal in it."""
    return escape_unshown(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def record_line(verdict: Verdict, recorded_at: str, **beside: Any) -> str:
    """The report on one line, with the time (ISO 8601, UTC), as a record of many holds it.

    `beside`: what else the line holds, under keys of its own.
    """
    document = {"recorded_at": recorded_at, **verdict_document(verdict), **beside}
    return escape_unshown(json.dumps(document, ensure_ascii=False)) + "\n"


def verdict_document(verdict: Verdict) -> dict[str, Any]:
    """The report of a judged start."""
    return _document(verdict.report, verdict.warnings, verdict)


def report_document(report: CapacityReport) -> dict[str, Any]:
    """The report of a start that nobody judged: `verdict` is null, warnings have their default severity."""
    return _document(report, warnings_of(report), None)


def _document(report: CapacityReport, warnings: Iterable[JudgedWarning], verdict: Verdict | None) -> dict[str, Any]:
    outcome = verdict.outcome if verdict else None
    document = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "kvguard_version": __version__,
        "sources": list(report.sources),
        "verdict": _verdict(verdict) if verdict else None,
        "checks": [_check(check) for check in verdict.checks] if verdict else [],
        "levers": [_flat(lever) for lever in verdict.levers] if verdict else [],
        "starts": report.starts,
        "history": [_summary(start, report, outcome) for start in report.history],
        "start": _start(report.start, warnings) if report.start else None,
        "lines": _lines(report.start) if report.start else {},
        "unrecognized": [{"text": line.text, **_place(line.place)} for line in report.unrecognized],
        "log": _flat(report.counts),
    }
    return {key: mask_deep(value) for key, value in document.items()}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "startup_outcome": verdict.gate_outcome,
        "reasons": [_reason(reason) for reason in verdict.reasons],
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {**_flat(reason, "place"), **_place(reason.place)}


def _check(check: CheckResult) -> dict[str, Any]:
    return {
        **_flat(check, "place", "levers"),
        **_place(check.place),
        "levers": [_flat(lever) for lever in check.levers],
    }


def _summary(summary: StartSummary, report: CapacityReport, newest: Outcome | None) -> dict[str, Any]:
    """An earlier start was never judged here: a failed one is a fail, of another one the outcome is not known."""
    is_newest = report.start is not None and summary.index == report.start.index
    outcome = newest if is_newest else (Outcome.FAIL if summary.phase is Phase.FAILED else None)
    return {"index": summary.index, "phase": summary.phase, "outcome": outcome, **_flat(summary, "index", "phase")}


def _start(start: Start, warnings: Iterable[JudgedWarning]) -> dict[str, Any]:
    nested = {
        "capacity",
        "engines",
        "memory",
        "timings",
        "runtime",
        "failure",
        "warnings",
        "missing",
        "lines",
        "quotes",
        "differing",
    }
    budget = probe_budget(start.timings)
    return {
        **_flat(start, *nested, "first_place", "last_place", "arguments", *_OF_THE_MOMENT),
        "capacity": _deployment(start.capacity),
        "engines": [_capacity(engine) for engine in start.engines],
        "memory": _flat(start.memory),
        "timings": _flat(start.timings),
        "failure": _failure(start.failure) if start.failure else None,
        "warnings": [
            {"code": w.code, "severity": w.severity, "message": w.message, **_place(w.place)} for w in warnings
        ],
        "runtime": _runtime(start.runtime),
        "missing": list(start.missing),
        "arguments": dict(start.arguments),
        "startup_probe": _flat(budget) if budget else None,
        "first_line": _place(start.first_place),
        "last_line": _place(start.last_place),
    }


def _lines(start: Start) -> dict[str, Any]:
    return {fact: {**_place(place), "text": start.quotes.get(place)} for fact, place in start.lines.items()}


def _capacity(capacity: Capacity) -> dict[str, Any]:
    return {
        **_flat(capacity, "rounding", "derived"),
        "rounding": dict(capacity.rounding),
        "derived": {name: _flat(figure) for name, figure in capacity.derived.items()},
    }


def _deployment(capacity: DeploymentCapacity) -> dict[str, Any]:
    return {**_capacity(capacity.weakest), **_flat(capacity, "weakest")}


def _failure(failure: Failure) -> dict[str, Any]:
    return {**_flat(failure, "place"), **_place(failure.place)}


def _runtime(runtime: Runtime) -> dict[str, Any]:
    return {**_flat(runtime, "place"), **_place(runtime.place)}


def _place(place: Place | None) -> dict[str, Any]:
    return {"source": place.source if place else None, "line": place.line if place else None}


def _flat(value: Any, *without: str) -> dict[str, Any]:
    """The fields of a dataclass by their names: these names are the report's keys."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.name not in without}
