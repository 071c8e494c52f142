"""A guard that is restarted beside a server in service: whom it knows again, and whom it does not."""

import json
import os
from pathlib import Path

import pytest

from kvguard.serve.evidence import RecordFile
from kvguard.serve.let_through import LetThrough, recalled
from kvguard.slo.objectives import Gate
from kvguard.startup.report import Capacity, DeploymentCapacity, Phase, Start
from tests.serve.driven import ALLOCATED, LOADING, NOON, READY, Driven, slo

STATS = (
    b"(APIServer pid=14455) INFO 11-29 19:55:16 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
    b"Avg generation throughput: 0.0 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 40.0%, Prefix "
    b"cache hit rate: 0.0%\n"
)
TOLD = DeploymentCapacity(weakest=Capacity(kv_cache_tokens=1000))
SERVED = Start(index=3, phase=Phase.READY, vllm_version="0.32.0", model="m", began=5.0, capacity=TOLD)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "record.jsonl"


def lived(record: Path, log: bytes, target: float = 2.5, gate: Gate | None = None) -> Driven:
    """One life of a guard with that record: it reads the whole log."""
    sinks = [RecordFile(record, lambda: NOON, print)]
    driven = Driven(slo(gate, min_concurrency=target), sinks=sinks, let_through=recalled(record))
    return driven.read(log) if log else driven.turn()


def test_a_restarted_guard_leaves_in_service_what_an_edited_slo_fails(record: Path) -> None:
    lived(record, READY)

    again = lived(record, READY, target=300).snapshot

    assert (again.verdict.outcome, again.gate.open) == ("fail", True)
    assert again.gate.why.startswith("this start was let through before: it fails what is asked now")


def test_without_a_record_it_judges_by_the_slo_of_that_moment(tmp_path: Path) -> None:
    lived(tmp_path / "first.jsonl", READY)

    assert not lived(tmp_path / "second.jsonl", READY, target=300).snapshot.gate.open


def test_recheck_counts_after_a_restart_too(record: Path) -> None:
    lived(record, READY)

    assert not lived(record, READY, target=300, gate=Gate(recheck=True)).snapshot.gate.open


def test_a_start_that_never_passed_is_not_let_through_by_a_restart(record: Path) -> None:
    lived(record, READY, target=300)

    assert not lived(record, READY, target=300).snapshot.gate.open


def test_a_server_that_was_restarted_meanwhile_is_another_start(record: Path) -> None:
    lived(record, READY)
    later = READY.replace(b" 11-29 16:", b" 11-29 19:").replace(b"pid=", b"pid=9")

    assert not lived(record, READY + later, target=300).snapshot.gate.open
    assert not lived(record, later, target=300).snapshot.gate.open


def test_it_is_remembered_over_several_restarts_also_one_before_the_log_was_read(record: Path) -> None:
    lived(record, READY)
    lived(record, b"")
    lived(record, READY, target=300)

    assert lived(record, READY, target=300).snapshot.gate.open


def test_a_log_whose_start_was_rotated_away_is_that_of_the_server_in_service(record: Path) -> None:
    lived(record, READY)

    again = lived(record, STATS)

    assert (again.snapshot.verdict.outcome, again.snapshot.gate.open) == ("unknown", True)
    assert lived(record, STATS).snapshot.gate.open


def test_a_log_whose_start_was_rotated_away_proves_nothing_of_a_server_that_was_not_let_through(record: Path) -> None:
    lived(record, READY, target=300)

    assert not lived(record, STATS).snapshot.gate.open


def test_a_start_under_way_does_not_become_the_one_before_it(record: Path) -> None:
    lived(record, READY)
    later = LOADING.replace(b" 11-29 16:", b" 11-29 19:")

    assert not lived(record, later).snapshot.gate.open


@pytest.mark.parametrize("torn", [b'{"kind": "rep', b'{"kind": "report"}\n', b"[]\n", b"\xff\xfe\n"])
def test_a_line_that_was_torn_or_tells_nothing_hides_no_earlier_one(torn: bytes, record: Path) -> None:
    lived(record, READY)
    with record.open("ab") as file:
        file.write(torn)

    assert recalled(record) == LetThrough(None, 28831996.0, "0.32.0", "/models/tiny-llama", told_capacity=True)


def test_another_pod_of_the_same_volume_is_another_server(record: Path) -> None:
    lived(record, READY)
    record.write_text(record.read_text().replace(os.uname().nodename, "vllm-0"))

    assert recalled(record) is None


def test_no_record_recalls_nothing(tmp_path: Path) -> None:
    assert recalled(None) is None
    assert recalled(tmp_path / "gone.jsonl") is None
    os.mkfifo(tmp_path / "pipe")
    assert recalled(tmp_path / "pipe") is None


def test_the_record_says_what_was_let_through(record: Path) -> None:
    lived(record, ALLOCATED)

    gate = json.loads(record.read_text())["gate"]
    assert (gate["open"], gate["let_through"]["vllm_version"]) == (True, "0.32.0")


@pytest.mark.parametrize(
    "start, same",
    [
        (SERVED, True),
        (Start(index=1, phase=Phase.READY, vllm_version="0.32.0", model="m", began=5.0), True),
        (Start(index=1, phase=Phase.READY, vllm_version="0.33.0", model="m", began=5.0), False),
        (Start(index=1, phase=Phase.READY, vllm_version="0.32.0", model="m", began=6.0), False),
        (Start(index=1, phase=Phase.READY), True),
        (Start(index=1, phase=Phase.LOADING), False),
        (Start(index=1, phase=Phase.READY, capacity=TOLD), False),
    ],
)
def test_a_start_is_known_again_by_its_first_stamp_version_and_model(start: Start, same: bool) -> None:
    earlier = LetThrough(None, 5.0, "0.32.0", "m", told_capacity=True)

    assert earlier.is_start(start) is same
