"""Stamps of log lines: what lies between two of them, where neither names a year."""

import pytest

from kvguard.lines.stamps import DAY, elapsed, seconds


def between(start: str, end: str) -> float:
    first, last = seconds(start), seconds(end)
    assert first is not None
    assert last is not None
    return elapsed(first, last)


@pytest.mark.parametrize(
    ("start", "end", "took"),
    [
        ("02-28 23:59:55", "03-01 00:00:56", 61),
        ("2027-02-28 23:59:55.500", "2027-03-01 00:00:56.500", 61),
        ("02-28 23:59:55", "02-29 00:00:56", 61),
        ("02-29 23:59:55", "03-01 00:00:56", 61),
        ("02-27 23:59:55", "03-01 00:00:55", DAY + 60),
        ("03-01 00:00:00", "03-02 00:00:00", DAY),
        ("12-31 23:59:55", "01-01 00:00:56", 61),
        ("Dec 31 23:59:55", "Jan  1 00:00:56", 61),
        ("03-01 00:00:56", "02-28 23:59:55", -61 - DAY),  # out of order: by how much is not told
    ],
)
def test_the_time_between_two_stamps(start: str, end: str, took: float) -> None:
    assert between(start, end) == took


@pytest.mark.parametrize("text", ["10:15:00", "13-01 10:15:00", "02-30", "Foo  9 10:15:00", "Jul 9, 2026 @ 10:15", ""])
def test_what_is_no_stamp(text: str) -> None:
    assert seconds(text) is None
