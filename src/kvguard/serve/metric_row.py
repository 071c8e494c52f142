"""A metric as a row of a table: its name, its kind, and how it is read off a snapshot."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from kvguard.serve.snapshot import Snapshot
from kvguard.slotted import dataclass


class Kind(StrEnum):
    """OpenMetrics' types, those that are used."""

    GAUGE = "gauge"
    COUNTER = "counter"
    INFO = "info"
    STATE_SET = "stateset"


Value = float | int | None
Sample = tuple[tuple[str, ...], float | Mapping[str, str] | Mapping[str, bool]]
"""Values of the labels, and the sample's: a number, or an info's labels, or a set's states."""


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric family; `name` without `kvguard_` and without the suffix that its kind adds."""

    name: str
    kind: Kind
    help: str
    samples: Callable[[Snapshot], Iterable[Sample]]
    labels: tuple[str, ...] = ()

    @property
    def exposed(self) -> str:
        """The name as Prometheus stores it."""
        suffix = {Kind.COUNTER: "_total", Kind.INFO: "_info"}.get(self.kind, "")
        return f"kvguard_{self.name}{suffix}"


def one(value: Value) -> Iterable[Sample]:
    """A sample without labels; none where the value is not known."""
    return [] if value is None else [((), float(value))]


def state_set(states: Iterable[StrEnum], now: StrEnum) -> Iterable[Sample]:
    """A series a state, of which one is 1."""
    return [((), {state.value: state is now for state in states})]
