"""What every byte source offers: events pulled without waiting, something to wait for, and a status.

A source is pulled: `poll(now)` does a bounded piece of work and never waits, so that one loop can serve probes and
read a log that grows faster than it can be read. `now` is `time.monotonic()` or a test's own number; nothing here
asks a clock. Whoever drives a source waits in between (`wait.wait`, or a loop of its own): until `fileno()` is
readable, or until `delay(now)` has passed.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from kvguard.slotted import dataclass

READ_BYTES = 256 * 1024
"""How much one poll hands over at most: at 200 MB/s that is under 2 ms between two answers of the server."""


class State(StrEnum):
    """What a source is doing; `status.message` says it in words."""

    WAITING = "waiting"  # nothing is wrong, there is nothing to read yet: no file, a container that is being created
    READING = "reading"
    FAILING = "failing"  # it cannot be read; it is tried again
    ENDED = "ended"  # nothing will follow


class BoundaryKind(StrEnum):
    """Why what follows does not continue the line before it."""

    NEW_FILE = "new-file"  # another file stands under the name: a rotation, or a wrapper that began anew
    TRUNCATED = "truncated"  # the same file begins anew: copytruncate, or `> file` at the start of a process
    NEW_CONTAINER = "new-container"
    LINES_LOST = "lines-lost"  # the same process goes on, behind lines that nobody can read any more


_NEW_PROCESS: dict[BoundaryKind, bool | None] = {
    BoundaryKind.NEW_FILE: None,
    BoundaryKind.TRUNCATED: None,
    BoundaryKind.NEW_CONTAINER: True,
    BoundaryKind.LINES_LOST: False,
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes as they arrived; a line may be cut anywhere."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Boundary:
    """A new stream begins here: an open line will not be continued, and a start that begins here can be believed."""

    kind: BoundaryKind
    detail: str

    @property
    def new_process(self) -> bool | None:
        """Whether another process speaks from here on: `None` where it may be the same one, its log rotated."""
        return _NEW_PROCESS[self.kind]


@dataclass(frozen=True, slots=True)
class StateChange:
    """The source does something else now, or for another reason; told once, not at each try."""

    state: State
    message: str


SourceEvent = Chunk | Boundary | StateChange


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """A source at one moment, for the report, `/readyz?verbose` and the metrics; times are those of `poll(now)`."""

    name: str
    """As the user wrote it."""
    state: State
    message: str
    since: float | None
    """When the state began; `None` before the first poll."""
    last_read: float | None
    """When bytes last arrived."""
    bytes_read: int
    rotations: int
    truncations: int
    read_errors: int
    """Failed tries: opens, reads, requests. A file that is not there yet is none."""
    bytes_skipped: int
    """Not judged: the rest of lines too long to be held, where two outputs are merged, or cut in two by a rotation."""
    unread: int | None = None
    """Bytes that are there and were not read yet; `None` where nobody can tell (a pipe, a pod's log)."""
    behind: bool = False
    """Whether it is known that what comes now was written by an earlier process than the newest."""


class Source(Protocol):
    """Where bytes come from."""

    def poll(self, now: float) -> Sequence[SourceEvent]:
        """What has happened since the last call, in order; at most about `READ_BYTES` of it. Never waits."""

    def delay(self, now: float) -> float:
        """Seconds until another poll is of use; 0 when more is there already."""

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when a poll is of use sooner than `delay` says, or `None`."""

    @property
    def status(self) -> SourceStatus:
        """What it is doing, since when, and its counters."""

    def close(self) -> None:
        """Let go of everything; what has been read stays read."""


class Record:
    """The bookkeeping that every source does alike."""

    def __init__(self, name: str) -> None:
        self.rotations = 0
        self.truncations = 0
        self.read_errors = 0
        self.bytes_skipped = 0
        self.unread: int | None = None
        self.state = State.WAITING
        self._name = name
        self._message = "not looked at yet"
        self._since: float | None = None
        self._last_read: float | None = None
        self._bytes_read = 0
        self._at_boundary = True

    def chunk(self, data: bytes, now: float) -> Chunk:
        """Count bytes that arrived."""
        self._bytes_read += len(data)
        self._last_read = now
        self._at_boundary = False
        return Chunk(data)

    def boundary(self, kind: BoundaryKind, detail: str) -> list[Boundary]:
        """A boundary to hand on; nothing where no bytes came since the last one, or before any."""
        if self._at_boundary:
            return []
        self._at_boundary = True
        return [Boundary(kind, detail)]

    def change(self, state: State, message: str, now: float) -> list[StateChange]:
        """Enter a state; the event to hand on, or nothing when that was known already."""
        if (state, message) == (self.state, self._message):
            return []
        if state is not self.state or self._since is None:
            self._since = now
        self.state, self._message = state, message
        return [StateChange(state, message)]

    def snapshot(self) -> SourceStatus:
        """The status at this moment."""
        return SourceStatus(
            name=self._name,
            state=self.state,
            message=self._message,
            since=self._since,
            last_read=self._last_read,
            bytes_read=self._bytes_read,
            rotations=self.rotations,
            truncations=self.truncations,
            read_errors=self.read_errors,
            bytes_skipped=self.bytes_skipped,
            unread=self.unread,
        )
