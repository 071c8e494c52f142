"""A fake API server, and a source that reads from it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard.sources.kube.address import Cluster
from tests.sources.kube.fake_kube import FakeKube


@pytest.fixture
def kube() -> Iterator[FakeKube]:
    server = FakeKube()
    yield server
    server.stop()


@pytest.fixture
def cluster(kube: FakeKube, tmp_path: Path) -> Cluster:
    token = tmp_path / "token"
    token.write_text("first-token\n")
    return Cluster(f"http://127.0.0.1:{kube.port}", token, None)
