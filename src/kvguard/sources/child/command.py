"""A command as a source: its output passed through and told, its end awaited or brought about."""

import os
import selectors
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath

from kvguard.sources.child.family import Family
from kvguard.sources.child.output import PassedOutput
from kvguard.sources.source import Record, SourceEvent, SourceStatus, State
from kvguard.sources.wait import wait

GRACE_S = 30.0
"""From the request to end until everything is killed: what Kubernetes gives a container."""
AGAIN_S = 1.0
"""Who asks again after this long means it; sooner it is one wish that came twice (`timeout` sends two)."""
LEFTOVER_GRACE_S = 5.0
"""The same for processes that the command left behind."""
_LOOK_S = 0.05  # how often those who are to end are looked at
_UNTIL_WOKEN_S = 60.0
_STDOUT, _STDERR = 1, 2


class ChildSource:
    """Runs a command and reads what it writes; it has ended when the command and all that came from it have.

    Both outputs go on to ours, each byte as it came; the guard gets their whole lines in the order of their arrival.
    The command sees pipes, no terminal: it writes as it does under Kubernetes.

    Raises:
        SourceError: it cannot be started.
    """

    def __init__(
        self, command: Sequence[str], *, grace_seconds: float = GRACE_S, outputs: tuple[int, int] = (_STDOUT, _STDERR)
    ) -> None:
        self.exit_status: int | None = None
        """The command's own, once it has one: 128 + the signal that ended it."""
        self._what = PurePath(command[0]).name  # not its arguments: they may hold keys
        self._record = Record(f"run:{self._what}")
        self._grace_seconds = grace_seconds
        self._asked_at: float | None = None
        self._insisted = False
        self._kill_at: float | None = None
        self._busy = True
        pipes = [os.pipe(), os.pipe()]
        try:
            self._family = Family(command, pipes[0][1], pipes[1][1])
        except BaseException:
            for reader, _ in pipes:
                os.close(reader)
            raise
        finally:
            for _, writer in pipes:
                os.close(writer)
        self._selector = selectors.DefaultSelector()
        self._outputs = [PassedOutput(reader, target) for (reader, _), target in zip(pipes, outputs, strict=True)]
        self._exit_descriptor = _exit_descriptor(self._family.pid)
        self._watched: set[int] = set()
        self._watch()

    @property
    def left_in_line(self) -> bool:
        """Whether the command has left our stderr in the middle of a line, by a progress bar or a prompt.

        Where both outputs go to one place (a terminal), either may have done so.
        """
        stdout, stderr = self._outputs
        return stderr.in_line or (stdout.in_line and os.path.sameopenfile(stdout.target, stderr.target))

    def break_line(self) -> bool:
        """Whether what we say next needs a line break before it; it stands on a line of its own then."""
        left = self.left_in_line
        for output in self._outputs:
            output.in_line = False
        return left

    def send(self, number: int) -> None:
        """Hand a signal on to the command; one that asks it to end starts the time until it is killed, or ends it."""
        if number in (signal.SIGTERM, signal.SIGINT):
            now = time.monotonic()
            self._asked_at = now if self._asked_at is None else self._asked_at
            self._insisted |= now - self._asked_at >= AGAIN_S
        self._family.send(number)
        if self._asked_at is not None:
            self._family.wake()

    def end(self) -> None:
        """Ask the command to end; whatever of it is left after the grace is killed."""
        self.send(signal.SIGTERM)

    def poll(self, now: float) -> Sequence[SourceEvent]:
        """Pass on and tell what was written, and see to the end."""
        if self._record.state is State.ENDED:
            return ()
        events: list[SourceEvent] = [*self._record.change(State.READING, self._message(), now)]
        gone = self._see_to_end(now)  # before reading: what was written before the end is in the pipes now
        steps = [output.step() for output in self._outputs]
        self._busy = any(lines is not None for lines in steps)
        ended = gone and not self._busy and self._is_passed_on(now)
        if ended:
            steps = [output.finish() for output in self._outputs]
            self._family.dismiss()
        events += [self._record.chunk(lines, now) for lines in steps if lines]
        self._record.bytes_skipped = sum(output.skipped_bytes for output in self._outputs)
        if ended:
            events += self._record.change(State.ENDED, f"{self._what} ended with status {self.exit_status}", now)
        self._watch()
        return events

    def delay(self, now: float) -> float:
        """Until somebody who is to end is looked at again; output and the command's end wake who waits."""
        if self._busy:
            return 0.0
        if self.exit_status is not None or self._exit_descriptor is None or any(each.stuck for each in self._outputs):
            return _LOOK_S
        return _UNTIL_WOKEN_S if self._kill_at is None else max(_LOOK_S, self._kill_at - now)

    def fileno(self) -> int | None:
        """Readable when something was written or the command has ended."""
        return self._selector.fileno()

    @property
    def status(self) -> SourceStatus:
        """State and counters."""
        return self._record.snapshot()

    def close(self) -> None:
        """End the command, if it still runs, and wait until nobody is left: a few seconds at the most."""
        if self._record.state is not State.ENDED:
            self.end()
            self._kill_at = time.monotonic() + min(self._grace_seconds, LEFTOVER_GRACE_S)
        while self._record.state is not State.ENDED:
            self.poll(time.monotonic())
            wait(self, _LOOK_S, time.monotonic())
        self._selector.close()
        if self._exit_descriptor is not None:
            os.close(self._exit_descriptor)
            self._exit_descriptor = None

    def _message(self) -> str:
        trouble = "".join(f"; {output.trouble}" for output in self._outputs if output.trouble)
        return f"{self._what} runs as process {self._family.pid}{trouble}"

    def _see_to_end(self, now: float) -> bool:
        """Whether the command and all that came from it are gone; what should be gone by now is helped along."""
        self._family.bury_orphans()
        if self.exit_status is None:
            self.exit_status = self._family.status()
            if self.exit_status is not None:
                self._kill_at = now + LEFTOVER_GRACE_S
                self._family.send_all(signal.SIGTERM)
        if self.exit_status is not None and self._family.is_gone():
            return True
        if self._insisted:
            self._kill_at = now
        elif self._asked_at is not None and self._kill_at is None:
            self._kill_at = now + self._grace_seconds
        if self._kill_at is not None and now >= self._kill_at:
            self._family.send_all(signal.SIGKILL)
        return False

    def _is_passed_on(self, now: float) -> bool:
        """Whether our readers took everything; who asked us to end is not kept waiting for them."""
        overdue = self._asked_at is not None and self._kill_at is not None and now >= self._kill_at
        return overdue or not any(output.stuck for output in self._outputs)

    def _watch(self) -> None:
        """Wait for the outputs that can be read on, and for the command while it lives."""
        awaited = {output.source for output in self._outputs if output.open and not output.stuck}
        if self._exit_descriptor is not None and self.exit_status is None:
            awaited.add(self._exit_descriptor)
        for descriptor in awaited - self._watched:
            self._selector.register(descriptor, selectors.EVENT_READ)
        for descriptor in self._watched - awaited:
            with suppress(KeyError, OSError):  # a closed descriptor leaves by itself
                self._selector.unregister(descriptor)
        self._watched = awaited


def _exit_descriptor(pid: int) -> int | None:
    """A descriptor that becomes readable when a process ends, where the system has such a thing (Linux)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
