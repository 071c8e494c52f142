"""Follow the log of a container through the Kubernetes API, from the run that died before it to the next one.

The pod's status says which run of the container its log belongs to, and only a change there is a restart. Each round
asks for the status, then reads what follows from it: the log of the run before, once and to its end, then the log of
the newest run, followed. The kubelet stops following where it rotates a log, and a connection can die unnoticed: after
`SILENCE_S` without a line the round begins again, with `sinceTime`.
"""

import json
import math
from collections import deque
from collections.abc import Sequence

from kvguard.slotted import dataclass, replace
from kvguard.sources.kube.address import Cluster, PodAddress
from kvguard.sources.kube.answers import problem
from kvguard.sources.kube.container import ContainerView, view
from kvguard.sources.kube.stamps import StampedLines
from kvguard.sources.kube.transport import Answer, Failure, Item, LogEnd, Opened, Piece, Request, WakeUp
from kvguard.sources.source import READ_BYTES, BoundaryKind, Record, SourceEvent, SourceStatus, State

SILENCE_S = 30.0
ROUND_S = 1.0
"""How often a container is looked at that waits or has ended."""
SETTLE_S = 5.0
"""How long a container may still be called running after its log has ended: the status comes later than the log.

Asking for the log in between could give the next run's, as if it went on."""
LONGEST_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True)
class _Log:
    """A log to read: of which run, and whether as the newest, followed, or as the one before."""

    run: str
    previous: bool

    def parameters(self, container: str, since: str | None) -> dict[str, str]:
        given = {"container": container, "timestamps": "true", "previous" if self.previous else "follow": "true"}
        return given if since is None else given | {"sinceTime": since}


class PodLogSource:
    """The log of a pod's container."""

    def __init__(self, address: PodAddress, cluster: Cluster) -> None:
        self._address = address
        self._cluster = cluster
        self._record = Record(str(address))
        self._path = f"/api/v1/namespaces/{address.namespace}/pods/{address.pod}"
        self._wake = WakeUp()
        self._request: Request | None = None
        self._log: _Log | None = None  # what the running request reads; `None`: the pod's status
        self._plan: deque[_Log] = deque()
        self._run: str | None = None  # the run whose log was read last, and how far
        self._lines = StampedLines()
        self._finished: str | None = None  # the run that has ended and whose log was read to its end
        self._view: ContainerView | None = None
        self._due = 0.0
        self._heard = 0.0
        self._log_ended: float | None = None
        self._failures = 0
        self._more = False
        self._answered = False  # by anybody

    def poll(self, now: float) -> Sequence[SourceEvent]:
        """Take what has come, and ask for the next thing when it is due."""
        events: list[SourceEvent] = []
        if self._record.state is State.ENDED:
            return events
        self._wake.clear()
        self._more = False
        if self._request is not None:
            self._take_all(self._request, now, events)
        if self._request is not None and self._log is not None and now - self._heard >= SILENCE_S:
            self._next_round(now)
        if self._request is None and now >= self._due:
            self._ask(now, events)
        return events

    def delay(self, now: float) -> float:
        """Until the next request is due, or the server has been silent for too long."""
        if self._more:
            return 0.0
        return max(0.0, (self._due if self._request is None else self._heard + SILENCE_S) - now)

    def fileno(self) -> int | None:
        """Readable when the server has said something."""
        return self._wake.descriptor

    @property
    def status(self) -> SourceStatus:
        """State and counters."""
        behind = not self._answered or (self._log is not None and self._log.previous)
        return replace(self._record.snapshot(), behind=behind)

    def close(self) -> None:
        """Give up the running request."""
        self._next_round(0.0)
        self._record.state = State.ENDED
        self._wake.close()

    def _ask(self, now: float, events: list[SourceEvent]) -> None:
        self._heard = now
        if not self._plan:
            self._log = None
            self._request = Request(self._cluster, self._path, {}, self._wake)
            return
        self._log = log = self._plan.popleft()
        if log.run == self._run:
            self._lines.resume()
        else:
            self._finish_line(now, events)
            self._record.rotations += self._run is not None
            events += self._record.boundary(BoundaryKind.NEW_CONTAINER, f"{self._address} was restarted")
            self._run, self._lines = log.run, StampedLines()
        parameters = log.parameters(self._address.container, self._lines.since)
        self._request = Request(self._cluster, f"{self._path}/log", parameters, self._wake)

    def _take_all(self, request: Request, now: float, events: list[SourceEvent]) -> None:
        taken = 0
        while self._request is request and (item := request.take()) is not None:
            self._heard = now
            self._take(item, now, events)
            taken += len(item.data) if isinstance(item, Piece) else 0
            if taken >= READ_BYTES:
                self._more = True
                return

    def _take(self, item: Item, now: float, events: list[SourceEvent]) -> None:
        self._answered = True
        match item:
            case Opened():
                self._failures = 0
                events += self._record.change(State.READING, f"reading {self._address}", now)
            case Piece(data):
                self._take_lines(data, now, events)
            case LogEnd():
                self._end_log(now, events)
            case Answer(200, body) if self._log is None:
                self._take_status(body, now, events)
            case Answer(status, body):
                self._take_refusal(status, body, now, events)
            case Failure(message):
                self._fail(State.FAILING, f"no answer from the API server: {message}", now, events)

    def _take_lines(self, data: bytes, now: float, events: list[SourceEvent]) -> None:
        lines = self._lines.feed(data)
        if self._lines.was_cut():
            events += self._record.boundary(BoundaryKind.LINES_LOST, f"{self._address} was rotated meanwhile")
        if lines:
            events.append(self._record.chunk(lines, now))

    def _end_log(self, now: float, events: list[SourceEvent]) -> None:
        log, self._request = self._log, None
        if log is not None and (log.previous or (self._view is not None and not self._view.running)):
            self._finished = log.run
            self._finish_line(now, events)
            events += self._record.boundary(BoundaryKind.NEW_CONTAINER, f"a run of {self._address} has ended")
        elif log is not None:
            self._log_ended = now
        self._due = now if self._plan else now + ROUND_S

    def _take_status(self, body: bytes, now: float, events: list[SourceEvent]) -> None:
        self._request = None
        self._due = now + ROUND_S
        try:
            self._view = seen = view(json.loads(body), self._address.container)
        except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
            self._fail(State.FAILING, f"what the API server says of {self._address} is no pod", now, events)
            return
        name = f"container {self._address.container}"
        if not seen.exists:
            names = ", ".join(seen.known_names)
            self._fail(State.FAILING, f"pod {self._address.pod} has no {name}: it has {names}", now, events)
        elif seen.shown is None:
            events += self._record.change(State.WAITING, f"{name} is {seen.condition}", now)
        elif seen.shown == self._finished and seen.over:
            self._due = math.inf
            events += self._record.change(State.ENDED, f"{name}: {seen.condition}; the pod is over", now)
        elif seen.shown == self._finished:
            events += self._record.change(State.WAITING, f"{name}: {seen.condition}; waiting for its restart", now)
        elif not self._is_settling(seen, now):
            self._make_plan(seen, seen.shown)
            self._due = now

    def _is_settling(self, seen: ContainerView, now: float) -> bool:
        """Whether the log has just ended, of a run that is still called running."""
        if self._log_ended is None or seen.shown != self._run or not seen.running:
            self._log_ended = None
            return False
        if now - self._log_ended < SETTLE_S:
            return True
        self._log_ended = None
        return False

    def _make_plan(self, seen: ContainerView, newest: str) -> None:
        self._plan.clear()
        if self._run != newest and seen.previous not in (None, self._finished):
            self._plan.append(_Log(str(seen.previous), previous=True))
        self._plan.append(_Log(newest, previous=False))

    def _take_refusal(self, status: int, body: bytes, now: float, events: list[SourceEvent]) -> None:
        if self._log is not None and self._log.previous and status in (400, 404):
            self._request, self._due = None, now  # the log of the run before is gone: on with the newest
            return
        if status == 404:
            events += self._record.boundary(BoundaryKind.NEW_CONTAINER, f"{self._address} is gone")
        right = "pods" if self._log is None else "pods/log"
        self._fail(*problem(status, body, self._address, right), now, events)

    def _fail(self, state: State, message: str, now: float, events: list[SourceEvent]) -> None:
        """Try again later; the longer it fails, the later."""
        self._next_round(now + ROUND_S)
        if state is State.FAILING:
            self._record.read_errors += 1
            self._failures += 1
            self._due = now + min(LONGEST_BACKOFF_S, ROUND_S * 2 ** min(self._failures - 1, 10))
        events += self._record.change(state, message, now)

    def _next_round(self, due: float) -> None:
        if self._request is not None:
            self._request.give_up()
        self._request, self._due = None, due
        self._plan.clear()

    def _finish_line(self, now: float, events: list[SourceEvent]) -> None:
        if rest := self._lines.rest():
            events.append(self._record.chunk(rest, now))
