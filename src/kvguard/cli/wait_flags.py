"""The flags that say how long, and what for, a start that somebody else began is waited for."""

import argparse
from enum import StrEnum

from kvguard.units import QuantityError, parse_seconds


class Until(StrEnum):
    """What a followed start is waited for."""

    CAPACITY = "capacity"
    READY = "ready"


def add_wait_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--until`, `--timeout`, `--follow` and `--quiet`."""
    group = parser.add_argument_group("waiting")
    group.add_argument(
        "--until",
        type=Until,
        choices=list(Until),
        metavar="capacity|ready",
        help="wait until the capacity is reported, or the server is ready; a miss ends it at once",
    )
    group.add_argument(
        "--timeout", type=seconds, metavar="TIME", help="wait no longer than that, as 15m: then status 3"
    )
    group.add_argument(
        "--follow", action="store_true", help="read on as the log grows (until ready, unless told otherwise)"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")


def waits(arguments: argparse.Namespace) -> bool:
    """Whether the log is followed rather than read once."""
    return arguments.follow or arguments.until is not None or arguments.timeout is not None


def seconds(text: str) -> float:
    """A duration for argparse, in seconds."""
    try:
        return parse_seconds(text)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
