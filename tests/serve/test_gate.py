"""The gate: what opens it, what keeps it open, and what never closes it."""

import pytest

from kvguard.serve.gate import WHEN_ENDED, answer
from kvguard.serve.let_through import LetThrough
from kvguard.slo.objectives import Gate, GateMode, OnUnknown
from kvguard.slo.verdict import Outcome, Verdict
from kvguard.startup.report import CapacityReport, Phase, Start

ENFORCE = Gate()
OBSERVE = Gate(mode=GateMode.OBSERVE)
ALLOW = Gate(on_unknown=OnUnknown.ALLOW)
RECHECK = Gate(recheck=True)
FIRST = LetThrough(index=1, began=None, vllm_version=None, model=None, told_capacity=False)


def verdict(outcome: Outcome, phase: Phase = Phase.READY, index: int = 1, startup: Outcome | None = None) -> Verdict:
    report = CapacityReport(starts=index, start=Start(index=index, phase=phase))
    return Verdict(outcome=outcome, report=report, startup_outcome=startup)


NO_START = Verdict(outcome=Outcome.UNKNOWN, report=CapacityReport())


@pytest.mark.parametrize(
    "gate, outcome, is_open",
    [
        (ENFORCE, Outcome.PASS, True),
        (ENFORCE, Outcome.FAIL, False),
        (ENFORCE, Outcome.UNKNOWN, False),
        (ALLOW, Outcome.PASS, True),
        (ALLOW, Outcome.FAIL, False),
        (ALLOW, Outcome.UNKNOWN, True),
        (OBSERVE, Outcome.PASS, True),
        (OBSERVE, Outcome.FAIL, True),
        (OBSERVE, Outcome.UNKNOWN, True),
    ],
)
def test_the_gate_follows_the_verdict_by_its_mode(gate: Gate, outcome: Outcome, is_open: bool) -> None:
    assert answer(verdict(outcome), gate).open is is_open


def test_a_log_without_a_start_is_let_through_by_the_break_glass_switches_alone() -> None:
    assert [answer(NO_START, gate).open for gate in (ENFORCE, ALLOW, OBSERVE)] == [False, True, True]


def test_load_does_not_gate() -> None:
    assert answer(verdict(Outcome.FAIL, startup=Outcome.PASS), ENFORCE).open


def test_an_edited_slo_does_not_take_a_start_out_of_service() -> None:
    passed = answer(verdict(Outcome.PASS), ENFORCE)

    edited = answer(verdict(Outcome.FAIL), ENFORCE, passed.kept)

    assert (edited.open, edited.kept) == (True, FIRST)
    assert "stays in service until it restarts" in edited.why


def test_recheck_lets_an_edited_slo_take_it_out() -> None:
    assert not answer(verdict(Outcome.FAIL), RECHECK, kept=FIRST).open


@pytest.mark.parametrize("phase", [Phase.FAILED, Phase.STOPPED])
def test_a_start_that_has_ended_is_not_kept(phase: Phase) -> None:
    assert not answer(verdict(Outcome.FAIL, phase), ENFORCE, kept=FIRST).open


@pytest.mark.parametrize(
    "gate, is_open, why",
    [(ENFORCE, False, WHEN_ENDED), (ALLOW, False, WHEN_ENDED), (OBSERVE, True, "")],
)
def test_a_pass_ends_with_its_server(gate: Gate, is_open: bool, why: str) -> None:
    ended = answer(verdict(Outcome.PASS, Phase.STOPPED), gate, kept=FIRST)

    assert (ended.open, ended.why) == (is_open, why)


def test_a_new_start_begins_behind_a_closed_gate() -> None:
    assert not answer(verdict(Outcome.UNKNOWN, Phase.LOADING, index=2), ENFORCE, kept=FIRST).open


def test_a_boundary_that_is_withdrawn_leaves_the_start_before_it_in_service() -> None:
    behind = answer(verdict(Outcome.UNKNOWN, Phase.LOADING, index=2), ENFORCE, kept=FIRST)

    assert answer(verdict(Outcome.FAIL), ENFORCE, behind.kept).open


@pytest.mark.parametrize("gate, outcome", [(OBSERVE, Outcome.FAIL), (ALLOW, Outcome.UNKNOWN)])
def test_a_server_that_a_switch_has_let_serve_stays_when_the_switch_is_turned_back(
    gate: Gate, outcome: Outcome
) -> None:
    opened = answer(verdict(outcome), gate)

    assert answer(verdict(Outcome.FAIL), ENFORCE, opened.kept).open


def test_a_start_that_a_switch_let_through_while_it_loaded_has_yet_to_pass() -> None:
    loading = answer(verdict(Outcome.UNKNOWN, Phase.LOADING), ALLOW)

    assert not answer(verdict(Outcome.FAIL, Phase.ALLOCATED), ALLOW, loading.kept).open
