"""Requests with something spoilt in them, in any pieces: each is answered or let go, and the server stays quiet."""

import asyncio
import logging
import random
from typing import Any

import pytest
from uvicorn.server import ServerState

from kvguard.serve.protocol import DeadlineProtocol
from kvguard.serve.server import _config
from tests.serve.driven import READY, Driven

WHOLE = (
    b"GET /readyz?verbose HTTP/1.1\r\nHost: x\r\nAccept: text/plain;q=0.5\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b'GET / HTTP/1.0\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nIf-None-Match: "x"\r\n\r\n',
    b"HEAD /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDp5\r\nExpect: 100-continue\r\nContent-Length: 3\r\n"
    b"Accept: application/openmetrics-text;version=1.0.0;escaping=allow-utf-8,text/plain;version=0.0.4\r\n\r\nabc",
    b"GET /v1/report HTTP/1.1\r\nHost: x\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
)
SPOILT = (
    *(b"\r\n", b"\n", b"\r", b"\0", b"\xff", b" ", b":", b"%", b"%ff", b"?", b"\t", b",", b";", b"q=", b"version="),
    *(b"escaping=", b"\x85", b"9" * 30, b"HTTP/1.1", b"//", b"http://", b'"', b"[", b"*"),
)
PER_SEED = 150


class Wire(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.answer += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    abort = close

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        """As a socket does."""

    def resume_reading(self) -> None:
        """As a socket does."""


def spoil(chance: random.Random) -> bytes:
    request = bytearray(chance.choice(WHOLE))
    for _ in range(chance.randint(0, 6)):
        at = chance.randrange(len(request) + 1)
        request[at : at + chance.choice([0, 0, 1, 2, 8])] = chance.choice(SPOILT)
    return bytes(request)


@pytest.mark.parametrize("seed", range(3))
def test_no_request_however_spoilt_raises_anything(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)
    driven = Driven(token=chance.choice([None, lambda: "y"])).read(READY)

    async def talk() -> None:
        config = _config(driven.app)
        config.load()
        state = ServerState()
        for _ in range(PER_SEED):
            wire, request, size = Wire(), spoil(chance), chance.choice([1, 3, 7, 1000])
            protocol = DeadlineProtocol(config=config, server_state=state, app_state={})
            protocol.connection_made(wire)
            for at in range(0, len(request), size):
                if not wire.closed:
                    protocol.data_received(request[at : at + size])
                    await asyncio.sleep(0)
            while state.tasks:
                await asyncio.sleep(0)
            protocol.connection_lost(None)
            assert not wire.answer.startswith(b"HTTP/1.1 5"), request

    with caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(talk(), timeout=60))
    assert caplog.records == []
