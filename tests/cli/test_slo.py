"""`kvguard slo`: mistakes on stdout, one line each, and the status says whether there were any."""

import io
import json
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.exit_status import MET, MISSED, USAGE


def test_a_fine_file_is_said_to_be_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slo", "check", "fixtures/slo/valid/one-objective.yaml"]) == MET
    assert capsys.readouterr().out == "fixtures/slo/valid/one-objective.yaml: fine\n"


@pytest.mark.parametrize(
    "text, said",
    [
        ("objectives:\n  # min_concurrency: 2.5\n", "no objective is given: the start alone is judged"),
        ("severity: {min_concurrency: warn}\n", "no objective is given: the start alone is judged"),
        (
            "workload: {prompt_tokens: 7500}\n",
            "of the requests of 7,500 tokens it is judged only whether one can run: "
            "--concurrent-requests N asks for so many at once",
        ),
    ],
)
def test_a_fine_file_that_asks_for_little_says_so(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["slo", "check", "-"]) == MET
    assert capsys.readouterr().out == f"stdin: fine; {said}\n"


def test_a_baseline_asks_for_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slo = tmp_path / "slo.yaml"
    slo.write_text(f"regression: {{baseline: {Path('fixtures/logs/story/16k-fp8-cache.log').absolute()}}}\n")
    assert main(["slo", "check", str(slo)]) == MET
    assert capsys.readouterr().out == f"{slo}: fine\n"


def test_what_is_piped_in_is_called_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('objectives: {"min_k\\n9": 1}'))
    assert main(["slo", "check", "-"]) == MISSED
    assert capsys.readouterr().out.startswith("stdin:1: objectives.min_k 9: no such key; there are: ")


def test_every_mistake_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slo", "check", "fixtures/slo/invalid/two-mistakes.yaml"]) == MISSED
    assert [line.split(": ")[1] for line in capsys.readouterr().out.splitlines()] == [
        "objectives.min_concurrency",
        "objectives.max_weigths",
    ]


def test_a_file_that_is_named_and_missing_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slo = tmp_path / "slo.yaml"
    slo.write_text("regression: {baseline: gone.json}\n")
    assert main(["slo", "check", str(slo)]) == MISSED
    assert capsys.readouterr().out == f"{slo}: {tmp_path}/gone.json: no such file\n"


def test_a_missing_slo_file_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slo", "check", "nowhere.yaml"]) == USAGE
    assert capsys.readouterr().err == "kvguard: nowhere.yaml: no such file or directory\n"


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slo", "schema"]) == MET
    assert json.loads(capsys.readouterr().out)["title"] == "kvguard SLO file"


def test_a_file_that_cannot_be_read_hides_no_other_s_mistakes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("objectives: {min_concurency: 2}\n")

    assert main(["slo", "check", str(tmp_path / "none.yaml"), str(wrong)]) == USAGE
    captured = capsys.readouterr()
    assert captured.err == f"kvguard: {tmp_path}/none.yaml: no such file or directory\n"
    assert captured.out == f"{wrong}:1: objectives.min_concurency: no such key; did you mean min_concurrency?\n"
