"""A command that was seen to end before its server was ready: failed by its status, unknown where it is content."""

import pytest

from kvguard.guard import Guard
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Outcome, Verdict
from tests.conftest import FIXTURES

LINES = (FIXTURES / "logs/runs/vllm-0.32.0-cpu-nologstats/server.log").read_bytes().splitlines(keepends=True)
REFUSED = (FIXTURES / "logs/runs/vllm-0.32.0-cpu-toolong/server.log").read_bytes()


def up_to(text: bytes) -> bytes:
    """The real start to the first line with that text."""
    cut = next(number for number, line in enumerate(LINES, 1) if text in line)
    return b"".join(LINES[:cut])


def ended(log: bytes, status: int | None, slo: Slo | None = None) -> Verdict:
    guard = Guard(slo or Slo(), "run:vllm")
    guard.feed(log)
    guard.end(exit_status=status)
    return guard.verdict


@pytest.mark.parametrize("log", [b"", b"Traceback\n", up_to(b"non-default args"), up_to(b"KV cache size")])
def test_a_status_that_is_not_0_fails_whatever_was_told(log: bytes) -> None:
    verdict = ended(log, 137)

    assert verdict.outcome is Outcome.FAIL
    assert verdict.reasons[0].message == "the command ended with status 137 (SIGKILL) before its server was ready"
    assert verdict.reasons[0].remedy == "see whether the host ran out of memory, or who else killed it (dmesg)"


@pytest.mark.parametrize("status, shown", [(1, "1"), (125, "125"), (143, "143 (SIGTERM)"), (255, "255")])
def test_a_signal_is_named(status: int, shown: str) -> None:
    message = ended(b"", status).reasons[0].message
    assert message == f"the command ended with status {shown} before its server was ready"


def test_status_0_proves_nothing() -> None:
    verdict = ended(up_to(b"non-default args"), 0)

    assert verdict.outcome is Outcome.UNKNOWN
    assert [reason.code for reason in verdict.reasons] == ["command-ended"]
    assert "in the foreground" in str(verdict.reasons[0].remedy)


def test_capacity_that_was_told_counts_with_status_0() -> None:
    assert ended(up_to(b"KV cache size"), 0).outcome is Outcome.PASS


@pytest.mark.parametrize("slo", [Slo(require_ready=True), Slo(ready_within=600.0)])
@pytest.mark.parametrize("status, outcome", [(1, Outcome.FAIL), (0, Outcome.UNKNOWN)])
def test_nobody_is_told_to_wait_for_it(slo: Slo, status: int, outcome: Outcome) -> None:
    [check] = ended(up_to(b"KV cache size"), status, slo).checks

    assert check.outcome is outcome
    assert check.reason == f"the command ended with status {status} before its server was ready"
    assert "kvguard check" not in (check.remedy or "")


def test_a_cause_that_the_log_names_says_more() -> None:
    [first, *_] = ended(REFUSED, 1).reasons
    assert first.message.startswith("the start failed: a context of 131,072 tokens was asked for")


def test_one_that_dies_when_it_has_just_become_ready_is_not_hushed_up() -> None:
    verdict = ended(up_to(b"Application startup complete"), 139)

    assert verdict.outcome is Outcome.PASS  # the start is judged; that the server died is a warning of its own
    assert ("died-after-ready", "the command ended with status 139") in [
        (warning.code, warning.message.rpartition(": ")[2]) for warning in verdict.warnings
    ]


def test_an_orderly_end_after_ready_is_no_death() -> None:
    verdict = ended(up_to(b"Application startup complete"), 0)
    assert "died-after-ready" not in [warning.code for warning in verdict.warnings]
    assert verdict.report.start is not None
    assert verdict.report.start.phase == "stopped"


def test_where_nobody_sees_the_end_nothing_changes() -> None:
    assert ended(up_to(b"non-default args"), None).reasons[0].code == "capacity-not-reported"
