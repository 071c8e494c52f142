"""Figures: one spelling a unit, and no rounding that hides why a check failed."""

import pytest

from kvguard.render.quantities import show, show_observed, show_target
from kvguard.slo.objectives import OBJECTIVES
from kvguard.slo.verdict import CheckKind, Outcome
from tests.render.verdicts import check


@pytest.mark.parametrize(
    "value, unit, expected",
    [
        (1, "requests", "1 request"),
        (1.8, "requests", "1.80 requests"),
        (256.0, "requests", "256 requests"),
        (28432, "tokens", "28,432 tokens"),
        (3.47 * 2**30, "bytes", "3.47 GiB"),
        (-0.87 * 2**30, "bytes", "-0.87 GiB"),
        (0.981, "ratio", "98.1 %"),
        (2, "engines", "2 engines"),
        (412.0, "seconds", "6 min 52 s"),
        ("fp8", "", "fp8"),
        (None, "tokens", "not in the log"),
    ],
)
def test_a_figure_is_spelt_by_its_unit(value: float | str | None, unit: str, expected: str) -> None:
    assert show(value, unit) == expected


def test_every_unit_of_an_objective_has_a_spelling() -> None:
    for kind in OBJECTIVES:
        if kind.unit:
            assert show(0.5, kind.unit) != "0.5"


@pytest.mark.parametrize(
    "objective, unit, observed, target, expected",
    [
        ("min_concurrency", "requests", 2.5, 2.5, ("2.50", "at least 2.50 requests")),
        ("min_concurrency", "requests", 2.496, 2.5, ("2.496", "at least 2.500 requests")),
        ("min_kv_cache", "bytes", 3725000000, 3725000001, ("3,725,000,000 bytes", "at least 3,725,000,001 bytes")),
        ("max_weights", "bytes", 2**34, 2**33, ("16.00 GiB", "at most 8.00 GiB")),
        ("max_kv_cache_usage", "ratio", 0.98, 0.95, ("98 %", "at most 95 %")),
        ("expect_max_model_len", "tokens", 8192, 16384, ("8,192", "16,384 tokens")),
        ("expect_kv_cache_dtype", "", "auto", "fp8", ("auto", "fp8")),
        ("min_concurrency", "requests", None, 2.5, ("not in the log", "at least 2.50 requests")),
    ],
)
def test_observed_and_target_are_told_apart(
    objective: str, unit: str, observed: float | str | None, target: float | str, expected: tuple[str, str]
) -> None:
    result = check(objective, unit, observed, target, Outcome.FAIL)

    assert (show_observed(result), show_target(result)) == expected


def test_a_computed_figure_shows_both_ends() -> None:
    wide = check("concurrent_requests", "requests", 4.8, 4, Outcome.PASS, kind=CheckKind.COMPUTED, low=4.79, high=11.46)
    exact = check("concurrent_requests", "requests", 4.8, 4, Outcome.PASS, kind=CheckKind.COMPUTED, low=4.8, high=4.8)

    assert (show_observed(wide), show_observed(exact)) == ("4.79 to 11.46", "4.80")
