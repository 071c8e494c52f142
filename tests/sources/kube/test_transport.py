"""A request runs beside the one who polls: over TLS with the cluster's CA, given up at any moment, never too much."""

import select
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from kvguard.sources.kube.address import Cluster
from kvguard.sources.kube.transport import Answer, Failure, Item, Opened, Piece, Request, WakeUp
from tests.sources.kube.fake_kube import FakeKube

POD = "/api/v1/namespaces/team/pods/vllm-0"


@pytest.fixture
def wake() -> WakeUp:
    return WakeUp()


def taken(request: Request, wake: WakeUp, enough: Callable[[list[Item]], bool]) -> list[Item]:
    """What a request gives, until it is enough."""
    items: list[Item] = []
    readable = select.poll()
    readable.register(wake.descriptor, select.POLLIN)
    while not enough(items):
        assert readable.poll(20_000), f"nothing came after {items}"
        wake.clear()
        while (item := request.take()) is not None:
            items.append(item)
    return items


def tls_cluster(kube: FakeKube, cluster: Cluster, folder: Path, trusted: bool) -> Cluster:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    kube.speak_tls(context)
    (authority if trusted else trustme.CA()).cert_pem.write_to_path(folder / "ca.crt")
    return Cluster(f"https://127.0.0.1:{kube.port}", cluster.token_file, folder / "ca.crt")


def test_over_tls_with_the_clusters_own_ca(kube: FakeKube, cluster: Cluster, tmp_path: Path, wake: WakeUp) -> None:
    kube.pod("vllm-0", "vllm")
    request = Request(tls_cluster(kube, cluster, tmp_path, trusted=True), POD, {}, wake)
    [answer] = taken(request, wake, bool)
    assert isinstance(answer, Answer)
    assert answer.status == 200
    assert kube.requests[0][2] == "Bearer first-token"


def test_a_server_that_another_ca_vouches_for_is_not_told_the_token(
    kube: FakeKube, cluster: Cluster, tmp_path: Path, wake: WakeUp
) -> None:
    request = Request(tls_cluster(kube, cluster, tmp_path, trusted=False), POD, {}, wake)
    [failure] = taken(request, wake, bool)
    assert isinstance(failure, Failure)
    assert "certificate verify failed" in failure.message
    assert kube.requests == []


def test_a_request_that_waits_for_the_server_can_be_given_up(kube: FakeKube, cluster: Cluster, wake: WakeUp) -> None:
    kube.pod("vllm-0", "vllm")[0].start()
    request = Request(cluster, f"{POD}/log", {"container": "vllm", "follow": "true"}, wake)
    taken(request, wake, bool)
    request.give_up()
    request._thread.join(20)
    assert not request._thread.is_alive()


def test_one_that_nobody_takes_from_reads_no_more_and_can_be_given_up(
    kube: FakeKube, cluster: Cluster, wake: WakeUp
) -> None:
    [container] = kube.pod("vllm-0", "vllm")
    container.start()
    container.write(*["x" * 1_000_000] * 20)
    request = Request(cluster, f"{POD}/log", {"container": "vllm", "follow": "true"}, wake)
    items = taken(request, wake, lambda items: len(items) > 3)
    assert isinstance(items[0], Opened)
    assert all(isinstance(item, Piece) and len(item.data) <= 64 * 1024 for item in items[1:])
    request.give_up()
    request._thread.join(20)
    assert not request._thread.is_alive()
    assert sum(len(item.data) for item in request._items if isinstance(item, Piece)) <= 17 * 64 * 1024


def test_an_answer_larger_than_any_pod_is_not_read_to_its_end(
    kube: FakeKube, cluster: Cluster, wake: WakeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube.pod("vllm-0", "vllm")
    monkeypatch.setattr(kube, "pod_object", lambda name: {"annotation": "x" * 5_000_000})
    [failure] = taken(Request(cluster, POD, {}, wake), wake, bool)
    assert failure == Failure("more than 4194304 bytes")


@pytest.mark.parametrize(
    "token", [b"first\nsecond", b"caf\xc3\xa9", b"\xff\xfe"], ids=["two lines", "accents", "no text"]
)
def test_a_token_that_cannot_be_sent_is_told_without_it(
    kube: FakeKube, cluster: Cluster, wake: WakeUp, token: bytes
) -> None:
    cluster.token_file.write_bytes(token)
    [failure] = taken(Request(cluster, POD, {}, wake), wake, bool)
    assert failure == Failure(f"{cluster.token_file} holds no token that can be sent")
