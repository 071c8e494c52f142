"""How long a startupProbe must wait, from how long the start took."""

import math

from kvguard.slotted import dataclass
from kvguard.startup.report import Timings

PERIOD_SECONDS = 10
"""The period that Kubernetes takes unless told otherwise."""
MARGIN = 1.5
"""A cold node pulls weights over the network, a warm one reads them from its page cache: half as much again."""


@dataclass(frozen=True, slots=True)
class ProbeBudget:
    """`failureThreshold` × `periodSeconds` of a startupProbe that lets this start through."""

    period_seconds: int
    failure_threshold: int


def probe_budget(timings: Timings) -> ProbeBudget | None:
    """The budget for a start that took `timings.ready` seconds; `None` where the log does not tell its time."""
    if timings.ready is None:
        return None
    return ProbeBudget(PERIOD_SECONDS, max(1, math.ceil(timings.ready * MARGIN / PERIOD_SECONDS)))


def probe_budget_line(timings: Timings) -> str | None:
    """The budget as advice; `None` where the log does not tell its time."""
    budget = probe_budget(timings)
    if budget is None or timings.ready is None:
        return None
    return (
        f"This start took {timings.ready:.0f} s: "
        f"a startupProbe of at least {budget.failure_threshold} × {budget.period_seconds} s."
    )
