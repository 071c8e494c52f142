"""From what a user writes to the source that follows it."""

import errno
import os
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.sources.blocks import STDIN, describe_os_error
from kvguard.sources.file import FileSource
from kvguard.sources.open_files import may_open
from kvguard.sources.pipe import PipeSource
from kvguard.sources.source import Source

OPEN_A_LOG = 3
"""A file, the one that it was rotated to, and the one that took its name; of a pod's log a connection and two pipes."""
OPEN_BESIDES = 32
"""The three standard streams, what is imported late, what is written."""


def followed(name: str, for_ever: bool = False) -> Source:
    """A log that grows: `pod:…`, `-`, a named pipe, or a file, which may appear later.

    Args:
        name: as the user wrote it.
        for_ever: whether a named pipe is read on with its next writer.

    Raises:
        ConfigError: a pod's log that can't be meant, or no cluster around us.
        SourceError: a directory, or a pipe that cannot be opened.
    """
    if name.startswith("pod:"):
        # its HTTP client costs more than everything else together: only who reads a pod's log pays for it
        from kvguard.sources.kube.address import Cluster, parse_address
        from kvguard.sources.kube.podlog import PodLogSource

        return PodLogSource(parse_address(name), Cluster.from_inside())
    path = Path(name)
    if name == STDIN or path.is_fifo():
        return PipeSource(name, for_ever)
    if path.is_dir():  # that will not mend itself; a file that is missing or unreadable may
        raise SourceError(describe_os_error(name, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))))
    return FileSource(name)


def hold_open(logs: int) -> None:
    """Let this process follow that many logs at once.

    Raises:
        SourceError: it may not have so many files open.
    """
    needed = OPEN_BESIDES + OPEN_A_LOG * logs
    if (allowed := may_open(needed)) < needed:
        raise SourceError(f"{logs} logs to follow need {needed} open files, {allowed} are allowed: raise ulimit -Hn")
