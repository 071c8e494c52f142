"""The sidecar, turned by hand: from bytes to the snapshot that every face reads."""

from dataclasses import replace

from kvguard.slo.objectives import Gate, GateMode
from kvguard.slo.verdict import Outcome
from kvguard.sources.source import BoundaryKind, State
from kvguard.startup.report import Phase
from tests.serve.driven import ALLOCATED, BASE, LOADING, NOON, READY, Driven, slo

ACCESS = b'(APIServer pid=14455) INFO:     192.0.2.1:50000 - "GET /health HTTP/1.1" 200 OK\n'


def phase(driven: Driven) -> Phase | None:
    start = driven.snapshot.verdict.report.start
    return start.phase if start else None


def test_before_the_first_look_nothing_is_known_and_the_gate_is_closed() -> None:
    driven = Driven()

    assert driven.snapshot.verdict.outcome is Outcome.UNKNOWN
    assert not driven.snapshot.gate.open


def test_a_start_is_followed_from_loading_to_ready() -> None:
    driven = Driven(slo(min_concurrency=2.5))

    seen = []
    for data in (LOADING, ALLOCATED[len(LOADING) :], READY[len(ALLOCATED) :]):
        driven.read(data)
        seen.append((phase(driven), driven.snapshot.verdict.outcome, driven.snapshot.gate.open))

    assert seen == [
        (Phase.PROFILING, Outcome.UNKNOWN, False),
        (Phase.ALLOCATED, Outcome.PASS, True),
        (Phase.READY, Outcome.PASS, True),
    ]


def test_a_start_that_holds_too_little_keeps_the_gate_closed() -> None:
    driven = Driven(slo(min_concurrency=300)).read(READY)

    assert (driven.snapshot.verdict.outcome, driven.snapshot.gate.open) == (Outcome.FAIL, False)


def test_an_edited_slo_changes_the_verdict_and_not_a_pod_in_service() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY)

    driven.judge_by(slo(min_concurrency=300))

    assert (driven.snapshot.verdict.outcome, driven.snapshot.gate.open) == (Outcome.FAIL, True)


def test_an_edited_slo_with_recheck_takes_the_pod_out() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY)

    driven.judge_by(slo(Gate(recheck=True), min_concurrency=300))

    assert not driven.snapshot.gate.open


def test_a_rotation_leaves_the_pod_in_service() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY)

    driven.rotate(BoundaryKind.NEW_FILE).read(ACCESS)

    assert (phase(driven), driven.snapshot.gate.open) == (Phase.READY, True)


def test_a_new_container_closes_the_gate_until_it_has_told_its_capacity() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY)

    driven.rotate(BoundaryKind.NEW_CONTAINER).read(LOADING)
    between = driven.snapshot.gate.open
    driven.read(READY[len(LOADING) :])

    assert (between, driven.snapshot.gate.open, driven.snapshot.verdict.report.starts) == (False, True, 2)


def test_ready_within_is_missed_by_the_passing_of_time_alone() -> None:
    driven = Driven(replace(slo(), ready_within=600.0)).read(LOADING)
    before = driven.snapshot.verdict.outcome

    driven.turn(after=601.0)

    assert (before, driven.snapshot.verdict.outcome) == (Outcome.UNKNOWN, Outcome.FAIL)


def test_a_source_that_ends_gives_up_its_last_line() -> None:
    without_newline = ALLOCATED[:-1]
    driven = Driven().read(without_newline)
    before = phase(driven)

    driven.change(State.ENDED, "stdin has ended")

    assert (before, phase(driven)) == (Phase.PROFILING, Phase.ALLOCATED)


def test_the_revision_grows_with_what_a_person_could_see_and_not_with_access_lines() -> None:
    driven = Driven().read(READY)
    revision = driven.snapshot.revision

    driven.read(ACCESS * 1000)

    assert driven.snapshot.revision == revision
    assert driven.snapshot.verdict.report.counts.lines == READY.count(b"\n") + 1000


def test_freshness_tells_bytes_from_looks() -> None:
    driven = Driven().read(READY)

    driven.turn(after=30.0).turn(after=30.0)

    assert driven.snapshot.read_at == NOON
    assert driven.snapshot.looked_at == NOON + 60.0


def test_a_failing_source_is_not_fresh_and_does_not_touch_the_verdict() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY)

    driven.now += 30.0
    driven.change(State.FAILING, "vllm.log: permission denied")
    driven.turn(after=30.0)

    assert driven.snapshot.looked_at == NOON
    assert driven.snapshot.source_since == NOON + 30.0
    assert (driven.snapshot.verdict.outcome, driven.snapshot.gate.open) == (Outcome.PASS, True)


def test_an_old_start_of_a_long_log_is_not_let_through_while_the_rest_is_read() -> None:
    driven = Driven(slo(min_concurrency=2.5))
    driven.source.coming.extend(driven.source.record.chunk(part, driven.now) for part in (READY, ACCESS * 9, LOADING))

    seen = []
    for _ in range(2):
        driven.now += 1.0
        driven.sidecar.turn()
        seen.append((driven.snapshot.gate.open, driven.snapshot.gate.why, phase(driven)))

    assert seen == [(False, "the log is still being read from its beginning", None)] * 2


def test_what_a_source_knows_to_be_old_lets_nothing_through() -> None:
    driven = Driven(slo(min_concurrency=2.5))
    driven.source.behind = True

    driven.read(READY)
    old = driven.snapshot.gate.open
    driven.source.behind = False
    driven.rotate(BoundaryKind.NEW_CONTAINER).turn(after=2.0)

    assert (old, driven.snapshot.gate.open, phase(driven)) == (False, False, Phase.STOPPED)


def test_observing_is_open_while_a_long_log_is_read() -> None:
    driven = Driven(slo(Gate(mode=GateMode.OBSERVE), min_concurrency=2.5))
    driven.source.coming.extend(driven.source.record.chunk(part, driven.now) for part in (READY, ACCESS))

    driven.now += 1.0
    driven.sidecar.turn()

    assert driven.snapshot.gate.open


def test_a_log_that_grows_without_a_pause_is_published_now_and_then() -> None:
    driven = Driven().turn()
    for _ in range(100):
        driven.source.coming.append(driven.source.record.chunk(ACCESS * 100, driven.now))

    published = set()
    while driven.source.coming:
        driven.now += 0.005
        driven.sidecar.turn()
        published.add(driven.snapshot.verdict.report.counts.lines)

    assert 8 <= len(published) <= 12


def test_the_whole_log_ends_stopped_which_passes_and_lets_nothing_through() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(BASE)

    assert (phase(driven), driven.snapshot.verdict.outcome, driven.snapshot.gate.open) == (
        Phase.STOPPED,
        Outcome.PASS,
        False,
    )


def test_a_container_that_ended_is_in_service_no_longer_though_the_next_says_nothing_yet() -> None:
    driven = Driven(slo(min_concurrency=2.5)).read(READY)

    driven.rotate(BoundaryKind.NEW_CONTAINER).turn(after=2.0)

    assert not driven.snapshot.gate.open
