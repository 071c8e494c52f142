"""A verdict to its reports, its record, a line on stderr where no page says it, and the exit status."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

from kvguard.cli import exit_status
from kvguard.cli.output import Destination, write_reports
from kvguard.cli.standard_streams import say
from kvguard.render.formats import RENDERERS
from kvguard.render.log_text import shown
from kvguard.render.start_facts import EMPTY_LOG, WAITED_OUT, headline_of
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.slotted import replace
from kvguard.units import format_seconds

if TYPE_CHECKING:
    from pathlib import Path

STATUS_OF: Mapping[Outcome, int] = MappingProxyType(
    {Outcome.PASS: exit_status.MET, Outcome.FAIL: exit_status.MISSED, Outcome.UNKNOWN: exit_status.UNKNOWN}
)
"""The exit status of each outcome."""


def answer(
    verdict: Verdict,
    places: Sequence[Destination],
    record: "Path | None",
    timed_out_after: float | None = None,
    page: TextIO | None = None,
) -> int:
    """Write all that was asked for, and give the status; a report without a file goes to `page`, else to stdout.

    Raises:
        SourceError: a file cannot be written.
    """
    if timed_out_after is not None:
        say(f"kvguard: no answer within {format_seconds(timed_out_after)}")
        verdict = _waited_for(verdict, timed_out_after)
    write_reports(places, lambda form, terminal: RENDERERS[form](verdict, terminal), page)
    if record is not None:
        from kvguard.cli.records import append

        append(record, verdict)
    if verdict.outcome is not Outcome.PASS and not any(one.form == "text" and one.path is None for one in places):
        say(f"kvguard: {verdict.outcome}: {shown(headline_of(verdict).message)}")
    return exit_status.UNKNOWN if timed_out_after is not None else STATUS_OF[verdict.outcome]


_WAITED_FOR = WAITED_OUT | {"require_ready", "ready_within"}
"""Reasons whose remedy is to wait."""


def _waited_for(verdict: Verdict, seconds: float) -> Verdict:
    """The verdict after so many seconds of waiting: its advice to wait has been taken."""
    taken = {reason.remedy for reason in verdict.reasons if reason.code in _WAITED_FOR and reason.remedy}
    more = f"allow more than {format_seconds(seconds)} (--timeout)"
    if any(reason.code == EMPTY_LOG for reason in verdict.reasons):
        advice = f"see that vLLM writes its stdout and stderr there, or {more}"
    else:
        advice = f"{more}; if the log has stopped growing, the start hangs: VLLM_LOGGING_LEVEL=DEBUG shows where"
    return replace(
        verdict,
        reasons=tuple(replace(one, remedy=advice) if one.remedy in taken else one for one in verdict.reasons),
        checks=tuple(replace(one, remedy=advice) if one.remedy in taken else one for one in verdict.checks),
    )
