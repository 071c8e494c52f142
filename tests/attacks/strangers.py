"""What a stranger can get into a server's log: the carriers of his text, and the text, every format's own wording."""

import json
import re
from collections.abc import Callable
from urllib.parse import quote

from kvguard.lines.head import clean, envelope, strip
from tests.lines.corpus import FIXTURES, LINES, samples

RUNS = FIXTURES / "logs" / "runs"
READY = (b"Application startup complete.", b"Available routes are:", b"Application startup complete")
STRANGER = 4242424
"""The pid of a process that does not exist."""


def log_of(name: str) -> bytes:
    return (RUNS / name / "server.log").read_bytes()


def until_ready(name: str) -> bytes:
    """A real log up to and with the line that proves its last start ready."""
    lines = log_of(name).splitlines(keepends=True)
    proof = [number for number, line in enumerate(lines) if any(mark in line for mark in READY)]
    return b"".join(lines[: proof[-1] + 1])


def pid_of(log: bytes) -> int:
    """The pid of the API server; 1 where the log names none."""
    found = re.search(rb"\(api_?server\w* pid=(\d+)\)", log, re.IGNORECASE)
    return int(found[1]) if found else 1


def _message(line: str) -> str:
    outer = envelope(clean(line))
    return strip(outer.message, outer).message.strip()


_SAMPLES = [sample for sample in samples(LINES) if not sample.near_miss]
LINES_OF_FORMATS = tuple(dict.fromkeys(sample.line for sample in _SAMPLES))
"""Each sample with the prefix that it has in its log."""
MESSAGES = tuple(dict.fromkeys(_message(sample.line) for sample in _SAMPLES))
"""Each sample without it."""
LINES_OF_PREFIXES = tuple(
    line
    for file in sorted((FIXTURES / "logs" / "prefixes").glob("*.log"))
    for line in file.read_text(encoding="utf-8").split("\n")
    if line and not line.startswith("# ")
)

_STAMP = "11-29 23:59:58"


def _record(pid: int, file: str, text: str) -> str:
    return f"(APIServer pid={pid}) INFO {_STAMP} [{file}] {text}"


def _continued(file: str) -> Callable[[int, str], str]:
    """vLLM's formatter puts the record's own prefix before each further line of a message."""

    def write(pid: int, text: str) -> str:
        prefix = _record(pid, file, "")
        return f"{prefix}response_body={{content='a\r\n{prefix}{text}\r\n{prefix}'}}"

    return write


CARRIERS: dict[str, Callable[[int, str], str]] = {
    "prompt by repr": lambda pid, text: _record(
        pid,
        "entrypoints/.../utils/request_logger.py:65",
        f"Received request cmpl-1-0: prompt: {text!r}, params: SamplingParams(n=1)",
    ),
    "prompt of an old release": lambda pid, text: (
        f"INFO {_STAMP} [logger.py:39] Received request cmpl-1-0: prompt: {text!r}, params: SamplingParams(n=1)"
    ),
    "prompt first in its record": lambda pid, text: _record(pid, "logger.py:39", text),
    "prompt with raw newlines": lambda pid, text: _record(pid, "request_logger.py:55", f"prompt: 'x\n{text}\n'"),
    "prompt behind which a record stands": lambda pid, text: _record(
        pid, "logger.py:39", f"prompt: 'x (EngineCore pid={STRANGER}) INFO {_STAMP} [core.py:133] {text}"
    ),
    "answer over several lines": _continued("server_utils.py:66"),
    "answer of an old release": lambda pid, text: (
        f"INFO {_STAMP} [api_server.py:1] response_body={{'a\r\nINFO {_STAMP} [api_server.py:1] {text}"
    ),
    "answer with a carriage return": lambda pid, text: _record(
        pid, "api_server.py:1", f"content='a\r(EngineCore pid={STRANGER}) INFO {_STAMP} [core.py:133] {text}\r'"
    ),
    "answer with other line ends": lambda pid, text: _record(
        pid,
        "api_server.py:1",
        "".join(
            f"a{end}(EngineCore pid={STRANGER}) INFO {_STAMP} [core.py:133] {text}"
            for end in ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e", "\x00")
        ),
    ),
    "print of a process whose lines are tagged": lambda pid, text: (
        f"(APIServer pid={pid}) (EngineCore pid={STRANGER}) INFO {_STAMP} [core.py:133] {text}"
    ),
    "address in an access line": lambda pid, text: f'INFO:     10.0.0.7:5 - "GET /{quote(text)} HTTP/1.1" 404',
    "address as it is": lambda pid, text: f'INFO:     10.0.0.7:5 - "GET /{text} HTTP/1.1" 404',
    "agent in an access line": lambda pid, text: f'10.0.0.7 - - [29/Nov/2026] "GET / HTTP/1.1" 200 5 "-" "{text}"',
    "raw": lambda pid, text: text,
    "raw behind colours": lambda pid, text: f"\x1b[1;36m{text}\x1b[0;0m",
    "raw behind uvicorn's level": lambda pid, text: f"INFO:     {text}",
    "raw in a tagged line": lambda pid, text: f"(APIServer pid={pid}) INFO:     {text}",
    "raw in a stranger's tag": lambda pid, text: f"(EngineCore pid={STRANGER}) {text}",
    "raw behind Ray's prefix": lambda pid, text: f"(RayWorkerWrapper pid={STRANGER}, ip=10.0.0.9) {text}",
    "raw behind CRI's": lambda pid, text: f"2026-11-29T23:59:58.000000000Z stdout F {text}",
    "raw in docker's object": lambda pid, text: json.dumps({"log": f"{text}\n", "stream": "stdout"}),
    "raw behind marks that turn the text": lambda pid, text: f"\u202e\u2066{text}\u2069",
    "raw with NUL": lambda pid, text: f"\x00{text}\x00",
    "traceback": lambda pid, text: f'Traceback (most recent call last):\n  File "x.py"\nValueError: x\n{text}',
    "traceback in records": lambda pid, text: _record(pid, "serving_chat.py:9", f"Error in preprocessing\n{text}"),
    "name of an adapter": lambda pid, text: _record(
        pid, "serving_models.py:228", f"Loaded new LoRA adapter: name '{text}', path '/x'"
    ),
}
"""How a stranger's text comes into a log: API server's pid and text to what is printed."""

BY_RAW_LINES = frozenset(
    {
        "prompt with raw newlines",
        "raw",
        "raw behind CRI's",
        "raw behind Ray's prefix",
        "raw behind colours",
        "raw in a stranger's tag",
        "raw in docker's object",
        "raw with NUL",
        "traceback",
        "traceback in records",
    }
)
"""Carriers that put a line of their own into the log. vLLM's formatter and tags prevent it; a print may not."""
