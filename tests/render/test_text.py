"""The terminal page: its width, its colours, its characters, and a mark for every outcome and severity."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from kvguard.render import github, junit, markdown, start_facts, text
from kvguard.render.formats import REPORT_RENDERERS
from kvguard.render.layout import Cell, Terminal, Tone, columns, wrap
from kvguard.slo.objectives import Severity
from kvguard.slo.verdict import Lever, Outcome
from kvguard.slotted import replace
from kvguard.sources.documents import read_model_config
from kvguard.startup.report import (
    Capacity,
    DeploymentCapacity,
    Derived,
    Failure,
    FailureKind,
    Phase,
    Place,
    Start,
)
from tests.render.pages import RAG, judged, log
from tests.render.verdicts import PASSED, REFUSED, VERDICTS, WEAK_ENGINE


def named(model: str) -> Mapping[str, object]:
    return read_model_config(model, Path())


COLOR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("table", [text.OUTCOME_TONES, markdown.MARKS, junit.RESULT_TAGS])
def test_every_outcome_has_its_sign(table: dict[Outcome, object]) -> None:
    assert set(table) == set(Outcome)
    assert len({str(sign) for sign in table.values()}) == len(Outcome)


@pytest.mark.parametrize("table", [text.SEVERITY_TONES, markdown.SEVERITY_MARKS])
def test_every_severity_has_its_sign(table: dict[Severity, object]) -> None:
    assert set(table) == set(Severity)


def test_every_phase_and_every_failure_has_its_words() -> None:
    assert set(start_facts.PHASE_WORDS) == set(Phase)
    assert set(start_facts.FAILURE_WORDS) == set(FailureKind)


def test_every_tone_has_its_colour() -> None:
    painted = {Terminal(color=True).paint("x", tone) for tone in Tone}

    assert len(painted) == len(Tone)


@pytest.mark.parametrize("width", [68, 72, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    tables = [VERDICTS["passed"], VERDICTS["refused"], VERDICTS["empty"]]
    lines = [line for verdict in tables for line in text.render_verdict(verdict, Terminal(width)).splitlines()]

    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("name", VERDICTS)
def test_colour_changes_nothing_but_the_colour(name: str) -> None:
    plain = text.render_verdict(VERDICTS[name], Terminal())
    colored = text.render_verdict(VERDICTS[name], Terminal(color=True))

    assert COLOR.sub("", colored) == plain
    assert "\x1b[" in colored


@pytest.mark.parametrize("name", VERDICTS)
def test_a_plain_terminal_gets_ascii_in_the_same_columns(name: str) -> None:
    full = text.render_verdict(VERDICTS[name], Terminal())
    plain = text.render_verdict(VERDICTS[name], Terminal(unicode=False))

    assert plain.isascii()
    assert "�" in full or [len(line) for line in plain.splitlines()] == [len(line) for line in full.splitlines()]


def test_a_refused_start_says_what_was_asked_and_what_fits() -> None:
    page = text.render_verdict(REFUSED, Terminal(verbose=True))

    assert "Asked for   131,072 tokens of context\n" in page
    assert "What fits   28,432 tokens in the KV cache\n" in page


def test_the_story_is_told_in_ten_lines() -> None:
    rag = replace(RAG, shared_prefix_tokens=0, model_config=named("llama-3.1-8b"))
    page = text.render_verdict(judged(log("story/rag-24gb.log"), rag, concurrent_requests=20), Terminal())
    said = [line for line in page.splitlines() if line]

    assert len(said) <= 10
    assert said[0].startswith(
        "FAIL  4.76 to 4.81 requests of 8,500 tokens fit without preemption, below the 20 asked for"
    )
    assert "a request takes 532 of 2,559 usable blocks" in page
    assert "4 running at 98.1 %, 16 waiting: the pool holds 4.8 of your 8,500-token requests" in page
    assert "✔ --kv-cache-dtype fp8 --quantization fp8  21.30 to 24.30  a little accuracy; hardly any quality" in page
    assert "✘ --max-model-len 8500                     4.76 to 4.81    the pool is not enlarged" in page


def test_without_the_model_s_config_both_answers_are_shown() -> None:
    rag = replace(RAG, shared_prefix_tokens=0)
    page = text.render_verdict(judged(log("story/rag-24gb.log"), rag, concurrent_requests=20), Terminal())

    assert page.startswith("FAIL  1.25 to 4.81 requests of 8,500 tokens fit without preemption")
    assert "one kind of layer: 4.81; hybrid: at least 1.25\n" in page
    assert "→ give the model's config (--model-config), or declare workload.layers: uniform\n" in page


def test_every_way_and_the_memory_come_when_asked_for() -> None:
    verdict = judged(log("story/l4-default-context.log"), min_concurrency=2.5)
    short, long = (text.render_verdict(verdict, Terminal(verbose=verbose)) for verbose in (False, True))

    assert "GPU memory in GiB, 22.05 × 0.9 = 19.84: weights 14.99, non-torch 0.12" in short
    assert "█" not in short
    assert "  weights             14.99 GiB  ████" in long
    assert "Price: a little accuracy; not on every attention backend and older card." in long


def test_one_objective_is_the_headline_and_no_table() -> None:
    one = text.render_verdict(judged(log("story/16k-fp8-cache.log"), min_concurrency=2.5), Terminal())
    two = text.render_verdict(judged(log("story/16k-fp8-cache.log"), min_concurrency=2.5, max_weights=2e10), Terminal())

    assert "Objectives" not in one
    assert "\n  ✔ min_concurrency       3.60  at least 2.50 requests  line 10\n" in two


@pytest.mark.parametrize(
    "enough, title",
    [
        ((True, True), "What would help, the cheapest first (requests)"),
        ((True, False), "What would help: ✔ enough, the cheapest first; ✘ not enough, the nearest first (requests)"),
        ((True, None), "What would help: ✔ enough, the cheapest first; ? not known (requests)"),
        ((False, None), "What would help; nothing that can be computed is surely enough (requests)"),
    ],
)
def test_the_title_of_the_levers_says_whether_they_are_enough(enough: tuple[bool | None, ...], title: str) -> None:
    levers = tuple(Lever("--a", str(i), "1 request", "none", one, 1, 1, "requests") for i, one in enumerate(enough))
    page = text.render_verdict(replace(PASSED, levers=levers), Terminal())

    assert f"\n{title}\n" in page


def test_two_that_only_together_are_enough_are_said_to_be() -> None:
    pair = Lever("--a + --b", "1 + 2", "9 requests", "none", True, 9, 9, "requests")
    page = text.render_verdict(replace(PASSED, levers=(pair,)), Terminal())

    assert (
        "\nWhat would help: no single change is enough, two together are (requests)\n  ✔ --a 1 --b 2  9  none\n" in page
    )


def test_a_start_that_told_its_pool_before_it_died_shows_what_follows_from_it() -> None:
    derived = {"kv_cache_tokens": Derived(32, "2 blocks × 16 tokens")}
    oom = Failure(FailureKind.OOM, "out of memory", Place("vllm.log", 9), available_bytes=1)
    start = Start(1, Phase.FAILED, capacity=DeploymentCapacity(Capacity(gpu_blocks=2, derived=derived)), failure=oom)
    page = text.render_report(replace(PASSED.report, start=start), Terminal())

    assert "  KV cache size        32 tokens       computed\n" in page
    assert "  KV cache memory      never reported\n" in page


@pytest.mark.parametrize("name", ["l4-default-context", "16k-bf16-cache"])
def test_what_is_not_judged_says_why_it_failed_as_a_verdict_does(name: str) -> None:
    verdict = judged(log(f"story/{name}.log"))
    page = REPORT_RENDERERS["text"](verdict, Terminal())

    headline = text.render_verdict(verdict, Terminal()).splitlines()[0].removeprefix("FAIL  the start failed")
    assert page.startswith(f"The start failed{headline}") == (verdict.outcome is Outcome.FAIL)


@pytest.mark.parametrize(
    "given, first", [(b"", "The log is empty"), (b"hello\n", "The one line is not a vLLM server's")]
)
def test_a_log_without_a_start_says_why(given: bytes, first: str) -> None:
    page = REPORT_RENDERERS["text"](judged(given), Terminal())

    assert page.startswith(f"{first}\n  → give the log of the vLLM ")


def test_what_follows_from_other_figures_is_shown_to_its_last_digit() -> None:
    capacity = Capacity(gpu_blocks=65_537, derived={"kv_cache_tokens": Derived(1_048_592, "65,537 blocks × 16 tokens")})
    start = Start(1, Phase.ALLOCATED, capacity=DeploymentCapacity(capacity))
    page = text.render_report(replace(PASSED.report, start=start), Terminal())

    assert "  KV cache size        1,048,592 tokens  computed\n" in page
    assert "\n  KV cache size 1,048,592 tokens follows: 65,537 blocks × 16 tokens\n" in page


def test_the_probe_budget_is_half_as_much_again() -> None:
    page = text.render_report(PASSED.report, Terminal())

    assert "This start took 412 s: a startupProbe of at least 62 × 10 s." in page


def test_an_ignored_warning_is_nowhere() -> None:
    pages = [render(WEAK_ENGINE, Terminal()) for render in (text.render_verdict, markdown.render_markdown)]

    assert [page for page in [*pages, github.render_github(WEAK_ENGINE, Terminal())] if "not shown" in page] == []


def test_columns_stand_under_each_other_by_their_last_digit() -> None:
    rows = [[Cell("a"), Cell("1.80", right=True), Cell("x")], [Cell("long"), Cell("16", right=True)]]

    assert columns(rows, Terminal(), "  ") == ["  a     1.80  x", "  long    16"]


def test_a_word_longer_than_the_line_is_broken() -> None:
    assert wrap("y" * 50, 30, "  ") == ["  " + "y" * 28, "  " + "y" * 22]
