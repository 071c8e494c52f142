"""The reader's thread: turns the sidecar until it is told to stop, so that no log, however fast, delays a probe.

A thread and not a task of the server's loop: a read from a file system that hangs must not take `/livez` with it. The
interpreter hands over between the two every `SWITCH_S`; an answer takes a few such hand-overs.
"""

import os
import select
import sys
import threading
import time

from kvguard.serve.sidecar import Sidecar
from kvguard.serve.snapshot import Snapshot

SWITCH_S = 0.0005
BREATH_S = 0.0002
"""Between two pieces of a log that grows. A thread that never rests is stopped by the kernel sooner or later, with the
interpreter's lock in its hand; no probe is answered until it runs again."""
LONGEST_WAIT_S = 1.0
"""Between two looks at the SLO file and the clock."""


class Reader:
    """Turn a sidecar in a thread of its own; an error that nobody expected ends it, and `/livez` says so."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self._bell, self._push = os.pipe()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether it still reads."""
        return self._thread.is_alive()

    @property
    def snapshot(self) -> Snapshot:
        """The newest picture."""
        return self._sidecar.snapshot

    def start(self) -> None:
        """Begin to read."""
        sys.setswitchinterval(SWITCH_S)
        self._thread.start()

    def stop(self) -> None:
        """End after the turn under way; one that hangs in a dead file system is left behind."""
        os.write(self._push, b".")
        self._thread.join(timeout=0.5)

    def _run(self) -> None:
        try:
            while not self._wait(self._sidecar.turn()):
                pass
        finally:
            self._sidecar.source.close()

    def _wait(self, seconds: float) -> bool:
        """Sleep until a turn is of use; whether it is time to stop."""
        if seconds <= 0:
            time.sleep(BREATH_S)
        waiting = select.poll()
        waiting.register(self._bell, select.POLLIN)
        descriptor = self._sidecar.source.fileno() if seconds > 0 else None
        if descriptor is not None:
            waiting.register(descriptor, select.POLLIN)
        ready = waiting.poll(1000 * min(seconds, LONGEST_WAIT_S))
        return any(number == self._bell for number, _ in ready)
