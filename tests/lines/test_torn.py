"""A log whose end is torn inside a figure tells no half of it."""

import re
from collections.abc import Iterator

import pytest

from kvguard.events import Event
from kvguard.lines.formats import FORMATS
from kvguard.lines.framing import LineFramer
from kvguard.lines.parser import StartupLogParser
from kvguard.lines.samples import plain
from tests.lines.corpus import LINES, Sample, samples

SAMPLES = [sample for sample in samples(LINES) if sample.expected and not sample.near_miss]


def told(log: str) -> list[Event]:
    parser = StartupLogParser()
    return [*parser.feed(log.encode()), *parser.end()]


def figures(events: list[Event]) -> set[float]:
    """Every number that the events tell."""
    return {number for event in events for number in _numbers(plain(event, event.origin.text or ""))}


def _numbers(value: object) -> Iterator[float]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


@pytest.mark.parametrize("row", [row.name for row in FORMATS])
def test_no_half_of_a_figure_is_told(row: str) -> None:
    for sample in (sample for sample in SAMPLES if sample.row == row):
        known = figures(told(f"{sample.line}\n"))
        for cut in _inside_figures(sample):
            found = figures(told(f"before\n{sample.line[:cut]}"))

            assert found <= known, sample.line[:cut]


def _inside_figures(sample: Sample) -> list[int]:
    return [found.end() for found in re.finditer(r"(?<![\d.,])\d(?=\d|[.,]\d)|[.,](?=\d)", sample.line)]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("a\n# GPU blocks: 7185", "# GPU blocks: "),
        ("a\n# GPU blocks: 7185\n", "# GPU blocks: 7185"),
        ("# GPU blocks: 7185", "# GPU blocks: 7185"),  # one line and no more: a paste
        ("a\nvllm-1 exited with code 137", "vllm-1 exited with code 137"),
        ("a\nModel loading took 15.2", "Model loading took "),
        ("a\nMaximum concurrency: 15.2x", "Maximum concurrency: 15.2x"),
    ],
)
def test_the_figure_at_the_end_of_a_log_is_read_only_where_it_is_ended(text: str, last: str) -> None:
    framer = LineFramer()
    lines = [*framer.feed(text.encode()), *framer.end()]

    assert lines[-1][1].decode() == last
