"""What tells nothing (other programs' lines, quoted source) and what deceives (clients' text, torn bytes)."""

from pathlib import Path

import pytest

from kvguard.events import Event, KvCacheMemory, KvCacheSize
from kvguard.guard import Guard
from kvguard.lines.formats import FORMATS
from kvguard.lines.parser import StartupLogParser
from kvguard.lines.samples import hits
from tests.lines.corpus import FIXTURES

NOISE = sorted((FIXTURES / "logs" / "noise").glob("*.log"))
HOSTILE = FIXTURES / "logs" / "hostile"
LOG = (FIXTURES / "logs/runs/vllm-0.32.0-cpu-base/server.log").read_bytes()
START = LOG[: LOG.index(b"\n", LOG.index(b"Application startup complete")) + 1]


def log_lines(file: Path) -> list[str]:
    """The file without the comments above its lines; `#` and a space begin them, `# GPU blocks` excepted."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("# ") or line.startswith("# GPU blocks")]


def events(data: bytes) -> list[Event]:
    parser = StartupLogParser()
    return [*parser.feed(data), *parser.end()]


def guard_of(*parts: bytes) -> Guard:
    guard = Guard()
    for part in parts:
        guard.feed(part)
    guard.end()
    return guard


@pytest.mark.parametrize("file", NOISE, ids=lambda file: file.stem)
def test_noise_tells_nothing(file):
    assert events("\n".join(log_lines(file)).encode()) == []


@pytest.mark.parametrize("file", NOISE, ids=lambda file: file.stem)
def test_no_row_describes_a_line_of_noise(file):
    assert {line: found[0].row.name for line in log_lines(file) if (found := hits(line, FORMATS))} == {}


@pytest.mark.parametrize("name", ["prompts", "errors", "prints"])
def test_what_a_client_can_write_into_a_serving_log_changes_nothing(name):
    written = "\n".join(log_lines(HOSTILE / f"{name}.log")).encode()

    report = guard_of(START, written).report

    assert report.starts == 1
    assert report.start == guard_of(START).report.start


def test_torn_bytes_hide_no_line_and_make_none():
    found = events((HOSTILE / "bytes.log").read_bytes())

    sizes = [event.kv_cache_tokens for event in found if isinstance(event, KvCacheSize)]
    memory = [event.kv_cache_bytes.value for event in found if isinstance(event, KvCacheMemory)]
    assert sizes == [65_536]
    assert memory == [2.5 * 2**30]


def test_a_line_of_many_megabytes_is_cut_and_the_next_one_read():
    guard = guard_of(b"INFO 11-29 16:54:40 [x.py:1] " + b"GPU KV cache size: " * 500_000, b"\n", START)

    assert guard.report.start == guard_of(b"\n", START).report.start
    assert guard.report.counts.truncated == 1


@pytest.mark.parametrize("digits", [16, 400, 5000])
def test_a_figure_with_more_digits_than_a_number_has_is_none(digits):
    figure = b"9" * digits
    found = events(
        b"GPU KV cache size: " + figure + b" tokens\nAvailable KV cache memory: " + figure + b" GiB\n"
        b"Maximum concurrency for " + figure + b" tokens per request: " + figure + b".00x\n"
    )

    assert found == []
