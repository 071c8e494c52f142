"""`kvguard diff`: both starts side by side in every form, and a status that says whether they could be compared."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kvguard.cli import main
from kvguard.cli.exit_status import MET, MISSED, UNKNOWN, USAGE

PAIRS = Path("fixtures/logs/pairs")
RUNS = Path("fixtures/logs/runs")
OLD = str(PAIRS / "a05-activation-peak-took-the-cache" / "old.log")
NEW = str(PAIRS / "a05-activation-peak-took-the-cache" / "new.log")


def test_the_cause_comes_first_and_the_sum_below(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", OLD, NEW]) == MET
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "• KV cache −6.65 GiB (×0.55): activation peak +6.65 GiB"
    assert "  activation peak            1.41 GiB   8.06 GiB  +6.65 GiB (+146,676 tokens)" in lines
    assert "  KV cache                  14.76 GiB   8.11 GiB  −6.65 GiB (−146,676 tokens)" in lines


@pytest.mark.parametrize(
    "old, new, first",
    [
        ("base", "base", "the capacity is the same: KV cache size 1,048,576 tokens, and no part differs"),
        ("base", "color", "the capacity is the same: KV cache size 1,048,576 tokens"),  # enforce_eager differs
        ("base", "dp2", "the capacity of the weakest engine is the same: KV cache size 1,048,576 tokens"),
        (
            "base",
            "level-warning",
            "capacity cannot be compared: not told by both: KV cache size, maximum concurrency, ",
        ),
    ],
)
def test_what_holds_comes_before_what_differs(
    old: str, new: str, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["diff", *(str(RUNS / f"vllm-0.32.0-cpu-{name}" / "server.log") for name in (old, new))])

    assert capsys.readouterr().out.startswith(f"• {first}")


def test_the_memory_of_a_pool_that_an_option_fixes_is_not_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    """1.00 GiB was profiled in both; one of them uses 100 blocks of it."""
    old, new = (str(RUNS / f"vllm-0.32.0-cpu-{name}" / "server.log") for name in ("base", "blocks-override"))

    main(["diff", old, new])
    assert capsys.readouterr().out.startswith("• capacity cannot be compared: ")
    assert main(["check", new, "--baseline", old]) == UNKNOWN


def test_the_document_has_both_sides_and_the_sum(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", OLD, NEW, "--format", "json"]) == MET
    document = json.loads(capsys.readouterr().out)
    assert (document["kind"], document["comparable"], document["differs"]) == ("diff", True, True)
    parts = {part["part"]: part for part in document["memory"]}
    assert parts["activation_peak"]["change_bytes"] == pytest.approx(6.65 * 2**30, rel=0.001)
    assert abs(document["unexplained_bytes"]) < 0.02 * 2**30
    assert document["capacity"][0] == {
        "figure": "kv_cache_tokens",
        "unit": "tokens",
        "like": True,
        "old": {"low": 325_552, "high": 325_552, "rounding": 0},
        "new": {"low": 178_880, "high": 178_880, "rounding": 0},
        "ratio": pytest.approx(178_880 / 325_552),
    }
    Draft202012Validator({"type": "object", "required": ["old", "new", "causes", "options"]}).validate(document)


def test_markdown_has_a_table_for_each_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", OLD, NEW, "--format", "markdown"]) == MET
    text = capsys.readouterr().out
    assert text.startswith("### kvguard diff\n\n**KV cache −6.65 GiB")
    assert "| memory of one rank | before | now | change |" in text


def test_several_forms_at_once(tmp_path: Path) -> None:
    file = tmp_path / "diff.json"
    assert main(["diff", OLD, NEW, "--format", "text", "--format", f"json={file}"]) == MET
    assert json.loads(file.read_text())["kind"] == "diff"


def test_logs_reports_and_baselines_mix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline, report = tmp_path / "baseline.json", tmp_path / "report.json"
    main(["baseline", OLD, "-o", str(baseline)])
    main(["inspect", NEW, "--format", f"json={report}"])
    capsys.readouterr()
    assert main(["diff", str(baseline), str(report)]) == MET
    assert capsys.readouterr().out.startswith("• KV cache −6.65 GiB (×0.55): activation peak +6.65 GiB")


def test_json_lines_are_a_log_and_no_document() -> None:
    log = str(RUNS / "vllm-0.32.0-cpu-json" / "server.log")
    assert main(["diff", log, log, "--exit-code"]) == MET


@pytest.mark.parametrize(
    "new, status",
    [
        (OLD, MET),
        (NEW, MISSED),
        (str(PAIRS / "a04-no-memory-left-after-an-upgrade" / "new.log"), UNKNOWN),  # another model
    ],
)
def test_the_status_says_whether_they_differ(new: str, status: int) -> None:
    assert main(["diff", OLD, new, "--exit-code"]) == status


def test_a_start_that_failed_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    pair = PAIRS / "a07-sliding-layers-reserve-for-two-batches"
    assert main(["diff", str(pair / "old.log"), str(pair / "new.log")]) == MET
    assert "needs 70.79 GiB of KV cache" in capsys.readouterr().out


def test_a_log_without_a_start_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.log").write_text("")
    assert main(["diff", OLD, str(tmp_path / "empty.log")]) == USAGE
    assert "no start of a vLLM server in it" in capsys.readouterr().err


def test_a_missing_side_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", OLD, "nowhere.log"]) == USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_baseline_with_a_secret_in_its_options_masks_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "kind": "baseline",
        "schema_version": 1,
        "weakest": {"kv_cache_tokens": 100},
        "options": {"model": "https://user:hunter2secret@host/model"},
    }
    (tmp_path / "b.json").write_text(json.dumps(document))
    for form in ("text", "json", "markdown"):
        main(["diff", str(tmp_path / "b.json"), OLD, "--format", form])
    assert "hunter2secret" not in capsys.readouterr().out
