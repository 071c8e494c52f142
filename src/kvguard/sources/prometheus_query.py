"""Asks a Prometheus server one question now, over its HTTP API, and gives the samples of the answer."""

import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from kvguard.errors import SourceError
from kvguard.slotted import dataclass

PATIENCE_SECONDS = 15.0
LARGEST_ANSWER = 16 * 2**20
"""A fleet of ten thousand replicas answers with a quarter of it."""
_USER = re.compile(r"//[^/@]*@")


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an instant vector; the metric's name is the label `__name__`, where the query keeps it."""

    labels: Mapping[str, str]
    value: float


def without_credentials(url: str) -> str:
    """The URL as messages show it: no user, no password."""
    return _USER.sub("//", url)


def instant_query(server: str, query: str, token: str | None = None) -> tuple[Sample, ...]:
    """The instant vector that a query gives.

    Args:
        server: the base URL, as `http://prometheus:9090`; a path before `/api` is kept.
        query: PromQL.
        token: a bearer token, where the server wants one.

    Raises:
        SourceError: the server cannot be reached, or refuses the query; the line carries its own words.
    """
    import httpx  # a fifth of a second that only those pay who ask

    from kvguard.sources.http_body import TooLargeError

    shown = without_credentials(server)
    if token and not (token.isascii() and token.isprintable()):  # the client's own words would repeat it
        raise SourceError(f"{shown}: not asked: the token is no line of plain letters: look into its file")
    try:
        status, body = _asked(server, query, {"Authorization": f"Bearer {token}"} if token else {})
    except TooLargeError:
        most = LARGEST_ANSWER // 2**20
        raise SourceError(f"{shown}: answered more than {most} MiB: narrow the query by labels") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise SourceError(f"{shown}: no answer ({_words(error)}): give the URL of a Prometheus server") from None
    return _samples(_document(status, body, shown), shown)


def _asked(server: str, query: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """The answer's status and body."""
    import httpx

    from kvguard.sources.http_body import whole_body

    asking, begun = {"Accept-Encoding": "identity", **headers}, time.monotonic()
    with (
        httpx.Client(timeout=PATIENCE_SECONDS, follow_redirects=True) as client,
        client.stream("GET", f"{server.rstrip('/')}/api/v1/query", params={"query": query}, headers=asking) as answer,
    ):
        return answer.status_code, whole_body(answer, LARGEST_ANSWER, begun, PATIENCE_SECONDS)


def _document(status: int, body: bytes, shown: str) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or "status" not in document:
        raise SourceError(f"{shown}: answered {status} and no Prometheus API: give the server's base URL")
    if document["status"] != "success":
        raise SourceError(f"{shown}: refused the query: {' '.join(str(document.get('error', '')).split())}")
    return document


def _samples(document: Mapping[str, Any], shown: str) -> tuple[Sample, ...]:
    """The samples that are numbers: of a gauge, NaN and infinities tell nothing."""
    try:
        data = document["data"]
        kind = data["resultType"]
        read = [(one["metric"], float(one["value"][1])) for one in data["result"]] if kind == "vector" else []
    except (LookupError, TypeError, ValueError):
        raise SourceError(f"{shown}: answered with no vector that can be read: is it a Prometheus server?") from None
    if kind != "vector":
        raise SourceError(f"{shown}: the query gives a {kind}: ask for an instant vector")
    return tuple(Sample(labels, value) for labels, value in read if math.isfinite(value))


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
