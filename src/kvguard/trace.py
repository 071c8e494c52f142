"""What each line of a log told, by which row of the table: the evidence behind a report, for `kvguard explain`.

A line is traced as the guard takes it: the same parser, the same rules of belief, nothing read twice.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from kvguard.events import Event, LineUnrecognized, Printed, ProcessSpoke
from kvguard.guard import Guard
from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat
from kvguard.lines.secrets import redact
from kvguard.slotted import dataclass, field, fields
from kvguard.startup.report import CapacityReport

MOST_STEPS = 10_000
"""Steps that a trace keeps, the first ones: a log of weeks has more statistics lines than anybody reads."""
_OWN = frozenset(item.name for item in fields(Event))


@dataclass(frozen=True, slots=True)
class Step:
    """A line that told something, or one that looks as if it did."""

    line: int
    """The physical line, from 1; of a wrapped message the first one."""
    format: str | None
    """The row that matched; `None`: it looks like capacity and matched nothing."""
    facts: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """What it told, by field, in base units."""
    text: str | None = None
    """The message itself, secrets masked, where no row matched."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The steps of a whole log, and the report that they make."""

    steps: tuple[Step, ...]
    report: CapacityReport
    left_out: int = 0
    """Steps behind the first `MOST_STEPS`."""


def trace(blocks: Iterable[bytes], source: str, formats: tuple[LineFormat, ...] = FORMATS) -> Trace:
    """Follow a log from its first byte to its last, line by line."""
    witness = _Witness()
    guard = Guard(source=source, formats=formats, witness=witness.see)
    for block in blocks:
        guard.feed(block)
    guard.end()
    return Trace(tuple(witness.steps), guard.report, witness.left_out)


class _Witness:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.left_out = 0

    def see(self, event: Event) -> None:
        """Keep what an event tells; the events that one row gives at one line are one step."""
        if isinstance(event, ProcessSpoke):
            return
        step = _step(event)
        last = self.steps[-1] if self.steps else None
        if last is not None and last.format == step.format and last.line == step.line and step.format is not None:
            self.steps[-1] = Step(step.line, step.format, MappingProxyType({**last.facts, **step.facts}))
        elif len(self.steps) >= MOST_STEPS:
            self.left_out += 1
        else:
            self.steps.append(step)


def _step(event: Event) -> Step:
    if isinstance(event, LineUnrecognized):
        return Step(event.origin.line, None, text=event.text)
    told = {item.name: getattr(event, item.name) for item in fields(event) if item.name not in _OWN}
    facts = {name: _base(value) for name, value in told.items() if value is not None}
    return Step(event.origin.line, event.format, MappingProxyType(facts))


def _base(value: object) -> object:
    if isinstance(value, str):
        return redact(value)
    return value.value if isinstance(value, Printed) else value
