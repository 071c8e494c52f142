"""Kubernetes Events: posted once a verdict, valid by Kubernetes' own schema, and never in anybody's way."""

import http.server
import json
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from kvguard.serve.kube_events import KubeEvents
from kvguard.sources.kube.address import Cluster, PodAddress
from tests.serve.driven import LOADING, NOON, READY, Driven, slo

POD = PodAddress("inference", "llama-0", "kvguard")


class FakeApi:
    """An API server that takes events, and says what it got."""

    def __init__(self) -> None:
        self.got: queue.Queue[tuple[str, str, Any]] = queue.Queue()
        self.status = 201
        self.endless = False
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(fake.status)
                self.end_headers()
                with suppress(OSError):
                    while fake.endless:
                        self.wfile.write(bytes(2**16))
                fake.got.put((self.path, self.headers["Authorization"], json.loads(body)))

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


@pytest.fixture
def complaints() -> "queue.Queue[str]":
    return queue.Queue()


@pytest.fixture
def driven(api: FakeApi, complaints: "queue.Queue[str]", tmp_path: Path) -> Driven:
    token = tmp_path / "token"
    token.write_text("t0ken\n")
    cluster = Cluster(f"http://127.0.0.1:{api.server.server_port}", token, None)
    return Driven(slo(min_concurrency=300), sinks=[KubeEvents(cluster, POD, "u-1", lambda: NOON, complaints.put)])


def test_a_miss_is_posted_with_the_pods_token(api: FakeApi, driven: Driven) -> None:
    driven.read(LOADING).read(READY[len(LOADING) :])

    path, authorization, event = api.got.get(timeout=10)
    assert (path, authorization) == ("/apis/events.k8s.io/v1/namespaces/inference/events", "Bearer t0ken")
    assert (event["reason"], event["type"]) == ("CapacityMissed", "Warning")
    assert event["note"].startswith("maximum concurrency at 4,096 tokens is 256 requests, below the 300")
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "inference",
        "name": "llama-0",
        "uid": "u-1",
    }


def test_the_event_is_valid(api: FakeApi, driven: Driven) -> None:
    driven.read(READY)

    kubernetes_validate.validate(api.got.get(timeout=10)[2], "1.29", strict=True)


def test_a_verdict_is_posted_once(api: FakeApi, driven: Driven) -> None:
    driven.read(READY)
    driven.turn(after=60.0).judge_by(slo(min_concurrency=2.5))

    assert [api.got.get(timeout=10)[2]["reason"] for _ in range(2)] == ["CapacityMissed", "CapacityMet"]
    assert api.got.empty()


@pytest.mark.parametrize(
    "status, said",
    [
        (403, "the service account lacks create on events (events.k8s.io) in inference"),
        (500, "the event could not be posted: status 500"),
    ],
)
def test_a_refusal_is_told(
    status: int, said: str, api: FakeApi, driven: Driven, complaints: "queue.Queue[str]"
) -> None:
    api.status = status

    driven.read(READY)

    assert said in complaints.get(timeout=10)


def test_an_answer_without_an_end_is_not_read(api: FakeApi, driven: Driven, complaints: "queue.Queue[str]") -> None:
    api.endless = True
    api.status = 500

    driven.read(READY)

    assert "status 500" in complaints.get(timeout=10)


def test_a_token_that_cannot_be_sent_is_told_without_it(
    driven: Driven, complaints: "queue.Queue[str]", tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("first\nsecond")

    driven.read(READY)

    assert complaints.get(timeout=10) == f"{tmp_path}/token holds no token that can be sent"


def test_an_api_server_that_is_away_is_told_and_holds_nothing_up(
    complaints: "queue.Queue[str]", tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("t0ken")
    away = KubeEvents(Cluster("http://127.0.0.1:1", tmp_path / "token", None), POD, None, lambda: NOON, complaints.put)

    driven = Driven(slo(min_concurrency=2.5), sinks=[away]).read(READY)

    assert driven.snapshot.gate.open
    assert "could not be posted" in complaints.get(timeout=10)
