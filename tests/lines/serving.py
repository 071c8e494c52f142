"""Logs of servers that serve, in the forms that loggers and runtimes give them."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

from hypothesis import strategies as st

from kvguard import Guard
from kvguard.startup.report import CapacityReport

RUNS = Path(__file__).parent.parent.parent / "fixtures" / "logs" / "runs"
READY = b"Application startup complete."


def start_of(name: str) -> tuple[bytes, int]:
    """A real log to the line that proves it ready, and the pid of its API server (1 where none is printed)."""
    text = (RUNS / name / "server.log").read_bytes()
    head, mark, _ = text.partition(READY)
    if not mark:
        head, mark, _ = text.partition(b"Available routes are:")
        mark += b'", "vllm_process_name": "APIServer"}'
    pid = head.partition(b"(APIServer pid=")[2].partition(b")")[0]
    return head + mark + b"\n", int(pid) if pid.isdigit() else 1


PLAIN, PID = start_of("vllm-0.32.0-cpu-base")
JSON, _ = start_of("vllm-0.32.0-cpu-json")
RESTART = (RUNS / "vllm-0.32.0-cpu-restart" / "server.log").read_bytes()

STATS = (
    "(APIServer pid={pid}) INFO 11-29 18:{minute:02d}:00 [loggers.py:335] Engine 00{engine}: "
    "Avg prompt throughput: 4.0 tokens/s, Avg generation throughput: 1.5 tokens/s, "
    "Running: {running} reqs, Waiting: {waiting} reqs, {part}"
    "CPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%"
)
ACCESS = 'INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
stats_lines = st.builds(
    STATS.format,
    pid=st.sampled_from([PID, PID, PID, 999999]),
    minute=st.integers(0, 59),
    engine=st.integers(0, 1),
    running=st.integers(0, 300),
    waiting=st.integers(0, 40),
    usage=st.integers(0, 999).map(lambda tenths: f"{tenths / 10:.1f}"),
    part=st.sampled_from(["", "", "", "Preemptions: 2, ", "Deferred: 1 reqs, "]),
)
other_lines = st.sampled_from(
    [
        *[ACCESS] * 12,
        'INFO:     10.0.0.7:51234 - "GET /a]b HTTP/1.1" 404 Not Found',
        "",
        "Traceback (most recent call last):",
        "ValueError: No available memory for the cache blocks.",
        "INFO:     Shutting down",
        f"(APIServer pid={PID}) INFO:     Shutting down",
        f"(APIServer pid={PID}) INFO 11-29 18:00:00 [logger.py:39] Received request cmpl-1: "
        "prompt: 'vLLM API server version 9'",
        "(APIServer pid=424242) INFO 11-29 19:00:00 [api_utils.py:286] non-default args: {'model': 'other'}",
        "(EngineCore pid=424243) INFO 11-29 19:00:30 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: "
        "model='other', max_seq_len=99, seed=0",
        "(EngineCore pid=424243) INFO 11-29 19:01:00 [kv_cache_utils.py:2327] CPU KV cache size: 1,024 tokens, "
        "Maximum concurrency for 99 tokens per request: 10.34x",
        f"(APIServer pid={PID}) INFO 11-29 20:00:00 [launcher.py:254] [shutdown] API server: shutdown triggered",
        "GPU KV cache size: 5 tokens",
        "\x1b[0;36m(APIServer pid=7)\x1b[0;0m torn \ufffd line",
    ]
)


def report(data: bytes, chunk: int | None = None) -> CapacityReport:
    guard = Guard()
    for start in range(0, len(data), chunk or max(len(data), 1)):
        guard.feed(data[start : start + (chunk or len(data))])
    guard.end()
    return without_counts(guard.report)


def without_counts(told: CapacityReport) -> CapacityReport:
    """Lines that are passed over are not counted as matched: what they would have told is never believed."""
    return dataclasses.replace(told, counts=dataclasses.replace(told.counts, matched=0, records=0))


def as_json(line: str, with_pid: bool) -> str:
    """The line as a JSON logger writes it: 0.32's own, with or without the process."""
    record = re.fullmatch(
        r"\((?P<name>\w+) pid=(?P<pid>\d+)\) INFO \S+ \S+ \[(?P<file>\w+\.py):\d+\] (?P<text>.*)", line
    )
    access = re.fullmatch(r"(?P<name>)INFO:     (?P<text>.*) (?:OK|Not Found)", line)
    found = record or access
    if found is None:
        return line
    extra = {"process": int(found["pid"]), "filename": found["file"]} if with_pid and record else {}
    return json.dumps({**extra, "message": found["text"], "vllm_process_name": found["name"] or "APIServer"})


def as_cri(line: str, cut: int = 0) -> str:
    """The line as containerd keeps it; with `cut`, in two records."""
    parts = [(line[:cut], "P"), (line[cut:], "F")] if 0 < cut < len(line) else [(line, "F")]
    return "\n".join(f"2026-11-29T18:00:00.000000001Z stdout {mark} {part}" for part, mark in parts)


def in_colour(line: str) -> str:
    """The line with its tag coloured, as 0.10.2 and later print it on a terminal."""
    return re.sub(r"^(\(\w+ pid=\d+\))", "\x1b[0;36m\\1\x1b[0;0m", line)


FORMS: dict[str, tuple[bytes, Callable[[str], str]]] = {
    "plain": (PLAIN, str),
    "coloured": ("".join(f"{in_colour(line)}\n" for line in PLAIN.decode().splitlines()).encode(), in_colour),
    "cri": ("".join(f"{as_cri(line)}\n" for line in PLAIN.decode().splitlines()).encode(), as_cri),
    "cri-partial": (
        "".join(f"{as_cri(line, 40)}\n" for line in PLAIN.decode().splitlines()).encode(),
        lambda line: as_cri(line, 40),
    ),
    "json": (JSON, lambda line: as_json(line, with_pid=False)),
    "json-with-pids": (JSON, lambda line: as_json(line, with_pid=True)),
    "json-throughout": (
        "".join(f"{as_json(line, with_pid=True)}\n" for line in PLAIN.decode().splitlines()).encode(),
        lambda line: as_json(line, with_pid=True),
    ),
}
