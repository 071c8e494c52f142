"""Quantities as printed, to base units and back."""

import pytest

from kvguard.units import (
    GIB,
    QuantityError,
    format_apart,
    format_bytes,
    format_seconds,
    parse_bytes,
    parse_bytes_interval,
    parse_ratio,
    parse_seconds,
)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1024", 1024),
        ("3.4 GiB", 3650722202),
        ("3.4Gi", 3650722202),
        ("24GB", 24_000_000_000),
        ("512 MiB", 512 * 2**20),
    ],
)
def test_a_size_is_read_in_the_unit_it_is_spelt_in(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "3,4 GiB", "3.4 GiBs", "1e3"])
def test_a_size_that_cannot_be_read_says_what_was_expected(text: str) -> None:
    with pytest.raises(QuantityError, match="write a number and a unit"):
        parse_bytes(text)


@pytest.mark.parametrize("text, expected", [("90", 90), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("250ms", 0.25)])
def test_a_duration_may_have_parts(text: str, expected: float) -> None:
    assert parse_seconds(text) == expected


@pytest.mark.parametrize("text", ["", "ten", "10 parsecs", "-5s"])
def test_a_duration_that_cannot_be_read_says_so(text: str) -> None:
    with pytest.raises(QuantityError, match="not a duration"):
        parse_seconds(text)


@pytest.mark.parametrize("text, expected", [("5%", 0.05), ("0.05", 0.05), (" 50 %", 0.5)])
def test_a_share_is_a_percentage_or_a_ratio(text: str, expected: float) -> None:
    assert parse_ratio(text) == expected


def test_a_share_that_cannot_be_read_says_so() -> None:
    with pytest.raises(QuantityError, match="not a share"):
        parse_ratio("half")


@pytest.mark.parametrize(
    "count, expected",
    [(0, "0.00 GiB"), (3.47 * GIB, "3.47 GiB"), (-0.87 * GIB, "-0.87 GiB"), (5 * 2**20, "5.0 MiB"), (12, "12 bytes")],
)
def test_bytes_never_print_as_zero_unless_they_are(count: float, expected: str) -> None:
    assert format_bytes(count) == expected


@pytest.mark.parametrize("seconds, expected", [(0.63, "0.6 s"), (45, "45 s"), (412, "6 min 52 s"), (7200, "2 h 0 min")])
def test_seconds_are_said_as_a_person_says_them(seconds: float, expected: str) -> None:
    assert format_seconds(seconds) == expected


@pytest.mark.parametrize(
    "text, low, high",
    [
        ("3GiB", 3 * GIB, 3 * GIB),
        ("4096", 4096, 4096),
        ("3GiB..4GiB", 3 * GIB, 4 * GIB),
        ("~2.5GiB", 2.45 * GIB, 2.55 * GIB),
        ("~2.5GiB..~3.5GiB", 2.45 * GIB, 3.55 * GIB),
    ],
)
def test_a_size_may_have_two_ends(text: str, low: float, high: float) -> None:
    ends = parse_bytes_interval(text)

    assert ends.low == pytest.approx(low, abs=1)
    assert ends.high == pytest.approx(high, abs=1)


@pytest.mark.parametrize("text", ["4GiB..3GiB", "~", "~many", "3GiB..", "..3GiB"])
def test_ends_that_cannot_be_read_say_so(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_bytes_interval(text)


@pytest.mark.parametrize(
    "one, other, texts",
    [
        (1.9999, 2, ("1.9999 requests", "2 requests")),
        (2.4999, 2.5, ("2.4999 requests", "2.5000 requests")),
        (1.8, 2.5, ("1.80 requests", "2.50 requests")),
        (2, 2.0, ("2 requests", "2 requests")),
    ],
)
def test_two_figures_read_alike_only_when_they_are(one: float, other: float, texts: tuple[str, str]) -> None:
    assert format_apart(one, other, "requests") == texts
