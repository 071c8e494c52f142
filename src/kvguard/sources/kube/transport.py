"""One request to the API server at a time, on a thread of its own, so that who polls never waits.

Only this module knows of sockets. A request is started, polled for what has come, and can be given up at any moment.
"""

import os
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress

import httpx

from kvguard.errors import SourceError
from kvguard.slotted import dataclass
from kvguard.sources.http_body import whole_body
from kvguard.sources.kube.address import Cluster

_CONNECT_S = 10.0
_PIECE_BYTES = 64 * 1024
_MOST_PIECES = 16
"""How many pieces may wait to be taken; then nothing more is read, and the server has to wait."""
_LARGEST_ANSWER_BYTES = 4 * 1024 * 1024
"""No pod is larger."""
_ANSWER_S = 30.0
"""For the whole of it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: a JSON document, or what the server said instead of a log."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Opened:
    """The server gives a log: its lines so far, then those to come."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a log."""

    data: bytes


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The log's answer is complete."""


@dataclass(frozen=True, slots=True)
class Failure:
    """No answer, or not all of it."""

    message: str


Item = Answer | Opened | Piece | LogEnd | Failure


def client_of(cluster: Cluster, timeout: httpx.Timeout) -> httpx.Client:
    """A client for one request: the kubelet replaces the token, and the certificates at times.

    Raises:
        OSError: the token or the certificates cannot be read.
        SourceError: the token cannot be sent.
    """
    return httpx.Client(
        base_url=cluster.url,
        headers={**cluster.authorization(), "Accept-Encoding": "identity", "User-Agent": "kvguard"},
        verify=ssl.create_default_context(cafile=cluster.ca_file) if cluster.url.startswith("https") else False,
        timeout=timeout,
        trust_env=False,
    )


class WakeUp:
    """A descriptor that is readable from `set` until `clear`."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._writer, False)

    def set(self) -> None:
        with suppress(BlockingIOError, OSError):  # full: it is readable already; closed: nobody waits any more
            os.write(self._writer, b"x")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self.descriptor, 4096)

    def close(self) -> None:
        os.close(self.descriptor)
        os.close(self._writer)


class Request:
    """A GET that runs. With parameters it asks for a log, which comes in pieces; all other answers come as a whole."""

    def __init__(self, cluster: Cluster, path: str, parameters: Mapping[str, str], wake: WakeUp) -> None:
        self._cluster = cluster
        self._path = path
        self._parameters = parameters
        self._wake = wake
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()
        self._room = threading.Semaphore(_MOST_PIECES)
        self._given_up = False
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="kvguard-kube")
        self._thread.start()

    def take(self) -> Item | None:
        """The next of what has come."""
        with self._lock:
            item = self._items.popleft() if self._items else None
        if isinstance(item, Piece):
            self._room.release()
        return item

    def give_up(self) -> None:
        """Stop; a thread that waits for the server is woken by taking its connection away."""
        self._given_up = True
        self._room.release()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        try:
            self._get()
        except OSError as error:  # the token or the CA cannot be read
            self._put(Failure(f"{error.filename}: {error.strerror}" if error.filename else str(error)))
        except SourceError as error:
            self._put(Failure(str(error)))
        except (httpx.HTTPError, ValueError) as error:
            self._put(Failure(str(error) or type(error).__name__))

    def _get(self) -> None:
        begun = time.monotonic()
        timeout = httpx.Timeout(_CONNECT_S, read=None if self._parameters else _CONNECT_S)
        with (
            client_of(self._cluster, timeout) as client,
            client.stream("GET", self._path, params=dict(self._parameters)) as response,
        ):
            self._socket = response.extensions["network_stream"].get_extra_info("socket")
            if self._given_up:
                return
            if self._parameters and response.status_code == 200:
                self._pass_on(response)
            else:
                body = whole_body(response, _LARGEST_ANSWER_BYTES, begun, _ANSWER_S)
                self._put(Answer(response.status_code, body))

    def _pass_on(self, response: httpx.Response) -> None:
        self._put(Opened())
        for data in response.iter_raw():  # as it arrives: with a size it would wait for that much
            if not self._added_to_last(data):
                self._room.acquire()
                self._put(Piece(data))
            if self._given_up:
                return
        self._put(LogEnd())

    def _added_to_last(self, data: bytes) -> bool:
        """Every line arrives by itself: what was not taken yet is handed over together."""
        with self._lock:
            last = self._items[-1] if self._items else None
            if not isinstance(last, Piece) or len(last.data) + len(data) > _PIECE_BYTES:
                return False
            self._items[-1] = Piece(last.data + data)
            return True

    def _put(self, item: Item) -> None:
        with self._lock:
            self._items.append(item)
        self._wake.set()
