"""What is known of one start while its lines come in: mutable, and nothing else in the package is."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from kvguard import events
from kvguard.events import Event, Origin, Printed, Role, ShutdownBegan, StatsLogged
from kvguard.lines.secrets import redact
from kvguard.lines.stamps import DAY, YEAR, elapsed
from kvguard.slotted import dataclass, field
from kvguard.startup.report import SETTLED, FailureKind, Phase

MAX_FIGURES = 2**16
"""Events of one start that are kept: 320 ranks print a dozen each."""
MAX_ENGINES = 1024
"""Engines told apart: the largest deployments have some hundred."""
MAX_NOTED = 20
"""Unrecognised lines that a report shows; more are counted."""

QUOTED = (
    events.WeightsLoaded,
    events.KvCacheMemory,
    events.KvCacheSize,
    events.MaxConcurrency,
    events.BlocksAllocated,
    events.BlocksCounted,
    events.BlocksOverridden,
    events.BlockSizeSet,
    events.ContextReduced,
    events.MemoryProfiled,
    events.CudaGraphMemory,
    events.EngineInitialized,
    events.ServerReady,
)
"""What is kept word for word: messages about figures. The arguments may hold secrets, and fill a page."""
MAX_QUOTES = 256
"""Of one start: each of 64 engines and ranks prints four."""
LONGEST_QUOTE = 400
LONGEST_BUFFER = 600.0
"""Seconds by which a line may stand behind later ones."""
LONGEST_START = DAY
"""Seconds by which the beginning of a start can lie before its other lines."""

T = TypeVar("T")

RankKey = tuple[int | None, str]
"""Engine (`None` where no line ties the rank to one) and rank."""

OF_ONE_THAT_SERVED = ("shutdown-application", "shutdown-finished", "shutdown-http")
"""Formats of an HTTP server's shut-down, which it says only if it had come up."""
_UNNAMED_CAUSES = (FailureKind.ENGINE_CRASH, FailureKind.OTHER)

Process = tuple[str | None, int | str | None]
"""Node and pid; where a tag has no pid, the rank that it names."""


@dataclass(slots=True)
class Sighting(Generic[T]):
    """A value and the line that told it."""

    value: T
    line: int


@dataclass(slots=True)
class EngineState:
    """One engine of a start."""

    tokens: list[Sighting[int]] = field(default_factory=list)
    own_tokens: list[Sighting[int]] = field(default_factory=list)
    """Figures of a plugin that prints its own pair beside upstream's, which then mean nothing."""
    concurrency: list[tuple[Printed, int, int, bool]] = field(default_factory=list)
    """Figure, max_model_len, line, whether a plugin's own."""
    blocks: list[Sighting[int]] = field(default_factory=list)
    cpu_blocks: int | None = None
    override: Sighting[tuple[int, int]] | None = None
    """Profiled blocks, and those in force."""
    resized_blocks: Sighting[int] | None = None
    init: Sighting[float] | None = None
    combined_line: bool = False
    doubled: int = 0
    """Token lines that stand twice in the log, one right behind the other."""
    latest_token_origin: Origin | None = None
    pids: set[int] = field(default_factory=set)

    @property
    def reported(self) -> bool:
        """Whether it has told its capacity."""
        return bool(self.tokens or self.own_tokens or self.blocks or self.concurrency)

    @property
    def token_lines(self) -> int:
        """How many were printed. Ranks print theirs by turns with the concurrency; where that is left out, nobody can
        tell two ranks' from one line that two handlers or shippers have written."""
        return len(self.tokens) - (self.doubled if self.concurrency else 0)


@dataclass(slots=True)
class RankState:
    """One rank: its weights, its KV cache memory, and the parts of its device memory."""

    weights: list[Sighting[Printed]] = field(default_factory=list)
    kv_cache: list[Sighting[Printed]] = field(default_factory=list)
    parts: dict[str, Sighting[Printed]] = field(default_factory=dict)
    repeated: int = 1


@dataclass(slots=True)
class FailureState:
    """The cause of a failed start, as good as it is known so far."""

    kind: FailureKind
    message: str
    line: int
    unexplained: bool = False
    """Only that a process has given up is known, not why."""
    soft: bool = False
    """A traceback that nobody has called fatal yet: the next fact of the start takes it back."""
    needed: Printed | None = None
    available: Printed | None = None
    requested_tokens: int | None = None
    kv_cache_tokens: int | None = None
    estimated_tokens: int | None = None
    requested_seqs: int | None = None
    mamba_blocks: int | None = None
    transient: bool | None = None


@dataclass(slots=True)
class StartState:
    """One start-up, line by line."""

    index: int
    first_line: int
    phase: Phase = Phase.NONE
    last_line: int = 0
    facts: dict[str, Sighting[object]] = field(default_factory=dict)
    """Facts of the configuration by their name in the report, from the source that ranks highest."""
    fact_ranks: dict[str, int] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    arguments_seen: bool = False
    announced: dict[str, Origin] = field(default_factory=dict)
    """The API server's announcements so far, by kind."""
    api_server: bool = False
    behind_server: bool = False
    """Whether its API server has announced itself, or the one before that was not seen to end: an engine then begins no
    further start."""
    engines: dict[int, EngineState] = field(default_factory=dict)
    engine_of_pid: dict[int, int] = field(default_factory=dict)
    ranks: dict[RankKey, RankState] = field(default_factory=dict)
    counted_blocks: Sighting[int] | None = None
    pids: set[int] = field(default_factory=set)
    speakers: dict[str, int] = field(default_factory=dict)
    """Pid of each engine and each named rank that has told something."""
    workers: set[Process] = field(default_factory=set)
    """The worker processes that have said anything while it was under way: each is a rank."""
    cache_tellers: dict[Process, str | None] = field(default_factory=dict)
    """Those among them that have told their KV cache memory, and which rank each is."""
    seen_timings: dict[str, float] = field(default_factory=dict)
    layers: str | None = None
    declared: Sighting[str] | None = None
    reduced: Sighting[tuple[int, int]] | None = None
    resized: Sighting[str] | None = None
    world_size: int | None = None
    banner_line: int | None = None
    by_outer_stamp: bool = False
    """Whether its lines are dated by the stamp that a runtime put before them: two clocks must not be mixed."""
    began: float | None = None
    latest: float | None = None
    stages: set[str] = field(default_factory=set)
    """The stages that have told something (vllm-omni)."""
    heard: float | None = None
    """When it last printed a record, whatever that told."""
    clock_went_back: bool = False
    """Whether its stamps go back by more than its processes' buffers explain: nothing can be timed by them."""
    ready_stamp: float | None = None
    ready_line: int | None = None
    ready_by_engines: bool = False
    """Its engines alone have made it ready: the front end of such a start counts their blocks only afterwards."""
    ready_unseen: bool = False
    """Only its statistics show that it is ready: since when, no line tells."""
    began_clock: float | None = None
    """When the first line came, by the caller's clock."""
    latest_clock: float | None = None
    ready_clock: float | None = None
    http_pids: set[int] = field(default_factory=set)
    failure: FailureState | None = None
    exception: Sighting[str] | None = None
    refused_beside: int | None = None
    """The line in which a process that is none of its own says that it was refused."""
    ending: bool = False
    """Its engine itself has said that it shuts down: that it is gone then is no failure."""
    died: Sighting[str] | None = None
    stats_since_death: int = 0
    samples: int = 0
    peaks: dict[str, float] = field(default_factory=dict)
    peak_line: int | None = None
    preemptions: int | None = None
    quotes: dict[int, str] = field(default_factory=dict)
    """Messages that told a figure, by their line."""
    told: set[int] = field(default_factory=set)
    """The stamped lines that told something, as `echo.mark_of` marks them."""
    repeated: frozenset[int] = frozenset()
    """Those among them that stand in the log again, behind an announcement that does."""
    unrecognized: list[Sighting[str]] = field(default_factory=list)
    unrecognized_count: int = 0

    highest_engine: int = -1
    """The highest data-parallel index that a process named itself by, whatever it told."""
    figures: int = 0
    overfull: bool = False
    """Whether more was told than is kept: the smallest figure may be among what was left out."""
    of_vllm: bool = False
    """Whether any line was one that only a vLLM prints."""
    next_run: list[Event] = field(default_factory=list)
    """What an excerpt without announcements tells behind its engine's capacity: perhaps another run's beginning."""
    engine_unnamed: bool = False
    """Whether the record that last told of an engine names no process."""
    titled: bool = False
    """Whether a text without prefixes names its failure first: what led to it may follow."""
    stripped: bool = True
    """No line so far had any prefix: an excerpt without its logger's marks."""

    @property
    def reported(self) -> bool:
        """Whether any engine has told its capacity."""
        return any(engine.reported for engine in self.engines.values())

    @property
    def offline_ready(self) -> bool:
        """Whether every expected engine of a start without an API server is initialised."""
        return bool(self.engines) and all(engine.init is not None for engine in self.engines.values())

    @property
    def closed(self) -> bool:
        """Whether its facts are told: it serves, or has ended. An excerpt may show its engine's last line first."""
        told = self.reported or not self.ready_by_engines or self.shows_beginning
        return self.phase is Phase.STOPPED or (self.phase is Phase.READY and told)

    @property
    def shows_beginning(self) -> bool:
        """Whether a server or an engine of it has announced itself: an excerpt may begin anywhere."""
        return bool(self.announced) or self.banner_line is not None

    @property
    def server_unnamed(self) -> bool:
        """Whether its server's records name no process: to vLLM 0.10.1 only those of its workers do."""
        if self.announced:
            return all(origin.pid is None for origin in self.announced.values())
        return self.engine_unnamed or not self.pids

    def has_room(self) -> bool:
        """Whether what another event adds is kept; no server tells so much that it is not."""
        self.figures += 1
        self.overfull |= self.figures > MAX_FIGURES or len(self.engines) > MAX_ENGINES
        return not self.overfull

    @property
    def waits_for_server(self) -> bool:
        """Whether its engines alone have made it ready, and a server has shown that will say so itself."""
        return self.phase is Phase.READY and self.ready_by_engines and self.api_server

    def count_speaker(self, origin: Origin) -> None:
        """An engine or a rank shows itself, whatever it tells."""
        if origin.engine is not None:
            self.highest_engine = max(self.highest_engine, origin.engine)
        if origin.role is Role.WORKER and self.phase not in SETTLED:
            self.workers.add(process_of(origin))

    def hear(self, origin: Origin, of_server: bool) -> None:
        """A record that need tell nothing: time has passed while it starts, and an API server may have shown itself."""
        self.count_speaker(origin)
        if origin.pid is None or not self.pids or origin.pid in self.pids or of_server:
            self.api_server |= of_server
            if self.phase not in SETTLED:
                self.heard = self.stamp_of(origin) or self.heard

    def shut_down(self, event: ShutdownBegan) -> None:
        """An orderly end. Where the log has lost all that came before, the server's shows that it has served."""
        self.ending |= event.format == "shutdown-engine"
        known, unseen = self.failure, not (self.figures or self.shows_beginning)
        if self.phase is Phase.READY:
            self.phase = Phase.STOPPED
        elif unseen and known is not None and known.kind in _UNNAMED_CAUSES and event.format in OF_ONE_THAT_SERVED:
            self.phase, self.failure = Phase.STOPPED, None

    def mark_ready(self, line: int, now: float | None) -> None:
        """The line tells that it takes requests."""
        self.ready_line, self.ready_stamp, self.ready_clock = line, self.latest, now

    def find_unready(self) -> None:
        """Engines alone had made it ready, and now a server shows: that one decides when it is."""
        if self.phase is Phase.READY:
            self.phase = Phase.ALLOCATED
            self.ready_line = self.ready_stamp = self.ready_clock = None

    def revive_if_alive(self, event: Event) -> None:
        """A server that still prints its stats has not ended, whatever a line has said; one line may be its last."""
        if self.phase is not Phase.STOPPED or not isinstance(event, StatsLogged):
            return
        self.stats_since_death += event.samples
        if self.died is None or self.stats_since_death > 1:
            self.phase, self.died, self.stats_since_death = Phase.READY, None, 0

    def stamp_of(self, origin: Origin) -> float | None:
        """When a line was printed, by the one clock that dates this start."""
        return origin.outer_stamp if self.by_outer_stamp else origin.stamp

    def date(self, origin: Origin) -> None:
        """One of its lines has a stamp: it may be the earliest, and is the newest."""
        if self.began is None:
            self.by_outer_stamp = origin.outer_stamp is not None
        stamp = self.stamp_of(origin)
        if stamp is None:
            return
        under_way = self.phase not in SETTLED  # what a clock does behind ready changes nothing of the start's time
        if self.began is None or (under_way and 0 < elapsed(stamp, self.began) < LONGEST_START):
            self.began = stamp
        back = 0.0 if self.latest is None else elapsed(stamp, self.latest)
        self.clock_went_back |= under_way and LONGEST_BUFFER < back < YEAR / 2  # more is the step over New Year
        self.latest = self.heard = stamp

    def quote(self, event: Event) -> None:
        """Keep the words of a line that told a figure."""
        if isinstance(event, QUOTED) and event.origin.text is not None and len(self.quotes) < MAX_QUOTES:
            self.quotes.setdefault(event.origin.line, redact(event.origin.text)[:LONGEST_QUOTE])

    def note(self, name: str, value: object, line: int, rank: int = 0) -> None:
        """Keep a fact unless a source of a higher rank has told it already; a later one of the same rank wins."""
        if value is None or rank < self.fact_ranks.get(name, -1):
            return
        self.facts[name] = Sighting(value, line)
        self.fact_ranks[name] = rank

    def fact(self, name: str) -> object | None:
        """A fact of the configuration, or `None`."""
        known = self.facts.get(name)
        return None if known is None else known.value

    def count(self, name: str) -> int | None:
        """A fact that is a whole number: a length, a size or a number of processes, none of which can be 0."""
        value = self.fact(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    def text(self, name: str) -> str | None:
        """A fact that is a text."""
        value = self.fact(name)
        return value if isinstance(value, str) else None


def process_of(origin: Origin) -> Process:
    """Which process speaks, as far as it is told."""
    return origin.node, origin.rank if origin.pid is None else origin.pid


def whole(figure: Printed | None) -> int | None:
    """A printed figure as a report shows a count, of bytes above all."""
    return None if figure is None else round(figure.value)
