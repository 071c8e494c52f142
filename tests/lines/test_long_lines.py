"""A long line costs time linear in its length, whatever it repeats: nobody slows a guard down with one line."""

import re
import time

import pytest

from kvguard.lines import parser as parsing
from kvguard.lines.parser import StartupLogParser
from tests.lines.corpus import LINES, samples

LENGTH = 2**15
BUDGET = 0.2
"""Seconds of the processor for one line of `LENGTH`: twenty times what it takes."""
RECORD = "INFO 11-29 16:54:40 [x.py:1] "
TAG = "(EngineCore pid=1) "
BEGINNINGS = [
    "",
    TAG,
    f"{RECORD}non-default args: {{",
    f"{RECORD}Initializing a V1 LLM engine (v0.9.1) with config: model='m', ",
]
ENDS = ["", f"{RECORD}x"]
MARKS = [*"a.([{}\"'\\1,|│`>:/-=_é█;\u2028\x00\r", "\\n", "0.", "::", "%|", "[[", "{{", "\x1b[", "[0;", "[0m"]
WORDS = [
    " ", "# ", "- ", ": ", "1: ", "INFO", "INFO ", "INFO:", "INFO: ", "INFO:a.b:", RECORD[:11], RECORD[:20], RECORD,
    RECORD[:-2], TAG, TAG[:-1], "(EngineCore ", "(A, ", "Error: ", "ValueError: ", "ValueError: CUDA out of memory",
    "[repeated 7x across cluster]", "2026-01-01T10:00:00Z ", "stdout P ", "01O", "_bk;t=1", "#1 1.1 ", "a | ", "a.b-",
    "a-b-c ", "Traceback (most recent call last):", '{"message": "', "'a': ", "a=b, ", "a='", "(a, ", "Engine 000: ",
]  # fmt: skip


def seconds_of(line: str) -> float:
    parser = StartupLogParser()
    data = f"{line}\n".encode()
    start = time.process_time()
    list(parser.feed(data))
    list(parser.end())
    return time.process_time() - start


def filled(part: str, length: int = LENGTH) -> str:
    return part * (length // len(part))


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_line_of_one_part_repeated(beginning):
    slow = {
        (part, end): seconds
        for part in [*MARKS, *WORDS]
        for end in ENDS
        if (seconds := seconds_of(beginning + filled(part) + end)) > BUDGET
    }

    assert slow == {}


@pytest.mark.parametrize("part", [" ", "9"])
def test_a_sample_with_one_figure_or_gap_made_long(part):
    slow = set()
    for row, line in {sample.row: sample.line for sample in samples(LINES) if not sample.near_miss}.items():
        at = [0, *(found.start() for found in re.finditer(r"\d|(?<=\w) (?=\w)", line))][-1]
        if seconds_of(line[:at] + filled(part) + line[at:]) > BUDGET:
            slow.add(row)

    assert slow == set()


@pytest.mark.parametrize("frame", ["|", "\u280b ", "12 %", ""])
def test_a_spinner_of_a_megabyte_is_read_by_a_few_of_its_frames(frame: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    envelope = parsing.envelope
    monkeypatch.setattr(parsing, "envelope", lambda text: asked.append(text) or envelope(text))
    spinner = f"\r{frame}" * (10**6 // len(f"\r{frame}".encode()))
    line = f"{RECORD}Waiting for a GPU{spinner}\r{RECORD}GPU KV cache size: 4,096 tokens\nend\n"
    told = list(StartupLogParser().feed(line.encode()))

    assert [event.format for event in told] == ["kv-cache-size"]
    assert len(asked) < 20_000


def test_the_rest_of_a_figure_is_read_before_a_spinner() -> None:
    lines = f"{RECORD}# GPU blocks: 12\r345" + "\r|" * 1000 + f"\r{RECORD}x\n"
    parser = StartupLogParser()
    told = [*parser.feed(lines.encode()), *parser.end()]

    assert [event.gpu_blocks for event in told] == [12_345]
