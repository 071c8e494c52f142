"""The verdict: what was found of each objective, frozen; every face draws it and none decides again."""

from enum import StrEnum

from kvguard.kvcache.spelling import AND, spelt
from kvguard.slo.objectives import Severity, Stage
from kvguard.slotted import dataclass
from kvguard.startup.report import CapacityReport, Place
from kvguard.units import format_quantity


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
    """Whether it alone meets the target in all that the evidence may mean; `None` where the evidence cannot say."""
    low: float | None = None
    """What it gives at least, in the objective's unit; `None` where it cannot be computed."""
    high: float | None = None
    """What it gives at most; `None` where that has no end either."""
    unit: str = ""
    """Of `low` and `high`, in words: "requests of 8,500 tokens"."""
    remark: str | None = None
    """What else is to be known of it."""
    assumes: tuple[str, ...] = ()
    """What is taken to be 16-bit now, since the log does not say."""

    @property
    def figure(self) -> str | None:
        """What it gives, without the unit of a count: "9.62", "21.47 to 24.30", "3.9 GiB"; `None` of a direction."""
        if self.low is None:
            return None
        unit = self.unit if self.unit in ("bytes", "ratio") else ""
        if self.high is None:
            return f"at least {format_quantity(self.low if unit else round(self.low, 2), unit)}"
        low, high = (format_quantity(end if unit else round(end, 2), unit) for end in (self.low, self.high))
        return low if low == high else f"{low} to {high}"

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that go together: one, or two."""
        return tuple(self.flag.split(AND))

    @property
    def spelt(self) -> str:
        """As it is typed: each flag with its value."""
        return spelt(self.flag, self.value or "")

    @property
    def whole_price(self) -> str:
        """The price with all that is to be known of it."""
        taken = " and ".join(self.assumes)
        if_so = f"if 16-bit now, which the log does not say: {taken}" if taken else None
        return "; ".join(text for text in (self.price, self.remark, if_so) if text)


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
    """Ends of a computed figure; of one that has no higher end it is `None`."""
    target: float | str
    outcome: Outcome
    reason: str
    """The whole sentence, `note` included."""
    remedy: str | None = None
    place: Place | None = None
    levers: tuple[Lever, ...] = ()
    severity: Severity = Severity.FAIL
    """What a miss does to the verdict: `warn` is shown and changes nothing."""
    note: str | None = None
    """How the figure came about, what bounds its worth, or why it is not known: the reason without its figures."""
    settles: str | None = None
    """What would make the figure known, or known better; part of `remedy`."""

    @property
    def finding(self) -> str:
        """What was found and what was asked: the reason without its note."""
        return self.reason.removesuffix(f" ({self.note})")


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
