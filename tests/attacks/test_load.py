"""Logs meant to fill or hang whoever reads them: bounded memory, time linear in their length, honest counters."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, repeat

import pytest

from kvguard.cli.exit_status import MET, MISSED, UNKNOWN
from kvguard.lines.parts import MAX_PARTS
from tests.serve.process import ENVIRON

MEMORY_MIB = 80
"""Of the whole process; an honest log takes 25. The sidecar's limit is 96."""
PROCESSOR_S = 15.0
"""Three to ten times what the slowest takes; what is not linear takes minutes."""
STAMP = "11-29 16:54:34"


def record(tag: str, file: str, text: str) -> str:
    return f"({tag}) INFO {STAMP} [{file}] {text}\n"


BANNER = "Initializing a V1 LLM engine (v0.32.0) with config: model='m', max_seq_len=4096, seed=0"
FIGURES = "GPU KV cache size: 40,960 tokens, Maximum concurrency for 4,096 tokens per request: 10.00x"
STARTED = record("EngineCore pid=4000001", "core.py:133", BANNER) + record(
    "EngineCore pid=4000001", "kv_cache_utils.py:2327", FIGURES
)
READY = f"{STARTED}(APIServer pid=4000000) INFO:     Application startup complete.\n"
STATS = (
    "Avg prompt throughput: {}.0 tokens/s, Avg generation throughput: 1.5 tokens/s, Running: 1 reqs, "
    "Waiting: 0 reqs, GPU KV cache usage: 1.0%, Prefix cache hit rate: 0.0%"
)


def engine(number: int) -> str:
    return record(f"EngineCore_DP{number} pid={number + 10}", "kv_cache_utils.py:2327", FIGURES)


def start(number: int) -> str:
    tag = f"EngineCore pid={number + 10}"
    return record(tag, "core.py:133", BANNER) + record(tag, "kv_cache_utils.py:2327", FIGURES)


LOGS: dict[str, tuple[Iterable[str], int, str]] = {
    "one line without an end": (repeat("x" * 2**20), 100, STARTED),
    "a line of capacity words": (repeat("GPU KV cache size: 9 " * 2**15), 50, STARTED),
    "empty lines": (repeat("\n" * 2**20), 20, STARTED),
    "empty lines of Windows": (repeat("\r\n" * 2**20), 10, STARTED),
    "short lines": (repeat("a\n"), 20_000, STARTED),
    "carriage returns": (repeat("a\r"), 20_000, STARTED),
    "starts": (map(start, range(5_000)), 5_000, STARTED),
    "unknown wordings": (
        (record("EngineCore pid=7", "x.py:1", f"KV cache wording {n} of 5 GiB") for n in range(20_000)),
        20_000,
        STARTED,
    ),
    "engines": (map(engine, range(10_000)), 10_000, ""),
    "workers": (
        (record(f"Worker_TP{n} pid={n + 10}", "x.py:1", "Available KV cache memory: 3.47 GiB") for n in range(10_000)),
        10_000,
        STARTED,
    ),
    "processes": ((record(f"A{n} pid={n}", "x.py:1", "hello") for n in range(20_000)), 20_000, STARTED),
    "containers": ((f"web-{n}  | {record('A pid=1', 'x.py:1', 'x')}" for n in range(5_000)), 5_000, ""),
    "parts of a line that never ends": (repeat("2026-11-29T16:54:34.0Z stdout P \n"), 60_000, ""),
    "parts that docker has cut": (repeat('{"log":"x","stream":"stdout"}\n'), 60_000, ""),
    "nested objects": (repeat('{"message":' * 20_000 + "1" + "}" * 20_000 + "\n"), 20, STARTED),
    "a text of a megabyte in an object": (repeat('{"message":"' + "x" * 200_000 + '"}\n'), 20, STARTED),
    "names without an end": (repeat(record(f"A{'x' * 200_000} pid=1", "x.py:1", "hello")), 50, STARTED),
    "arguments without an end": (
        (
            record(f"APIServer pid={n}", "api_utils.py:1", f"non-default args: {{'model': '{'m' * 200_000}'}}")
            for n in range(1, 31)
        ),
        30,
        "",
    ),
    "tracebacks": (repeat("Traceback (most recent call last):\nValueError: x\n"), 10_000, ""),
    "statistics": (
        (record("APIServer pid=4000000", "loggers.py:1", "Engine 000: " + STATS.format(n)) for n in range(50_000)),
        50_000,
        "",
    ),
    "strangers": ((record(f"EngineCore pid={n}", "x.py:1", "hello") for n in range(10_000)), 10_000, ""),
}
"""What comes again and again, how often, and what stands behind it."""
BEHIND_READY = ("statistics", "strangers")


MEASURED = """
import re, sys, time
from kvguard.cli import main
status = main(sys.argv[1:])
print(time.process_time(), re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
sys.exit(status)
"""
"""The program, and behind its report what it cost: the kernel's own count for a child begins with its parent's size."""


@dataclass(frozen=True)
class Judged:
    """What a check of a log cost, and what it said."""

    status: int
    memory_mib: float
    processor_s: float
    document: dict[str, object]


def judged(log: Iterator[bytes]) -> Judged:
    """A check in a process of its own, fed as it reads."""
    command = [sys.executable, "-c", MEASURED, "check", "-", "--min-concurrency", "2", "--format", "json", "-q"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRON)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin as pipe:
        for block in log:
            pipe.write(block)
    with process.stdout as pipe:
        told, _, cost = pipe.read().rpartition(b"}")
    seconds, kilobytes = cost.split()
    return Judged(process.wait(), int(kilobytes) / 1024, float(seconds), json.loads(told + b"}"))


@pytest.mark.parametrize("name", LOGS)
def test_a_log_without_measure_is_read_within_measure(name: str) -> None:
    pieces, times, behind = LOGS[name]
    before = READY if name in BEHIND_READY else ""
    log = (piece.encode() for piece in (before, *islice(pieces, times), f"\n{behind}"))

    found = judged(log)

    assert found.memory_mib < MEMORY_MIB
    assert found.processor_s < PROCESSOR_S
    assert found.status == (MISSED if name == "tracebacks" else MET if behind or before else UNKNOWN)


def test_what_was_skipped_is_counted() -> None:
    part = f"2026-11-29T16:54:34.0Z stdout P {'x' * 999}\n".encode()
    found = judged(iter([b"x" * 2**22, b"\n" * 1000, part * 400]))

    kept = -(-MAX_PARTS // 1000)
    assert found.document["log"] == {
        "bytes": 2**22 + 1000 + 400 * len(part),
        "lines": 1400,
        "matched": 0,
        "unrecognized": 0,
        "truncated": 1 + 400 - kept,
        "records": 0,
    }


def test_a_fifo_that_never_ends_is_left_when_the_time_is_over(tmp_path) -> None:
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    writer = os.open(fifo, os.O_RDWR)
    with subprocess.Popen(["yes", "GPU KV cache usage: x"], stdout=writer) as endless:
        os.close(writer)
        command = [sys.executable, "-m", "kvguard", "check", str(fifo), "--until", "ready", "--timeout", "1s", "-q"]
        done = subprocess.run(command, capture_output=True, env=ENVIRON, timeout=60)
        endless.kill()

    assert done.returncode == UNKNOWN
