"""Stands in for vLLM: prints the log of a real start at the speed at which it was printed, and ends as it did.

    replay.py LOG [ARGUMENT ...]      (vLLM's own arguments are taken and ignored)

A start that got ready stays, silent, until SIGTERM; one that failed prints its log to the end and exits with 1.
"""

import re
import signal
import sys
import time
from datetime import datetime
from pathlib import Path

READY = "Application startup complete"
STAMP = re.compile(r"\b(\d\d-\d\d \d\d:\d\d:\d\d)\b")


def main(log: str) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    before = None
    for line in Path(log).read_text().splitlines():
        stamp = STAMP.search(line)
        if stamp:
            now = datetime.strptime(f"2000-{stamp[1]}", "%Y-%m-%d %H:%M:%S")
            time.sleep((now - before).total_seconds() if before and now > before else 0)
            before = now
        print(line, flush=True)
        if READY in line:
            signal.pause()
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
