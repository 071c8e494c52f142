"""Those who speak to a sidecar byte by byte, and what it costs the sidecar."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

from tests.serve.driven import READY
from tests.serve.process import Served, served

TOKEN = "s" * 40
PROBES = ("/livez", "/readyz", "/healthz")
MEMORY_MIB = 96
"""The chart's limit."""


@contextlib.contextmanager
def guarded(folder: Path) -> Iterator[Served]:
    """A sidecar beside a good server, its pages behind the token; its gate is open, and the framework is there."""
    (folder / "vllm.log").write_bytes(READY)
    (folder / "token").write_text(TOKEN)
    flags = ("--log", str(folder / "vllm.log"), "--token-file", str(folder / "token"), "--min-concurrency", "2")
    with served(*flags) as running:
        running.log_line(gate="open")
        running.get("/metrics")
        yield running


def memory_mib(running: Served, which: str = "VmHWM") -> float:
    """The most that it has held so far, or another of the kernel's figures."""
    told = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(told.partition(f"{which}:")[2].split()[0]) / 1024


def raw(running: Served, request: bytes) -> bytes:
    """All that comes back until the server lets go; whoever sends no whole request leaves by himself."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        got = b""
        with contextlib.suppress(OSError):
            connection.sendall(request)
            if b"Connection: close\r\n" not in request:
                connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                got += part
    return got


def asked(method: str, target: str, more: str = "") -> bytes:
    """A request of that method."""
    return f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{more}\r\n".encode("utf-8", "replace")


def headers_of(answer: bytes) -> dict[str, str]:
    lines = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
