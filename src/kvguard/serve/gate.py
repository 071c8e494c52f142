"""What `/readyz` answers: the verdict is evidence, the gate is what is done with it.

Only start-up objectives gate, never load. A start that has been let through stays so until the next start or its own
end: an edited SLO must not take a server out of service (`recheck` turns that off). A start counts as let through from
its pass on, or, where `observe` or `on_unknown: allow` opened the gate, from the moment that the server was ready:
before that nothing was in service that a closing gate could hurt.
"""

from dataclasses import dataclass

from kvguard.slo.objectives import Gate, GateMode, OnUnknown
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.startup.report import Phase

_ENDED = (Phase.FAILED, Phase.STOPPED)


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What `/readyz` says, and which start has been let through."""

    open: bool
    why: str = ""
    """Why it answers so where that is not the verdict alone; empty where it is."""
    kept: int | None = None
    """The index of the last start that was let through; hand it to the next `answer`."""


CLOSED_BEFORE_READING = GateAnswer(False, "the log has not been looked at yet")


def answer(verdict: Verdict, gate: Gate, kept: int | None = None) -> GateAnswer:
    """What the gate says of a verdict; `kept` is that of the answer before."""
    start = verdict.report.start
    outcome = verdict.gate_outcome
    is_open, why = _by_mode(outcome, gate)
    in_force = start is not None and start.phase not in _ENDED
    if not is_open and in_force and start is not None and start.index == kept and not gate.recheck:
        return GateAnswer(True, f"this start was let through before: {_CHANGED[outcome]}", kept)
    let_through = (
        is_open and in_force and (outcome is Outcome.PASS or (start is not None and start.phase is Phase.READY))
    )
    return GateAnswer(is_open, why, start.index if let_through and start is not None else kept)


_CHANGED = {
    Outcome.FAIL: "it fails what is asked now, and stays in service until it restarts",
    Outcome.UNKNOWN: "what is asked now is not known of it, and it stays in service until it restarts",
}


def _by_mode(outcome: Outcome, gate: Gate) -> tuple[bool, str]:
    if outcome is Outcome.PASS:
        return True, ""
    if gate.mode is GateMode.OBSERVE:
        return True, "gate.mode is observe: the verdict does not gate"
    if outcome is Outcome.UNKNOWN and gate.on_unknown is OnUnknown.ALLOW:
        return True, "gate.on_unknown is allow: open while the verdict is unknown"
    return False, ""
