"""A program of its own that outlives kvguard by a moment: whatever kills kvguard, the command does not stay behind.

It hears the command's process group at stdin and waits. If stdin closes without a last word, kvguard is gone
(killed, crashed): the group is told to end and killed if it does not. It imports nothing of kvguard, so that it is
small, and ignores the signals that a terminal or a shutdown sends to everybody.
"""

import os
import signal
import sys
import time

GRACE_S = 5.0
FAREWELL = "ended\n"


def end(group: int, grace_seconds: float) -> None:
    """End a process group: SIGTERM, and SIGKILL after the grace."""
    deadline = time.monotonic() + grace_seconds
    try:
        os.killpg(group, signal.SIGTERM)
        while time.monotonic() < deadline:
            time.sleep(0.02)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nobody is left (macOS says EPERM of a group of zombies)
        return


def watch() -> None:
    """Wait for the group's number, then for kvguard's farewell or its death."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    group = sys.stdin.readline()
    if group.strip().isdigit() and sys.stdin.readline() != FAREWELL:
        end(int(group), GRACE_S)


if __name__ == "__main__":
    watch()
