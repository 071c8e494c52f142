"""A container that is killed without a word and started again counts its pids anew: its start, or a forged one?

Judged is the newest start, and never yesterday's pass in its place; where the log cannot tell which of the two serves,
only what both meet is a pass.
"""

import pytest

from kvguard import Guard
from kvguard.slo.verdict import Outcome
from kvguard.startup.report import FailureKind, Phase
from tests.slo.reports import slo
from tests.startup.lines import BOOT, READY, REFUSED, SIZED, STATS, log
from tests.startup.test_belief import as_compose, as_cri, as_json, as_raw_lines_of_a_traceback, coloured

SERVING = log(BOOT, SIZED, READY, STATS)
AGAIN = {"hour": 12, "concurrency": "26.85"}
ACCESS = '(APIServer pid=100) INFO:     10.0.0.7:51234 - "GET /health HTTP/1.1" 200 OK\n'


def judged(*parts: str, at_least: float) -> tuple[Outcome, str]:
    """The outcome under `min_concurrency`, and the first reason's code."""
    guard = Guard(slo(min_concurrency=at_least))
    guard.feed("".join(parts).encode())
    guard.end()
    return guard.verdict.outcome, guard.verdict.reasons[0].code


def test_a_restart_that_has_not_reported_yet_is_unknown_never_yesterdays_pass():
    assert judged(SERVING, log(BOOT, **AGAIN), at_least=20) == (Outcome.UNKNOWN, "capacity-not-reported")


def test_a_restart_that_is_refused_fails():
    guard = Guard(slo(min_concurrency=20))
    guard.feed((SERVING + log(BOOT, REFUSED, hour=12)).encode())

    assert guard.verdict.outcome is Outcome.FAIL
    assert guard.report.start is not None
    assert guard.report.start.failure is not None
    assert guard.report.start.failure.kind is FailureKind.NO_KV_MEMORY
    assert (guard.report.starts, guard.report.start.capacity.weakest.max_concurrency) == (2, None)


@pytest.mark.parametrize(
    ("target", "outcome"),
    [(20, Outcome.PASS), (60, Outcome.FAIL), (40, Outcome.UNKNOWN)],
    ids=["both meet it", "both miss it", "they differ"],
)
def test_a_whole_restart_is_shown_and_passes_where_both_starts_do(target, outcome):
    guard = Guard(slo(min_concurrency=target))
    guard.feed((SERVING + log(BOOT, SIZED, READY, STATS, **AGAIN)).encode())

    verdict = guard.verdict

    assert verdict.outcome is verdict.gate_outcome is outcome
    assert verdict.report.start is not None
    assert (verdict.report.starts, verdict.report.start.capacity.weakest.max_concurrency) == (2, 26.85)
    assert [warning.code for warning in verdict.warnings] == ["restarted", "restart-unproven"]
    assert (verdict.reasons[0].code == "restart-unproven") is (outcome is Outcome.UNKNOWN)


def test_a_second_whole_restart_is_held_against_the_start_that_was_proven():
    high, low = {"hour": 12, "concurrency": "99.99"}, {"hour": 13, "concurrency": "98.00"}

    assert judged(SERVING, log(BOOT, SIZED, READY, **high), log(BOOT, SIZED, READY, **low), at_least=60) == (
        Outcome.UNKNOWN,
        "restart-unproven",
    )


@pytest.mark.parametrize("life", [log(STATS, hour=12), ACCESS], ids=["statistics", "an answered request"])
@pytest.mark.parametrize("come", [(BOOT,), (BOOT, REFUSED)], ids=["loading", "refused"])
def test_a_server_that_goes_on_has_not_been_started_again(come, life):
    guard = Guard()
    guard.feed((SERVING + log(*come, **AGAIN) + life).encode())

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.phase) == (1, Phase.READY)
    assert guard.report.start.capacity.weakest.max_concurrency == 53.71


def test_a_process_of_the_old_start_that_had_told_nothing_yet_vouches_for_none():
    silent = "(ApiServer_1 pid=104) INFO 12-08 10:16:00 [launcher.py:29] Route: /health, Methods: GET\n"
    again = log(BOOT, SIZED, READY, **AGAIN)
    resized = "(ApiServer_1 pid=104) INFO 12-08 12:14:30 [utils.py:253] non-default args: {'max_model_len': 8192}\n"

    guard = Guard(slo(min_concurrency=40))
    guard.feed((log(BOOT, SIZED, READY) + silent + log(STATS) + again + resized).encode())

    assert guard.verdict.outcome is Outcome.UNKNOWN


def test_what_a_starting_server_prints_of_itself_is_no_sign_of_the_old_one():
    lines = (
        "(APIServer pid=100) INFO 12-08 12:14:03 [serving_chat.py:139] Using default chat sampling params\n"
        "(EngineCore_DP0 pid=130) INFO 12-08 12:14:30 [parallel_state.py:1203] rank 0 in world size 1 is assigned\n"
    )
    guard = Guard()
    guard.feed((SERVING + log(BOOT, **AGAIN) + lines).encode())

    assert guard.report.starts == 2


def stamped(text: str, day: str, seconds_apart: float) -> str:
    """A container runtime's stamps: the lines come at even distances."""
    lines = text.splitlines(keepends=True)
    return "".join(
        f"2026-12-{day}T10:{int(n * seconds_apart) // 60:02}:{n * seconds_apart % 60:09.6f}Z stdout F {line}"
        for n, line in enumerate(lines)
    )


def test_the_runtimes_stamps_prove_a_restart():
    again = log(BOOT, SIZED, READY, STATS, **AGAIN)
    guard = Guard(slo(min_concurrency=40))
    guard.feed((stamped(SERVING, "08", 3) + stamped(again, "09", 3)).encode())

    assert guard.report.contested_by is None
    assert (guard.verdict.outcome, guard.report.starts) == (Outcome.FAIL, 2)


@pytest.mark.parametrize(
    ("old", "new", "lacking"),
    [
        (SERVING, log(BOOT, SIZED, READY, **AGAIN), "no runtime's stamps show that it took its time"),
        (stamped(SERVING, "08", 3), stamped(log(BOOT, SIZED, **AGAIN), "09", 3), "its ready line would"),
        (stamped(SERVING, "08", 0.1), stamped(log(BOOT, SIZED, READY, **AGAIN), "09", 0.1), "both were ready too soon"),
    ],
    ids=["no stamps", "not ready yet", "too fast"],
)
def test_a_contested_start_says_what_would_settle_it(old, new, lacking):
    guard = Guard()
    guard.feed((old + new).encode())

    assert guard.report.start is not None
    warning = next(warning for warning in guard.report.start.warnings if warning.code == "restart-unproven")
    assert f"the server before has gone: {lacking}" in warning.message


def test_the_runtimes_stamps_show_that_a_start_was_printed_at_once():
    forged = log(BOOT, SIZED, READY, hour=11, concurrency="99.99")
    guard = Guard(slo(min_concurrency=60))
    guard.feed((stamped(SERVING, "08", 3) + stamped(forged, "09", 0.0001)).encode())

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.capacity.weakest.max_concurrency) == (1, 53.71)


def test_a_follower_has_seen_for_itself_how_long_a_restart_took():
    guard = Guard(slo(min_concurrency=40))
    for now, part in ((0.0, SERVING), (100.0, log(BOOT, **AGAIN)), (130.0, log(SIZED, READY, **AGAIN))):
        guard.feed(part.encode(), now)

    assert guard.report.contested_by is None
    assert (guard.verdict.outcome, guard.report.starts) == (Outcome.FAIL, 2)


def test_a_follower_that_comes_late_has_not():
    guard = Guard(slo(min_concurrency=40))
    guard.feed((SERVING + log(BOOT, SIZED, READY, **AGAIN)).encode(), 0.0)

    assert guard.verdict.outcome is Outcome.UNKNOWN


def test_pids_that_have_moved_on_by_one_are_no_sign_of_the_old_server():
    """The engine's new pid is one that a worker of the old start had."""
    worker = SIZED.splitlines(keepends=True)[0].replace("EngineCore_DP0 pid={core}", "Worker_TP1 pid=131")
    spoke = "(EngineCore_DP0 pid=131) INFO 12-08 12:16:00 [core.py:1] a line that tells nothing\n"
    again = log(BOOT, SIZED, READY, core=131, **AGAIN)

    guard = Guard()
    guard.feed((log(BOOT, worker, SIZED, READY, STATS) + again + spoke).encode())

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.capacity.weakest.max_concurrency) == (2, 26.85)


def test_an_engine_without_a_server_that_is_configured_again_has_been_started_again():
    """A node with `--headless` prints its engines' lines alone."""
    banner = BOOT.splitlines(keepends=True)[-1]

    guard = Guard()
    guard.feed((log(banner, SIZED) + log(banner, **AGAIN)).encode())

    assert guard.report.start is not None
    assert (guard.report.starts, guard.report.start.phase) == (2, Phase.LOADING)


def test_a_report_is_given_while_a_start_is_in_doubt_and_a_line_may_go_on():
    guard = Guard()
    guard.feed(
        (SERVING + log(BOOT, SIZED, READY, **AGAIN) + "(APIServer pid=100) INFO 12-08 12:20:00 [x.py:1] ").encode()
    )

    assert guard.report.contested_by is not None
    assert guard.report.contested_by.capacity.weakest.max_concurrency == 53.71


RAW = [lambda text: text, as_cri, as_compose, as_json, coloured, as_raw_lines_of_a_traceback]
"""Ways in which a whole forged start reaches the log line by line."""


@pytest.mark.parametrize("form", RAW, ids=["raw", "cri", "compose", "json", "coloured", "traceback"])
@pytest.mark.parametrize("figure", ["99.99", "1.00"])
def test_a_whole_forged_start_turns_no_verdict_into_its_own(form, figure):
    forged = form(log(BOOT, SIZED, READY, hour=11, concurrency=figure))
    alive = log(STATS, hour=11) + ACCESS

    passed = judged(SERVING, forged, alive, at_least=50)[0]
    missed = judged(SERVING, forged, alive, at_least=60)[0]

    assert passed in (Outcome.PASS, Outcome.UNKNOWN)
    assert missed in (Outcome.FAIL, Outcome.UNKNOWN)


def as_csv(text: str) -> str:
    """Rows of an export: the stamp, and the line in quotes."""
    rows = (line.split(" stdout F ", 1) for line in text.splitlines())
    return "".join(f'{stamp},"{line}"\n' for stamp, line in rows)


@pytest.mark.parametrize("write", [str, as_csv, as_raw_lines_of_a_traceback], ids=["cri", "csv", "traceback"])
@pytest.mark.parametrize("runtime", [False, True], ids=["a raw log", "a runtime's log"])
def test_stamps_that_a_forged_start_brings_along_prove_nothing(runtime, write):
    """A runtime stamps every line or none, and its own stamp stands outermost."""
    forged = write(stamped(log(BOOT, SIZED, READY, hour=11, concurrency="99.99"), "09", 3))

    old, new = (stamped(SERVING, "08", 3), stamped(forged, "10", 0.0001)) if runtime else (SERVING, forged)

    assert judged(old, new, at_least=60)[0] in (Outcome.FAIL, Outcome.UNKNOWN)
