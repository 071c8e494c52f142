"""What the faces read: one frozen picture of verdict, gate, source and SLO file, replaced whole when any changes."""

from typing import Protocol

from kvguard.serve.gate import GateAnswer
from kvguard.slo.objectives import Gate
from kvguard.slo.verdict import Verdict
from kvguard.slotted import dataclass
from kvguard.sources.source import SourceStatus
from kvguard.sources.vllm.answers import VllmAnswer


@dataclass(frozen=True, slots=True)
class SloStatus:
    """The SLO file in force, and whether the one on disk is another."""

    path: str | None = None
    """`None` where flags alone say what is asked."""
    problem: str | None = None
    """Why the file on disk was refused; the last good one stays in force."""
    loaded_at: float | None = None
    """When the one in force was read, in seconds since 1970."""
    failures: int = 0
    """How often a changed file was refused."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that an answer needs, of one moment; times in seconds since 1970."""

    verdict: Verdict
    gate: GateAnswer
    rules: Gate
    source: SourceStatus
    slo: SloStatus
    source_since: float | None
    """When the source entered its state."""
    read_at: float | None
    """When bytes last arrived."""
    looked_at: float | None
    """When the source was last looked at without an error, whether or not there was anything new."""
    heard: VllmAnswer | None
    """What vLLM said of itself when it was last asked; `None` where nobody asks it."""
    revision: int
    """Grows when something changes that a person would see."""


class Watched(Protocol):
    """Whoever keeps the snapshot current."""

    @property
    def snapshot(self) -> Snapshot:
        """The newest picture."""

    @property
    def alive(self) -> bool:
        """Whether it is still being kept current."""
