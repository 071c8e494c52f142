"""The probes, and the door to everything else: a probe never waits for the web framework.

On a small CPU share (200 millicores) importing the framework takes seconds, and a probe has one. So `/livez`, `/readyz`
and `/healthz` are answered here, from text that is written once a snapshot; whatever else is asked for goes to the app,
and waits until that is there.
"""

import asyncio
from typing import NamedTuple

from kvguard.render.json_report import render_json
from kvguard.serve.once import once
from kvguard.serve.readiness import health_document, readiness_text
from kvguard.serve.sealed import Asgi, Message, Receive, Send
from kvguard.serve.snapshot import Snapshot, Watched

PROBES = ("/livez", "/readyz", "/healthz")
_TEXT = b"text/plain; charset=utf-8"


class _Reply(NamedTuple):
    """A whole answer."""

    status: int
    media_type: bytes
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Probes:
    """An ASGI app that answers probes, in front of one that comes later."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._brief = once(lambda snapshot: _readyz(snapshot, verbose=False))
        self._verbose = once(lambda snapshot: _readyz(snapshot, verbose=True))
        self._healthz = once(_healthz)
        self._app: Asgi | None = None
        self._opened = asyncio.Event()

    def open(self, app: Asgi) -> None:
        """From now on whatever is no probe goes to the app."""
        self._app = app
        self._opened.set()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a probe; hand on everything else."""
        if scope["type"] == "http" and scope["path"] in PROBES:
            await _send(self._reply(scope), send)
            return
        if self._app is None:
            await self._opened.wait()
        assert self._app is not None
        await self._app(scope, receive, send)

    def _reply(self, scope: Message) -> _Reply:
        if scope["method"] != "GET":
            return _Reply(405, _TEXT, b"Method Not Allowed\n", ((b"allow", b"GET, HEAD"),))
        if scope["path"] == "/livez":
            return _livez(self._watched.alive)
        snapshot = self._watched.snapshot
        if scope["path"] == "/healthz":
            return self._healthz(snapshot)
        return (self._verbose if _asks_for_all(scope["query_string"]) else self._brief)(snapshot)


def _livez(alive: bool) -> _Reply:
    """Whether the process serves and its reader runs; never depends on vLLM, on the log or on the verdict."""
    if alive:
        return _Reply(200, _TEXT, b"ok\n")
    return _Reply(503, _TEXT, b"the reader has died: see the log of kvguard\n")


def _readyz(snapshot: Snapshot, verbose: bool) -> _Reply:
    """The gate: 200 if the pod may take traffic."""
    return _gated(snapshot, _TEXT, readiness_text(snapshot, verbose))


def _healthz(snapshot: Snapshot) -> _Reply:
    """The same answer as a JSON health document."""
    return _gated(snapshot, b"application/health+json", render_json(health_document(snapshot)))


def _gated(snapshot: Snapshot, media_type: bytes, text: str) -> _Reply:
    verdict = (b"x-kvguard-verdict", snapshot.verdict.outcome.value.encode())
    return _Reply(200 if snapshot.gate.open else 503, media_type, text.encode(), (verdict,))


def _asks_for_all(query: bytes) -> bool:
    return any(part.partition(b"=")[0] == b"verbose" for part in query.split(b"&"))


async def _send(reply: _Reply, send: Send) -> None:
    length = str(len(reply.body)).encode()
    headers = [(b"content-type", reply.media_type), (b"content-length", length), *reply.headers]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
