"""The verdict: what was found of each objective, frozen; every face draws it and none decides again."""

from enum import StrEnum

from kvguard.frozen import dataclass
from kvguard.slo.objectives import Severity, Stage
from kvguard.startup.report import CapacityReport, Place


class Outcome(StrEnum):
    """What the evidence says; "could not tell" is a value of its own."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


class CheckKind(StrEnum):
    """Whether the figure was printed by vLLM (its digits decide) or computed (its interval does)."""

    PRINTED = "printed"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class Lever:
    """One change that would help: as vLLM spells it, what it gives, and its price."""

    flag: str
    value: str | None
    gives: str
    price: str
    enough: bool | None = None
    """Whether it alone meets the target; `None` where the evidence cannot say."""

    @property
    def spelt(self) -> str:
        """As it is typed: each flag with its value; two that go together are joined by a plus."""
        values = (self.value or "").split(" + ")
        flags = self.flag.split(" + ")
        if len(flags) != len(values):
            return f"{self.flag} {self.value or ''}".strip()
        return " + ".join(f"{flag} {value}".strip() for flag, value in zip(flags, values, strict=True))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One objective against one report, in the objective's unit."""

    objective: str
    unit: str
    kind: CheckKind
    stage: Stage
    observed: float | str | None
    low: float | None
    high: float | None
    target: float | str
    outcome: Outcome
    reason: str
    remedy: str | None = None
    place: Place | None = None
    levers: tuple[Lever, ...] = ()
    severity: Severity = Severity.FAIL
    """What a miss does to the verdict: `warn` is shown and changes nothing."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why the verdict is what it is: the first says most."""

    code: str
    message: str
    place: Place | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedWarning:
    """A warning of the report with what the SLO makes of it."""

    code: str
    severity: Severity
    message: str
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the evidence says of one report under one SLO."""

    outcome: Outcome
    report: CapacityReport
    reasons: tuple[Reason, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    warnings: tuple[JudgedWarning, ...] = ()
    levers: tuple[Lever, ...] = ()
    """What would let a failed start begin, or a missed objective be met; the best first."""
    startup_outcome: Outcome | None = None
    """The outcome without the run-time checks; `None` where it is the same."""

    @property
    def gate_outcome(self) -> Outcome:
        """What a gate in front of traffic follows: load never takes a server out of service."""
        return self.startup_outcome or self.outcome
