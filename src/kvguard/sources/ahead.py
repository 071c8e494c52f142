"""Read a long log with two processes: one reads it, the other looks ahead at every other part of it.

Where a log is a plain file, a copy of this process (a fork) passes over the access and stats lines of every other part
while this one reads the parts between: it tells which stretches hold nothing else (`lines.scouting`), and these are not
read again. What it does not tell, tells late or can no longer be believed is read as if there were no scout; so its
death costs time and nothing else.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from kvguard.guard import Guard
from kvguard.lines.scouting import PART_BYTES, Scout, Stretch, parts_ahead
from kvguard.sources.blocks import BLOCK_BYTES, content, is_plain_file, opened

WORTH_BYTES = 4 * PART_BYTES
"""What must lie ahead for a scout to be sent; a fork costs as much as reading a few mebibytes."""
MAX_SCOUTS = 4
"""Sent in one log: one whose parts are poor is called back, and a restart can make them so."""
MAX_POOR = 2
"""Parts in a row of which less than half could be passed over, before that is done."""
PATIENCE_S = 0.5
"""How long a part is waited for that should be there: the copy has had as much time as the reader for its own."""

_SIZE_BYTES = 8
"""Of the number before each message that tells how long it is."""
_Part = tuple[Stretch, ...]


def feed_whole(guard: Guard, name: str) -> None:
    """Feed a log from its first byte to its last.

    Raises:
        SourceError: it cannot be read.
    """
    with opened(name) as descriptor:
        scouts = MAX_SCOUTS if is_plain_file(descriptor) and _ahead(descriptor) >= WORTH_BYTES and _has_company() else 0
        for block in content(name, descriptor):
            guard.feed(block)
            if scouts and _ahead(descriptor) >= WORTH_BYTES and (scout := guard.scout()) is not None:
                scouts -= 1
                _feed_with(scout, guard, descriptor)


def _has_company() -> bool:
    """Whether a second process would run beside this one, and its number stay its own until it was seen to end."""
    import signal  # here and below: a short log does not pay for what only a scout needs

    return _processors() > 1 and signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN


def _processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ahead(descriptor: int) -> int:
    """How many bytes of the file lie ahead."""
    return os.fstat(descriptor).st_size - os.lseek(descriptor, 0, os.SEEK_CUR)


def _feed_with(scout: Scout, guard: Guard, descriptor: int) -> None:
    """Feed on as long as the scout is a help, and leave the descriptor behind what was fed."""
    here = os.lseek(descriptor, 0, os.SEEK_CUR)
    parts = parts_ahead(here, os.fstat(descriptor).st_size)
    poor = 0
    with _sent(scout, descriptor, parts) as next_part:
        for first in parts:
            here = _feed_to(first, guard, descriptor, here)
            part = next_part()
            if part is None:
                break
            passed = 0
            for stretch in part:
                here = _feed_to(stretch.begin, guard, descriptor, here)
                if here == stretch.begin and guard.pass_over(stretch, scout):
                    passed += stretch.end - here
                    here = stretch.end
            poor = 0 if 2 * passed >= PART_BYTES else poor + 1
            if poor == MAX_POOR:
                break
    os.lseek(descriptor, here, os.SEEK_SET)


def _feed_to(there: int, guard: Guard, descriptor: int, here: int) -> int:
    """Feed what stands between two places; where that ends: earlier, if the file has been cut."""
    while here < there and (block := os.pread(descriptor, min(BLOCK_BYTES, there - here), here)):
        guard.feed(block)
        here += len(block)
        del block  # two blocks in memory at once, and the allocator gives one back to the kernel each time
    return here


@contextmanager
def _sent(scout: Scout, descriptor: int, parts: range) -> Iterator[Callable[[], _Part | None]]:
    """What gives the next part that a copy of this process has looked at, `None` if there will be none.

    The copy ends with the block, or with this process when it next has something to tell.
    """
    import signal

    copy = receiving = None
    # an interrupt between the fork and the line that knows its number would leave the copy behind, and make it speak
    unmasked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with suppress(OSError):  # no process or no pipe to be had: there is no scout
            receiving, sending = os.pipe()
            try:
                copy = os.fork()
                if copy == 0:
                    _look(scout, descriptor, parts, sending)
            finally:
                os.close(sending)
        signal.pthread_sigmask(signal.SIG_SETMASK, unmasked)
        yield lambda: None if copy is None or receiving is None else _received(receiving)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unmasked)
        if receiving is not None:
            os.close(receiving)
        if copy is not None:
            os.kill(copy, signal.SIGKILL)
            os.waitpid(copy, 0)


def _look(scout: Scout, descriptor: int, parts: range, sending: int) -> None:
    """The copy's whole life. It ends without a word: nobody but the reader may clean up, write or speak."""
    try:
        import pickle

        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)  # whoever waits for the reader's output to end does not wait for the copy
        end = os.fstat(descriptor).st_size
        for first in parts:
            told = pickle.dumps(scout.part(lambda place, size: os.pread(descriptor, size, place), first, end))
            _write_wholly(sending, len(told).to_bytes(_SIZE_BYTES, "big") + told)
    finally:
        os._exit(0)


def _write_wholly(sending: int, message: bytes) -> None:
    while message:
        message = message[os.write(sending, message) :]


def _received(receiving: int) -> _Part | None:
    """The next part that the copy tells; `None` after its end, or when it lets us wait."""
    import pickle

    until = time.monotonic() + PATIENCE_S
    size = _read_exactly(receiving, _SIZE_BYTES, until)
    told = None if size is None else _read_exactly(receiving, int.from_bytes(size, "big"), until)
    return None if told is None else pickle.loads(told)


def _read_exactly(receiving: int, size: int, until: float) -> bytes | None:
    import select

    ready = select.poll()
    ready.register(receiving, select.POLLIN)
    data = b""
    while len(data) < size:
        if not ready.poll(max(0.0, until - time.monotonic()) * 1000):
            return None
        more = os.read(receiving, size - len(data))
        if not more:
            return None
        data += more
    return data
