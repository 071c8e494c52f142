"""The record of checks: one JSON report a line, appended; read by `history`, and for how long the last start took."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kvguard.cli.output import append_or_write
from kvguard.errors import ConfigError, SourceError, UserError
from kvguard.render.json_report import verdict_document
from kvguard.render.log_text import escape_unshown
from kvguard.slo.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the file."""

    number: int
    recorded_at: str | None
    """When it was written, in ISO 8601, UTC."""
    document: dict[str, Any]


def append(path: Path, verdict: Verdict) -> None:
    """Add the verdict's report, with the time, as one line.

    Raises:
        SourceError: the file cannot be written.
    """
    document = {"recorded_at": datetime.now(UTC).isoformat(timespec="seconds"), **verdict_document(verdict)}
    append_or_write(path, escape_unshown(json.dumps(document, ensure_ascii=False)) + "\n", "a")


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file, oldest first.

    Raises:
        SourceError: the file cannot be read.
        ConfigError: a line is no report; the line is named.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield Record(number, *_parsed(line, f"{path}:{number}"))
    except OSError as error:
        raise SourceError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def last_ready(path: Path | None) -> float | None:
    """Seconds that the newest recorded start took to get ready; `None` where nothing tells."""
    if path is None or not path.exists():
        return None
    found = None
    try:
        for record in read_records(path):
            timings = (record.document.get("start") or {}).get("timings") or {}
            found = timings.get("ready") or found
    except UserError:
        return None  # it is only said in passing; the record itself is written all the same
    return found


def _parsed(line: str, where: str) -> tuple[str | None, dict[str, Any]]:
    try:
        document = json.loads(line)
    except (json.JSONDecodeError, RecursionError):
        raise ConfigError(f"{where}: not JSON: every line is one report of kvguard check --record") from None
    if not isinstance(document, dict) or document.get("kind") != "report":
        raise ConfigError(f"{where}: not a report: every line is one report of kvguard check --record")
    recorded_at = document.get("recorded_at")
    return (recorded_at if isinstance(recorded_at, str) else None), document
