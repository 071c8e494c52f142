"""The verdict as a whole: phases, failures, warnings, silent logs, and what outweighs what."""

from dataclasses import replace

import pytest

from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Objective, Severity, Slo
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.startup.report import (
    CapacityReport,
    Failure,
    FailureKind,
    LogCounts,
    Memory,
    Phase,
    StartWarning,
    Timings,
    Unrecognized,
)
from kvguard.units import GIB
from tests.slo.reports import ENGINE, LOG, judged, place, refused, report, slo, start, under_load, without_capacity

CUT = StartWarning("context-auto-reduced", "max_model_len was reduced from 262,144 to 16,384", place(9))


def codes(verdict: Verdict) -> list[str]:
    return [reason.code for reason in verdict.reasons]


# --- without any objective --------------------------------------------------------------------------------------------


def test_without_objectives_a_reported_capacity_passes() -> None:
    verdict = evaluate(report(), slo())
    assert (verdict.outcome, codes(verdict)) == (Outcome.PASS, ["capacity-reported"])


def test_without_objectives_a_failed_start_fails() -> None:
    assert evaluate(refused(), slo()).outcome is Outcome.FAIL


@pytest.mark.parametrize("phase", [Phase.NONE, Phase.LOADING, Phase.PROFILING, Phase.READY])
def test_without_objectives_a_capacity_that_is_not_known_is_unknown(phase: Phase) -> None:
    assert evaluate(without_capacity(phase), slo()).outcome is Outcome.UNKNOWN


# --- phases -----------------------------------------------------------------------------------------------------------


def test_a_capacity_counts_before_ready_with_a_warning() -> None:
    verdict = evaluate(report(start(phase=Phase.ALLOCATED)), slo(min_concurrency=2.5))
    assert verdict.outcome is Outcome.PASS
    assert [warning.code for warning in verdict.warnings] == ["start-not-finished"]


@pytest.mark.parametrize(
    "phase, outcome",
    [
        (Phase.LOADING, Outcome.UNKNOWN),
        (Phase.ALLOCATED, Outcome.UNKNOWN),
        (Phase.READY, Outcome.PASS),
        (Phase.STOPPED, Outcome.PASS),
        (Phase.FAILED, Outcome.FAIL),
    ],
)
def test_require_ready_waits_for_the_ready_line(phase: Phase, outcome: Outcome) -> None:
    assert evaluate(report(start(phase=phase)), slo(require_ready=True)).outcome is outcome


@pytest.mark.parametrize(
    "phase, ready, outcome",
    [
        (Phase.READY, 412.0, Outcome.PASS),
        (Phase.READY, 600.0, Outcome.PASS),
        (Phase.READY, 601.0, Outcome.FAIL),
        (Phase.READY, None, Outcome.UNKNOWN),  # ready without any stamp
        (Phase.STOPPED, 412.0, Outcome.PASS),
        (Phase.FAILED, None, Outcome.FAIL),
    ],
)
def test_ready_within_is_held_against_the_ready_line(phase: Phase, ready: float | None, outcome: Outcome) -> None:
    verdict = evaluate(report(start(phase=phase, timings=Timings(ready=ready))), slo(ready_within=600.0), 9999.0)
    assert (verdict.checks[-1].objective, verdict.checks[-1].outcome) == ("ready_within", outcome)
    assert verdict.outcome is outcome


@pytest.mark.parametrize(
    "stamps, clock, now, outcome",
    [
        ((1000.0, 1300.0), (None, None), None, Outcome.UNKNOWN),  # five minutes into a log
        ((1000.0, 1601.0), (None, None), None, Outcome.FAIL),  # the log itself goes on for longer
        ((1000.0, 1300.0), (5.0, 305.0), 605.0, Outcome.UNKNOWN),  # silent for five minutes: exactly in time
        ((1000.0, 1300.0), (5.0, 305.0), 606.0, Outcome.FAIL),
        ((366 * 86400.0 - 60, 30.0), (None, None), None, Outcome.UNKNOWN),  # across New Year
        ((None, None), (5.0, 305.0), 604.0, Outcome.UNKNOWN),  # no stamps: the time of arrival
        ((None, None), (5.0, 305.0), 606.0, Outcome.FAIL),
        ((None, None), (None, None), None, Outcome.UNKNOWN),
    ],
)
def test_ready_within_is_open_until_its_time_is_up(
    stamps: tuple[float | None, float | None],
    clock: tuple[float | None, float | None],
    now: float | None,
    outcome: Outcome,
) -> None:
    loading = start(
        phase=Phase.ALLOCATED,
        timings=Timings(),
        began=stamps[0],
        latest=stamps[1],
        began_clock=clock[0],
        latest_clock=clock[1],
    )
    assert evaluate(report(loading), slo(ready_within=600.0), now).checks[-1].outcome is outcome


def test_no_start_at_all_leaves_readiness_unknown() -> None:
    verdict = evaluate(CapacityReport(), slo(require_ready=True, ready_within=10.0))
    assert [check.outcome for check in verdict.checks] == [Outcome.UNKNOWN, Outcome.UNKNOWN]


# --- what outweighs what ----------------------------------------------------------------------------------------------


def test_a_miss_outweighs_what_is_not_known_and_comes_first() -> None:
    silent = start(kv_cache_dtype=None)
    verdict = evaluate(report(silent), slo(expect_kv_cache_dtype="fp8", min_concurrency=3))
    assert (verdict.outcome, codes(verdict)) == (Outcome.FAIL, ["min_concurrency", "expect_kv_cache_dtype"])


def test_one_unknown_check_makes_the_verdict_unknown() -> None:
    verdict = evaluate(report(start(kv_cache_dtype=None)), slo(expect_kv_cache_dtype="fp8", min_concurrency=2))
    assert (verdict.outcome, codes(verdict)) == (Outcome.UNKNOWN, ["expect_kv_cache_dtype"])


def test_a_start_that_failed_after_its_capacity_fails_whatever_it_had() -> None:
    crashed = start(phase=Phase.FAILED, failure=Failure(FailureKind.OOM, "CUDA out of memory.", place(30)))
    verdict = evaluate(report(crashed), slo(min_concurrency=2.5))
    assert verdict.outcome is Outcome.FAIL
    assert verdict.checks[0].outcome is Outcome.PASS
    assert codes(verdict) == ["start-failed"]


def test_a_pass_says_what_was_met() -> None:
    one = evaluate(report(), slo(min_concurrency=2.5))
    two = evaluate(report(), slo(min_concurrency=2.5, max_weights=15 * GIB))
    assert one.reasons[0].message.startswith("maximum concurrency at 16,384 tokens is 2.50 requests, at least")
    assert two.reasons[0].message == "both objectives are met"


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_refused_context_names_what_was_asked_what_fits_and_what_to_set() -> None:
    reason = evaluate(refused(), slo(min_concurrency=2.5)).reasons[0]
    assert reason.message == ("the start failed: a context of 131,072 tokens was asked for, 28,432 fit in the KV cache")
    assert reason.place == place(5)
    assert reason.remedy is not None
    assert reason.remedy.startswith("set --max-model-len 28432 or less")


@pytest.mark.parametrize(
    "failure, message, remedy",
    [
        (
            {"kind": FailureKind.KV_CACHE_TOO_SMALL, "needed_bytes": 16 * GIB, "available_bytes": 4 * GIB},
            "needs 16.00 GiB of KV cache, 4.00 GiB are available",
            "lower --max-model-len",
        ),
        (
            {"kind": FailureKind.NO_KV_MEMORY, "available_bytes": round(-0.87 * GIB)},
            "weights and activations leave -0.87 GiB for the KV cache",
            "raise --gpu-memory-utilization",
        ),
        (
            {
                "kind": FailureKind.FREE_MEMORY_BELOW_UTILIZATION,
                "needed_bytes": round(21.6 * GIB),
                "available_bytes": round(21.55 * GIB),
                "transient": True,
            },
            "21.55 GiB of device memory are free, gpu_memory_utilization asks for 21.60 GiB: 0.05 GiB short",
            "at most 0.89 with what is free now",
        ),
        ({"kind": FailureKind.OOM}, "the device ran out of memory: boom", "the weights do not fit"),
        ({"kind": FailureKind.INVALID_CONFIG}, "an argument is wrong: boom", "correct the argument"),
        ({"kind": FailureKind.ENGINE_CRASH}, "an engine process died: boom", "read the traceback"),
        ({"kind": FailureKind.KILLED}, "a process was killed: boom", "whether the host ran out of memory"),
        ({"kind": FailureKind.OTHER}, "vLLM gave up: boom", "read the message"),
    ],
)
def test_every_kind_of_failure_has_its_numbers_and_a_remedy(
    failure: dict[str, object], message: str, remedy: str
) -> None:
    told = Failure(message="boom", place=place(9), **failure)  # type: ignore[arg-type]
    failed = without_capacity(Phase.FAILED, failure=told, memory=Memory(total_gpu=24 * GIB))
    reason = evaluate(failed, slo()).reasons[0]
    assert message in reason.message
    assert remedy in str(reason.remedy)


def test_every_failure_kind_is_worded() -> None:
    for kind in FailureKind:
        failed = without_capacity(Phase.FAILED, failure=Failure(kind, "boom", place(9)))
        assert evaluate(failed, slo()).reasons[0].remedy


def test_a_failed_start_without_a_cause_says_so() -> None:
    assert "no line says why" in evaluate(without_capacity(Phase.FAILED), slo()).reasons[0].message


# --- logs that do not say enough --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "of, code, remedy",
    [
        (CapacityReport(), "empty-log", "stdout and stderr"),
        (CapacityReport(counts=LogCounts(bytes=900, lines=12)), "not-a-vllm-log", "give the log of the vLLM"),
        (CapacityReport(counts=LogCounts(bytes=900, lines=12, records=9)), "no-start-seen", "from its beginning"),
        (without_capacity(Phase.PROFILING), "capacity-not-reported", "give the whole log"),
        (report(start(missing=("engine 1",))), "engines-missing", "all nodes"),
        (without_capacity(Phase.READY), "capacity-not-printed", "VLLM_LOGGING_LEVEL=INFO"),
        (without_capacity(Phase.READY, missing=("engine 0",)), "capacity-not-printed", "VLLM_LOGGING_LEVEL=INFO"),
    ],
)
def test_an_unknown_verdict_says_why_and_what_would_settle_it(of: CapacityReport, code: str, remedy: str) -> None:
    verdict = evaluate(of, slo())
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.reasons[0].code == code
    assert remedy in str(verdict.reasons[0].remedy)


def test_a_wording_that_nobody_knows_is_named_where_it_leaves_the_capacity_open() -> None:
    strange = Unrecognized(place(23), "GPU KV cache holds 40960 tokens")
    verdict = evaluate(replace(without_capacity(Phase.READY), unrecognized=(strange,)), slo(min_concurrency=1))
    assert (verdict.reasons[0].code, verdict.reasons[0].place) == ("unrecognized-capacity-line", place(23))


# --- warnings ---------------------------------------------------------------------------------------------------------


def test_a_context_that_was_cut_silently_fails() -> None:
    verdict = evaluate(report(start(warnings=(CUT,))), slo(min_concurrency=2))
    assert (verdict.outcome, codes(verdict)) == (Outcome.FAIL, ["context-auto-reduced"])
    assert "expect_max_model_len" in str(verdict.reasons[0].remedy)


def test_a_cut_context_passes_where_the_slo_expects_what_is_served() -> None:
    verdict = evaluate(report(start(warnings=(CUT,))), slo(expect_max_model_len=16_384))
    assert verdict.outcome is Outcome.PASS
    assert verdict.warnings[0].severity is Severity.NOTE


@pytest.mark.parametrize("severity", [Severity.IGNORE, Severity.WARN, Severity.NOTE])
def test_a_cut_context_passes_where_the_slo_says_so(severity: Severity) -> None:
    allowed = slo(severities={"context-auto-reduced": severity})
    assert evaluate(report(start(warnings=(CUT,))), allowed).outcome is Outcome.PASS


def test_strict_turns_a_warning_into_a_miss() -> None:
    skipped = StartWarning("profiling-skipped", "the KV cache was declared, not measured", place(8))
    noted = StartWarning("restarted", "the server has started twice", place(1))
    assert evaluate(report(start(warnings=(skipped, noted))), slo()).outcome is Outcome.PASS
    strict = evaluate(report(start(warnings=(skipped, noted))), slo(strict=True))
    assert (strict.outcome, codes(strict)) == (Outcome.FAIL, ["profiling-skipped"])


# --- load -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "objective, target, figures, outcome",
    [
        ("max_waiting_requests", 10, {"peak_waiting": 10}, Outcome.PASS),
        ("max_waiting_requests", 10, {"peak_waiting": 16}, Outcome.FAIL),
        ("max_waiting_requests", 10, {}, Outcome.UNKNOWN),
        ("max_kv_cache_usage", 0.95, {"peak_kv_cache_usage": 0.85}, Outcome.PASS),
        ("max_kv_cache_usage", 0.95, {"peak_kv_cache_usage": 0.981}, Outcome.FAIL),
        ("max_kv_cache_usage", 0.95, {}, Outcome.UNKNOWN),
        ("max_preemptions", 0, {"preemptions": 0}, Outcome.PASS),
        ("max_preemptions", 0, {"preemptions": 480}, Outcome.FAIL),
        ("max_preemptions", 0, {}, Outcome.UNKNOWN),
    ],
)
def test_load_is_judged_by_the_stats_lines(
    objective: str, target: float, figures: dict[str, object], outcome: Outcome
) -> None:
    (result,) = evaluate(under_load(**figures), slo(**{objective: target})).checks
    assert (result.outcome, result.place) == (outcome, None if outcome is Outcome.UNKNOWN else place(55))


def test_a_log_without_load_leaves_the_run_time_objectives_unknown() -> None:
    (result,) = evaluate(report(), slo(max_waiting_requests=10)).checks
    assert result.outcome is Outcome.UNKNOWN
    assert "load test" in str(result.remedy)


def test_load_changes_the_verdict_but_never_the_gate() -> None:
    busy = under_load(peak_waiting=16)
    verdict = evaluate(busy, slo(min_concurrency=2.5, max_waiting_requests=10))
    assert (verdict.outcome, verdict.gate_outcome) == (Outcome.FAIL, Outcome.PASS)
    calm = evaluate(under_load(peak_waiting=1), slo(min_concurrency=2.5, max_waiting_requests=10))
    assert (calm.outcome, calm.gate_outcome) == (Outcome.PASS, Outcome.PASS)


def test_places_carry_the_source_that_they_stand_in() -> None:
    assert evaluate(report(), slo(min_concurrency=2.5)).checks[0].place == place(14)
    assert place(14).source == LOG


# --- severities of objectives -----------------------------------------------------------------------------------------


def test_a_softened_miss_is_told_and_does_not_fail() -> None:
    asked = slo(max_weights=14 * GIB, min_concurrency=2.5)
    lenient = replace(asked, objectives=tuple(_softened(o, "max_weights") for o in asked.objectives))
    verdict = evaluate(report(), lenient)
    assert verdict.outcome is Outcome.PASS
    assert [(warning.code, warning.severity) for warning in verdict.warnings] == [("objective-missed", Severity.WARN)]
    assert evaluate(report(), replace(lenient, strict=True)).outcome is Outcome.FAIL


def test_a_pass_without_any_objective_that_counts_says_whether_one_was_given() -> None:
    softened = Slo(objectives=tuple(_softened(o, "min_concurrency") for o in slo(min_concurrency=999).objectives))
    said = [evaluate(report(), asked).reasons[0].message for asked in (Slo(), softened)]
    figure = "maximum concurrency at 16,384 tokens is 2.50 requests"
    assert said == [f"{figure}; no objective was given", f"{figure}; no objective that was given can fail it"]


@pytest.mark.parametrize(
    ("changes", "said", "line"),
    [
        ({}, "maximum concurrency at 16,384 tokens is 2.50 requests", 14),
        ({"max_concurrency": None}, "KV cache size is 40,960 tokens", 13),
        ({"max_concurrency": None, "kv_cache_tokens": None, "gpu_blocks": 2_560}, "the cache has 2,560 blocks", None),
    ],
)
def test_a_start_of_which_nothing_is_asked_says_the_figure_that_it_told(
    changes: dict[str, object], said: str, line: int | None
) -> None:
    engine = replace(ENGINE, **changes)  # type: ignore[arg-type]
    reason = evaluate(report(start(engines=(engine,))), Slo()).reasons[0]
    assert (reason.code, reason.message) == ("capacity-reported", f"{said}; no objective was given")
    assert (reason.place and reason.place.line) == line


def test_a_softened_objective_that_is_not_known_leaves_the_verdict_alone() -> None:
    asked = slo(expect_kv_cache_dtype="fp8", min_concurrency=2.5)
    lenient = replace(asked, objectives=tuple(_softened(o, "expect_kv_cache_dtype") for o in asked.objectives))
    assert evaluate(report(start(kv_cache_dtype=None)), lenient).outcome is Outcome.PASS


def _softened(objective: Objective, key: str) -> Objective:
    return replace(objective, severity=Severity.WARN) if objective.kind.key == key else objective


def test_what_a_log_leaves_out_beside_its_capacity_says_where_it_would_stand() -> None:
    """112 blocks and nothing else: the tokens that follow miss without a lever, the concurrency is in no line."""
    asked = slo(min_kv_cache_tokens=4_000_000, min_concurrency=50)
    found = judged("pairs/a01-blocks-lost-in-an-upgrade/new.log", asked).checks
    assert [(check.objective, check.outcome, check.remedy) for check in found] == [
        (
            "min_kv_cache_tokens",
            Outcome.FAIL,
            "give the KV cache more memory: raise --gpu-memory-utilization, quantise the weights, or split them "
            "(--tensor-parallel-size)",
        ),
        (
            "min_concurrency",
            Outcome.UNKNOWN,
            "give the log from its first line on, at VLLM_LOGGING_LEVEL=INFO (its default), if the release prints that",
        ),
    ]


def test_what_a_failed_start_misses_beside_has_its_own_remedy() -> None:
    asked = slo(expect_max_model_len=4_096, min_concurrency=50)
    found = judged("pairs/a03-sampler-warm-up-out-of-memory/new.log", asked).checks
    assert [(check.outcome, check.remedy) for check in found] == [
        (Outcome.FAIL, "set --max-model-len 4096, or correct the SLO"),
        (Outcome.FAIL, None),  # why the start failed says what to do
    ]


@pytest.mark.parametrize(
    "targets, remedy",
    [
        ({"max_weights": GIB}, "quantise the weights"),
        ({"expect_max_model_len": 32_768}, "set --max-model-len 32768"),
        ({"expect_kv_cache_dtype": "fp8"}, "set --kv-cache-dtype fp8"),
        ({"expect_engines": 0}, "set --data-parallel-size 0"),
        ({"ready_within": 60.0}, "kvguard inspect LOG"),
    ],
)
def test_a_miss_that_no_lever_mends_has_a_remedy(targets: dict[str, object], remedy: str) -> None:
    (check,) = evaluate(report(), slo(**targets)).checks
    assert check.outcome is Outcome.FAIL
    assert remedy in str(check.remedy)
