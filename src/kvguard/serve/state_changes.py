"""Changes of state: what is worth a line in a log that nobody reads until something has gone wrong."""

from collections.abc import Callable, Mapping
from typing import Any

from kvguard.render.json_report import verdict_document
from kvguard.render.start_facts import said_live
from kvguard.serve.death import death
from kvguard.serve.moments import iso
from kvguard.serve.snapshot import Snapshot
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import Phase

Write = Callable[[Mapping[str, Any]], None]


class StateLog:
    """Write a line at every change of state, and nothing else."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def __call__(self, before: Snapshot | None, after: Snapshot) -> None:
        """Write if the state has changed."""
        if changed_state(before, after):
            self._write(state_line(after))


def changed_state(before: Snapshot | None, after: Snapshot) -> bool:
    """Whether start, phase, verdict, gate, source or SLO file are in another state than before."""
    return before is None or _state(before) != _state(after)


def _state(snapshot: Snapshot) -> tuple[object, ...]:
    start = snapshot.verdict.report.start
    return (
        start.index if start else None,
        start.phase if start else Phase.NONE,
        snapshot.verdict.outcome,
        snapshot.gate.open,
        snapshot.source.state,
        snapshot.slo.problem,
    )


def state_line(snapshot: Snapshot) -> dict[str, Any]:
    """The state in one flat JSON object, with the numbers that decided, and those of a failure."""
    document = verdict_document(snapshot.verdict)
    start = document["start"] or {}
    capacity = start.get("capacity") or {}
    facts = ("max_concurrency", "kv_cache_tokens", "kv_cache_bytes", "weights_bytes", "gpu_blocks", "max_model_len")
    return _without_none(
        {
            "event": "state",
            "verdict": snapshot.verdict.outcome.value,
            "gate": "open" if snapshot.gate.open else "closed",
            "gate_why": snapshot.gate.why or None,
            "start": start.get("index"),
            "phase": start.get("phase") or Phase.NONE.value,
            "vllm_version": start.get("vllm_version"),
            **{fact: capacity.get(fact) for fact in facts},
            "reasons": [said_live(reason) for reason in snapshot.verdict.reasons],
            "missed": [
                _without_none({key: check[key] for key in ("objective", "observed", "target")})
                for check in document["checks"]
                if check["outcome"] != Outcome.PASS
            ],
            "failure": _without_none(start["failure"]) if start.get("failure") else None,
            "died": death(snapshot.verdict.report.start),
            "source": snapshot.source.name,
            "source_state": snapshot.source.state.value,
            "source_message": snapshot.source.message,
            "slo_problem": snapshot.slo.problem,
            "read_at": None if snapshot.read_at is None else iso(snapshot.read_at),
        }
    )


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
