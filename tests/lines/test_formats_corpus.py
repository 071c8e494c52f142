"""The whole table of formats against its corpus: no row without its samples, no sample without its row."""

import pytest

from kvguard.lines.formats import FORMATS
from kvguard.lines.row_rules import faults
from kvguard.lines.samples import Hit, agree, hits
from tests.lines.corpus import LINES, Sample, samples

SAMPLES = samples(LINES)
ROWS = {row.name for row in FORMATS}


def name_of(sample: Sample) -> str:
    return f"{sample.row}:{sample.number}"


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


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_a_row_keeps_the_rules(row):
    assert faults(row) == []


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_a_line_is_told_by_exactly_the_row_that_it_is_a_sample_of(sample):
    found = hits(sample.line, FORMATS)

    got = described(found)
    assert len(found) <= 1, sample.failing(got)
    if sample.expected is None:
        assert found == [], sample.failing(got)
    elif isinstance(sample.expected, dict) and "row" in sample.expected:
        assert [hit.row.name for hit in found] == [sample.expected["row"]] != [sample.row], sample.failing(got)
    else:
        expected = sample.expected if isinstance(sample.expected, list) else [sample.expected]
        assert [hit.row.name for hit in found] == [sample.row], sample.failing(got)
        assert agree(expected, found[0].told) and repr(expected) == repr(found[0].told), sample.failing(got)


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_range_of_releases_reads_as_first_and_last(row):
    for versions in row.versions:
        platform, _, releases = versions.rpartition(" ")
        first, _, last = releases.partition("-")

        assert platform == platform.lower()
        assert numbers(first) <= numbers(last or first)


def numbers(version: str) -> tuple[int, ...]:
    """A release as numbers, for comparing; a post release counts, its word does not."""
    return tuple(int(part.removeprefix("post")) for part in version.split("."))
