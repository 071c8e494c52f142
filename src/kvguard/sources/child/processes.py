"""Which processes belong to us, on Linux: found through /proc, adopted when their parents die, told of our own death.

Elsewhere only the process group is known: that is what every call here falls back to.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_PROC = Path("/proc")


class Process(NamedTuple):
    """A line of `/proc/PID/stat`, as far as it is needed."""

    pid: int
    parent: int
    dead: bool
    """It has ended, its parent has not asked for its status yet."""


def adopt_orphans() -> None:
    """Let descendants whose parents die become our children, so that they can still be found."""
    if sys.platform == "linux":
        _prctl()(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def death_signal(parent: int) -> Callable[[], None]:
    """What a new child calls before its command begins: it is told to end when this process is killed."""
    if sys.platform != "linux":
        return lambda: None
    prctl = _prctl()  # found before the fork: nothing may be loaded after it

    def call() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # killed in between: nobody will tell any more
            os.kill(os.getpid(), signal.SIGKILL)

    return call


def descendants(root: int, without: Iterable[int] = ()) -> list[Process]:
    """Children of a process, their children and so on; not those in `without` and what is below them."""
    excluded = set(without)
    children: dict[int, list[Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found, heads = [], [root]
    while heads:
        below = [process for process in children.get(heads.pop(), ()) if process.pid not in excluded]
        found += below
        heads += [process.pid for process in below]
    return found


def _processes() -> Iterable[Process]:
    with suppress(FileNotFoundError):
        for entry in os.scandir(_PROC):
            if entry.name.isdecimal():
                with suppress(OSError, ValueError):  # it ended while we looked
                    yield _parse(Path(entry.path, "stat").read_text(errors="replace"))


def _parse(stat: str) -> Process:
    """Read `PID (NAME) STATE PPID …`; the name may hold anything, blanks and brackets too."""
    pid, rest = stat.split(" ", 1)
    state, parent, _ = rest.rpartition(")")[2].split(None, 2)
    return Process(int(pid), int(parent), dead=state in "ZX")


def _prctl() -> Callable[..., int]:
    return ctypes.CDLL(None, use_errno=True).prctl
