"""Write an answer once a snapshot, however often it is asked for."""

from collections.abc import Callable
from typing import TypeVar

from kvguard.serve.snapshot import Snapshot

Written = TypeVar("Written")


def once(write: Callable[[Snapshot], Written]) -> Callable[[Snapshot], Written]:
    """The same, with the last answer kept for as long as its snapshot is the newest."""
    last: tuple[Snapshot, Written] | None = None

    def written(snapshot: Snapshot) -> Written:
        nonlocal last
        if last is None or last[0] is not snapshot:
            last = (snapshot, write(snapshot))
        return last[1]

    return written
