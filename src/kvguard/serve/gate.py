"""What `/readyz` answers: the verdict is evidence, the gate is what is done with it.

Only start-up objectives gate, never load. A start that has been let through stays so until the next start or its own
end: an edited SLO must not take a server out of service (`recheck` turns that off). A start counts as let through from
its pass on, or, where `observe` or `on_unknown: allow` opened the gate, from the moment that the server was ready:
before that nothing was in service that a closing gate could hurt.
"""

from kvguard.serve.let_through import LetThrough
from kvguard.slo.objectives import Gate, GateMode, OnUnknown
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.slotted import dataclass, replace
from kvguard.startup.report import ENDED, Phase


@dataclass(frozen=True, slots=True)
class GateAnswer:
    """What `/readyz` says, and which start has been let through."""

    open: bool
    why: str = ""
    """Why it answers so where that is not the verdict alone; empty where it is."""
    kept: LetThrough | None = None
    """The last start that was let through; hand it to the next `answer`."""


CLOSED_BEFORE_READING = GateAnswer(False, "the log has not been looked at yet")
WHILE_CATCHING_UP = "the log is still being read from its beginning"
WHILE_SILENT = "this start was let through before: vLLM does not answer now, and is not gone"
WHEN_ENDED = "the server has ended: its next start is judged anew"


def answer(verdict: Verdict, gate: Gate, kept: LetThrough | None = None, gone: bool = False) -> GateAnswer:
    """What the gate says of a verdict.

    Args:
        verdict: the evidence.
        gate: what is done with it.
        kept: that of the answer before.
        gone: whether nobody listens at vLLM's address: where its log tells nothing, that alone shows that it has ended.
    """
    start = verdict.report.start
    outcome = verdict.gate_outcome
    is_open, why = _by_mode(outcome, gate)
    if start is None:
        stood_in = kept is not None and kept.stood_in
        if stood_in and not (gone or is_open or gate.recheck):
            return GateAnswer(True, WHILE_SILENT, kept)
        return GateAnswer(is_open, why, None if stood_in and gone else kept)
    if start.phase in ENDED:
        still_open = is_open and gate.mode is GateMode.OBSERVE
        return GateAnswer(still_open, why if still_open or not is_open else WHEN_ENDED, kept)
    if is_open:
        let_through = outcome is Outcome.PASS or start.phase is Phase.READY
        return GateAnswer(True, why, LetThrough.of(start) if let_through else kept)
    if kept is None or gate.recheck or not kept.is_start(start):
        return GateAnswer(False, why, kept)
    again = replace(kept, index=start.index)
    return GateAnswer(True, f"this start was let through before: {_CHANGED[outcome]}", again)


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
