"""Which start has been let through, so that it is known again: also after kvguard itself was restarted.

A container that is restarted reads its log anew and judges by the SLO of that moment; a server in service must not be
taken out by that. The record (`--record`) holds what was let through, on the last of its lines that says so.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kvguard.serve.testimony import NOT_IN_THE_LOG
from kvguard.slo.course import capacity_reported
from kvguard.slotted import dataclass
from kvguard.startup.report import Phase, Start

_ENOUGH_BYTES = 2**20
"""Of the record's end: its last line is a few KiB."""


@dataclass(frozen=True, slots=True)
class LetThrough:
    """What tells a start from others."""

    index: int | None
    """Its number in the log as this process reads it; `None` where an earlier process has let it through."""
    began: float | None
    """The stamp of its first line."""
    vllm_version: str | None
    model: str | None
    told_capacity: bool
    """Whether it had told its capacity, so that one that tells nothing can only be the rest of its log."""

    @property
    def stood_in(self) -> bool:
        """Whether its log told nothing of it, and vLLM's own figures stood in."""
        return self.index == NOT_IN_THE_LOG

    @classmethod
    def of(cls, start: Start) -> "LetThrough":
        """The start as it is known again."""
        return cls(start.index, start.began, start.vllm_version, start.model, capacity_reported(start))

    def is_start(self, start: Start) -> bool:
        """Whether it is this one."""
        if self.stood_in and start.phase is Phase.READY and _is_without_beginning(start):
            return True
        if self.index is not None:
            return start.index == self.index
        if self.began is not None and self.began == start.began:
            return (self.vllm_version, self.model) == (start.vllm_version, start.model)
        return self.told_capacity and start.phase is Phase.READY and _is_without_beginning(start)


def _is_without_beginning(start: Start) -> bool:
    """Whether its first lines have been rotated away: a start that is new would have told them."""
    return start.vllm_version is None and start.model is None and not capacity_reported(start)


def remembered(let_through: LetThrough | None) -> dict[str, Any] | None:
    """As the record holds it: without its number, and with the machine (in a cluster: the pod) that it was on."""
    if let_through is None:
        return None
    return {"host": os.uname().nodename, **{key: value for key, value in asdict(let_through).items() if key != "index"}}


def recalled(record: Path | None) -> LetThrough | None:
    """What an earlier process on this machine has let through last; `None` where no record says so."""
    try:
        # O_NONBLOCK: a named pipe into which nobody writes would hold the probes back for ever
        descriptor = os.open(record or os.devnull, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _ENOUGH_BYTES))
            lines = file.read(_ENOUGH_BYTES).splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        try:
            told = json.loads(line)["gate"]["let_through"]
            return None if told is None or told.pop("host") != os.uname().nodename else LetThrough(None, **told)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # torn by the end of the process that wrote it, or a line of `kvguard check --record`
    return None
