"""The whole table of formats against its corpus: no row without its samples, no sample without its row."""

import pytest

from kvguard.lines.formats import FORMATS
from kvguard.lines.parser import StartupLogParser
from kvguard.lines.row_rules import faults
from kvguard.lines.samples import Hit, hits
from tests.lines.corpus import LINES, Sample, samples

SAMPLES = samples(LINES)
ROWS = {row.name for row in FORMATS}


def described(found: list[Hit]) -> str:
    return "; ".join(f"{hit.row.name} {hit.told}" for hit in found) or "no row"


def test_names_are_kebab_case_and_each_stands_once():
    names = [row.name for row in FORMATS]

    assert len(names) == len(ROWS)
    assert all(name == name.lower() and name.replace("-", "").isalnum() for name in names)


def test_every_row_has_its_sample_file_and_every_file_its_row():
    assert {file.stem for file in LINES.iterdir()} == ROWS


def test_every_row_is_hit_and_every_file_holds_a_near_miss():
    assert {sample.row for sample in SAMPLES if not sample.near_miss} == ROWS
    assert {sample.row for sample in SAMPLES if sample.near_miss} == ROWS


def test_every_row_keeps_the_rules():
    assert {row.name: found for row in FORMATS if (found := faults(row))} == {}


@pytest.mark.parametrize("row", sorted(ROWS))
def test_a_line_is_told_by_exactly_the_row_that_it_is_a_sample_of(row):
    for sample in SAMPLES:
        if sample.row == row:
            check(sample)


def check(sample: Sample) -> None:
    found = hits(sample.line, FORMATS)
    rows = [hit.row.name for hit in found]
    failing = sample.failing(described(found))

    assert len(found) <= 1, failing
    if sample.expected is None:
        assert rows == [], failing
    elif isinstance(sample.expected, dict) and "row" in sample.expected:
        assert rows == [sample.expected["row"]] != [sample.row], failing
    else:
        assert rows == [sample.row], failing
        assert found[0].told == (sample.expected if isinstance(sample.expected, list) else [sample.expected]), failing


def test_every_range_of_releases_reads_as_first_and_last():
    for row in FORMATS:
        for versions in row.versions:
            platform, _, releases = versions.rpartition(" ")
            first, _, last = releases.partition("-")

            assert platform == platform.lower(), row.name
            assert numbers(first) <= numbers(last or first), row.name


def numbers(version: str) -> tuple[int, ...]:
    """A release as numbers, for comparing; a post release counts, its word does not."""
    return tuple(int(part.removeprefix("post")) for part in version.split("."))


@pytest.mark.parametrize("row", [row.name for row in FORMATS if row.of_outsiders])
def test_what_a_shell_or_the_kernel_says_is_believed_of_no_record(row):
    """A record of vLLM that holds such words quotes somebody: a client, most of the time."""
    lines = [sample.line for sample in samples(LINES) if sample.row == row and not sample.near_miss]
    quoted = [f"(EngineCore pid=7) ERROR 11-30 03:36:59 [core.py:1] {line}\n".encode() for line in lines]
    parser = StartupLogParser()

    assert [event.format for line in quoted for event in parser.feed(line) if event.format == row] == []
