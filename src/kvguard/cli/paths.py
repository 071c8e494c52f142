"""File names on a command line: `pathlib` and what it loads are paid for where a file is named, not by each command."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def path(name: str) -> "Path":
    """The type of a flag that takes a file's name."""
    from pathlib import Path

    return Path(name)
