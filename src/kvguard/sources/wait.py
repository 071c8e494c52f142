"""Drive a source to its end: for a command that has nothing else to do, and for an asyncio loop that has."""

import select
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from kvguard.sources.source import Source, SourceEvent, State

Clock = Callable[[], float]


def wait(source: Source, longest: float, now: float) -> None:
    """Sleep until another poll of the source is of use, at most `longest` seconds."""
    seconds = min(source.delay(now), longest)
    descriptor = source.fileno()
    if seconds <= 0:
        return
    if descriptor is None:
        time.sleep(seconds)
    else:
        readable = select.poll()
        readable.register(descriptor, select.POLLIN)
        readable.poll(seconds * 1000)


def arrivals(source: Source, tick: float = 1.0, clock: Clock = time.monotonic) -> Iterator[Sequence[SourceEvent]]:
    """What a source has to say, as it comes, until it has ended; empty at least every `tick` seconds meanwhile.

    The empty ones let the caller look at its own time-outs.
    """
    while True:
        yield source.poll(clock())
        if source.status.state is State.ENDED:
            return
        wait(source, tick, clock())


async def arrivals_in_loop(source: Source, clock: Clock = time.monotonic) -> AsyncIterator[Sequence[SourceEvent]]:
    """The same in an asyncio loop, which gets its turn after every poll; nothing empty."""
    while True:
        events = source.poll(clock())
        if events:
            yield events
        if source.status.state is State.ENDED:
            return
        await _ready(source, clock())


async def _ready(source: Source, now: float) -> None:
    import asyncio

    seconds = source.delay(now)
    descriptor = source.fileno()
    if seconds <= 0 or descriptor is None:
        await asyncio.sleep(seconds)
        return
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        async with asyncio.timeout(seconds):
            await readable.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(descriptor)
