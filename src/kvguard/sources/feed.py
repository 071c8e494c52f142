"""What a source has to say, handed on to the guard that judges it."""

from collections.abc import Iterable

from kvguard.guard import Guard
from kvguard.sources.source import Boundary, Chunk, SourceEvent


def feed(guard: Guard, events: Iterable[SourceEvent], now: float) -> bool:
    """Hand on bytes, and boundaries at which another process may begin; whether bytes were among the events."""
    got = False
    for event in events:
        if isinstance(event, Chunk):
            guard.feed(event.data, now)
            got = True
        elif isinstance(event, Boundary) and event.new_process is not False:
            guard.boundary(now, certain=event.new_process is True)
    return got
