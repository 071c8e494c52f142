"""Bytes that somebody pipes in: stdin or a named pipe, until the last writer closes it, or on to the next one."""

import errno
import fcntl
import os
import select
import selectors
import stat
from collections.abc import Sequence

from kvguard.errors import SourceError
from kvguard.sources.blocks import STDIN, describe_os_error, refuse_what_is_no_log
from kvguard.sources.source import READ_BYTES, BoundaryKind, Record, SourceEvent, SourceStatus, State

_UNTIL_READABLE_S = 60.0  # the descriptor wakes whoever waits; this only bounds the wait


class PipeSource:
    """A named pipe, or whatever stands at stdin (a pipe, a terminal, a redirected file).

    The descriptor is never made non-blocking: stdin shares that flag with the terminal and the programs beside us.
    It is asked whether it is readable instead.

    Args:
        name: of the pipe, or `-`.
        for_ever: whether a named pipe is read on with its next writer. A server that is started again would fill the
            pipe that nobody reads, and wait for ever.

    Raises:
        SourceError: the pipe cannot be opened, or stdin is closed.
    """

    def __init__(self, name: str = STDIN, for_ever: bool = False) -> None:
        self._record = Record(name)
        self._name = "stdin" if name == STDIN else name
        self._for_ever = for_ever and name != STDIN
        self._missing = f"nothing has come from {self._name} yet"
        try:
            self._descriptor = os.dup(0) if name == STDIN else _open(name)
        except OSError as error:
            raise SourceError(describe_os_error(self._name, error)) from None
        try:
            refuse_what_is_no_log(self._name, self._descriptor)
        except SourceError:
            os.close(self._descriptor)
            raise
        if fcntl.fcntl(self._descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            os.close(self._descriptor)
            raise SourceError(describe_os_error(self._name, OSError(errno.EBADF, os.strerror(errno.EBADF))))
        self._readable = select.poll()
        self._readable.register(self._descriptor, select.POLLIN)
        self._wakes = _can_be_waited_for(self._descriptor)

    def poll(self, now: float) -> Sequence[SourceEvent]:
        """Read once, if there is something."""
        if self._record.state is State.ENDED:
            return ()
        if not self._readable.poll(0):
            if self._record.state is State.READING:
                return ()
            return self._record.change(State.WAITING, self._missing, now)
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except OSError as error:  # a terminal that hung up: nothing more can come from it
            self._record.read_errors += 1
            return self._record.change(State.ENDED, describe_os_error(self._name, error), now)
        if not data:
            return self._next_writer(now)
        return [*self._record.change(State.READING, f"reading {self._name}", now), self._record.chunk(data, now)]

    def _next_writer(self, now: float) -> list[SourceEvent]:
        """The last writer has closed it: the end, or a new stream."""
        if not (self._for_ever and self._opened_anew()):
            return [*self._record.change(State.ENDED, f"{self._name} has ended", now)]
        self._missing = f"{self._name} was closed by its writer: waiting for the next one"
        self._record.rotations += 1
        boundary = self._record.boundary(BoundaryKind.NEW_FILE, f"{self._name} was closed by its writer")
        return [*boundary, *self._record.change(State.WAITING, self._missing, now)]

    def _opened_anew(self) -> bool:
        """Whether the pipe still stands there. Opened anew it has no end to report, and not for a moment no reader."""
        try:
            fresh = _open(self._name)
        except OSError:
            return False
        is_pipe = stat.S_ISFIFO(os.fstat(fresh).st_mode)
        if is_pipe:
            os.dup2(fresh, self._descriptor, inheritable=False)
        os.close(fresh)
        return is_pipe

    def delay(self, now: float) -> float:
        """A redirected file has more at once; a pipe says so itself."""
        return _UNTIL_READABLE_S if self._wakes or self._record.state is State.ENDED else 0.0

    def fileno(self) -> int | None:
        """The pipe; `None` for a redirected file, which cannot be waited for."""
        return self._descriptor if self._wakes else None

    @property
    def status(self) -> SourceStatus:
        """State and counters."""
        return self._record.snapshot()

    def close(self) -> None:
        """Close our own copy of the descriptor."""
        os.close(self._descriptor)


def _open(name: str) -> int:
    return os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)


def _can_be_waited_for(descriptor: int) -> bool:
    """Whether an event loop takes it: Linux's epoll refuses regular files and /dev/null, which are always readable."""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(descriptor, selectors.EVENT_READ)
        except PermissionError:
            return False
    return True
