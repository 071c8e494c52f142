"""Evidence that outlives a start: structured log, termination message, record."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvguard.cli.records import read_records
from kvguard.serve.evidence import MAX_RECORD_BYTES, MAX_TERMINATION_BYTES, RecordFile, TerminationMessage
from kvguard.serve.sidecar import Sink
from kvguard.serve.state_changes import StateLog
from kvguard.slo.verdict import Outcome, Reason, Verdict
from kvguard.sources.source import State
from kvguard.startup.report import CapacityReport
from tests.serve.driven import ALLOCATED, NOON, READY, RUNS, Driven, ask, slo

REFUSED = (RUNS / "vllm-0.32.0-cpu-toolong/server.log").read_bytes()


def logged(*, target: float = 2.5) -> tuple[Driven, list[Any]]:
    lines: list[Any] = []
    return Driven(slo(min_concurrency=target), sinks=[StateLog(lines.append)]), lines


def test_one_line_a_change_of_state_and_nothing_else() -> None:
    driven, lines = logged()

    driven.read(ALLOCATED).read(READY[len(ALLOCATED) :])
    driven.read(b'(APIServer pid=14455) INFO:     192.0.2.1:50000 - "GET /health HTTP/1.1" 200 OK\n' * 100)
    driven.turn(after=3600.0)

    assert [(line["phase"], line["verdict"], line["gate"]) for line in lines] == [
        ("allocated", "pass", "open"),
        ("ready", "pass", "open"),
    ]


def test_a_log_that_is_not_there_yet_is_not_logged_as_an_empty_one() -> None:
    driven, lines = logged()

    driven.change(State.WAITING, "vllm.log does not exist yet: waiting for it")

    assert lines[-1]["reasons"][0] == "no line of the log has been read yet"


def test_a_miss_is_logged_with_its_numbers() -> None:
    driven, lines = logged(target=300)

    driven.read(READY)

    assert lines[0]["missed"] == [{"objective": "min_concurrency", "observed": 256.0, "target": 300}]
    assert lines[0]["max_concurrency"] == 256.0


def test_a_failure_is_logged_with_its_numbers() -> None:
    driven, lines = logged()

    driven.read(REFUSED)

    assert lines[0]["failure"]["kind"] == "kv_cache_too_small"
    assert lines[0]["failure"]["estimated_max_model_len"] > 0


DIED = "the server died after it was ready: EngineCore encountered a fatal error."
CRASH = b"(EngineCore pid=15278) ERROR 11-29 16:56:00 [core.py:1233] EngineCore encountered a fatal error.\n"


def test_how_a_server_died_stands_wherever_its_end_is_told(tmp_path: Path) -> None:
    lines: list[Any] = []
    message = TerminationMessage(tmp_path / "message", lambda text: None)
    driven = Driven(slo(min_concurrency=2.5), sinks=[StateLog(lines.append), message])

    driven.read(READY).read(CRASH)

    assert [line.get("died") for line in lines] == [None, DIED]
    assert (tmp_path / "message").read_text().splitlines()[0] == f"kvguard: {DIED}"
    assert f"[-]start failed: start 1, stopped: {DIED}\n" in ask(driven.app, "/readyz").text


def test_a_source_that_fails_and_recovers_is_two_lines() -> None:
    driven, lines = logged()

    driven.change(State.FAILING, "vllm.log: permission denied").change(State.READING, "reading vllm.log")

    assert [line["source_state"] for line in lines] == ["failing", "reading"]


def complaints() -> tuple[list[str], Any]:
    told: list[str] = []
    return told, told.append


def test_the_termination_message_is_the_newest_state(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    path.touch()

    Driven(slo(min_concurrency=2.5), sinks=[TerminationMessage(path, print)]).read(ALLOCATED).read(REFUSED)

    text = path.read_text()
    assert text.startswith("kvguard: fail: the start failed: a context of ")
    assert '"kind": "kv_cache_too_small"' in text


def test_before_a_log_is_there_the_termination_message_gives_no_advice(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"

    Driven(sinks=[TerminationMessage(path, print)]).turn(after=2.0)

    assert path.read_text() == "kvguard: unknown: no line of the log has been read yet"


def test_the_termination_message_fits_into_what_the_kubelet_keeps(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    verdict = Verdict(Outcome.FAIL, CapacityReport(), tuple(Reason("x", "ü" * 900) for _ in range(50)))
    driven = Driven(sinks=[sink := TerminationMessage(path, print)]).read(READY)

    sink(None, type(driven.snapshot)(**{**fields(driven.snapshot), "verdict": verdict}))

    written = path.read_bytes()
    assert MAX_TERMINATION_BYTES - 4 < len(written) <= MAX_TERMINATION_BYTES
    assert written.decode().endswith("ü")


def fields(snapshot: Any) -> dict[str, Any]:
    return {name: getattr(snapshot, name) for name in type(snapshot).__slots__}


def test_the_record_holds_a_report_for_each_state(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"

    driven = Driven(slo(min_concurrency=2.5), sinks=[RecordFile(path, lambda: NOON, print)])
    driven.read(ALLOCATED).read(READY[len(ALLOCATED) :])

    records = read_records(path).found
    assert [record.report.start.phase for record in records] == ["allocated", "ready"]
    assert records[0].recorded_at == "2025-11-29T07:06:40Z"


def test_a_record_that_has_grown_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "record.jsonl"
    path.write_bytes(b"\n" * MAX_RECORD_BYTES)

    Driven(sinks=[RecordFile(path, lambda: NOON, print)]).read(READY)

    assert len(path.read_text().splitlines()) == 1
    assert (tmp_path / "record.jsonl.1").stat().st_size == MAX_RECORD_BYTES


def test_a_volume_that_is_gone_is_told_and_stops_nothing(tmp_path: Path) -> None:
    told, complain = complaints()
    driven = Driven(sinks=[RecordFile(tmp_path / "gone/record.jsonl", lambda: NOON, complain)])

    driven.read(READY)

    assert told == [f"{tmp_path}/gone/record.jsonl: the record cannot be written: No such file or directory"]
    assert json.loads(driven.get("/v1/report").body)["start"]["phase"] == "ready"


@pytest.mark.parametrize("sink", [TerminationMessage, lambda path, complain: RecordFile(path, lambda: NOON, complain)])
def test_a_pipe_from_which_nobody_reads_stops_nothing(tmp_path: Path, sink: Callable[..., Sink]) -> None:
    os.mkfifo(tmp_path / "pipe")
    told, complain = complaints()
    driven = Driven(sinks=[sink(tmp_path / "pipe", complain)])

    driven.read(READY)

    assert [message.rpartition(": ")[2] for message in told] == ["No such device or address"]
    assert driven.snapshot.verdict.report.starts == 1
