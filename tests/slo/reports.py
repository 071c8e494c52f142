"""Hand-built reports for the judge's tests: one healthy start, changed in the one place that a test is about."""

from dataclasses import replace
from pathlib import Path

from kvguard import Guard
from kvguard.slo.objectives import KINDS, Objective, Slo
from kvguard.slo.verdict import Verdict
from kvguard.startup.report import (
    Capacity,
    CapacityReport,
    DeploymentCapacity,
    Failure,
    FailureKind,
    LogCounts,
    Memory,
    Phase,
    Place,
    Runtime,
    Start,
    Timings,
    TokenFigure,
)
from kvguard.units import GIB

LOG = "vllm.log"

ENGINE = Capacity(
    engine="0",
    weights_bytes=round(14.99 * GIB),
    kv_cache_bytes=round(3.47 * GIB),
    kv_cache_tokens=40_960,
    max_model_len=16_384,
    max_concurrency=2.5,
    token_figure=TokenFigure.POOL,
    rounding={"max_concurrency": 0.005, "kv_cache_bytes": 0.005 * GIB},
)
"""2,560 blocks of 16 tokens: exactly 2.5 requests of 16,384."""


def place(line: int) -> Place:
    """A line of the log."""
    return Place(LOG, line)


def deployment(*engines: Capacity, expected: int | None = None) -> DeploymentCapacity:
    """The gate's figures of those engines: the first is the weakest."""
    tokens = [engine.kv_cache_tokens for engine in engines if engine.kv_cache_tokens is not None]
    concurrency = [engine.max_concurrency for engine in engines if engine.max_concurrency is not None]
    return DeploymentCapacity(
        weakest=engines[0] if engines else Capacity(),
        engines=len(engines),
        engines_expected=expected,
        total_kv_cache_tokens=sum(tokens) if tokens else None,
        total_max_concurrency=sum(concurrency) if concurrency else None,
    )


def start(**changes: object) -> Start:
    """A start that is ready, with one engine: 2.50x at 16,384 tokens, 3.47 GiB of KV cache, 14.99 GiB of weights."""
    engines = changes.pop("engines", (ENGINE,))
    assert isinstance(engines, tuple)
    healthy = Start(
        index=1,
        phase=Phase.READY,
        vllm_version="0.13.0",
        generation="V1",
        max_model_len=16_384,
        kv_cache_dtype="auto",
        engines=engines,
        capacity=deployment(*engines),
        timings=Timings(ready=412.0),
        began=1000.0,
        lines={
            "weights_bytes": place(11),
            "kv_cache_bytes": place(12),
            "kv_cache_tokens": place(13),
            "max_concurrency": place(14),
            "max_model_len": place(5),
            "kv_cache_dtype": place(4),
            "ready": place(40),
        },
        last_place=place(41),
    )
    return replace(healthy, **changes)  # type: ignore[arg-type]


def report(of: Start | None = None, **changes: object) -> CapacityReport:
    """The report of that start (a healthy one unless given)."""
    counts = LogCounts(bytes=4000, lines=41, matched=12, records=30)
    healthy = CapacityReport(sources=(LOG,), starts=1, start=of or start(), counts=counts)
    return replace(healthy, **changes)  # type: ignore[arg-type]


def without_capacity(phase: Phase, **changes: object) -> CapacityReport:
    """A start of that phase which has told no capacity."""
    return report(start(phase=phase, engines=(), timings=Timings(), lines={}, max_model_len=None, **changes))


def refused(**changes: object) -> CapacityReport:
    """The start of the 24 GB card that asked for the model's whole context."""
    failure = Failure(
        kind=FailureKind.KV_CACHE_TOO_SMALL,
        message="The model's max seq len (131072) is larger than …",
        place=place(5),
        requested_max_model_len=131_072,
        kv_cache_tokens=28_432,
    )
    return without_capacity(
        Phase.FAILED,
        failure=replace(failure, **changes),  # type: ignore[arg-type]
        memory=Memory(total_gpu=round(22.05 * GIB)),
    )


def under_load(**figures: object) -> CapacityReport:
    """The healthy start with stats lines of a load."""
    return report(start(runtime=Runtime(samples=6, place=place(55), **figures)))  # type: ignore[arg-type]


def slo(**targets: object) -> Slo:
    """An SLO of those objectives (other fields of `Slo` by their names)."""
    objectives = tuple(Objective(KINDS[key], targets.pop(key)) for key in tuple(targets) if key in KINDS)  # type: ignore[arg-type]
    return Slo(objectives=objectives, **targets)  # type: ignore[arg-type]


def judged(log: str, asked: Slo) -> Verdict:
    """A real log, by its path under the fixtures, under that SLO."""
    guard = Guard(asked, source=log.rsplit("/", 1)[-1])
    guard.feed(Path("fixtures/logs", log).read_bytes())
    guard.end()
    return guard.verdict
