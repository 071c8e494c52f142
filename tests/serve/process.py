"""`kvguard serve` as a process of its own, on a port that the kernel chooses."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.conftest import FIXTURES

ENVIRON = {**os.environ, "PYTHONPATH": str(FIXTURES.parent / "src")}


@dataclass
class Served:
    """A running sidecar: its process, its port, and the lines of its log as they come."""

    process: "subprocess.Popen[str]"
    port: int

    def get(self, path: str, **headers: str) -> http.client.HTTPResponse:
        """Ask it; the body has been read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.text = response.read().decode()  # type: ignore[attr-defined]
        connection.close()
        return response

    def log_line(self, **wanted: object) -> Any:
        """The next line of its log that tells what is wanted; waits for it.

        On a busy machine there are states that a test does not mean: before the first look, or of half a log.
        """
        assert self.process.stderr is not None
        while True:
            text = self.process.stderr.readline()
            if not text.startswith("{"):  # it has ended, or tells why it will
                self.process.kill()
                pytest.fail(f"the sidecar says {text + self.process.stderr.read()!r} and no line of its log")
            line = json.loads(text)
            if all(line.get(key) == value for key, value in wanted.items()):
                return line

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=10)


def command(*arguments: str) -> list[str]:
    """The command line of a sidecar."""
    return [sys.executable, "-m", "kvguard", "serve", "--listen", "127.0.0.1:0", *arguments]


@contextmanager
def served(*arguments: str, through: tuple[str, ...] = ()) -> Iterator[Served]:
    """A sidecar with those flags, killed at the end if it still runs; `through` is what starts it."""
    process = subprocess.Popen([*through, *command(*arguments)], stderr=subprocess.PIPE, text=True, env=ENVIRON)
    running = Served(process, 0)
    try:
        running.port = running.log_line()["port"]
        yield running
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
