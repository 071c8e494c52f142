"""Which run's log the API gives, in every state that a container can be in."""

from typing import Any

import pytest

from kvguard.sources.kube.address import PodAddress
from kvguard.sources.kube.answers import problem
from kvguard.sources.kube.container import view
from kvguard.sources.source import State

RUNNING = {"state": {"running": {}}, "containerID": "b"}
DIED = {"lastState": {"terminated": {"containerID": "a", "exitCode": 1, "reason": "Error"}}}
ENDED = {"state": {"terminated": {"containerID": "b", "exitCode": 137, "reason": "OOMKilled"}}, "containerID": "b"}
BACK_OFF = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "containerID": "a"}
NEVER_RAN = {"state": {"terminated": {"containerID": "", "exitCode": 128, "reason": "StartError"}}}


def pod(container: dict[str, Any], statuses: str = "containerStatuses", specs: str = "containers") -> dict[str, Any]:
    return {"spec": {specs: [{"name": "vllm"}]}, "status": {statuses: [{"name": "vllm", **container}]}}


@pytest.mark.parametrize(
    "container, shown, previous, running, condition",
    [
        ({"state": {"waiting": {"reason": "PodInitializing"}}}, None, None, False, "waiting (PodInitializing)"),
        ({}, None, None, False, "waiting (no state yet)"),
        (RUNNING, "b", None, True, "running"),
        (RUNNING | DIED, "b", "a", True, "running"),
        (ENDED, "b", None, False, "ended with status 137 (OOMKilled)"),
        (ENDED | DIED, "b", "a", False, "ended with status 137 (OOMKilled)"),
        (BACK_OFF | DIED, "a", None, False, "waiting (CrashLoopBackOff)"),
        (NEVER_RAN | DIED, "a", None, False, "ended with status 128 (StartError)"),
        (NEVER_RAN, None, None, False, "ended with status 128 (StartError)"),
    ],
)
def test_which_log_is_shown(
    container: dict[str, Any], shown: str | None, previous: str | None, running: bool, condition: str
) -> None:
    seen = view(pod(container), "vllm")
    assert (seen.shown, seen.previous, seen.running, seen.condition) == (shown, previous, running, condition)


@pytest.mark.parametrize("kind", ["initContainer", "ephemeralContainer", "container"])
def test_sidecars_and_debuggers_are_containers_too(kind: str) -> None:
    seen = view(pod(RUNNING, f"{kind}Statuses", f"{kind}s"), "vllm")
    assert (seen.exists, seen.shown) == (True, "b")


def test_a_pod_that_nothing_is_known_of_yet() -> None:
    seen = view({"spec": {"containers": [{"name": "other"}]}}, "vllm")
    assert (seen.exists, seen.shown, seen.known_names, seen.over) == (False, None, ("other",), False)


@pytest.mark.parametrize(
    "body, words",
    [
        (b'{"message": "etcdserver:\\n timed out\\u001b[31m"}', "etcdserver: timed out[31m"),
        (b"<html>bad gateway</html>", "<html>bad gateway</html>"),
        (b"\xff\xfe" + b"x" * 10_000, "��" + "x" * 198),
        (b"", "nothing"),
    ],
)
def test_what_a_server_says_fits_one_line(body: bytes, words: str) -> None:
    state, message = problem(502, body, PodAddress("team", "vllm-0", "vllm"), "pods")
    assert state is State.FAILING
    assert message == f"the API server answers 502 for pod vllm-0 in namespace team: {words}"


def test_what_is_nested_without_an_end_is_no_message() -> None:
    body = b"[" * 100_000
    assert problem(502, body, PodAddress("team", "vllm-0", "vllm"), "pods")[1].endswith(f": {'[' * 200}")
