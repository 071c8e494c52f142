"""One open log file and the place up to which it was read, held against being cut, rewritten or sparse.

Size alone does not tell that a file began anew: it may have grown past the old place between two looks. So every read
takes the last bytes before the place once more, and they must be those that were read; a file that is shorter, that
was cut and grew again, or that was rewritten shows itself in the same system call.
"""

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

from kvguard.slotted import dataclass
from kvguard.sources.blocks import BLOCK_BYTES, data_at

HEAD_BYTES = 1024
TAIL_BYTES = 256


class Identity(NamedTuple):
    """Which file it is, as long as somebody holds it open; afterwards its numbers may be given to another."""

    device: int
    inode: int


class FileWasCutError(Exception):
    """The bytes before the place are not those that were read there."""


def identity_of(status: os.stat_result) -> Identity:
    """The identity in the answer of a `stat`."""
    return Identity(status.st_dev, status.st_ino)


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a file was read and what stood there: enough to find the place again in a copy of it."""

    offset: int
    head_at: int
    """Where the head stands: 0, or behind the hole that the file begins with."""
    head: bytes
    """The first bytes of the file."""
    tail: bytes
    """The last bytes before the offset."""

    def is_in(self, descriptor: int) -> bool:
        """Whether a file is the same as far as it goes; where too little was read to tell, it is not."""
        begin = os.pread(descriptor, len(self.head), self.head_at)
        if os.fstat(descriptor).st_size < self.offset:  # a copy that was made before the last bytes were written
            return bool(begin) and self.head.startswith(begin)
        tail = os.pread(descriptor, len(self.tail), self.offset - len(self.tail))
        return bool(begin) and begin == self.head and tail == self.tail


class TrackedFile:
    """A regular file, open for reading, and how far it was read."""

    def __init__(self, path: Path) -> None:
        """Open it; `OSError` as the system gives it, also for what is no regular file."""
        # O_NONBLOCK: a named pipe at this place would hold us until somebody writes to it
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            late = stat.S_ISFIFO(status.st_mode)
            raise OSError(errno.EINVAL, f"not a regular file{': a pipe must be there before kvguard' if late else ''}")
        self.identity = identity_of(status)
        self._offset = 0
        self._head_at = 0
        self._head = b""
        self._tail = b""
        self._in_hole = False

    @property
    def mark(self) -> Mark:
        """How far it was read."""
        return Mark(self._offset, self._head_at, self._head, self._tail)

    @property
    def unread(self) -> int:
        """Bytes behind the place that it was read to; `OSError` as the system gives it."""
        return max(0, os.fstat(self._descriptor).st_size - self._offset)

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size` of them; none at the end.

        Raises:
            FileWasCutError: it is not the file that it was; `restart` it.
            OSError: as the system gives it.
        """
        if self._offset == 0 or self._in_hole:
            self._skip_hole()
        known = len(self._tail)
        data = os.pread(self._descriptor, known + size, self._offset - known)
        if data[:known] != self._tail:
            raise FileWasCutError
        data = _up_to_zeros(data, known)
        fresh = data[known:] if known else data
        begin, self._offset = self._offset, self._offset + len(fresh)
        if fresh:
            self._tail = data[-TAIL_BYTES:]
        if self._in_hole:
            fresh = fresh.lstrip(b"\0")
            self._in_hole = not fresh
            begin = self._head_at = self._offset - len(fresh)
        if begin == self._head_at + len(self._head) and len(self._head) < HEAD_BYTES:
            self._head += fresh[: HEAD_BYTES - len(self._head)]
        return fresh

    def read_lines(self, size: int) -> bytes:
        """Like `read`, but only whole lines; what follows the last newline stays for later."""
        before = self.mark
        data = self.read(size)
        complete = data[: data.rfind(b"\n") + 1]
        if len(complete) < len(data):
            self._offset = before.offset + len(complete)
            self._tail = (before.tail + complete)[-TAIL_BYTES:]
        return complete

    def restart(self) -> None:
        """Go back to the beginning; where only the end was cut off, that is read twice rather than lost."""
        self._offset, self._head_at, self._head, self._tail, self._in_hole = 0, 0, b"", b"", True

    def begin(self) -> Mark:
        """What stands at its beginning now."""
        head_at, head = first_data(self._descriptor)
        return Mark(head_at + len(head), head_at, head, b"")

    def resume(self, mark: Mark) -> None:
        """Go on from a place in a file with the same content."""
        self._offset, self._head_at, self._head, self._tail = mark.offset, mark.head_at, mark.head, mark.tail

    def holds(self, mark: Mark) -> bool:
        """Whether what was read elsewhere stands in this file, too."""
        return mark.is_in(self._descriptor)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)

    def _skip_hole(self) -> None:
        """After copytruncate a process without O_APPEND writes on at its old place, behind a hole of zeros."""
        place = data_at(self._descriptor, self._offset)
        if place > self._offset:
            self._offset, self._tail, self._in_hole = place, b"", True


def _up_to_zeros(data: bytes, begin: int) -> bytes:
    """What stands before a zero: a file that is cut and written to while it is read shows a hole in the middle.

    The next read finds out: either the bytes before it are others now, or the zeros were really written.
    """
    zero = data.find(b"\0", begin + 1)
    return data if zero < 0 or data[begin] == 0 else data[:zero]


def first_data(descriptor: int) -> tuple[int, bytes]:
    """Where the data of a file begins, behind the zeros that it may begin with, and the first bytes of it.

    A hole in a file often becomes written zeros in its copy.
    """
    place = data_at(descriptor, 0)
    while (block := os.pread(descriptor, BLOCK_BYTES, place)) and block == bytes(len(block)):
        place += len(block)
    data = block.lstrip(b"\0")
    place += len(block) - len(data)
    return place, os.pread(descriptor, HEAD_BYTES, place)
