"""The record of checks: one JSON report a line, appended; read by `history`, and for how long the last start took."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kvguard.cli.output import cannot_write
from kvguard.errors import ConfigError, SourceError
from kvguard.render.history_chart import Record
from kvguard.render.json_report import record_line
from kvguard.render.stored_report import report_from
from kvguard.slo.verdict import Verdict
from kvguard.sources.record import append_line


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


def read_records(path: Path) -> Iterator[Record | str]:
    """The records of a file, oldest first; for a line that is no report what is wrong with it, in one line.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _record(line) or f"{path}:{number}: not a report of kvguard check --record"
    except OSError as error:
        raise SourceError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def last_ready(path: Path | None) -> float | None:
    """Seconds that the newest recorded start took to get ready; `None` where nothing tells."""
    if path is None or not path.is_file():
        return None
    times = [time for record in read_records(path) if isinstance(record, Record) for time in _ready(record)]
    return times[-1] if times else None


def _record(line: str) -> Record | None:
    try:
        document = json.loads(line)
        report = report_from(document, "record")
    except (json.JSONDecodeError, RecursionError, ConfigError):
        return None
    recorded_at, verdict = document.get("recorded_at"), document.get("verdict")
    outcome = verdict.get("outcome") if isinstance(verdict, dict) else None
    return Record(
        recorded_at if isinstance(recorded_at, str) else None, outcome if isinstance(outcome, str) else None, report
    )


def _ready(record: Record) -> list[float]:
    start = record.report.start
    return [] if start is None or start.timings.ready is None else [start.timings.ready]
