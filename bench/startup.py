"""What a short command costs from process start to exit, as a multiple of an empty Python program."""

import sys
from pathlib import Path

from inputs import start
from measured import KVGUARD, medians, table

LOG_BYTES = 100 * 1024
LIMITS = {"kvguard --version": 3, "kvguard check, 100 KiB": 7}


def report(folder: Path, runs: int) -> str:
    """CPU milliseconds and ratios."""
    log = folder / "short.log"
    line = b'INFO:     10.0.0.7:51234 - "GET /health HTTP/1.1" 200 OK\n'
    head = start("plain")
    log.write_bytes(head + line * ((LOG_BYTES - len(head)) // len(line)))
    costs = medians(
        {
            "python -c pass": [sys.executable, "-c", "pass"],
            "kvguard --version": [*KVGUARD, "--version"],
            "kvguard check, 100 KiB": [*KVGUARD, "check", str(log)],
        },
        max(runs, 11),
    )
    empty = costs["python -c pass"].cpu
    rows = [
        [name, f"{cost.cpu * 1e3:.0f} ms", f"×{cost.cpu / empty:.1f}", f"×{LIMITS[name]}" if name in LIMITS else ""]
        for name, cost in costs.items()
    ]
    return table(["command", "CPU", "ratio", "target"], rows)
