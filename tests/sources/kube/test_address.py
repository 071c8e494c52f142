"""Which log is meant, and where the API server is."""

from pathlib import Path

import pytest

from kvguard.errors import ConfigError
from kvguard.sources.kube.address import Cluster, PodAddress, parse_address


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("token")
    (tmp_path / "namespace").write_text("team\n")
    return tmp_path


def test_a_full_address() -> None:
    assert parse_address("pod:team/vllm-0/vllm") == PodAddress("team", "vllm-0", "vllm")
    assert str(PodAddress("team", "vllm-0", "vllm")) == "pod:team/vllm-0/vllm"


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"HOSTNAME": "vllm-0"}, PodAddress("team", "vllm-0", "vllm")),
        ({"HOSTNAME": "node-7", "POD_NAME": "vllm-0"}, PodAddress("team", "vllm-0", "vllm")),
        ({"POD_NAME": "vllm-0", "POD_NAMESPACE": "other"}, PodAddress("other", "vllm-0", "vllm")),
    ],
)
def test_our_own_pod(account: Path, environment: dict[str, str], expected: PodAddress) -> None:
    assert parse_address("pod:self/vllm", environment, account) == expected


@pytest.mark.parametrize(
    "text",
    [
        "pod:",
        "pod:vllm",
        "pod:team/vllm-0",
        "pod:team//vllm",
        "pod:team/../../secrets/x",
        "pod:team/a/b/c",
        "pod:Team/x/y",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="write pod:NAMESPACE/NAME/CONTAINER"):
        parse_address(text)


def test_our_own_pod_without_a_namespace(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="set POD_NAMESPACE"):
        parse_address("pod:self/vllm", {"HOSTNAME": "vllm-0"}, tmp_path)


@pytest.mark.parametrize("host, url", [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")])
def test_the_cluster_from_inside(account: Path, host: str, url: str) -> None:
    assert Cluster.from_inside({"KUBERNETES_SERVICE_HOST": host}, account) == Cluster(
        url, account / "token", account / "ca.crt"
    )


def test_outside_of_a_cluster(account: Path) -> None:
    with pytest.raises(ConfigError, match="kubectl logs -f POD -c CONTAINER"):
        Cluster.from_inside({}, account)


def test_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mount the service account's token"):
        Cluster.from_inside({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, tmp_path)
