"""kvguard as a program of its own, so that a fault hits what a user would run."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.conftest import FIXTURES
from tests.serve.process import ENVIRON

RUNS = FIXTURES / "logs/runs"
LOG = RUNS / "vllm-0.32.0-cpu-nologstats/server.log"
"""One engine, 128x at 8,192 tokens."""


def command(*words: str) -> list[str]:
    """The words of a call."""
    return [sys.executable, "-m", "kvguard", *words]


def ran(words: Sequence[str], **how: Any) -> "subprocess.CompletedProcess[bytes]":
    """Run it to its end; both outputs are kept unless told otherwise."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.run(command(*words), env=ENVIRON, timeout=60, **how)


def start_of_vllm() -> bytes:
    """A real start up to its ready line."""
    content = LOG.read_bytes()
    return content[: content.index(b"\n", content.index(b"Application startup complete")) + 1]
