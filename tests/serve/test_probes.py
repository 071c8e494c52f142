"""Probes while the web framework is still being imported, and the door to the rest."""

import asyncio
import subprocess
import sys

import pytest

from kvguard.serve.probes import Probes
from kvguard.serve.sealed import Message, Receive, Send, sealed
from tests.serve.driven import READY, Driven, ask, slo
from tests.serve.process import ENVIRON


@pytest.fixture
def early() -> Probes:
    """Nobody has opened the door yet."""
    return Probes(Driven(slo(min_concurrency=2.5)).read(READY))


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/readyz?verbose", "/healthz"])
def test_probes_are_answered_before_there_is_an_app(path: str, early: Probes) -> None:
    answer = ask(sealed(early), path)

    assert (answer.status, answer.headers["content-length"]) == (200, str(len(answer.body)))


def test_everything_else_waits_for_the_app(early: Probes) -> None:
    async def app(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def first_asked_then_opened() -> tuple[bool, int]:
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        asked = asyncio.create_task(early({"type": "http", "path": "/metrics", "method": "GET"}, receive, send))
        await asyncio.sleep(0)
        waited = not asked.done()
        early.open(app)
        await asked
        return waited, sent[0]["status"]

    assert asyncio.run(first_asked_then_opened()) == (True, 200)


@pytest.mark.parametrize("query, lines", [("", 1), ("?verbose", 5), ("?verbose=true", 5), ("?quiet&verbose", 5)])
def test_verbose_is_a_key_whatever_its_value(query: str, lines: int, early: Probes) -> None:
    assert ask(early, f"/readyz{query}").text.count("\n") == lines


def test_a_probe_needs_no_web_framework() -> None:
    program = (
        "import sys, kvguard.serve.server; heavy = {'fastapi', 'starlette', 'pydantic', 'yaml', 'prometheus_client'}; "
        "print(sorted(heavy & set(sys.modules)), 'kvguard.render.html' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRON, check=True)

    assert done.stdout == "[] False\n"
