"""Drive a source: by hand, where time is a number and a look is a method call, or to its end as it comes.

And what is done to the log file meanwhile.
"""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kvguard.sources.source import Boundary, Chunk, Source, SourceEvent, State, StateChange
from kvguard.sources.wait import wait


class Following:
    """A source and the time at it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.now = 100.0

    def look(self, times: int = 1) -> list[SourceEvent]:
        """All that the source says at its next looks, until it has nothing more for the moment."""
        events: list[SourceEvent] = []
        for _ in range(times):
            self.now += self.source.delay(self.now)
            while True:
                events += self.source.poll(self.now)
                if self.source.delay(self.now) > 0:
                    break
        return events

    def read(self, times: int = 1) -> str:
        """The text of the next looks, `|` where a boundary stands."""
        return told(self.look(times))


def told(events: list[SourceEvent]) -> str:
    """The text of events, `|` where a boundary stands."""
    marks = {Chunk: lambda chunk: chunk.data.decode(), Boundary: lambda _: "|", StateChange: lambda _: ""}
    return "".join(marks[type(event)](event) for event in events)


def boundaries(events: list[SourceEvent]) -> list[str]:
    """The kinds of the boundaries among events."""
    return [event.kind.value for event in events if isinstance(event, Boundary)]


def arrivals(source: Source, tick: float = 1.0) -> Iterator[Sequence[SourceEvent]]:
    """What a source has to say, as it comes, until it has ended; empty at least every `tick` seconds."""
    while True:
        yield source.poll(time.monotonic())
        if source.status.state is State.ENDED:
            return
        wait(source, tick, time.monotonic())


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def rotate(log: Path, oldest: int = 5) -> None:
    """What logrotate does with `create`: each file moves on by one, an empty one takes the name."""
    for number in range(oldest, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        if older.exists():
            older.rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(log.with_name(f"{log.name}.1"))
    log.touch()


def copytruncate(log: Path, to: str = ".1") -> None:
    shutil.copyfile(log, log.with_name(log.name + to))
    os.truncate(log, 0)
