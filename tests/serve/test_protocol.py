"""Deadlines of connections: silence, slowness, and a crowd that must not keep the kubelet out."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import pytest
import uvicorn
from uvicorn.server import ServerState

from kvguard.serve import protocol
from kvguard.serve.protocol import DeadlineProtocol
from kvguard.serve.sealed import Message, Receive, Send

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def app(scope: Message, receive: Receive, send: Send) -> None:
    size = 20_000_000 if scope["path"] == "/large" else 3
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]})
    await send({"type": "http.response.body", "body": b"x" * size})


class Clients:
    """Connections of one test, let go at its end."""

    def __init__(self, port: int, server: ServerState) -> None:
        self.port, self.server = port, server
        self._open: list[asyncio.StreamWriter] = []

    async def connect(self) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._open.append(writer)
        return reader, writer

    async def close(self) -> None:
        for writer in self._open:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def while_serving(talk: Callable[[Clients], Awaitable[None]]) -> None:
    """Run the client against a server of the protocol, in one loop."""

    async def both() -> None:
        config = uvicorn.Config(
            app, http=DeadlineProtocol, ws="none", lifespan="off", log_config=None, access_log=False
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            clients = Clients(listening.getsockname()[1], server.server_state)
            serving = asyncio.create_task(server._serve([listening]))
            try:
                await talk(clients)
            finally:
                await clients.close()
                server.should_exit = True
                await serving

    asyncio.run(asyncio.wait_for(both(), timeout=30))


async def closed(reader: asyncio.StreamReader) -> bool:
    """Whether the server lets go of the connection."""
    with contextlib.suppress(ConnectionResetError):
        await reader.read()
    return True


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str = "/") -> bytes:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return (await reader.readuntil(b"\r\n\r\n")) + await reader.readexactly(3)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REQUEST_S", 0.1)
    monkeypatch.setattr(protocol, "ANSWER_S", 0.2)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"\r\n\r\n"])
def test_a_request_that_does_not_come_is_not_waited_for(said: bytes) -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()
        writer.write(said)

        assert await closed(reader)

    while_serving(talk)


@pytest.mark.usefixtures("hasty")
def test_a_request_that_trickles_in_is_not_waited_for() -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()

        async def trickle() -> None:
            for letter in b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 1000:
                writer.write(bytes([letter]))
                await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        assert await closed(reader)
        trickling.cancel()

    while_serving(talk)


@pytest.mark.usefixtures("hasty")
def test_silence_behind_an_answer_is_not_waited_for() -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()

        assert (await answer(reader, writer)).endswith(b"xxx")
        assert await closed(reader)

    while_serving(talk)


@pytest.mark.usefixtures("hasty")
def test_an_answer_that_is_not_taken_is_given_up() -> None:
    async def talk(clients: Clients) -> None:
        with socket.create_connection(("127.0.0.1", clients.port)) as slow:
            slow.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(slow, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            while clients.server.connections or not clients.server.total_requests:
                await asyncio.sleep(0)  # reads nothing; the server must let go by itself
            got = 0
            with contextlib.suppress(ConnectionResetError):
                while part := await loop.sock_recv(slow, 2**20):
                    got += len(part)

        assert got < 20_000_000

    while_serving(talk)


def test_a_kept_connection_serves_several_requests() -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()

        assert [(await answer(reader, writer))[-3:] for _ in range(3)] == [b"xxx"] * 3

    while_serving(talk)


PIPELINED = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3
WITH_BODY = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"


@pytest.mark.parametrize("sent", [PIPELINED, WITH_BODY + b"x" * 9, WITH_BODY], ids=["more", "a body", "a body to come"])
def test_one_request_is_answered_and_what_stands_behind_it_closes_the_connection(sent: bytes) -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()
        writer.write(sent)
        got = await reader.read()

        assert got.count(b"HTTP/1.1 200 OK") == 1
        assert b"connection: close" in got.lower()

    while_serving(talk)


def test_a_request_may_come_letter_by_letter_and_another_behind_its_answer() -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()
        for _ in range(2):
            for letter in b"GET / HTTP/1.1\r\nHost: x\r\n\r\n":
                writer.write(bytes([letter]))
                await asyncio.sleep(0)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
            assert await reader.readexactly(3) == b"xxx"

    while_serving(talk)


def test_a_crowd_loses_its_oldest_and_the_probe_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol.DeadlineProtocol, "most", 8)

    async def talk(clients: Clients) -> None:
        crowd = [await clients.connect() for _ in range(8)]
        await answer(*crowd[-1])  # the newest has been answered: all have been accepted

        probe = await answer(*await clients.connect())

        assert probe.endswith(b"xxx")
        assert await closed(crowd[0][0])
        assert [(await answer(*one))[-3:] for one in crowd[1:]] == [b"xxx"] * 7

    while_serving(talk)


def test_headers_are_counted_over_all_pieces_of_a_head_and_anew_for_the_next() -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * 100 + b"\r\n")
            await reader.readuntil(b"xxx")
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n")
        for _ in range(protocol.MAX_HEAD_LINES):
            writer.write(b"a: b\r\n")
            await asyncio.sleep(0)
        with contextlib.suppress(ConnectionResetError):
            assert (await reader.read()).startswith(b"HTTP/1.1 400 ")

    while_serving(talk)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(
    "request_line",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
def test_a_malformed_request_is_refused_and_let_go(request_line: bytes) -> None:
    async def talk(clients: Clients) -> None:
        reader, writer = await clients.connect()
        writer.write(request_line)
        with contextlib.suppress(ConnectionResetError):
            assert (await reader.read()).startswith((b"HTTP/1.1 400", b""))

        assert (await answer(*await clients.connect())).endswith(b"xxx")

    while_serving(talk)
