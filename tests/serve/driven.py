"""A sidecar turned by hand: its source says what a test tells it to, and its clocks stand until the test moves them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from kvguard.guard import Guard
from kvguard.serve.app import create_app
from kvguard.serve.let_through import LetThrough
from kvguard.serve.probes import Probes
from kvguard.serve.sealed import Asgi, sealed
from kvguard.serve.sidecar import Clocks, Sidecar, Sink, Witness
from kvguard.serve.snapshot import SloStatus, Snapshot
from kvguard.slo.objectives import KINDS, Gate, Objective, Slo
from kvguard.sources.source import Boundary, BoundaryKind, State
from tests.conftest import FIXTURES
from tests.scripted import ScriptedSource

RUNS = FIXTURES / "logs/runs"
NOON = 1_764_400_000.0
"""The wall clock's first moment: 2025-11-29T07:06:40Z."""

BASE = (RUNS / "vllm-0.32.0-cpu-base/server.log").read_bytes()
"""One engine, 256.00x at 4,096 tokens; ends with an orderly shut-down."""
LOADING = BASE[: BASE.index(b"(EngineCore pid=15278) INFO 11-29 16:54:34 [kv_cache_utils.py:2327]")]
ALLOCATED = BASE[: BASE.index(b"(EngineCore pid=15278) INFO 11-29 16:54:34 [core.py:402]")]
READY = BASE[: BASE.index(b"\n", BASE.index(b"Application startup complete")) + 1]


class EditedSlo:
    """An SLO file that the test edits without a disk."""

    def __init__(self, slo: Slo) -> None:
        self.slo = slo
        self.status = SloStatus()
        self.edited = False

    def poll(self, now: float) -> bool:
        edited, self.edited = self.edited, False
        return edited


@dataclass
class Driven:
    """The sidecar, and what moves it."""

    slo: Slo = field(default_factory=Slo)
    sinks: Sequence[Sink] = ()
    token: Callable[[], str] | None = None
    witness: Witness | None = None
    let_through: LetThrough | None = None

    def __post_init__(self) -> None:
        self.now = 100.0
        self.alive = True
        self.source = ScriptedSource()
        clocks = Clocks(lambda: self.now, lambda: NOON + self.now - 100.0)
        guard = Guard(self.slo, self.source.record.snapshot().name)
        self.slo_file = EditedSlo(self.slo)
        self.sidecar = Sidecar(self.source, guard, self.slo_file, clocks, self.sinks, self.witness, self.let_through)
        self._wall = clocks.wall

    @cached_property
    def app(self) -> Asgi:
        """The HTTP face, as it is served."""
        probes = Probes(self)
        probes.open(create_app(self, self._wall, self.token))
        return sealed(probes)

    @property
    def snapshot(self) -> Snapshot:
        return self.sidecar.snapshot

    def read(self, data: bytes) -> "Driven":
        """Bytes arrive, and are read to the last."""
        self.source.coming.append(self.source.record.chunk(data, self.now))
        return self.turn()

    def rotate(self, kind: BoundaryKind) -> "Driven":
        """Another stream begins."""
        self.source.coming.append(Boundary(kind, "by the test"))
        return self.turn()

    def change(self, state: State, message: str) -> "Driven":
        """The source does something else."""
        self.source.coming.extend(self.source.record.change(state, message, self.now))
        return self.turn()

    def judge_by(self, slo: Slo) -> "Driven":
        """The SLO was edited."""
        self.slo_file.slo, self.slo_file.edited = slo, True
        return self.turn()

    def turn(self, after: float = 0.0) -> "Driven":
        """Time passes, and the sidecar works off what there is."""
        self.now += after
        while self.sidecar.turn() == 0.0:
            pass
        return self

    def get(self, path: str, method: str = "GET", **headers: str) -> "Answer":
        """Ask the app."""
        return ask(self.app, path, method, headers)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(app: Asgi, target: str, method: str = "GET", headers: dict[str, str] | None = None) -> Answer:
    """One request to an ASGI app, without a socket."""
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(k.replace("_", "-").lower().encode(), v.encode("latin-1")) for k, v in (headers or {}).items()],
        "client": ("192.0.2.1", 50000),
        "server": ("127.0.0.1", 9400),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    head = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:]))


def ask_snapshot(snapshot: Snapshot, target: str) -> Answer:
    """What the app answers of a snapshot that something else has taken."""
    driven = Driven()
    driven.sidecar.snapshot = snapshot
    return driven.get(target)


@cache
def run(name: str) -> Driven:
    """A real server's whole log, judged by "at least 2.5"; shared, so only to be looked at."""
    return Driven(slo(min_concurrency=2.5)).read((RUNS / name / "server.log").read_bytes())


def slo(gate: Gate | None = None, **targets: float | str) -> Slo:
    """An SLO of those objectives."""
    return Slo(objectives=tuple(Objective(KINDS[key], target) for key, target in targets.items()), gate=gate or Gate())
