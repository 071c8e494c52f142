"""What `baseline` and `diff` compare: logs, stored reports, baselines, or what a Prometheus server holds."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvguard.cli.reading import read_whole
from kvguard.errors import SourceError
from kvguard.slo.baselines.baseline import Baseline, baseline_of
from kvguard.slo.baselines.document import baseline_from
from kvguard.slo.objectives import Slo
from kvguard.sources.documents import PROMETHEUS, read_baseline, read_text
from kvguard.startup.report import CapacityReport

_PEEKED = 4096


def read_compared(name: str) -> Baseline:
    """One side of a comparison, by what it is.

    Raises:
        SourceError: it cannot be read.
        ConfigError: a document of another kind, or a log without a start.
    """
    if name.startswith(PROMETHEUS):
        return read_baseline(name, Path())
    document = _document(Path(name))
    return baseline_of([read_log(name)]) if document is None else baseline_from(document, name)


def read_log(name: str) -> CapacityReport:
    """The report of one log, read to its end.

    Raises:
        SourceError: it cannot be read.
    """
    return read_whole([name], Slo()).report


def _document(path: Path) -> Mapping[str, Any] | None:
    """The document of kvguard in that file; `None` of a log, which may be JSON lines."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        begins = file.read(_PEEKED)
    if not begins.lstrip().startswith(b"{") or b'"kind"' not in begins:
        return None
    try:
        document = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError, SourceError):
        return None
    return document if isinstance(document, dict) and "kind" in document else None
