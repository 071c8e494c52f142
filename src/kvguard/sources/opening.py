"""From what a user writes to the source that follows it."""

import errno
import os
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.sources.blocks import STDIN, describe_os_error
from kvguard.sources.file import FileSource
from kvguard.sources.pipe import PipeSource
from kvguard.sources.source import Source


def followed(name: str) -> Source:
    """A log that grows: `pod:…`, `-`, a named pipe, or a file, which may appear later.

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
        return PipeSource(name)
    if path.is_dir():  # that will not mend itself; a file that is missing or unreadable may
        raise SourceError(describe_os_error(name, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))))
    return FileSource(name)
