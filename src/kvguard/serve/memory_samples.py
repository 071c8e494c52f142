"""The GPU's memory by part, as samples: the bar that the report draws, for a dashboard that stacks it over time."""

from collections.abc import Iterable

from kvguard.render.memory_parts import memory_parts
from kvguard.serve.snapshot import Snapshot


def memory_samples(snapshot: Snapshot) -> Iterable[tuple[tuple[str, ...], float]]:
    """One sample a part of the tightest rank's memory, in bytes; none where the log names one part alone."""
    start = snapshot.verdict.report.start
    return [((part.name.replace(" ", "_").lower(),), part.size) for part in memory_parts(start)] if start else []
