"""What the SLO makes of warnings: those of the report, and those that only the judge can see."""

from collections.abc import Iterable, Iterator

from kvguard.slo.objectives import Severity, Slo
from kvguard.slo.verdict import JudgedWarning
from kvguard.startup.report import Phase, Start, StartWarning


def judged_warnings(start: Start | None, slo: Slo, found: Iterable[StartWarning]) -> tuple[JudgedWarning, ...]:
    """Each warning once by code and place, with its severity; `found` are those of the checks."""
    if start is None:
        return ()
    warnings = dict.fromkeys((*start.warnings, *_of_the_course(start), *found))
    return tuple(JudgedWarning(w.code, _severity(w.code, start, slo), w.message, w.place) for w in warnings)


def _of_the_course(start: Start) -> Iterator[StartWarning]:
    told = {warning.code for warning in start.warnings}
    if start.phase is Phase.ALLOCATED and "start-not-finished" not in told:
        yield StartWarning(
            "start-not-finished", "the capacity is reported, the server is not ready yet", start.last_place
        )


def _severity(code: str, start: Start, slo: Slo) -> Severity:
    # a shorter context that the SLO itself expects is declared, not silent
    if code == "context-auto-reduced" and code not in slo.severities:
        served = start.capacity.weakest.max_model_len or start.max_model_len
        if served is not None and slo.target("expect_max_model_len") == served:
            return Severity.NOTE
    return slo.severity(code)
