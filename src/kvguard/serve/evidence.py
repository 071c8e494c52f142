"""Evidence that outlives a start: the termination message of the container, and the record on a volume.

Both are written at every change of state, so that they are there whatever kills the container next. A disk that is full
or gone never stops the sidecar: it is told once, and tried again at the next change.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

from kvguard.render.json_report import record_line, verdict_document
from kvguard.render.log_text import shown
from kvguard.render.start_facts import WAITED_OUT, said_live
from kvguard.serve.death import death
from kvguard.serve.let_through import remembered
from kvguard.serve.moments import iso
from kvguard.serve.snapshot import Snapshot
from kvguard.serve.state_changes import changed_state
from kvguard.slo.verdict import Verdict
from kvguard.sources.record import append_line

MAX_TERMINATION_BYTES = 4096
"""What the kubelet keeps of a termination message."""
MAX_RECORD_BYTES = 16 * 2**20
"""A record grows by a few KiB a change of state; at this size it is set aside under `.1`, and begun anew."""

Complain = Callable[[str], None]


class TerminationMessage:
    """Keep the container's termination message current; Kubernetes shows it once the container has ended."""

    def __init__(self, path: Path, complain: Complain) -> None:
        self._path, self._complain = path, complain

    def __call__(self, before: Snapshot | None, after: Snapshot) -> None:
        """Write the message of a changed state over the one before; the file is a mount and can't be replaced."""
        if changed_state(before, after):
            try:
                self._write(termination_message(after.verdict))
            except OSError as error:
                self._complain(f"{self._path}: the termination message cannot be written: {error.strerror}")

    def _write(self, message: bytes) -> None:
        # written before it is cut: whoever kills the process in between leaves a message, not an empty file
        # O_NONBLOCK: a named pipe from which nobody reads would hold the log's reader for ever
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(message)
            file.truncate()


def termination_message(verdict: Verdict) -> bytes:
    """The verdict in a few lines for `kubectl describe pod`, cut to what the kubelet keeps."""
    start = verdict.report.start
    died = death(start)
    lines = [f"kvguard: {died}"] if died else []
    lines += [f"kvguard: {verdict.outcome}: {said_live(reason)}" for reason in verdict.reasons]
    remedies = [reason.remedy for reason in verdict.reasons if reason.code not in WAITED_OUT]
    lines += [f"do this: {remedy}" for remedy in dict.fromkeys(remedies) if remedy]
    lines += [f"{lever.spelt}: {lever.gives}" for lever in verdict.levers]
    if start is not None and start.failure is not None:
        document = verdict_document(verdict)["start"]["failure"]
        lines.append(json.dumps({key: value for key, value in document.items() if value is not None}))
    whole = "\n".join(shown(line, 1000) for line in lines or [f"kvguard: {verdict.outcome}"]).encode()
    return whole[:MAX_TERMINATION_BYTES].decode("utf-8", "ignore").encode()


class RecordFile:
    """Append the report of every changed state to a file, a JSON object a line; `kvguard history` draws it."""

    def __init__(self, path: Path, wall: Callable[[], float], complain: Complain) -> None:
        self._path, self._wall, self._complain = path, wall, complain

    def __call__(self, before: Snapshot | None, after: Snapshot) -> None:
        """Append one line and have it on the disk before anything else can happen."""
        if changed_state(before, after):
            try:
                gate = {"open": after.gate.open, "why": after.gate.why, "let_through": remembered(after.gate.kept)}
                self._append(record_line(after.verdict, iso(self._wall()), gate=gate).encode())
            except OSError as error:
                self._complain(f"{self._path}: the record cannot be written: {error.strerror}")

    def _append(self, line: bytes) -> None:
        if self._path.exists() and self._path.stat().st_size + len(line) > MAX_RECORD_BYTES:
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        append_line(self._path, line)
