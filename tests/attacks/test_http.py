"""A sidecar as a process of its own, and those who want to stop it, to make it talk or to change something in it."""

import contextlib
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kvguard.serve.app import create_app
from tests.attacks.clients import MEMORY_MIB, PROBES, TOKEN, asked, guarded, headers_of, memory_mib, raw
from tests.serve.driven import Driven
from tests.serve.process import Served

GUARDED = ("/", "/v1/report", "/metrics")
SEALS = {
    "content-security-policy",
    "x-content-type-options",
    "x-frame-options",
    "referrer-policy",
    "cross-origin-resource-policy",
    "cache-control",
}


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with guarded(tmp_path_factory.mktemp("served")) as running:
        yield running


def state(running: Served) -> object:
    """What a request must not change; when something was last looked at changes by itself."""
    report = running.get("/v1/report", Authorization=f"Bearer {TOKEN}").text
    return re.sub(r'"last_look": "[^"]*"', "", report)


@pytest.mark.parametrize("path", GUARDED)
@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer x", f"bearer {TOKEN}x", f"Basic {TOKEN}", "Basic ==", "Bearer \xff", f"Token {TOKEN}"],
)
def test_without_the_token_nothing_is_told(sidecar: Served, path: str, given: str) -> None:
    answer = raw(sidecar, asked("GET", path, f"Authorization: {given}\r\n"))

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.endswith(b"a token is needed here\n")


@pytest.mark.parametrize("path", PROBES)
def test_a_probe_never_needs_it(sidecar: Served, path: str) -> None:
    assert sidecar.get(path).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PURGE", "get"])
def test_no_method_changes_anything(sidecar: Served, method: str) -> None:
    before = state(sidecar)

    for path in (*GUARDED, *PROBES):
        request = (
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 2\r\n\r\n{{}}"
        )
        assert re.match(rb"HTTP/1\.1 (?:400|404|405) ", raw(sidecar, request.encode())), path
    assert state(sidecar) == before


TRICKS = (
    "/../../etc/passwd", "/..%2f..%2fetc/passwd", "//readyz", "/readyz/", "/READYZ", "/readyz%00", "/readyz;x",
    "/%2e/readyz",
    "/docs", "/redoc", "/openapi.json", "/static/../v1/report", "/v1/report/", "/v1/Report", "/metrics/", "/metrics%20",
    "/v1//report", "/.git/config", "/v1/report%3f", "/\u202e", "/" + "a" * 8000, "http://evil/secret", "*",
    "/?" + "a=b&" * 2000,
)  # fmt: skip


@pytest.mark.parametrize("target", TRICKS)
def test_no_path_leads_anywhere_else(sidecar: Served, target: str) -> None:
    answer = raw(sidecar, asked("GET", target))

    assert re.match(rb"HTTP/1\.1 (?:400|401|404) ", answer), answer[:80]
    assert b"root:" not in answer
    assert b"kvguard_" not in answer


MALFORMED = (
    b"\x00" * 100, b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/0.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nffffffffffff\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", b"GET /" + b"a" * 10**6 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 10**6 + b"\r\n\r\n",
    b"POST /readyz HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000000000\r\n\r\n",
)  # fmt: skip


@pytest.mark.parametrize("request_", MALFORMED, ids=range(len(MALFORMED)))
def test_what_is_no_request_is_refused_and_the_probe_answered(sidecar: Served, request_: bytes) -> None:
    assert re.match(rb"HTTP/1\.1 4\d\d |$", raw(sidecar, request_))
    assert sidecar.get("/readyz").status == 200
    assert memory_mib(sidecar) < MEMORY_MIB


@pytest.mark.parametrize("path", [*GUARDED, *PROBES, "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_every_answer_is_sealed_and_names_no_server(sidecar: Served, path: str, method: str) -> None:
    headers = headers_of(raw(sidecar, asked(method, path)))

    assert headers.keys() >= SEALS
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert not headers.keys() & {"server", "x-powered-by", "via", "location", "set-cookie"}


def test_a_header_is_not_repeated_into_the_answer(sidecar: Served) -> None:
    spiteful = "Accept: text/plain; version=evil\r\nX-Forwarded-Host: evil\r\nOrigin: http://evil\r\n"
    answer = raw(sidecar, asked("GET", "/metrics", f"{spiteful}Authorization: Bearer {TOKEN}\r\n"))

    assert b"evil" not in answer


def test_a_thousand_silent_connections_keep_no_probe_out(sidecar: Served) -> None:
    with contextlib.ExitStack() as held:
        for _ in range(1000):
            silent = held.enter_context(socket.socket())
            silent.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                silent.connect(("127.0.0.1", sidecar.port))

        assert [sidecar.get(path).status for path in PROBES] == [200, 200, 200]
    assert memory_mib(sidecar) < MEMORY_MIB


def test_a_thousand_requests_in_a_row_cost_no_memory(sidecar: Served) -> None:
    request = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", sidecar.port), timeout=20) as connection:
        answers = connection.makefile("rb")
        for _ in range(1000):
            connection.sendall(request)
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            while answers.readline() != b"\r\n":
                pass
            assert answers.read(3) == b"ok\n"

    assert memory_mib(sidecar) < MEMORY_MIB


def test_readers_that_take_nothing_keep_no_probe_out(sidecar: Served) -> None:
    """Each asks for the page a hundred times and reads none of it."""
    request = f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode() * 100
    with contextlib.ExitStack() as held:
        for _ in range(100):
            slow = held.enter_context(socket.create_connection(("127.0.0.1", sidecar.port), timeout=20))
            slow.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                slow.send(request)

        assert [sidecar.get(path).status for path in PROBES] == [200, 200, 200]
    assert memory_mib(sidecar) < MEMORY_MIB


def described() -> dict[str, Any]:
    """The app's own OpenAPI document, which it does not serve, with the probes that are answered before it."""
    document = create_app(Driven(), lambda: 0.0, lambda: TOKEN).openapi()
    answers = {"200": {"description": "open"}, "503": {"description": "closed"}}
    return {**document, "paths": {**document["paths"], **{path: {"get": {"responses": answers}} for path in PROBES}}}


OPERATIONS = [found.ok() for found in schemathesis.openapi.from_dict(described()).get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_request_that_a_machine_makes_up_breaks_its_description(sidecar: Served, operation: Any) -> None:
    @settings(
        max_examples=15,
        deadline=None,
        phases=[Phase.generate],
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(), st.booleans())
    def made_up(case: Any, with_token: bool) -> None:
        if with_token:
            case.headers = {**(case.headers or {}), "Authorization": f"Bearer {TOKEN}"}
        answer = case.call(base_url=f"http://127.0.0.1:{sidecar.port}")
        assert answer.status_code in {200, 304, 401, 400}
        assert sidecar.get("/livez").status == 200

    made_up()
