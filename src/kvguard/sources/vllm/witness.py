"""Ask a running vLLM what it says of itself, seldom and briefly: it must never become slower for being watched.

An answer is kept for `KEPT_S`. Each request has `TIMEOUT_S` as a whole, one runs at a time, no more is read than vLLM
can have to say, and nothing is unpacked: a packet of 64 KiB can hold as many MiB. Asking blocks: a server asks from a
thread.
"""

import json
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from kvguard.errors import ConfigError
from kvguard.sources.http_body import whole_body
from kvguard.sources.vllm.answers import ServedModel, VllmAnswer
from kvguard.sources.vllm.exposition import parse_metrics

KEPT_S = 10.0
TIMEOUT_S = 2.0
LARGEST_BODY_BYTES = 16 * 1024 * 1024
"""Of `/metrics`: a server with two engines exposes about 80 KB, one with 64 a few MB."""
LARGEST_DOCUMENT_BYTES = 1024 * 1024
"""Of everything else: two thousand adapters; read as JSON it takes up to thirty times as much."""

Clock = Callable[[], float]
_Told = TypeVar("_Told")


class VllmWitness:
    """vLLM behind a URL.

    Raises:
        ConfigError: the URL is none.
    """

    def __init__(self, url: str, clock: Clock = time.monotonic) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("--vllm-url: no address of a vLLM server: write it as http://127.0.0.1:8000")
        self.name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")
        """The address without a password in it."""
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            headers={"Accept-Encoding": "identity"},
            timeout=TIMEOUT_S,
            trust_env=False,
            verify=parts.scheme == "https",
        )
        self._clock = clock
        self._asking = threading.Lock()
        self._answer: VllmAnswer | None = None

    def ask(self, now: float) -> VllmAnswer | None:
        """What vLLM says; what it said before while that is fresh, or while somebody else is asking.

        `None` only while the very first answer is being asked for elsewhere.
        """
        if self._answer is not None and now - self._answer.asked_at < KEPT_S:
            return self._answer
        if self._asking.acquire(blocking=False):
            try:
                self._answer = _Interview(self._client, self._clock).hold(now)
            finally:
                self._asking.release()
        return self._answer

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


class _Interview:
    """One round of questions; a server that does not answer is not asked again in it."""

    def __init__(self, client: httpx.Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._problems: list[str] = []
        self._silent = self._gone = False

    def hold(self, now: float) -> VllmAnswer:
        healthy = self._learn("/health", lambda body: True)
        cache, loads = self._learn("/metrics", parse_metrics) or (None, ())
        return VllmAnswer(
            asked_at=now,
            gone=self._gone,
            healthy=healthy is not None,
            version=self._learn("/version", _version),
            models=self._learn("/v1/models", _models) or (),
            cache=cache,
            loads=loads,
            problems=tuple(self._problems),
        )

    def _learn(self, path: str, read: Callable[[bytes], _Told]) -> _Told | None:
        """What an endpoint tells, `None` if it can't be had; then the reason is noted."""
        if self._silent:
            return None
        try:
            status, body = self._get(path, LARGEST_BODY_BYTES if path == "/metrics" else LARGEST_DOCUMENT_BYTES)
            if status == 200:
                return read(body)
            self._problems.append(f"{path}: status {status}" + (", it wants an API key" if status == 401 else ""))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._silent, self._gone = True, isinstance(error, httpx.ConnectError)
            self._problems.append(f"{path}: no answer ({str(error) or type(error).__name__})")
        except (ValueError, OverflowError, RecursionError, KeyError, TypeError, AttributeError):
            self._problems.append(f"{path}: not what vLLM answers there")
        return None

    def _get(self, path: str, largest: int) -> tuple[int, bytes]:
        begun = self._clock()
        with self._client.stream("GET", path) as response:
            return response.status_code, whole_body(response, largest, begun, TIMEOUT_S, self._clock)


def _version(body: bytes) -> str:
    return str(json.loads(body)["version"])


def _models(body: bytes) -> tuple[ServedModel, ...]:
    return tuple(_model(entry) for entry in json.loads(body)["data"])


def _model(entry: dict[str, Any]) -> ServedModel:
    length = entry.get("max_model_len")
    return ServedModel(
        name=str(entry["id"]),
        max_model_len=length if isinstance(length, int) else None,
        is_adapter=entry.get("parent") is not None,
    )
