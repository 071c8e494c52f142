"""Crowds that ask for more than an answer: what they send costs neither memory nor the time of a probe."""

import base64
import contextlib
import re
import socket
from collections.abc import Iterator

import pytest

from tests.attacks.clients import PROBES, TOKEN, guarded, headers_of, memory_mib, raw
from tests.serve.process import Served

CROWD = 100
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
SENT_AT_ONCE = {
    "answers": b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000,
    "probes": b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000,
    "a body": b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 400_000,
    "chunks of a byte": CHUNKED + b"1\r\nx\r\n" * 60_000,
    "a chunk without an end": CHUNKED + b"7fffffff\r\n" + b"x" * 400_000,
    "a head without an end": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 400_000,
}
"""What one client sends in a breath. Taken apart, ten connections of such chunks stop the server for seconds."""


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with guarded(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.mark.parametrize("kind", SENT_AT_ONCE)
def test_what_stands_behind_a_request_is_not_taken_apart(sidecar: Served, kind: str) -> None:
    before = memory_mib(sidecar)
    with contextlib.ExitStack() as held:
        for _ in range(CROWD):
            one = held.enter_context(socket.create_connection(("127.0.0.1", sidecar.port), timeout=20))
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                one.send(SENT_AT_ONCE[kind])

        assert [sidecar.get(path).status for path in PROBES] == [200, 200, 200]
    assert memory_mib(sidecar) - before < 4.0  # they send 25 to 40 MiB


def test_connections_leave_nothing_behind(sidecar: Served) -> None:
    """A kubelet and a Prometheus open some thirty thousand a day; whatever one leaves adds up."""

    def asked(times: int) -> float:
        for _ in range(times):
            sidecar.get("/livez")
        return memory_mib(sidecar, "RssAnon")

    before = asked(300)
    assert asked(1000) - before < 0.5


def authorized(given: str) -> str:
    return f"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: {given}\r\n\r\n"


ODD = {
    "HTTP/1.0 that wants to stay": ("GET /readyz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 3, 200),
    "a web socket": (
        "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
        200,
    ),
    "HTTP/2": ("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n", 200),
    "a tunnel": ("CONNECT evil:443 HTTP/1.1\r\nHost: evil:443\r\n\r\n", 404),
    "a proxy": ("GET http://evil/readyz HTTP/1.1\r\nHost: evil\r\n\r\n", 404),
    "the whole server": ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "a request behind a body of two lengths": (
        "POST /readyz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n"
        "0\r\n\r\nGET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
        405,
    ),
    "two lengths": ("GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "an encoding nobody knows": ("GET /livez HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 400),
    "two hosts": ("GET /livez HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    "a host of markup": ('GET /nowhere HTTP/1.1\r\nHost: evil"><script>\r\n\r\n', 404),
    "a path that is no text": ("GET /%ff%fe%00 HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "half of a pair": ("GET /%ed%a0%80 HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "bytes in the path": ("GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "a query of thousands": (f"GET /readyz?{'a=b&' * 3500}verbose HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "a query that is none": ("GET /readyz?%=%&verbose=%zz HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "a promise to send": ("PUT /readyz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", 405),
    "three thousand headers": ("GET /livez HTTP/1.1\r\nHost: x\r\n" + "a:b\r\n" * 3000 + "\r\n", 400),
    "a hundred headers": ("GET /livez HTTP/1.1\r\nHost: x\r\n" + "a:b\r\n" * 100 + "\r\n", 200),
    "a folded header": ("GET /livez HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n", 200),
    "a zero in a header": ("GET /livez HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400),
    "ends of a line alone": ("GET /livez HTTP/1.1\nHost: x\n\n", 200),
    "HTTP/0.9": ("GET /livez\r\n\r\n", 400),
    "TLS": ("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 500, 400),
    "the token in capitals": (authorized(f"Bearer {TOKEN.upper()}"), 401),
    "the token but for its end": (authorized(f"Bearer {TOKEN[:-1]}"), 401),
    "the token and more": (authorized(f"Bearer {TOKEN} {TOKEN}"), 401),
    "no text for a token": (authorized("Bearer \xf0\x9f"), 401),
    "the token as a name": (authorized(f"Basic {base64.b64encode(TOKEN.encode()).decode()}"), 401),
    "the token in the address": (f"GET /metrics?token={TOKEN} HTTP/1.1\r\nHost: x\r\n\r\n", 401),
    "two tokens, the wrong one first": (authorized(f"Bearer x\r\nAuthorization: Bearer {TOKEN}"), 401),
    "its scheme in any letters": (authorized(f"bEaReR {TOKEN}"), 200),
    "a page in parts": (f"GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1,{'1-2,' * 3000}\r\n\r\n", 401),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_request_gets_one_answer_and_the_server_stays_quiet(sidecar: Served, name: str) -> None:
    request, status = ODD[name]
    answer = raw(sidecar, request.encode("latin-1"))

    assert re.findall(rb"^HTTP/1\.1 (\d+) ", answer, re.MULTILINE) == [str(status).encode()]
    assert not headers_of(answer).keys() & {"upgrade", "location", "allow-origin", "content-range"}
    assert b"evil" not in answer
