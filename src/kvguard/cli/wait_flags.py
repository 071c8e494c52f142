"""The flags that say how long, and what for, a start that somebody else began is waited for."""

import argparse
from enum import StrEnum

from kvguard.units import QuantityError, parse_seconds


class Until(StrEnum):
    """What a followed start is waited for."""

    CAPACITY = "capacity"
    READY = "ready"


def add_wait_flags(parser: argparse.ArgumentParser, *, follow: bool = True) -> None:
    """Add `--until`, `--timeout`, `--quiet` and, where there is a log to read on, `--follow`."""
    group = parser.add_argument_group("waiting")
    group.add_argument(
        "--until",
        type=_until,
        metavar="capacity|ready",
        help="wait until the capacity is reported, or the server is ready; a miss ends it at once",
    )
    group.add_argument("--timeout", type=seconds, metavar="TIME", help="wait no longer, as 15m: then status 3")
    if follow:
        group.add_argument("--follow", action="store_true", help="read on as the log grows (--until ready)")
    group.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")


def _until(text: str) -> Until:
    if text not in set(Until):
        raise argparse.ArgumentTypeError(f"{text!r} is neither {' nor '.join(Until)}")
    return Until(text)


def waits(arguments: argparse.Namespace) -> bool:
    """Whether the log is followed rather than read once."""
    return getattr(arguments, "follow", False) or arguments.until is not None or arguments.timeout is not None


def seconds(text: str) -> float:
    """A duration for argparse, in seconds."""
    try:
        return parse_seconds(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
