"""Like with like, the budget's sum, and what the comparison says of options, gains and missing facts."""

from dataclasses import replace
from pathlib import Path

import pytest

from kvguard import Guard
from kvguard.slo.baselines.baseline import Baseline, Figure, baseline_of
from kvguard.slo.baselines.budget import budget_change
from kvguard.slo.baselines.difference import difference
from kvguard.slo.baselines.evidence import factor, signed_bytes
from kvguard.slo.baselines.likeness import Likeness, compared
from kvguard.slo.baselines.pair import OptionChange, Pair
from kvguard.slo.evaluate import evaluate
from kvguard.slo.objectives import Severity, Slo
from kvguard.slo.verdict import CheckResult, Outcome
from kvguard.startup.report import CapacityReport, TokenFigure
from kvguard.units import GIB, Interval
from tests.slo.reports import ENGINE, deployment, report, slo, start, without_capacity

OLD = Baseline(
    sources=("baseline.json",),
    vllm_version="0.13.0",
    generation="V1",
    token_figure=TokenFigure.POOL,
    layers="uniform",
    basis="profiled",
    engines_expected=1,
    weakest={
        "kv_cache_tokens": Figure(40_960, 40_960),
        "max_concurrency": Figure(2.5, 2.5, 0.005),
        "kv_cache_bytes": Figure(5 * GIB, 5 * GIB, 0.005 * GIB),
    },
    options={"model": "acme/Quill-8B", "max_model_len": 16_384, "kv_cache_dtype": "auto", "tensor_parallel_size": 1},
    arguments_told=True,
)


def new(**changes: object) -> Baseline:
    return replace(OLD, sources=("vllm.log",), **changes)  # type: ignore[arg-type]


def figures(**changes: float | None) -> dict[str, Figure]:
    """The old figures with some changed, or gone."""
    kept = {name: figure for name, figure in OLD.weakest.items() if changes.get(name, 0) is not None}
    return {
        name: Figure(changes[name], changes[name], f.rounding) if name in changes else f for name, f in kept.items()
    }  # type: ignore[arg-type]


def likeness(other: Baseline) -> Likeness:
    found = compared(Pair(OLD, other))
    assert isinstance(found, Likeness)
    return found


# --- which figure -----------------------------------------------------------------------------------------------------


def test_tokens_are_compared_where_they_mean_the_same() -> None:
    found = likeness(new(weakest=figures(kv_cache_tokens=30_720)))
    assert (found.figure, found.drop.low, found.drop.high) == ("kv_cache_tokens", 0.25, 0.25)


@pytest.mark.parametrize(
    "old_layers, changes, figure, why",
    [
        (
            None,
            {"token_figure": TokenFigure.CONCURRENCY_TIMES_LEN},
            "max_concurrency",
            "reported differently since 0.20.1",
        ),
        ("uniform", {"token_figure": TokenFigure.CONCURRENCY_TIMES_LEN}, "kv_cache_tokens", None),
        (None, {"weakest": figures(kv_cache_tokens=None)}, "max_concurrency", None),
        (
            None,
            {"weakest": figures(kv_cache_tokens=None), "options": {**OLD.options, "max_model_len": 32_768}},
            "kv_cache_bytes",
            "maximum concurrency: at another max_model_len",
        ),
    ],
)
def test_the_next_figure_is_taken_where_a_better_one_is_not_like(
    old_layers: str | None, changes: dict[str, object], figure: str, why: str | None
) -> None:
    found = compared(Pair(replace(OLD, layers=old_layers), new(layers=None, **changes)))
    assert isinstance(found, Likeness)
    assert found.figure == figure
    assert why is None or why in "; ".join(found.passed_over)


def test_a_later_token_figure_needs_the_same_length() -> None:
    later = replace(OLD, token_figure=TokenFigure.CONCURRENCY_TIMES_LEN, layers=None)
    longer = replace(later, options={**OLD.options, "max_model_len": 32_768})
    found = compared(Pair(later, longer))
    assert isinstance(found, Likeness)
    assert found.figure == "kv_cache_bytes"


def test_blocks_of_another_size_are_not_like() -> None:
    blocks = {"gpu_blocks": Figure(2_560, 2_560)}
    old = replace(OLD, weakest=blocks, options={**OLD.options, "block_size": 16})
    other = replace(old, options={**OLD.options, "block_size": 128})
    told = "blocks: of another size; not told by both: KV cache size, maximum concurrency, KV cache memory of a rank"
    assert compared(Pair(old, other)) == told


def test_bytes_of_another_dtype_are_not_like() -> None:
    only = {"kv_cache_bytes": Figure(GIB, GIB)}
    fp8 = new(weakest=only, options={**OLD.options, "kv_cache_dtype": "fp8"})
    assert "with another kv_cache_dtype" in str(compared(Pair(replace(OLD, weakest=only), fp8)))


def test_another_model_is_not_compared() -> None:
    other = new(options={**OLD.options, "model": "acme/Osprey-30B"})
    assert compared(Pair(OLD, other)) == "another model: acme/Quill-8B before, acme/Osprey-30B now"


def test_a_model_is_the_same_from_a_folder() -> None:
    assert Pair(OLD, new(options={**OLD.options, "model": "/models/Quill-8B/"})).same("model")


# --- how much ---------------------------------------------------------------------------------------------------------


def test_the_same_digits_have_not_dropped() -> None:
    found = likeness(new(weakest=figures(kv_cache_tokens=None)))
    assert (found.figure, found.drop.low, found.drop.high) == ("max_concurrency", 0.0, 0.0)


def test_rounding_makes_the_drop_an_interval() -> None:
    found = likeness(new(weakest=figures(kv_cache_tokens=None, max_concurrency=2.25)))
    assert found.drop.low == pytest.approx(1 - 2.255 / 2.495)
    assert found.drop.high == pytest.approx(1 - 2.245 / 2.505)


def test_a_baseline_of_several_starts_counts_from_its_lowest() -> None:
    spread = replace(OLD, weakest={**OLD.weakest, "kv_cache_tokens": Figure(40_000, 42_000)})
    found = compared(Pair(spread, new(weakest=figures(kv_cache_tokens=40_000))))
    assert isinstance(found, Likeness)
    assert found.drop.high == 0.0


# --- where the memory went --------------------------------------------------------------------------------------------


def parts(**gib: float) -> dict[str, Figure]:
    return {name: Figure(value * GIB, value * GIB) for name, value in gib.items()}


BEFORE = replace(OLD, memory=parts(usable=21.6, weights=15, non_torch=0.12, activation_peak=1.26, kv_cache=5.22))


def test_the_parts_sum_up_to_the_cache() -> None:
    after = new(
        memory=parts(usable=21.6, weights=15, non_torch=4.21, activation_peak=1.26, kv_cache=1.13),
        weakest=figures(kv_cache_bytes=1.13 * GIB, kv_cache_tokens=9_264, max_concurrency=0.57),
    )
    found = difference(replace(BEFORE, weakest=figures(kv_cache_bytes=5.22 * GIB, kv_cache_tokens=42_768)), after)
    assert found.causes[0] == "KV cache −4.09 GiB (×0.22): non-torch memory +4.09 GiB"
    assert found.budget.unexplained == pytest.approx(0, abs=0.01 * GIB)
    assert found.budget.tokens(found.budget.cache.change) == pytest.approx(-33_500, rel=0.01)


def test_what_no_part_explains_is_shown_in_bytes() -> None:
    after = new(memory=BEFORE.memory, weakest=figures(kv_cache_bytes=4 * GIB, kv_cache_tokens=32_768))
    found = difference(BEFORE, after)
    assert found.causes[0] == "KV cache −1.00 GiB (−20 %): unexplained −1.00 GiB"


def test_another_card_is_named() -> None:
    small = new(memory=parts(total_gpu=22.05, usable=19.84), weakest=figures(kv_cache_bytes=3.47 * GIB))
    large = replace(OLD, memory=parts(total_gpu=24, usable=21.6))
    assert "another card: 24.00 GiB → 22.05 GiB of device memory" in difference(large, small).causes
    assert difference(large, small).causes[0].startswith("KV cache −1.53 GiB (−31 %): memory that vLLM may use −1.76")


def test_weights_and_non_torch_memory_are_joined_where_one_side_prints_them_so() -> None:
    joined = replace(
        new(vllm_version="0.27.1"), memory=parts(consumed=15.3, activation_peak=2.0, cuda_graphs_estimated=0.7)
    )
    names = {part.name: (part.old, part.new) for part in budget_change(Pair(BEFORE, joined)).parts}
    assert names["consumed"] == (pytest.approx(15.12 * GIB), pytest.approx(15.3 * GIB))
    assert names["activation_peak"][1] == pytest.approx(1.3 * GIB)  # the graphs stand in the peak since 0.27.0
    assert names["cuda_graphs"] == (0.0, pytest.approx(0.7 * GIB))


def test_a_cache_without_bytes_follows_from_the_other_s() -> None:
    silent = replace(OLD, weakest=figures(kv_cache_bytes=None))
    cache = budget_change(Pair(silent, new(weakest=figures(kv_cache_tokens=20_480, kv_cache_bytes=2.5 * GIB)))).cache
    assert (cache.old, cache.computed) == (pytest.approx(5 * GIB), (True, False))


@pytest.mark.parametrize(
    "ratio, words",
    [(0.5, "halved"), (2.0, "doubled"), (0.88, "−12 %"), (1.1, "+10 %"), (9.61, "×9.6"), (0.25, "×0.25")],
)
def test_a_ratio_is_said_in_words(ratio: float, words: str) -> None:
    assert factor(ratio) == words


def test_a_change_has_its_sign() -> None:
    assert (signed_bytes(4.09 * GIB), signed_bytes(-0.1 * GIB)) == ("+4.09 GiB", "−0.10 GiB")


# --- options ----------------------------------------------------------------------------------------------------------


def test_options_that_differ_are_named_and_defaults_too() -> None:
    other = new(options={**OLD.options, "max_model_len": 32_768, "gpu_memory_utilization": 0.85, "max_num_seqs": 64})
    assert list(Pair(OLD, other).changed_options()) == [
        OptionChange("max_model_len", 16_384, 32_768),
        OptionChange("gpu_memory_utilization", 0.9, 0.85),
        OptionChange("max_num_seqs", "default", 64),
    ]


def test_what_a_log_does_not_list_is_not_said_to_differ() -> None:
    silent = replace(OLD, arguments_told=False)
    other = new(options={**OLD.options, "gpu_memory_utilization": 0.85, "block_size": 16})
    assert list(Pair(silent, other).changed_options()) == []


def test_a_concurrency_halves_with_a_doubled_context() -> None:
    other = new(options={**OLD.options, "max_model_len": 32_768}, weakest=figures(max_concurrency=1.25))
    assert difference(OLD, other).causes == (
        "concurrency halved: max_model_len doubled (16,384 → 32,768), the pool is the same",
    )


def test_blocks_that_an_option_fixes_are_never_the_same_pool() -> None:
    other = new(
        options={**OLD.options, "max_model_len": 32_768, "num_gpu_blocks_override": 100},
        weakest=figures(max_concurrency=0.05),
    )
    assert difference(OLD, other).causes == (
        "num_gpu_blocks_override default → 100: the option fixes the pool, whatever the memory would hold",
        "concurrency ×0.02: max_model_len doubled (16,384 → 32,768), and the pool changed as well",
    )


# --- the verdict ------------------------------------------------------------------------------------------------------

BASE = baseline_of([report(start(model="acme/Quill-8B"))])


def against(baseline: Baseline, max_drop: float = 0.05, **changes: object) -> CheckResult:
    asked = replace(slo(max_drop=max_drop), baseline=baseline)
    (check,) = evaluate(report(start(model="acme/Quill-8B", **changes)), asked).checks
    return check


def lower(tokens: int) -> dict[str, object]:
    engine = replace(ENGINE, kv_cache_tokens=tokens, max_concurrency=round(tokens / 16_384, 2))
    return {"engines": (engine,), "capacity": deployment(engine)}


def test_a_small_loss_passes_and_a_large_one_fails() -> None:
    assert against(BASE, **lower(40_000)).outcome is Outcome.PASS
    failed = against(BASE, **lower(30_000))
    assert (failed.outcome, failed.observed) == (Outcome.FAIL, pytest.approx(1 - 30_000 / 40_960))
    assert "KV cache size 40,960 tokens before, 30,000 tokens now" in failed.reason


def of_run(name: str) -> CapacityReport:
    guard = Guard(source=name)
    guard.feed(Path(f"fixtures/logs/runs/vllm-{name}/server.log").read_bytes())
    guard.end()
    return guard.report


@pytest.mark.parametrize("release", ["0.13.0", "0.27.1", "0.32.0"])
def test_engines_that_are_gone_are_a_loss_of_the_total(release: str) -> None:
    both = of_run(f"{release}-cpu-dp2")
    one = of_run("0.32.0-cpu-base" if release == "0.32.0" else f"{release}-cpu-base-load")
    (check,) = evaluate(one, replace(slo(max_drop=0.05), baseline=baseline_of([both]))).checks
    assert check.outcome is Outcome.FAIL
    assert check.observed == pytest.approx(0.5)
    assert "engines 2 → 1: each has a pool of its own" in check.reason
    assert not difference(baseline_of([both]), baseline_of([one])).same_capacity


@pytest.mark.parametrize(("told", "differs"), [(1, False), (4, True)])
def test_a_default_that_one_release_alone_prints_is_no_difference(told: int, differs: bool) -> None:
    silent, telling = (replace(BASE, arguments_told=True, options=options) for options in ({}, {"max_loras": told}))
    for old, new in ((silent, telling), (telling, silent)):
        assert [change.name for change in difference(old, new).options] == ["max_loras"] * differs


def test_engines_that_have_come_make_up_for_no_smaller_one() -> None:
    both, one = of_run("0.32.0-cpu-dp2"), of_run("0.32.0-cpu-base")
    (check,) = evaluate(both, replace(slo(max_drop=0.05), baseline=baseline_of([one]))).checks
    assert (check.outcome, check.observed) == (Outcome.PASS, 0.0)


def test_a_larger_pool_makes_up_for_an_engine_that_is_gone() -> None:
    two, three = replace(BASE, engines_expected=2), replace(BASE, engines_expected=3)
    doubled = replace(BASE, engines_expected=1, weakest={"kv_cache_tokens": Figure(81_920, 81_920)})
    (found_two, found_three) = (difference(old, doubled).likeness for old in (two, three))
    assert found_two is not None
    assert found_three is not None
    assert found_two.drop == Interval.exact(0.0)
    assert found_three.drop.low == pytest.approx(1 / 3)


def test_an_empty_pool_before_is_nothing_to_compare_with() -> None:
    check = against(replace(BASE, weakest={"kv_cache_tokens": Figure(0, 0)}))
    assert check.outcome is Outcome.UNKNOWN
    assert "KV cache size: nothing was there before" in check.reason


def test_another_model_has_no_causes_in_its_figures() -> None:
    found = difference(*(baseline_of([of_run(f"0.32.0-cpu-{name}")]) for name in ("base", "gemma3-hybrid")))
    assert (found.not_comparable or "").startswith("another model: ")
    assert found.causes == ()


def test_no_loss_meets_no_drop_at_all() -> None:
    assert against(BASE, max_drop=0.0).outcome is Outcome.PASS


def test_nothing_in_common_is_unknown_not_equal() -> None:
    check = against(replace(BASE, weakest={}))
    assert check.outcome is Outcome.UNKNOWN
    assert "no figure means the same in both" in check.reason


def test_a_start_without_its_capacity_is_unknown() -> None:
    from kvguard.startup.report import Phase

    asked = replace(slo(max_drop=0.05), baseline=BASE)
    assert evaluate(without_capacity(Phase.PROFILING), asked).checks[0].outcome is Outcome.UNKNOWN


def test_a_drop_without_a_baseline_is_unknown() -> None:
    assert evaluate(report(), slo(max_drop=0.05)).checks[0].outcome is Outcome.UNKNOWN


def warned(asked: Slo, **changes: object) -> dict[str, str]:
    verdict = evaluate(report(start(model="acme/Quill-8B", **changes)), asked)
    return {warning.code: warning.message for warning in verdict.warnings}


def test_options_that_differ_are_warned_of_and_whether_the_comparison_stands() -> None:
    asked = replace(slo(max_drop=0.05), baseline=BASE)
    message = (
        warned(asked, tensor_parallel_size=2)["arguments-differ"] if BASE.options.get("tensor_parallel_size") else ""
    )
    assert message == "" or "the comparison stands" in message
    fp8 = warned(asked, kv_cache_dtype="fp8")["arguments-differ"]
    assert fp8 == (
        "the baseline ran with other options: kv_cache_dtype auto → fp8; the comparison stands by KV cache size"
    )


def test_a_gain_that_nobody_asked_for_is_implausible() -> None:
    asked = replace(slo(max_drop=0.05), baseline=BASE)
    assert "implausible-gain" in warned(asked, **lower(81_920))
    assert "implausible-gain" not in warned(asked, kv_cache_dtype="fp8", **lower(81_920))
    assert "implausible-gain" not in warned(asked, **lower(42_000))


def test_the_warnings_of_a_comparison_follow_the_slo() -> None:
    asked = replace(slo(max_drop=0.05, severities={"implausible-gain": Severity.FAIL}), baseline=BASE)
    assert evaluate(report(start(model="acme/Quill-8B", **lower(81_920))), asked).outcome is Outcome.FAIL
