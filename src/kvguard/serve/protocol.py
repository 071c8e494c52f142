"""uvicorn's HTTP protocol with deadlines: nobody holds a connection by keeping silent, or by reading slowly.

uvicorn's own limits do not do here. It times out between requests but not before the first one, and where
`limit_concurrency` is reached it answers 503 to everyone: a thousand silent strangers would fail the kubelet's probe.
Here the oldest connection that waits for its client makes room for the new one.

A request is its head. Whatever a client sends behind one before it has been answered (a body, chunks of a byte, ten
thousand requests more) is thrown away unread, and the connection is closed behind the answer: to take it apart would
cost seconds in which no probe is answered, to keep it megabytes a connection.
"""

import asyncio
import re
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEAD_BYTES = 16 * 1024
"""Of a request's line and headers: ten times what a browser sends."""

MAX_HEAD_LINES = 128
"""A browser behind proxies sends forty. Each is taken apart, of however few bytes: heads of three thousand from two
hundred clients at once held a probe up for 2.5 s."""

REQUEST_S = 5.0
"""For the whole head of a request, from the connection or the answer before it. A kubelet sends it at once."""
ANSWER_S = 10.0
"""For the client to take the answer: a page is some 50 KiB."""
MAX_CONNECTIONS = 256
"""A kubelet, a Prometheus and some people need ten."""

_END_OF_HEAD = re.compile(rb"\n\r?\n")  # as h11 sees it
_BEFORE_IT = 2
"""Bytes of it that an earlier piece may have brought."""
_CLOSE = (b"connection", b"close")


class DeadlineProtocol(H11Protocol):
    """One connection with a deadline for whatever it is at."""

    most = MAX_CONNECTIONS
    """Connections that are held at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waits_since = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._last_bytes = b""  # of a head that is not whole yet
        self._lines = 0  # of it so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room, and wait for a request."""
        if len(self.connections) >= self.most:
            oldest = min(self.connections, key=_age)
            oldest.transport.abort()
            self.connections.discard(oldest)
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hand on a request's head, or what there is of it, and nothing that stands behind it."""
        if self.answering:
            self._close_behind_answer()
            return
        known = len(self._last_bytes)
        end = _END_OF_HEAD.search(self._last_bytes + data)
        head = data[: end.end() - known] if end else data[: MAX_HEAD_BYTES + 1]
        self._last_bytes = b"" if end else head[-_BEFORE_IT:]
        lines = self._lines + head.count(b"\n")
        self._lines = 0 if end else lines
        if lines > MAX_HEAD_LINES:
            self.send_400_response("Too many headers.\n")
            return
        super().data_received(head)
        if self.answering and (len(head) < len(data) or self.cycle.more_body):
            self._close_behind_answer()

    def handle_events(self) -> None:
        """Once a request is there, its answer must be taken in time."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._set(ANSWER_S)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._wait()
        super().on_response_complete()

    @property
    def answering(self) -> bool:
        """Whether a request is being answered: such a connection is not given up for a new one."""
        return self.cycle is not None and not self.cycle.response_complete

    def _close_behind_answer(self) -> None:
        """Read no further request, and say so in the answer while its head is still to be sent."""
        self.cycle.keep_alive = False
        self.headers.append(_CLOSE)  # which uvicorn repeats, once, if the request has it

    def _wait(self) -> None:
        self.waits_since = self.loop.time()
        self._set(REQUEST_S)

    def _set(self, seconds: float) -> None:
        self._cancel()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        # not close(): it would wait for a client that does not read what is still to be sent
        self.transport.abort()


def holding(most: int) -> type[DeadlineProtocol]:
    """The protocol for a server that holds that many connections at once."""
    return type("HoldingProtocol", (DeadlineProtocol,), {"most": most})


def _age(connection: Any) -> tuple[bool, float]:
    """Those that are being answered last, else the one that has waited longest first."""
    return connection.answering, connection.waits_since
