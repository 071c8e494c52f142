"""Runs of a command: CPU and wall time from outside, peak resident memory from inside; medians of several."""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LC_ALL": "C.UTF-8"}
ENVIRON.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
KVGUARD = (sys.executable, "-m", "kvguard")
PLAIN = (
    sys.executable,
    "-c",
    "import sys; sys.modules['stringzilla'] = None; from kvguard.cli import entry_point; entry_point()",
)
"""kvguard as if the `fast` extra were not installed."""


@dataclass(frozen=True)
class Cost:
    """What one run took: seconds of CPU (user and system), seconds by the wall clock."""

    cpu: float
    wall: float


def once(command: Sequence[str]) -> Cost:
    """Run a command; its output goes to a file, because grep stops at the first match when it goes to /dev/null."""
    with Path(os.devnull).open("rb") as given, tempfile.TemporaryFile() as taken:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdin=given, stdout=taken, stderr=subprocess.DEVNULL, env=ENVIRON)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: ended with status {process.returncode}: nothing is measured by it")
    return Cost(used.ru_utime + used.ru_stime, wall)


def has_fast_extra() -> bool:
    """Whether the `fast` extra is installed here."""
    return importlib.util.find_spec("stringzilla") is not None


def peak_resident(words: Sequence[str], content: Iterable[bytes] = ()) -> int:
    """Peak resident bytes of a kvguard command, as the kernel tells the process itself, and of its largest child.

    What they share counts twice. What `wait4` tells out here counts the moment between fork and exec, when the child
    still is as large as its parent.
    """
    program = (
        "import sys; from kvguard.cli import main; main(sys.argv[1:]); told = open('/proc/self/status').read(); "
        "import resource; other = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss; "
        "print(int(told.partition('VmHWM:')[2].split()[0]) + other, file=sys.stderr)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=ENVIRON,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    for block in content:
        process.stdin.write(block)
    process.stdin.close()
    told = process.stderr.read()
    process.wait()
    return int(told.split()[-1]) * 1024


def medians(commands: dict[str, Sequence[str]], runs: int) -> dict[str, Cost]:
    """Medians of `runs` runs; the commands take turns, so that what else the machine does falls on all of them."""
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for command in commands.values():
        once(command)  # warms the page cache and writes the bytecode
    for _ in range(runs):
        for name, command in commands.items():
            costs[name].append(once(command))
    return {name: _median(found) for name, found in costs.items()}


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.wall for cost in costs),
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
