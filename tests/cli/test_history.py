"""`check --record` and `kvguard history`: what was recorded is drawn, and what is none is named."""

import json
import re
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.records import last_ready
from kvguard.render.history_chart import Record, render_history
from kvguard.render.layout import Terminal
from tests.conftest import FIXTURES, Golden
from tests.render.verdicts import EMPTY, PASSED, REFUSED, VERDICTS

RUNS = FIXTURES / "logs/runs"

Capture = pytest.CaptureFixture[str]


def record(name: str, path: Path) -> None:
    main(["check", str(RUNS / name / "server.log"), "--min-concurrency", "200", "--record", str(path), "-q"])


def test_each_check_adds_a_line(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "record.jsonl"
    record("vllm-0.32.0-cpu-base", file)
    record("vllm-0.32.0-cpu-toolong", file)
    capsys.readouterr()

    documents = [json.loads(line) for line in file.read_text().splitlines()]
    assert [document["verdict"]["outcome"] for document in documents] == ["pass", "fail"]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", item["recorded_at"]) for item in documents)

    assert main(["history", str(file)]) == 0
    out = capsys.readouterr().out
    assert "✔ ████████████████████████████████\n" in out
    assert "✘ failed: the KV cache is too small\n" in out
    assert last_ready(file) == 79.0


@pytest.mark.parametrize("torn, named", [('{"kind": "rep', "2"), ('{"kind": "rep\n{}\n[]\n', "2 and 2 more")])
def test_torn_lines_are_counted_in_one_and_hide_nothing(torn: str, named: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "record.jsonl"
    record("vllm-0.32.0-cpu-base", file)
    with file.open("a") as written:
        written.write(torn)
    capsys.readouterr()

    assert main(["history", str(file)]) == 1
    captured = capsys.readouterr()
    assert "context 4,096 tokens" in captured.out
    assert captured.err == f"kvguard: {file}:{named}: not a report of kvguard check --record\n"


def test_another_file_is_told_in_one_line(capsys: Capture) -> None:
    log = str(RUNS / "vllm-0.32.0-cpu-base" / "server.log")
    assert main(["history", log]) == 2
    captured = capsys.readouterr()
    told = "no record in it: name the file that kvguard check --record wrote"
    assert (captured.out, captured.err) == ("", f"kvguard: {log}: {told}\n")


def test_a_missing_file_is_a_usage_error(tmp_path: Path, capsys: Capture) -> None:
    assert main(["history", str(tmp_path / "none.jsonl")]) == 2
    told = "no such file or directory: name the file that kvguard check --record wrote"
    assert capsys.readouterr().err == f"kvguard: {tmp_path}/none.jsonl: {told}\n"


def test_the_chart_looks_as_expected(golden: Golden) -> None:
    verdicts = [PASSED, PASSED, VERDICTS["weak-engine"], REFUSED, EMPTY]
    records = [
        Record(f"2026-11-{day:02d}T08:15:00+00:00", verdict.outcome, verdict.report)
        for day, verdict in enumerate(verdicts, 1)
    ]

    golden(FIXTURES / "history" / "chart.txt", render_history([*records, Record(None, None, EMPTY.report)], Terminal()))


def test_nothing_recorded_is_said(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "record.jsonl"
    file.write_text("")

    assert main(["history", str(file)]) == 0
    assert capsys.readouterr().out == "no checks recorded yet\n"


def test_records_may_come_through_a_pipe(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "record.jsonl"
    record("vllm-0.32.0-cpu-base", file)
    capsys.readouterr()
    with file.open() as piped:
        monkeypatch.setattr("sys.stdin", piped)
        assert main(["history", "-"]) == 0
    assert "context 4,096 tokens" in capsys.readouterr().out


@pytest.mark.parametrize("last", ["0", "-1", "all"])
def test_how_many_are_shown_is_at_least_one(last: str, capsys: Capture) -> None:
    assert main(["history", "record.jsonl", f"--last={last}"]) == 2
    assert "a whole number from 1 on" in capsys.readouterr().err
