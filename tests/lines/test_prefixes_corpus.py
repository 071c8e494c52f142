"""Every prefix against its samples: what is taken off the front of a line, and what that tells."""

import pytest

from kvguard.lines import head as head_module
from kvguard.lines.head import Head, clean, envelope, strip
from kvguard.lines.prefixes import PREFIXES
from kvguard.lines.stamps import seconds
from tests.lines.corpus import PREFIXES as FOLDER
from tests.lines.corpus import Sample, catalogue, lines_of, samples

SAMPLES = samples(FOLDER)
NAMES = [prefix.name for prefix in PREFIXES]
WITHOUT_A_ROW = {"json", "csv", "colours", "ray-repeated", "record-lines"}
"""What `json_record`, `cells` and `head` take off by themselves."""
STAMPS = ("stamp", "outer_stamp")


def told(line: str) -> dict[str, object]:
    """The fields of a line's head that are filled; a part of a cut line is joined before it is stripped.

    The outermost process is shown where it is another than the one that speaks.
    """
    envelope.cache_clear()  # a test changes the table
    strip.cache_clear()
    outer = envelope(clean(line))
    head = outer if outer.partial else strip(outer.message, outer)
    filled = {
        name: value
        for name, value in head._asdict().items()
        if value is not None
        and name not in ("of_vllm", "part")
        and value != Head._field_defaults.get(name)
        and (name != "writer" or value != head.pid)
    }
    return {**filled, "message": head.message.strip(), **({"others": list(head.others)} if head.others else {})}


def expected(sample: Sample) -> dict[str, object]:
    """What the sample must tell, its stamps as seconds."""
    assert isinstance(sample.expected, dict)
    return {name: seconds(value) if name in STAMPS else value for name, value in sample.expected.items()}


def test_every_prefix_has_its_file_and_every_file_its_prefix():
    assert len(NAMES) == len(set(NAMES))
    assert {file.stem for file in FOLDER.iterdir()} == {*NAMES, *WITHOUT_A_ROW}


def test_every_file_holds_a_near_miss():
    assert {sample.row for sample in SAMPLES if sample.near_miss} == {sample.row for sample in SAMPLES}


def test_every_prefix_of_the_catalogue_has_its_sample():
    lines = {sample.line for sample in SAMPLES}
    entries = [entry for entry in catalogue() if entry["signal"] == "prefix"]

    assert [entry["id"] for entry in entries if not lines.issuperset(lines_of(entry))] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.row}:{sample.number}")
def test_a_head_is_taken_off_as_its_sample_says(sample):
    found = told(sample.line)

    assert found == expected(sample), sample.failing(found)


@pytest.mark.parametrize("name", NAMES)
def test_no_prefix_is_idle(name, monkeypatch):
    """Without its row at least one of its samples is read otherwise."""
    monkeypatch.setattr(head_module, "PREFIXES", tuple(prefix for prefix in PREFIXES if prefix.name != name))
    monkeypatch.setattr(head_module, "_beginning_with", head_module._beginning_with.__wrapped__)

    assert any(told(sample.line) != expected(sample) for sample in SAMPLES if sample.row == name)
