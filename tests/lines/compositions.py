"""Every wording of the table, printed by the processes of every shape of a deployment: logs to put into envelopes.

The wordings are the samples of `fixtures/logs/lines`, each behind a logger's prefix if its sample has one.
"""

import functools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kvguard.events import Role, Trust
from kvguard.lines.head import clean, envelope, strip
from tests.lines.corpus import LINES, samples

OF_THE_HOST = ("fail-killed-by-systemd",)
"""Rows that no process of vLLM prints."""
BEHIND_PREFIX = ":57] "
"""What a logger's prefix ends with."""
BETWEEN = "INFO 12-08 10:15:00 [topk_topp_sampler.py:59] Using FlashInfer for top-p & top-k sampling."
"""A record that tells nothing: no wording is completed by the one behind it."""


@dataclass(frozen=True)
class Speaker:
    """A process: what stands before its lines, and what that tells of it."""

    before: str = ""
    role: Role = Role.UNTAGGED
    pid: int | None = None
    engine: int | None = None
    rank: str | None = None
    node: str | None = None


def _worker(rank: int, pid: int, engine: int | None = None) -> Speaker:
    name = "Worker" if engine is None else f"Worker_DP{engine}"
    return Speaker(f"({name}_TP{rank} pid={pid}) ", Role.WORKER, pid, engine, f"TP{rank}")


def _engine(index: int, pid: int) -> Speaker:
    return Speaker(f"(EngineCore_DP{index} pid={pid}) ", Role.ENGINE, pid, index)


def _of_ray(pid: int, node: str | None = None) -> Speaker:
    place = f", ip={node}" if node else ""
    before = f"(EngineCore_DP0 pid=130) (RayWorkerWrapper pid={pid}{place}) "
    return Speaker(before, Role.WORKER, pid, 0, f"pid={pid}", node)


SHAPES: dict[str, tuple[Speaker, ...]] = {
    "one process": (Speaker(),),
    "one engine": (_engine(0, 130),),
    "two workers": (_worker(0, 141), _worker(1, 142)),
    "a V0 driver and its worker": (
        Speaker(),
        Speaker("(VllmWorkerProcess pid=142) ", Role.WORKER, 142, None, "pid=142"),
    ),
    "two engines": (_engine(0, 130), _engine(1, 131)),
    "two engines of two workers": (_worker(0, 140, 0), _worker(1, 141, 0), _worker(0, 150, 1), _worker(1, 151, 1)),
    "Ray workers": (_of_ray(411), _of_ray(412, "10.0.0.7")),
}
"""Who prints a line, in each shape of a deployment."""


@dataclass(frozen=True)
class Wording:
    """A row's messages: each with the prefix that it stands behind, and what it must tell."""

    row: str
    samples: tuple[tuple[str, list[dict[str, Any]]], ...]


@functools.cache
def wordings() -> tuple[Wording, ...]:
    """Every row that a process of vLLM prints, decoys included."""
    found: dict[str, list[tuple[str, list[dict[str, Any]]]]] = {}
    for sample in samples(LINES):
        told: Any = sample.expected if isinstance(sample.expected, list) else [sample.expected]
        if sample.near_miss or sample.row in OF_THE_HOST or not all(event and "event" in event for event in told):
            continue
        outer = envelope(clean(sample.line))
        head = strip(outer.message, outer)
        prefix = f"{head.level or 'INFO'} 12-08 10:15:03 [{head.file or 'core.py'}{BEHIND_PREFIX}"
        line = (prefix if head.trust is Trust.RECORD else "") + head.message.strip()
        found.setdefault(sample.row, []).append((line, told))
    return tuple(Wording(row, tuple(messages)) for row, messages in found.items())


def printed(turn: int, cut: bool = False) -> Iterator[tuple[str, Speaker, str, list[dict[str, Any]]]]:
    """Row, speaker, line and what it must tell: from turn to turn another shape prints each, another of its samples.

    Which shape begins is told by the row's own name: a new row changes nothing for the others.

    Args:
        turn: which.
        cut: leave out raw lines: where a terminal cuts one, nothing says that it goes on.
    """
    shapes = list(SHAPES.values())
    for wording in wordings():
        line, told = wording.samples[turn % len(wording.samples)]
        for speaker in shapes[(zlib.crc32(wording.row.encode()) + turn) % len(shapes)]:
            if not cut or BEHIND_PREFIX in line:
                yield wording.row, speaker, line, told


@functools.cache
def composed(turn: int, cut: bool = False) -> str:
    """The log of a turn."""
    return "".join(f"{speaker.before}{line}\n{BETWEEN}\n" for _, speaker, line, _ in printed(turn, cut))
