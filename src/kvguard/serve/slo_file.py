"""The SLO file while the sidecar runs: read again when it changes, the last good one kept when it is broken."""

from collections.abc import Callable
from pathlib import Path

from kvguard.errors import SourceError, UserError
from kvguard.serve.snapshot import SloStatus
from kvguard.slo.objectives import Slo
from kvguard.slotted import replace

Signature = tuple[int, int, int, int]
"""Device, inode, size and change time of what the path leads to: a ConfigMap switches a symlink above the file."""

LOOK_S = 1.0
SETTLE_S = 0.2
"""How long a change rests before it is read: half of a file that is being written may be valid, and ask for less."""


class SloFile:
    """What is asked, from a file that may be edited at any time, or from flags that never change.

    Args:
        path: the file; `None` where there is none.
        read: reads it anew, with whatever it names; raises `UserError` where it is wrong.
        wall: seconds since 1970.

    Raises:
        UserError: the file is wrong at the very start: there is no good one to keep.
    """

    def __init__(self, path: Path | None, read: Callable[[], Slo], wall: Callable[[], float]) -> None:
        self._path, self._read, self._wall = path, read, wall
        self._due = 0.0
        self._signature = self._seen = self._look()
        self.slo = read()
        self.status = SloStatus(str(path) if path else None, None, wall() if path else None)

    def poll(self, now: float) -> bool:
        """Look whether the file has changed, at most once a second; whether another SLO or problem is in force."""
        if self._path is None or now < self._due:
            return False
        signature, before = self._look(), self._seen
        self._seen = signature
        self._due = now + (LOOK_S if signature == before else SETTLE_S)
        if signature == self._signature or signature != before:
            return False
        self._signature = signature
        return self._reload()

    def _reload(self) -> bool:
        try:
            if self._path is not None and self._path.is_fifo():  # nobody need ever write into it
                raise SourceError(f"{self._path}: a named pipe: put a file there")
            self.slo = self._read()
        except UserError as error:
            self._refuse(str(error))
        except Exception as error:  # whatever an edit makes a reader raise: it must not end the watch
            self._refuse(f"{self._path}: cannot be read ({type(error).__name__}): check it with kvguard slo check")
        else:
            self.status = replace(self.status, problem=None, loaded_at=self._wall())
        return True

    def _refuse(self, problem: str) -> None:
        self.status = replace(self.status, problem=problem, failures=self.status.failures + 1)

    def _look(self) -> Signature | None:
        """What stands under the path; `None` where nothing can be looked at, which is a change like any other."""
        if self._path is None:
            return None
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)
