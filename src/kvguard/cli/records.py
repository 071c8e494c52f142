"""The record of checks: one JSON report a line, appended; read by `history`, and for how long the last start took."""

import json
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kvguard.cli.output import cannot_write
from kvguard.errors import ConfigError, SourceError
from kvguard.render.history_chart import Record
from kvguard.render.json_report import record_line
from kvguard.render.start_facts import log_name
from kvguard.render.stored_report import report_from
from kvguard.slo.verdict import Verdict
from kvguard.slotted import dataclass
from kvguard.sources.record import append_line

LONGEST_RECORD = 2**20
"""Characters of one line that are read at once; a report of a thousand engines has 400 Ki."""
MOST_OTHERS = 100
"""Lines at a file's beginning that are no records, and nobody's record begins so."""


def append(path: Path, verdict: Verdict) -> None:
    """Add the verdict's report, with the time, as one line.

    Raises:
        SourceError: the file cannot be written.
    """
    line = record_line(verdict, datetime.now(UTC).isoformat(timespec="seconds"))
    try:
        append_line(path, line.encode())
    except OSError as error:
        raise SourceError(cannot_write(path, error)) from None


@dataclass(frozen=True, slots=True)
class Records:
    """What a file holds: its records, oldest first, and the numbers of the lines that are none."""

    found: tuple[Record, ...]
    others: tuple[int, ...]


def read_records(path: Path) -> Records:
    """The records of a file, or of stdin (`-`).

    Raises:
        SourceError: it cannot be read.
        ConfigError: it has lines, and none of them is a record.
    """
    found: list[Record] = []
    others: list[int] = []
    try:
        with sys.stdin if str(path) == "-" else path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(iter(partial(file.readline, LONGEST_RECORD), ""), 1):
                if len(others) > MOST_OTHERS and not found:
                    break  # a log, or a device: no need to read it to its end
                record = _record(line) if line.strip() else None
                if record is not None:
                    found.append(record)
                elif line.strip():
                    others.append(number)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"{log_name(str(path))}: {reason}: name the file that kvguard check --record wrote") from None
    if others and not found:
        raise ConfigError(f"{log_name(str(path))}: no record in it: name the file that kvguard check --record wrote")
    return Records(tuple(found), tuple(others))


def last_ready(path: Path | None) -> float | None:
    """Seconds that the newest recorded start took to get ready; `None` where nothing tells."""
    if path is None or not path.is_file():
        return None
    try:
        records = read_records(path).found
    except ConfigError:  # another file: what is appended to it is judged by who reads it
        return None
    times = (record.report.start.timings.ready for record in reversed(records) if record.report.start is not None)
    return next((time for time in times if time is not None), None)


def _record(line: str) -> Record | None:
    try:
        document = json.loads(line)
        report = report_from(document, "record")
    except (ValueError, RecursionError, ConfigError):
        return None
    recorded_at, verdict = document.get("recorded_at"), document.get("verdict")
    outcome = verdict.get("outcome") if isinstance(verdict, dict) else None
    return Record(
        recorded_at if isinstance(recorded_at, str) else None, outcome if isinstance(outcome, str) else None, report
    )
