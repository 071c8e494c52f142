"""`kvguard baseline` and `check --baseline`: what is written, what is refused, and what a later start is told."""

import json
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.exit_status import MET, MISSED, UNKNOWN, USAGE

RUNS = Path("fixtures/logs/runs")
STORY = Path("fixtures/logs/story")
PAIRS = Path("fixtures/logs/pairs")
BF16 = str(STORY / "16k-bf16-cache.log")


def test_a_baseline_is_written_and_held_against_the_same_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "baseline.json"
    assert main(["baseline", BF16, "-o", str(file)]) == MET
    assert json.loads(file.read_text())["weakest"]["gpu_blocks"] == 1843
    assert main(["check", BF16, "--baseline", str(file), "--max-drop", "0%"]) == MET
    assert capsys.readouterr().out.startswith("PASS")


def test_without_a_file_it_goes_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", BF16]) == MET
    assert json.loads(capsys.readouterr().out)["kind"] == "baseline"


def test_a_loss_misses_the_bound_and_names_what_took_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair, file = PAIRS / "a05-activation-peak-took-the-cache", tmp_path / "baseline.json"
    assert main(["baseline", str(pair / "old.log"), "-o", str(file)]) == MET
    assert main(["check", str(pair / "new.log"), "--baseline", str(file)]) == MISSED
    assert "activation peak +6.65 GiB" in " ".join(capsys.readouterr().out.split())


def test_a_report_serves_as_a_baseline(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    main(["check", BF16, "--format", f"json={file}"])
    assert main(["check", BF16, "--baseline", str(file)]) == MET


@pytest.mark.parametrize(
    "log, status, told",
    [
        ("l4-default-context.log", MISSED, "the start failed"),
        ("../runs/vllm-0.32.0-cpu-level-warning/server.log", UNKNOWN, "no line tells its KV cache"),
    ],
)
def test_a_start_that_is_no_good_makes_no_baseline(
    tmp_path: Path, log: str, status: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "baseline.json"
    assert main(["baseline", str(STORY / log), "-o", str(file)]) == status
    assert told in capsys.readouterr().err
    assert not file.exists()


def test_starts_of_different_deployments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["baseline", BF16, str(STORY / "16k-fp8-cache.log")]) == USAGE
    assert "in kv_cache_dtype: a baseline is of one deployment" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, told",
    [
        ("{}", "neither a baseline nor a report of kvguard"),
        ("[]", "a JSON object belongs here"),
        ("{", "not JSON"),
        ("server: 16\n", "no start of a vLLM server in it"),
    ],
)
def test_a_broken_baseline_is_told_in_one_line(
    tmp_path: Path, content: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "baseline.json"
    file.write_text(content)
    assert main(["check", BF16, "--baseline", str(file)]) == USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert told in line


@pytest.mark.parametrize("log", ["vllm-0.32.0-cpu-base", "vllm-0.32.0-cpu-json-fields-load"])
def test_a_log_serves_as_a_baseline(log: str) -> None:
    file = f"fixtures/logs/runs/{log}/server.log"
    assert main(["check", file, "--baseline", file]) == MET


def test_a_missing_baseline_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", BF16, "--baseline", "nowhere.json"]) == USAGE
    assert capsys.readouterr().err == "kvguard: nowhere.json: no such file\n"


def test_an_slo_file_names_its_baseline_beside_it(tmp_path: Path) -> None:
    main(["baseline", BF16, "-o", str(tmp_path / "baseline.json")])
    (tmp_path / "slo.yaml").write_text("regression: {baseline: baseline.json, max_drop: 5%}\n")
    assert main(["check", BF16, "--slo", str(tmp_path / "slo.yaml")]) == MET
