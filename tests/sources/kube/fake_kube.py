"""An API server with pods and their logs, as far as reading a log goes.

It does what a kubelet does: which run's log is given follows `validateContainerLogStatus` (kubernetes
pkg/kubelet/kubelet_pods.go), lines are cut by `sinceTime` in whole seconds and stamped with nine decimals, `follow`
ends when the run has ended, and only the newest file of a rotated log is given. `test_fake_kube.py` holds it to the
truth with a real kubectl.
"""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

SECOND = 10**9
FIRST_STAMP = int(datetime(2026, 11, 29, 20, 2, 11, tzinfo=UTC).timestamp()) * SECOND

# what kubectl asks before it asks for anything
DISCOVERY: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/api/v1/namespaces/team": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
            {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
        ],
    },
}


def stamp(nanoseconds: int) -> bytes:
    """RFC3339NanoFixed, as the kubelet prints it."""
    seconds, fraction = divmod(nanoseconds, SECOND)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z".encode()


@dataclass
class Run:
    """One run of a container, and the newest file of its log."""

    id: str
    lines: list[tuple[int, bytes]] = field(default_factory=list)
    rotations: int = 0
    exit_code: int | None = None


class Container:
    """A container of a fake pod, moved by its test."""

    def __init__(self, kube: "FakeKube", name: str) -> None:
        self._kube = kube
        self.name = name
        self.runs: list[Run] = []
        self.reason = "ContainerCreating"
        self.restarts = 0
        self.hang_ups = 0

    def start(self) -> None:
        """Begin the next run."""
        with self._kube.changed:
            self.restarts = len(self.runs)
            self.runs.append(Run(f"containerd://{self.name}-{len(self.runs)}"))
            self._kube.changed.notify_all()

    def write(self, *lines: str | bytes, step: int = SECOND // 10, end: bytes = b"\n") -> None:
        """Let the newest run print lines, `step` nanoseconds apart."""
        with self._kube.changed:
            for line in lines:
                self._kube.clock += step
                text = line.encode() if isinstance(line, str) else line
                self.runs[-1].lines.append((self._kube.clock, text + end))
            self._kube.changed.notify_all()

    def rotate(self) -> None:
        """What was printed so far can't be had any more; who follows is not told (kubernetes#59902)."""
        with self._kube.changed:
            self.runs[-1].lines = []
            self.runs[-1].rotations += 1
            self._kube.changed.notify_all()

    def hang_up(self) -> None:
        """End the answers to all who follow, in good order, as a proxy does after a while."""
        with self._kube.changed:
            self.hang_ups += 1
            self._kube.changed.notify_all()

    def end(self, exit_code: int = 0, reason: str = "CrashLoopBackOff") -> None:
        """End the newest run."""
        with self._kube.changed:
            self.runs[-1].exit_code, self.reason = exit_code, reason
            self._kube.changed.notify_all()

    def status(self) -> dict[str, Any]:
        """Its entry in `containerStatuses`."""
        current, last = self.runs[-1:], self.runs[-2:-1]
        state: dict[str, Any] = {"waiting": {"reason": self.reason}}
        if current and current[0].exit_code is None:
            state = {"running": {"startedAt": stamp(FIRST_STAMP).decode()}}
        elif current:
            last = current
            if self.reason == "":
                state, last = {"terminated": _terminated(current[0])}, self.runs[-2:-1]
        status = {"name": self.name, "restartCount": self.restarts, "state": state, "lastState": {}}
        if current:
            status["containerID"] = current[0].id
        if last:
            status["lastState"] = {"terminated": _terminated(last[0])}
        return {"image": "vllm", "imageID": "", "ready": False} | status


def _terminated(run: Run) -> dict[str, Any]:
    return {"containerID": run.id, "exitCode": run.exit_code or 0, "reason": "Error" if run.exit_code else "Completed"}


class FakeKube:
    """The server, on a port of its own."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.clock = FIRST_STAMP
        self.pods: dict[str, list[Container]] = {}
        self.phase = "Running"
        self.requests: list[tuple[str, dict[str, str], str]] = []
        """Path, parameters and the Authorization header of each request."""
        self.refusals: dict[str, tuple[int, str]] = {}
        """Status and message to answer with, by what the path ends in."""
        self.away = False
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def pod(self, name: str, *containers: str) -> list[Container]:
        """Add a pod."""
        with self.changed:
            self.pods[name] = [Container(self, each) for each in containers]
            return self.pods[name]

    def speak_tls(self, context: ssl.SSLContext) -> None:
        """From the next connection on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def stop(self) -> None:
        """Close it, and every connection that still follows something."""
        with self.changed:
            self.away = True
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def pod_object(self, name: str) -> dict[str, Any]:
        """The pod as the API gives it."""
        containers = self.pods[name]
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "team", "uid": name},
            "spec": {"containers": [{"name": each.name, "image": "vllm"} for each in containers]},
            "status": {"phase": self.phase, "containerStatuses": [each.status() for each in containers]},
        }

    def log(self, pod: str, query: dict[str, str]) -> Iterator[bytes]:
        """The parts of a log's answer, or `ValueError` with the kubelet's words."""
        container = self._container(pod, query.get("container", ""))
        run = self._chosen(container, pod, query.get("previous") == "true")
        since = datetime.fromisoformat(query.get("sinceTime", "1970-01-01T00:00:00Z"))
        return self._lines(container, run, int(since.timestamp()) * SECOND, query)

    def _lines(self, container: Container, run: Run, since: int, query: dict[str, str]) -> Iterator[bytes]:
        position, fresh, rotations, hang_ups = 0, True, run.rotations, container.hang_ups
        with self.changed:
            while not self.away:
                if run.rotations == rotations:
                    for moment, text in run.lines[position:]:
                        if moment >= since:
                            yield (stamp(moment) + b" " if fresh and query.get("timestamps") == "true" else b"") + text
                        fresh = text.endswith(b"\n")
                    position = len(run.lines)
                if query.get("follow") != "true" or run.exit_code is not None or container.hang_ups > hang_ups:
                    return
                self.changed.wait()
        raise ConnectionAbortedError

    def _container(self, pod: str, name: str) -> Container:
        for container in self.pods[pod]:
            if container.name == name or (not name and len(self.pods[pod]) == 1):
                return container
        raise ValueError(f"container {name} is not valid for pod {pod}")

    def _chosen(self, container: Container, pod: str, previous: bool) -> Run:
        status = container.status()
        last, state = status["lastState"].get("terminated"), status["state"]
        if previous:
            if last is None:
                raise ValueError(f'previous terminated container "{container.name}" in pod "{pod}" not found')
            wanted = last["containerID"]
        elif "running" in state:
            wanted = status["containerID"]
        elif "terminated" in state:
            wanted = state["terminated"]["containerID"]
        elif last is not None:
            wanted = last["containerID"]
        else:
            raise ValueError(f'container "{container.name}" in pod "{pod}" is waiting to start: {container.reason}')
        return next(run for run in container.runs if run.id == wanted)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, kube: FakeKube) -> None:
        self.kube = kube
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients break off: that is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; its server knows the cluster."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path in DISCOVERY:
            self._answer(200, DISCOVERY[parts.path])
            return
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        self.server.kube.requests.append((parts.path, query, self.headers.get("Authorization", "")))
        if self.server.kube.away:
            self.close_connection = True
            return
        kind = "log" if parts.path.endswith("/log") else "pod"
        if kind in self.server.kube.refusals:
            self._refuse(*self.server.kube.refusals[kind])
            return
        name = parts.path.removeprefix("/api/v1/namespaces/team/pods/").removesuffix("/log")
        if name not in self.server.kube.pods:
            self._refuse(404, f'pods "{name}" not found')
        elif kind == "pod":
            self._answer(200, self.server.kube.pod_object(name))
        else:
            self._log(name, query)

    def _log(self, pod: str, query: dict[str, str]) -> None:
        try:
            parts = self.server.kube.log(pod, query)
        except ValueError as error:
            self._refuse(400, str(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        with suppress(ConnectionError):
            for part in parts:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, status: int, message: str) -> None:
        self._answer(
            status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}
        )

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass
