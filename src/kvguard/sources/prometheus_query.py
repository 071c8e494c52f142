"""Asks a Prometheus server one question now, over its HTTP API, and gives the samples of the answer."""

from collections.abc import Mapping
from typing import Any

from kvguard.errors import SourceError
from kvguard.slotted import dataclass

PATIENCE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One series of an instant vector; the metric's name is the label `__name__`, where the query keeps it."""

    labels: Mapping[str, str]
    value: float


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

    shown = httpx.URL(server).copy_with(userinfo=b"") if "@" in server else server
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        answer = httpx.get(
            f"{server.rstrip('/')}/api/v1/query",
            params={"query": query},
            headers=headers,
            timeout=PATIENCE_SECONDS,
            follow_redirects=True,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise SourceError(f"{shown}: no answer ({_words(error)}): give the URL of a Prometheus server") from None
    return _samples(_document(answer, str(shown)), str(shown))


def _document(answer: Any, shown: str) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict) or "status" not in document:
        raise SourceError(f"{shown}: answered {answer.status_code} and no Prometheus API: give the server's base URL")
    if document["status"] != "success":
        raise SourceError(f"{shown}: refused the query: {' '.join(str(document.get('error', '')).split())}")
    return document


def _samples(document: Mapping[str, Any], shown: str) -> tuple[Sample, ...]:
    data = document.get("data", {})
    if data.get("resultType") != "vector":
        raise SourceError(f"{shown}: the query gives a {data.get('resultType')}: ask for an instant vector")
    return tuple(Sample(one["metric"], float(one["value"][1])) for one in data["result"])


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
