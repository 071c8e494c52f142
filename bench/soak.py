"""A week of a sidecar's life in a minute: time is injected, the bytes are real; nothing may be lost or grow.

python bench/soak.py                      a week: 100 restarts, 20 GB of access lines, rotations
python bench/soak.py --restarts 10 --gigabytes 1
"""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.scripted import ScriptedSource  # noqa: E402 - the path comes first

from kvguard.guard import Guard  # noqa: E402
from kvguard.serve.metrics import exposition  # noqa: E402
from kvguard.serve.sidecar import Clocks, Sidecar  # noqa: E402
from kvguard.serve.slo_file import SloFile  # noqa: E402
from kvguard.slo.objectives import KINDS, Objective, Slo  # noqa: E402
from kvguard.slo.verdict import Outcome  # noqa: E402
from kvguard.sources.source import READ_BYTES, Boundary, BoundaryKind, SourceEvent, State  # noqa: E402

WEEK = 7 * 24 * 3600.0
LOG = (ROOT / "fixtures/logs/runs/vllm-0.32.0-cpu-base/server.log").read_bytes()
START = LOG[: LOG.index(b"\n", LOG.index(b"Application startup complete")) + 1]
ACCESS = b'(APIServer pid=14455) INFO:     10.42.0.17:50000 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
STATS = (
    b"(APIServer pid=14455) INFO 11-29 16:55:16 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    b"Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 40.0%, Prefix "
    b"cache hit rate: 0.0%\n"
)
BLOCK = (ACCESS * 100 + STATS) * (READ_BYTES // (100 * len(ACCESS) + len(STATS)))
ROTATE_EVERY = 40
"""Blocks between two rotations of the log: 10 MiB, as the kubelet does it."""
SETTLED = 0.2
"""Of the week: what is loaded once has been loaded by then."""


@dataclass
class Life:
    """What came of it."""

    starts: int = 0
    passed: int = 0
    bytes_read: int = 0
    settled_mib: float = 0.0
    end_mib: float = 0.0


def live(restarts: int, gigabytes: float) -> Life:
    """Live through a week with so many restarts and so many bytes between them."""
    life, now = Life(), [0.0]
    clocks = Clocks(lambda: now[0], lambda: 1.8e9 + now[0])
    slo = Slo(objectives=(Objective(KINDS["min_concurrency"], 2.5),))
    source = ScriptedSource()
    source.record.state = State.READING
    sidecar = Sidecar(source, Guard(slo, "vllm.log"), SloFile(None, lambda: slo, clocks.wall), clocks)
    expose = exposition(lambda: sidecar.snapshot)
    blocks = int(gigabytes * 1e9 / restarts / len(BLOCK))

    def turn(event: SourceEvent, seconds: float) -> None:
        source.coming.append(event)
        now[0] += seconds
        sidecar.turn()

    def read(data: bytes, seconds: float) -> None:
        turn(source.record.chunk(data, now[0] + seconds), seconds)

    for restart in range(restarts):
        turn(Boundary(BoundaryKind.NEW_CONTAINER, "restarted"), 1.0)
        read(START, 60.0)
        snapshot = sidecar.snapshot
        life.passed += snapshot.verdict.outcome is Outcome.PASS and snapshot.gate.open
        for block in range(blocks):
            read(BLOCK, WEEK / restarts / max(blocks, 1))
            if block % ROTATE_EVERY == ROTATE_EVERY - 1:
                turn(Boundary(BoundaryKind.NEW_FILE, "rotated"), 0.0)
        expose("")
        life.passed -= not sidecar.snapshot.gate.open  # nothing of a load, and no rotation, closes it
        if restart == int(restarts * SETTLED):
            life.settled_mib = resident_mib()
    life.starts = sidecar.snapshot.verdict.report.starts
    life.bytes_read = sidecar.snapshot.source.bytes_read
    life.end_mib = resident_mib()
    return life


def resident_mib() -> float:
    """Memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(argv: Sequence[str]) -> int:
    """Print what came of a week."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=100)
    parser.add_argument("--gigabytes", type=float, default=20.0)
    asked = parser.parse_args(argv)
    life = live(asked.restarts, asked.gigabytes)
    print(f"starts seen             {life.starts} of {asked.restarts}")
    print(f"passed and stayed open  {life.passed} of {asked.restarts}")
    print(f"bytes read              {life.bytes_read / 1e9:.1f} GB")
    print(f"resident                {life.settled_mib:.1f} MiB after a fifth, {life.end_mib:.1f} MiB at the end")
    return int(life.starts != asked.restarts or life.passed != asked.restarts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
