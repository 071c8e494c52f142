"""A Prometheus that is away, slow, broken or something else: one line in time, status 2, and never a figure."""

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from kvguard.cli import main
from kvguard.errors import SourceError
from kvguard.sources import prometheus_query
from tests.faults.programs import LOG
from tests.live_prometheus import free_port

Answer = Callable[[socket.socket], None]


@contextmanager
def prometheus(answer: Answer) -> Iterator[str]:
    """A server that answers every connection in one way; its URL."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    connection.recv(65536)
                    answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()


def says(body: bytes, status: str = "200 OK", length: int | None = None) -> Answer:
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


def vector(*results: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": results}}).encode()


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"100000\r\n" + bytes(0x100000) + b"\r\n")


def trickle(connection: socket.socket) -> None:
    """A byte now and then: each read is in time, and the whole never is."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        threading.Event().wait(0.02)


def silence(connection: socket.socket) -> None:
    connection.recv(1)


SAMPLE = {"metric": {}, "value": [1, "16384"]}


@pytest.fixture
def judged(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str]]:
    """Check a log against what that server holds: the status, and what was said."""
    monkeypatch.setattr(prometheus_query, "LARGEST_ANSWER", 2**20)

    def judge(url: str) -> tuple[int, str]:
        status = main(["check", str(LOG), "--baseline", f"prometheus:{url}?namespace=prod"])
        return status, capsys.readouterr().err

    return judge


@pytest.mark.parametrize(
    "answer, told",
    [
        (endless, "answered more than 1 MiB: "),
        (lambda connection: None, "no answer ("),
        (says(b"half", length=100), "no answer ("),
        (lambda connection: connection.sendall(b"\0\377garbage\r\n\r\n"), "no answer ("),
        (says(b"<html>Bad Gateway</html>", "502 Bad Gateway"), "answered 502 and no Prometheus API: "),
        (says(b"upstream error", "500 Internal Server Error"), "answered 500 and no Prometheus API: "),
        (says(b'{"status":"error","error":"query\\n timed out"}', "503 No"), "refused the query: query timed out"),
        (says(b"[" * 100_000), "answered 200 and no Prometheus API: "),
        (says(b'"success"'), "answered 200 and no Prometheus API: "),
        (says(b'{"status":"success"}'), "answered with no vector"),
        (says(b'{"status":"success","data":null}'), "answered with no vector"),
        (says(b'{"status":"success","data":{"resultType":"vector","result":7}}'), "answered with no vector"),
        (says(vector({"metric": {}, "value": [1, "many"]})), "answered with no vector"),
        (says(vector({"metric": {}, "histogram": []})), "answered with no vector"),
        (says(vector({"metric": {}, "value": [1, "NaN"]})), "no series matches"),
        (says(vector({"metric": {}, "value": [1, "+Inf"]})), "no series matches"),
        (says(b"", "301 Moved\r\nLocation: http://127.0.0.1:1/"), "no answer ("),
    ],
)
def test_it_is_told_in_one_line(answer: Answer, told: str, judged: Callable[[str], tuple[int, str]]) -> None:
    with prometheus(answer) as url:
        status, said = judged(url)

    assert (status, said.count("\n"), "Traceback" in said) == (2, 1, False)
    assert f": {told}" in said


@pytest.mark.parametrize("answer, told", [(silence, "timed out"), (trickle, "not whole after 0.3 s")])
def test_it_is_not_waited_for_for_ever(
    answer: Answer, told: str, judged: Callable[[str], tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_query, "PATIENCE_SECONDS", 0.3)
    with prometheus(answer) as url:
        status, said = judged(url)

    assert (status, said) == (2, f"kvguard: {url}: no answer ({told}): give the URL of a Prometheus server\n")


@pytest.mark.parametrize("token", ["first\nsecond", "caf\u00e9"])
def test_a_token_that_cannot_be_sent_is_told_without_it(token: str) -> None:
    with prometheus(says(vector(SAMPLE))) as url, pytest.raises(SourceError) as told:
        prometheus_query.instant_query(url, "up", token)

    assert str(told.value) == f"{url}: not asked: the token is no line of plain letters: look into its file"


def test_a_bomb_is_not_unpacked(judged: Callable[[str], tuple[int, str]]) -> None:
    packed = gzip.compress(b" " * 2**26)
    with prometheus(says(packed, "200 OK\r\nContent-Encoding: gzip")) as url:
        status, said = judged(url)

    assert (status, said.count("\n")) == (2, 1)
    assert ": answered 200 and no Prometheus API: " in said


def test_one_that_is_not_there(judged: Callable[[str], tuple[int, str]]) -> None:
    port = free_port()
    status, said = judged(f"http://user:secret@127.0.0.1:{port}")

    assert (status, said.count("\n"), "secret" in said) == (2, 1, False)
    assert f"http://127.0.0.1:{port}: no answer ([Errno 111] Connection refused): give the URL" in said


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://user@[", "http://a b:9090", "http://127.0.0.1:port"])
def test_an_address_that_is_none(url: str, judged: Callable[[str], tuple[int, str]]) -> None:
    status, said = judged(url)
    assert (status, said.count("\n")) == (2, 1)
