"""`kvguard explain`: each line that told something, by its row, and each that looks as if it should have."""

import json
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.sources.blocks import read_blocks
from kvguard.trace import MOST_STEPS, trace
from tests.conftest import FIXTURES, Golden

LOGS = FIXTURES / "logs"
RUNS = sorted((LOGS / "runs").glob("*/server.log"))
UNKNOWN = (
    "INFO 07-09 08:01:44 [kv_cache_utils.py:1] GPU KV cache pool holds 245760 tokens for api_key=sk-verysecret123456\n"
)

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("log", ["story/l4-default-context.log", "story/rag-24gb.log"])
def test_a_log_is_explained_line_by_line(
    log: str, golden: Golden, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(LOGS)

    assert main(["explain", log]) == 0
    golden(FIXTURES / "explain" / f"{log.replace('/', '-')}.txt", capsys.readouterr().out)


def test_a_line_that_matches_nothing_is_shown_without_its_secret(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "x.log"
    log.write_text(UNKNOWN)

    assert main(["explain", str(log)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1  ?  looks like capacity, and no format matches it: GPU KV cache pool holds")
    assert "sk-very" not in out
    assert "\n1 line may tell a capacity in a wording that no format knows (?)" in out


def test_a_program_gets_the_same(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "x.log"
    log.write_text("INFO  Loading model weights took 14.99 GB\n" + UNKNOWN)

    assert main(["explain", str(log), "--format", "json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [(step["line"], step["format"]) for step in steps] == [(1, "weights-took"), (2, None)]
    assert steps[0]["facts"] == {"weights_bytes": 16095389942}
    assert steps[0]["reported"] == ["memory.weights", "weights_bytes"]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_every_fact_of_a_report_stands_in_a_line_that_told_something(path: Path) -> None:
    found = trace(read_blocks(str(path)), "server.log")
    told = {step.line for step in found.steps if step.format}

    assert found.report.start is not None
    assert {place.line for place in found.report.start.lines.values()} - told == set()


def test_a_trace_is_bounded() -> None:
    line = b"INFO 07-09 08:01:44 [loggers.py:1] Maximum concurrency for 4096 tokens per request: 2.00x\n"
    found = trace([line * (MOST_STEPS + 7)], "x")

    assert (len(found.steps), found.left_out) == (MOST_STEPS, 7)


def test_nothing_that_a_log_hides_comes_out(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "x.log"
    arguments = "{'api_key': ['sk-verysecret123456'], 'model': 'a\x1b[31mb', 'hf_token': 'plainword'}"
    log.write_text(
        f"(APIServer pid=1) INFO 11-29 16:54:05 [utils.py:233] non-default args: {arguments}\n"
        "(EngineCore pid=2) INFO 11-29 16:54:05 [x.py:1] GPU KV cache pool 12345 \x9b31m token=hf_abcdefghijklmn\n"
    )

    for form in ("text", "json"):
        assert main(["explain", str(log), "--format", form]) == 0
        out = capsys.readouterr().out
        assert [secret for secret in ("sk-very", "plainword", "hf_abc", "\x1b", "\x9b") if secret in out] == []
