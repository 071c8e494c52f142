"""Read a long log with two processes: one reads it, the other looks ahead at every other part of it.

Where a log is a plain file, a copy of this process (a fork) passes over the access and stats lines of further parts
while this one reads: it tells which stretches hold nothing else (`lines.scouting`), and these are not read again. What
it does not tell, tells late or can no longer be believed is read as if there were no scout; so its death costs time and
nothing else.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from kvguard.guard import Guard
from kvguard.lines.scouting import PART_BYTES, Scout, Stretch
from kvguard.sources.blocks import BLOCK_BYTES, content, is_plain_file, opened

WORTH_BYTES = 4 * PART_BYTES
"""What must lie ahead for a scout to be sent; a fork costs as much as reading a few mebibytes."""
MAX_SCOUTS = 8
"""Sent in one log: one that the server's restarts overtake is called back."""
MAX_REFUSED = 2
"""Stretches in a row that could not be passed over, before that is done."""


def feed_whole(guard: Guard, name: str) -> None:
    """Feed a log from its first byte to its last.

    Raises:
        SourceError: it cannot be read.
    """
    with opened(name) as descriptor:
        scouts = MAX_SCOUTS if is_plain_file(descriptor) and _processors() > 1 else 0
        for block in content(name, descriptor):
            guard.feed(block)
            if scouts and _ahead(descriptor) >= WORTH_BYTES and (scout := guard.scout()) is not None:
                scouts -= 1
                _feed_with(scout, guard, descriptor)


def _processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _ahead(descriptor: int) -> int:
    """How many bytes of the file lie ahead."""
    return os.fstat(descriptor).st_size - os.lseek(descriptor, 0, os.SEEK_CUR)


def _feed_with(scout: Scout, guard: Guard, descriptor: int) -> None:
    """Feed on as far as the scout's last stretch, and leave the descriptor there."""
    here = os.lseek(descriptor, 0, os.SEEK_CUR)
    refused = 0
    with _sent(scout, descriptor, here) as stretches:
        for stretch in stretches:
            here = _feed_to(stretch.begin, guard, descriptor, here)
            if here == stretch.begin and guard.pass_over(stretch, scout):
                here, refused = stretch.end, 0
            elif (refused := refused + 1) == MAX_REFUSED:
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
def _sent(scout: Scout, descriptor: int, here: int) -> Iterator[Iterator[Stretch]]:
    """The stretches that a copy of this process finds ahead; it ends when they are no longer asked for."""
    receiving, sending = os.pipe()
    try:
        pid = os.fork()
    except OSError:  # no process to be had: there is no scout
        os.close(receiving)
        os.close(sending)
        yield iter(())
        return
    if pid == 0:
        _look(scout, descriptor, here, sending)
    os.close(sending)
    try:
        yield _received(receiving)
    finally:
        os.close(receiving)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _look(scout: Scout, descriptor: int, here: int, sending: int) -> NoReturn:
    """The copy's whole life. It ends without a word: nobody but the reader may clean up, write or speak."""
    try:
        import pickle  # only who sends a scout pays for it

        end = os.fstat(descriptor).st_size
        with open(sending, "wb") as told:
            for stretch in scout.stretches(lambda place, size: os.pread(descriptor, size, place), here, end):
                pickle.dump(stretch, told)
                told.flush()
    finally:
        os._exit(0)


def _received(receiving: int) -> Iterator[Stretch]:
    """What the copy tells, to its end or its death."""
    import pickle

    with open(receiving, "rb", closefd=False) as told, suppress(EOFError, pickle.UnpicklingError):
        while True:
            yield pickle.load(told)
