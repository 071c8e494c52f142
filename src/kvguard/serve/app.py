"""The views: report, metrics and page, each of the newest snapshot. No request changes anything."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from kvguard.lines.secrets import mask_deep
from kvguard.render.html import Live, content_security_policy, render_html
from kvguard.render.json_report import render_json, verdict_document
from kvguard.serve.access import CHALLENGE, may_enter
from kvguard.serve.metrics import exposition
from kvguard.serve.moments import iso
from kvguard.serve.once import once
from kvguard.serve.readiness import source_text
from kvguard.serve.snapshot import Snapshot, Watched
from kvguard.sources.source import State
from kvguard.version import __version__

FRESH_S = 10
"""How stale a page may be that shows when bytes last arrived."""
_OPENMETRICS: dict[int | str, dict[str, Any]] = {
    200: {"description": "the metrics", "content": {"application/openmetrics-text": {}}}
}
_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "the reader has this revision already"}}
_GUARDED: dict[int | str, dict[str, Any]] = {401: {"description": "a token is asked for, and this is not it"}}


def create_app(watched: Watched, wall: Callable[[], float], token: Callable[[], str] | None = None) -> FastAPI:
    """The app over one sidecar.

    Args:
        watched: holds the snapshot.
        wall: seconds since 1970.
        token: gives the token in force, where `/`, `/v1/report` and `/metrics` are guarded.
    """
    app = FastAPI(
        title="kvguard",
        version=__version__,
        description="Capacity of a vLLM server, judged against its SLO.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # the kubelet takes a redirect for a pass
    )
    _add_views(app, watched, wall, token)
    app.add_exception_handler(StarletteHTTPException, _plain_error)
    return app


def _add_views(app: FastAPI, watched: Watched, wall: Callable[[], float], token: Callable[[], str] | None) -> None:
    expose = exposition(lambda: watched.snapshot)
    begun = f"{wall():.0f}"  # revisions count anew in each process: a page of the one before is never up to date

    def revision(snapshot: Snapshot) -> str:
        # and the page says how fresh the log is: a busy one is drawn anew every ten seconds
        return f"{begun}-{snapshot.revision}-{(snapshot.read_at or 0) // FRESH_S:.0f}"

    write_report = once(lambda snapshot: render_json(_report(snapshot)))
    draw_page = once(lambda snapshot: render_html(snapshot.verdict, _live(snapshot, revision(snapshot), wall())))

    async def guard(authorization: Annotated[str | None, Header()] = None) -> None:
        if not may_enter(authorization, token):
            raise HTTPException(401, "a token is needed here", {"WWW-Authenticate": CHALLENGE})

    views = APIRouter(dependencies=[Depends(guard)], responses=_GUARDED if token else {})

    @views.get("/v1/report", response_class=JSONResponse)
    async def report() -> Response:
        """The report of `kvguard check --format json`, with the gate and the source beside it."""
        snapshot = watched.snapshot
        return Response(write_report(snapshot), 200, _headers(snapshot), "application/json")

    @views.get("/metrics", response_class=PlainTextResponse, responses=_OPENMETRICS)
    async def metrics(accept: Annotated[str, Header()] = "") -> Response:
        """Prometheus text, or OpenMetrics where it is asked for."""
        body, content_type = expose(accept)
        return Response(body, 200, {"Content-Type": content_type})

    @views.get("/", response_class=HTMLResponse, responses=_UNCHANGED)
    async def page(request: Request) -> Response:
        """The status page; 304 where the reader has this revision already."""
        snapshot = watched.snapshot
        tag = f'"{revision(snapshot)}"'
        headers = {**_headers(snapshot), "ETag": tag, "Content-Security-Policy": content_security_policy()}
        if request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return HTMLResponse(draw_page(snapshot), 200, headers)

    app.include_router(views)


def _headers(snapshot: Snapshot) -> dict[str, str]:
    return {"X-Kvguard-Verdict": snapshot.verdict.outcome.value}


def _report(snapshot: Snapshot) -> dict[str, Any]:
    def moment(seconds: float | None) -> str | None:
        return None if seconds is None else iso(seconds)

    source = snapshot.source
    beside = {
        "gate": {"open": snapshot.gate.open, "why": snapshot.gate.why or None, **asdict(snapshot.rules)},
        "source": {
            "name": source.name,
            "state": source.state,
            "message": source.message,
            "since": moment(snapshot.source_since),
            "last_bytes": moment(snapshot.read_at),
            "last_look": moment(snapshot.looked_at),
            "unread_bytes": source.unread,
        },
        "vllm_endpoint": None if snapshot.heard is None else asdict(snapshot.heard),
        "slo_file": {
            "path": snapshot.slo.path,
            "loaded_at": moment(snapshot.slo.loaded_at),
            "problem": snapshot.slo.problem,
        },
    }
    return {**verdict_document(snapshot.verdict), **mask_deep(beside)}


def _live(snapshot: Snapshot, revision: str, wall: float) -> Live:
    return Live(
        gate_open=snapshot.gate.open,
        gate_why=snapshot.gate.why,
        source=source_text(snapshot),
        source_fine=snapshot.source.state is not State.FAILING,
        as_of=iso(wall),
        slo_problem=snapshot.slo.problem,
        revision=revision,
    )


async def _plain_error(_request: Request, error: Exception) -> Response:
    """Errors of the protocol (401, 404, 405) in one plain line."""
    assert isinstance(error, StarletteHTTPException)
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
