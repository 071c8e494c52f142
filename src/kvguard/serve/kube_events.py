"""A Kubernetes Event a change of verdict, for `kubectl events` and `kubectl describe pod`; best effort by design.

It needs `create` on `events` in `events.k8s.io`, in the pod's own namespace, and the pod's name (POD_NAME by the
downward API, or the host name). The API server may be away: a few events wait, older ones are dropped, none is tried
twice.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from kvguard.errors import SourceError
from kvguard.render.log_text import shown
from kvguard.serve.evidence import Complain
from kvguard.serve.moments import iso_micro
from kvguard.serve.snapshot import Snapshot
from kvguard.slo.verdict import Outcome
from kvguard.sources.kube.address import Cluster, PodAddress
from kvguard.sources.kube.transport import client_of

TIMEOUT_S = 5.0
MOST_WAITING = 8
LONGEST_NOTE = 1000
"""The API server refuses a note of more than 1 kB."""
_REASONS = {Outcome.PASS: "CapacityMet", Outcome.FAIL: "CapacityMissed", Outcome.UNKNOWN: "CapacityUnknown"}


class KubeEvents:
    """Post an Event for each new verdict on the newest start.

    Args:
        cluster: where the API server stands.
        pod: the pod that the events are about.
        uid: its UID (POD_UID by the downward API), which `kubectl describe pod` looks for.
        wall: seconds since 1970.
        complain: told why an event could not be posted.
    """

    def __init__(
        self, cluster: Cluster, pod: PodAddress, uid: str | None, wall: Callable[[], float], complain: Complain
    ) -> None:
        self._cluster, self._pod, self._uid = cluster, pod, uid
        self._wall, self._complain = wall, complain
        self._waiting: queue.Queue[Mapping[str, Any]] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def __call__(self, before: Snapshot | None, after: Snapshot) -> None:
        """Queue an event if the verdict has changed; a start that is under way is no news."""
        outcome = after.verdict.outcome
        if before is not None and _key(before) == _key(after):
            return
        if outcome is Outcome.UNKNOWN and (before is None or before.verdict.outcome is Outcome.UNKNOWN):
            return
        if self._waiting.full():
            self._waiting.get_nowait()
        self._waiting.put_nowait(self._event(after))

    def _event(self, snapshot: Snapshot) -> dict[str, Any]:
        now = iso_micro(self._wall())
        verdict = snapshot.verdict
        said = "; ".join(reason.message for reason in verdict.reasons) or verdict.outcome.value
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"generateName": "kvguard-", "namespace": self._pod.namespace},
            "eventTime": now,
            "reportingController": "kvguard",
            "reportingInstance": self._pod.pod,
            "action": "Judged",
            "reason": _REASONS[verdict.outcome],
            "type": "Normal" if verdict.outcome is Outcome.PASS else "Warning",
            "note": shown(said, LONGEST_NOTE).encode()[:LONGEST_NOTE].decode("utf-8", "ignore"),
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": self._pod.namespace,
                "name": self._pod.pod,
                **({"uid": self._uid} if self._uid else {}),
            },
        }

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                self._post(event)
            except SourceError as error:
                self._complain(str(error))
            except (httpx.HTTPError, OSError, ValueError) as error:
                self._complain(f"the event could not be posted: {shown(str(error) or type(error).__name__)}")

    def _post(self, event: Mapping[str, Any]) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{self._pod.namespace}/events"
        with (
            client_of(self._cluster, httpx.Timeout(TIMEOUT_S)) as client,
            client.stream("POST", path, json=event) as response,  # its body can be without end
        ):
            self._tell(response)

    def _tell(self, response: httpx.Response) -> None:
        if response.status_code == httpx.codes.FORBIDDEN:
            right = "create on events (events.k8s.io)"
            self._complain(f"the event could not be posted: the service account lacks {right} in {self._pod.namespace}")
        elif response.is_error:
            self._complain(f"the event could not be posted: status {response.status_code}")


def _key(snapshot: Snapshot) -> tuple[object, ...]:
    start = snapshot.verdict.report.start
    return (start.index if start else None, snapshot.verdict.outcome)
