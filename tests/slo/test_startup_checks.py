"""Every start-up objective against hand-built reports: met, missed, and not known."""

from dataclasses import replace

import pytest

from kvguard.slo.evaluate import evaluate
from kvguard.slo.verdict import CheckKind, CheckResult, Outcome
from kvguard.startup.report import CapacityReport, Derived, FailureKind, Phase, Start, TokenFigure
from kvguard.units import GIB
from tests.slo.reports import ENGINE, LOG, deployment, judged, place, refused, report, slo, start, without_capacity

SILENT = without_capacity(Phase.READY)
LOADING = without_capacity(Phase.LOADING)


def check(of: CapacityReport, **targets: object) -> CheckResult:
    """The one check of an SLO with one objective."""
    (only,) = evaluate(of, slo(**targets)).checks
    return only


@pytest.mark.parametrize(
    "objective, target, outcome, observed, line",
    [
        ("min_concurrency", 2.5, Outcome.PASS, 2.5, 14),
        ("min_concurrency", 2.51, Outcome.FAIL, 2.5, 14),
        ("min_total_concurrency", 2.5, Outcome.PASS, 2.5, 14),
        ("min_total_concurrency", 5, Outcome.FAIL, 2.5, 14),
        ("min_kv_cache_tokens", 40_960, Outcome.PASS, 40_960, 13),
        ("min_kv_cache_tokens", 40_961, Outcome.FAIL, 40_960, 13),
        ("min_kv_cache", round(3.47 * GIB), Outcome.PASS, round(3.47 * GIB), 12),
        ("min_kv_cache", round(3.48 * GIB), Outcome.FAIL, round(3.47 * GIB), 12),
        ("max_weights", round(14.99 * GIB), Outcome.PASS, round(14.99 * GIB), 11),
        ("max_weights", round(14.9 * GIB), Outcome.FAIL, round(14.99 * GIB), 11),
        ("expect_max_model_len", 16_384, Outcome.PASS, 16_384, 5),
        ("expect_max_model_len", 32_768, Outcome.FAIL, 16_384, 5),
        ("expect_kv_cache_dtype", "auto", Outcome.PASS, "auto", 4),
        ("expect_kv_cache_dtype", "fp8", Outcome.FAIL, "auto", 4),
    ],
)
def test_a_printed_figure_is_judged_by_its_digits(
    objective: str, target: float | str, outcome: Outcome, observed: float | str, line: int
) -> None:
    result = check(report(), **{objective: target})
    assert (result.outcome, result.observed, result.kind) == (outcome, observed, CheckKind.PRINTED)
    assert result.place == place(line)
    assert (result.low, result.high) == (None, None)


@pytest.mark.parametrize(
    "objective, target",
    [
        ("min_concurrency", 1),
        ("min_total_concurrency", 1),
        ("min_kv_cache_tokens", 1),
        ("min_kv_cache", 1),
        ("max_weights", GIB),
        ("expect_max_model_len", 16_384),
    ],
)
@pytest.mark.parametrize("silent", [SILENT, LOADING, CapacityReport()], ids=["ready", "loading", "no start"])
def test_what_the_log_does_not_say_is_unknown_and_has_a_remedy(
    objective: str, target: float, silent: CapacityReport
) -> None:
    result = check(silent, **{objective: target})
    assert (result.outcome, result.observed) == (Outcome.UNKNOWN, None)
    assert result.remedy


def test_a_figure_that_is_known_too_early_does_not_count() -> None:
    assert check(report(start(phase=Phase.PROFILING)), max_weights=20 * GIB).outcome is Outcome.UNKNOWN


def test_a_reason_says_what_was_seen_and_what_was_asked() -> None:
    assert check(report(), min_concurrency=3.6).reason == (
        "maximum concurrency at 16,384 tokens is 2.50 requests, below the 3.60 asked for"
    )


def test_figures_that_would_read_alike_get_more_digits() -> None:
    assert "3.470 GiB, below the 3.474 GiB asked for" in check(report(), min_kv_cache=round(3.474 * GIB)).reason


# --- the dtype --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("printed, expected", [("fp8", "fp8_e4m3"), ("fp8_e4m3", "fp8"), ("fp8", "fp8")])
def test_fp8_and_its_alias_are_one_dtype(printed: str, expected: str) -> None:
    assert check(report(start(kv_cache_dtype=printed)), expect_kv_cache_dtype=expected).outcome is Outcome.PASS


def test_a_dtype_that_no_line_tells_is_unknown() -> None:
    assert check(report(start(kv_cache_dtype=None)), expect_kv_cache_dtype="auto").outcome is Outcome.UNKNOWN


# --- several engines --------------------------------------------------------------------------------------------------

WEAK = replace(ENGINE, engine="1", max_concurrency=1.25, kv_cache_tokens=20_480)
TWO = start(engines=(WEAK, ENGINE))


def test_the_weakest_engine_decides_and_is_named() -> None:
    result = check(report(TWO), min_concurrency=2)
    assert (result.outcome, result.observed) == (Outcome.FAIL, 1.25)
    assert result.reason.endswith("(engine 1, the weakest of 2)")


def test_a_total_is_computed_and_as_exact_as_the_token_figures_make_it() -> None:
    twin = replace(ENGINE, max_concurrency=1.25, kv_cache_tokens=20_480)
    exact = start(engines=(twin, twin), block_size=16)
    result = check(report(exact), min_total_concurrency=2.5)
    assert (result.outcome, result.kind, result.low, result.high) == (Outcome.PASS, CheckKind.COMPUTED, 2.5, 2.5)


def test_a_total_that_only_rounding_separates_from_its_target_is_unknown() -> None:
    twin = replace(ENGINE, max_concurrency=1.25, kv_cache_tokens=None)
    result = check(report(start(engines=(twin, twin))), min_total_concurrency=2.5)
    assert result.outcome is Outcome.UNKNOWN
    assert (result.low, result.high) == (pytest.approx(2.49), pytest.approx(2.51))
    assert "cannot be told" in result.reason


@pytest.mark.parametrize(
    "reported, expected, parallel, outcome",
    [
        (2, None, None, Outcome.PASS),
        (2, 2, 2, Outcome.PASS),
        (1, 2, 2, Outcome.UNKNOWN),  # silent, not absent
        (1, None, None, Outcome.UNKNOWN),
        (1, 1, 1, Outcome.FAIL),  # the log itself declares one
        (1, 1, 2, Outcome.UNKNOWN),  # one node of two
        (2, 4, 4, Outcome.FAIL),
        (3, None, None, Outcome.FAIL),
    ],
)
def test_engines_are_counted_against_what_the_log_declares(
    reported: int, expected: int | None, parallel: int | None, outcome: Outcome
) -> None:
    engines = (ENGINE,) * reported
    seen = start(engines=engines, capacity=deployment(*engines, expected=expected), data_parallel_size=parallel)
    assert check(report(seen), expect_engines=2).outcome is outcome


def test_a_missing_engine_leaves_the_capacity_unknown_and_is_named() -> None:
    result = check(report(start(missing=("engine 1",))), min_concurrency=1)
    assert result.outcome is Outcome.UNKNOWN
    assert "still to report: engine 1" in result.reason


# --- figures of other origin ------------------------------------------------------------------------------------------


def test_tokens_of_the_old_engine_follow_from_its_blocks() -> None:
    engine = replace(ENGINE, kv_cache_tokens=None, derived={"kv_cache_tokens": Derived(29_488, "1,843 blocks of 16")})
    result = check(report(start(engines=(engine,))), min_kv_cache_tokens=29_000)
    assert (result.outcome, result.kind, result.observed) == (Outcome.PASS, CheckKind.COMPUTED, 29_488)
    assert "1,843 blocks of 16" in result.reason


def test_a_refused_start_shows_what_share_of_one_request_it_could_hold() -> None:
    result = check(refused(), min_concurrency=2.5)
    assert (result.outcome, result.kind) == (Outcome.FAIL, CheckKind.COMPUTED)
    assert result.observed == pytest.approx(28_432 / 131_072)
    assert result.place == place(5)


def test_a_refusal_in_bytes_does_the_same() -> None:
    of = refused(kv_cache_tokens=None, needed_bytes=16 * GIB, available_bytes=round(3.47 * GIB))
    assert check(of, min_concurrency=2.5).observed == pytest.approx(3.47 / 16)
    assert check(of, min_kv_cache=4 * GIB).outcome is Outcome.FAIL


@pytest.mark.parametrize("kind", [FailureKind.FREE_MEMORY_BELOW_UTILIZATION, FailureKind.OOM])
def test_bytes_of_the_whole_device_tell_nothing_of_the_cache(kind: FailureKind) -> None:
    of = refused(kind=kind, kv_cache_tokens=None, needed_bytes=72 * GIB, available_bytes=71 * GIB)
    assert check(of, min_concurrency=0.5).outcome is Outcome.UNKNOWN
    assert check(of, min_kv_cache=4 * GIB).outcome is Outcome.UNKNOWN


def test_a_declared_cache_is_marked_as_not_measured() -> None:
    assert "declared, not measured" in check(report(start(kv_cache_basis="declared")), min_kv_cache=GIB).reason


def test_a_context_that_was_cut_says_from_what() -> None:
    cut = check(report(start(requested_max_model_len=262_144)), expect_max_model_len=262_144)
    assert cut.outcome is Outcome.FAIL
    assert "cut from 262,144 to fit" in cut.reason


# --- thin margins -----------------------------------------------------------------------------------------------------


def test_printed_digits_pass_and_a_lower_exact_value_warns() -> None:
    engine = replace(ENGINE, kv_cache_tokens=40_900, token_figure=TokenFigure.CONCURRENCY_TIMES_LEN)
    verdict = evaluate(report(start(engines=(engine,))), slo(min_concurrency=2.5))
    assert verdict.outcome is Outcome.PASS
    (warning,) = verdict.warnings
    assert (warning.code, warning.place) == ("thin-margin", place(14))
    assert "2.4964" in warning.message


def test_an_exact_value_that_follows_from_the_blocks_is_known_as_well() -> None:
    """V0 prints blocks, and no tokens: 3,686 of 16 are 3.5996 requests of 16,384."""
    verdict = judged("story/16k-fp8-cache.log", slo(min_concurrency=3.6))
    assert verdict.outcome is Outcome.PASS
    (warning,) = [warning for warning in verdict.warnings if warning.code == "thin-margin"]
    assert "prints as 3.60 requests, which meets the target; the exact value is at most 3.5997" in warning.message


def test_no_margin_is_thin_where_the_exact_value_meets_the_target() -> None:
    assert evaluate(report(), slo(min_concurrency=2.5)).warnings == ()


def test_the_log_is_named_by_every_place() -> None:
    of: Start = start()
    assert all(where.source == LOG for where in of.lines.values())
