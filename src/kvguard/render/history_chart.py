"""Recorded checks over time: one bar a check, to the scale of the largest, and what changed between them."""

from collections.abc import Sequence
from itertools import groupby

from kvguard.render.layout import Cell, Terminal, Tone, columns, wrap
from kvguard.render.log_text import shown
from kvguard.render.quantities import show_bare, with_minus
from kvguard.render.start_facts import FAILURE_WORDS, identity
from kvguard.render.text import OUTCOME_TONES
from kvguard.slo.verdict import Outcome
from kvguard.slotted import dataclass, replace
from kvguard.startup.report import CapacityReport
from kvguard.units import format_bytes, format_ratio

BAR_COLUMNS = 32
NAMELESS = "–"


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded check."""

    recorded_at: str | None
    """ISO 8601, UTC."""
    outcome: str | None
    report: CapacityReport

    @property
    def concurrency(self) -> float | None:
        """The maximum concurrency of the weakest engine."""
        start = self.report.start
        return start.capacity.weakest.max_concurrency if start else None


def render_history(records: Sequence[Record], terminal: Terminal) -> str:
    """The chart; checks in a row of one deployment stand under one heading, whatever their release."""
    if not records:
        return terminal.finish(["no checks recorded yet"])
    largest = max((record.concurrency or 0 for record in records), default=0)
    room = max(8, min(BAR_COLUMNS, terminal.width - 66))
    lines: list[str] = []
    for subject, group in groupby(records, key=_subject):
        heading = [terminal.paint(line, Tone.STRONG) for line in wrap(subject, terminal.width)]
        lines += [*([""] if lines else []), *heading]
        before: float | None = None
        rows = [[Cell(title, Tone.QUIET, right=right) for title, right in _HEAD]]
        for record in group:
            rows.append(_row(record, before, largest, room))
            before = record.concurrency if record.concurrency is not None else before
        lines += columns(rows, terminal, "  ")
    return terminal.finish(lines)


_HEAD = (("recorded (UTC)", False), ("vLLM", False), ("KV cache", True), ("concurrency", True), ("", False))


def _subject(record: Record) -> str:
    start = record.report.start
    if start is None:
        return "no start in the log"
    facts = identity(replace(start, vllm_version=None, model=start.model or "unknown model"))
    several = len(start.engines) > 1
    return " · ".join([*facts, "concurrency of the weakest engine"] if several else facts)


def _row(record: Record, before: float | None, largest: float, room: int) -> list[Cell]:
    start, now = record.report.start, record.concurrency
    cache = start.capacity.weakest.kv_cache_bytes if start else None
    length = round((now or 0) / largest * room) if largest else 0
    _, mark, tone = OUTCOME_TONES[Outcome(record.outcome)] if record.outcome in set(Outcome) else ("", " ", Tone.PLAIN)
    bar = "█" * length or "▏"
    if now is None:
        bar = f"failed: {FAILURE_WORDS[start.failure.kind]}" if start and start.failure else "no capacity reported"
    return [
        Cell((record.recorded_at or NAMELESS)[:16].replace("T", " ")),
        Cell(shown(start.vllm_version, 24) if start and start.vllm_version else NAMELESS),
        Cell(NAMELESS if cache is None else format_bytes(cache), right=True),
        Cell(NAMELESS if now is None else show_bare(now, "requests"), Tone.STRONG, right=True),
        Cell(f"{mark} {bar}{_change(before, now)}", tone),
    ]


def _change(before: float | None, now: float | None) -> str:
    if not before or now is None or now == before:
        return ""
    change = with_minus(format_ratio(now / before - 1, 1))
    return f" {change}" if now < before else f" +{change}"
