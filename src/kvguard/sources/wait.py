"""Wait for a source, for a command that has nothing else to do."""

import select
import time

from kvguard.sources.source import Source


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
