"""The record of checks on the disk: a JSON report a line, appended by whoever judges."""

import os
from pathlib import Path


def append_line(path: Path, line: bytes) -> None:
    """Append a line with its newline, and have it on the disk; one that a full disk tore stays a line of its own.

    Raises:
        OSError: it cannot be written.
    """
    torn = _is_torn(path)
    # O_NONBLOCK: a named pipe from which nobody reads would hold us for ever
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    with os.fdopen(descriptor, "ab") as file:
        file.write(b"\n" + line if torn else line)
        file.flush()
        if path.is_file():  # nothing else is kept
            os.fsync(file.fileno())


def _is_torn(path: Path) -> bool:
    """Whether the file ends inside a line."""
    if not path.is_file() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
