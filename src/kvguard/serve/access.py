"""Who may read what: an optional token in front of the page, the report and the metrics; never of the probes."""

import contextlib
import hmac
import threading
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.sources.documents import read_text

CHALLENGE = 'Bearer realm="kvguard", Basic realm="kvguard: any user, the token as the password", charset="UTF-8"'
"""A browser can only ask for a user and a password; a scraper sends the token itself."""
LOOK_S = 1.0
"""Between two looks at the token's file."""
LARGEST_TOKEN = 2**20
"""Bytes; a header of more is refused anyway."""


class TokenFile:
    """The token of a file, which may change: Kubernetes rotates mounted secrets.

    Raises:
        SourceError: the file can't be read, or is empty, at the very start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = self._read()

    def __call__(self) -> str:
        """The token in force: the last good one."""
        return self._last

    def watch(self) -> None:
        """Read it every second from now on, in a thread of its own: a file system that hangs must hold up no answer."""
        threading.Thread(target=self._watch, name="token", daemon=True).start()

    def renew(self) -> None:
        """Read it anew; it stays as it was while the file is gone, empty, or a pipe to wait for."""
        with contextlib.suppress(SourceError):
            if not self._path.is_fifo():
                self._last = self._read()

    def _watch(self) -> None:
        rest = threading.Event()  # never set: the thread ends with the process
        while not rest.wait(LOOK_S):
            self.renew()

    def _read(self) -> str:
        try:
            token = read_text(self._path, LARGEST_TOKEN).strip()
        except SourceError as error:
            raise SourceError(f"{error}: --token-file names the file that holds the token") from None
        if not token:
            raise SourceError(f"{self._path}: empty: a token belongs in it, or leave --token-file away")
        return token


def may_enter(authorization: str | None, token: Callable[[], str] | None) -> bool:
    """Whether a request with this Authorization header may see what the token guards."""
    if token is None:
        return True
    given = _given(authorization or "")
    return given is not None and hmac.compare_digest(given, token().encode())


def _given(authorization: str) -> bytes | None:
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip().encode()
    if scheme.lower() == "basic":
        try:
            return b64decode(rest.strip(), validate=True).partition(b":")[2]
        except ValueError:
            return None
    return None
