"""One output of the command on its way to ours: every byte as it came, and whole lines for the guard."""

import errno
import os
import select

from kvguard.sources.child.lines import WholeLines

READ_BYTES = 64 * 1024  # what a pipe holds
_NEWLINE = ord("\n")


class PassedOutput:
    """Passes on what arrives at `source` to `target`, and never waits for either.

    As long as `target` does not take what was read, nothing more is read: the command is slowed down by a slow reader
    as it would be without us.
    """

    def __init__(self, source: int, target: int) -> None:
        self.source = source
        self.target = target
        self.open = True
        self.trouble: str | None = None
        """Why the bytes do not arrive at the target; the guard gets them all the same."""
        self.in_line = False
        """Whether what the target took last leaves a terminal's cursor in a line that has something in it."""
        self._pending = memoryview(b"")
        self._lines = WholeLines()
        self._writable = select.poll()
        self._writable.register(target, select.POLLOUT)
        os.set_blocking(source, False)

    @property
    def stuck(self) -> bool:
        """Whether the target has to take something first."""
        return bool(self._pending)

    @property
    def skipped_bytes(self) -> int:
        """How much of overlong lines the guard did not get."""
        return self._lines.skipped_bytes

    def step(self) -> bytes | None:
        """Read once and pass it on: the lines that became whole, at the end the rest; `None` if nothing was read."""
        self._write()
        if self._pending or not self.open:
            return None
        try:
            data = os.read(self.source, READ_BYTES)
        except BlockingIOError:
            return None
        if not data:
            return self.finish()
        self._pending = memoryview(data)
        self._write()
        return self._lines.feed(data)

    def finish(self) -> bytes:
        """Let go of the command's end; the line that it stopped in."""
        if self.open:
            self.open = False
            os.close(self.source)
        return self._lines.rest()

    def _write(self) -> None:
        """As much as fits. A pipe that is writable takes PIPE_BUF bytes at once (POSIX), so this does not block."""
        try:
            while self._pending and self._writable.poll(0):
                taken = os.write(self.target, self._pending[: select.PIPE_BUF])
                self.in_line = self._pending[taken - 1] != _NEWLINE
                self._pending = self._pending[taken:]
        except BlockingIOError:
            return
        except OSError as error:
            self._pending = memoryview(b"")
            what = "nobody reads it any more" if error.errno == errno.EPIPE else error.strerror or str(error)
            self.trouble = f"output {self.target} is not passed on: {what}"
