"""`kvguard check`: the status of every kind of input, and what is said where."""

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kvguard.cli import main
from tests.conftest import FIXTURES

LOGS = FIXTURES / "logs"
REFUSED = str(LOGS / "story/l4-default-context.log")
RAG = str(LOGS / "story/rag-24gb.log")
RUN = LOGS / "runs/vllm-0.32.0-cpu-base/server.log"
CAPACITY_LINE = b"CPU KV cache size"

Capture = pytest.CaptureFixture[str]


def cut(before: bytes, folder: Path) -> str:
    """The log of a good start up to the line that holds these bytes."""
    content = RUN.read_bytes()
    position = content.index(before)
    path = folder / "cut.log"
    path.write_bytes(content[: content.rindex(b"\n", 0, position) + 1])
    return str(path)


@pytest.mark.parametrize(
    "log, flags, status",
    [
        (RAG, ["--min-concurrency", "1.25"], 0),
        (RAG, ["--min-concurrency", "1.26"], 1),
        (REFUSED, ["--min-concurrency", "0.1"], 1),
        (RAG, ["--min-kv-cache", "3GiB"], 3),
        (REFUSED, [], 1),
        (RAG, [], 0),
    ],
)
def test_the_status_is_that_of_the_outcome(log: str, flags: list[str], status: int, capsys: Capture) -> None:
    assert main(["check", log, *flags]) == status
    assert capsys.readouterr().out.startswith({0: "PASS", 1: "FAIL", 3: "UNKNOWN"}[status])


def test_without_an_objective_it_says_so(capsys: Capture) -> None:
    main(["check", RAG])

    assert capsys.readouterr().err == "kvguard: no objective is given: the start alone is judged\n"


def test_a_log_that_cannot_be_read_is_told_alone(tmp_path: Path, capsys: Capture) -> None:
    missing = tmp_path / "vllm.log"

    assert main(["check", str(missing)]) == 2
    assert capsys.readouterr().err == f"kvguard: {missing}: no such file\n"


@pytest.mark.parametrize("more", [[], ["--min-concurrency", "1"], ["--max-request-share", "90%"]])
def test_a_request_without_a_number_of_them_is_no_silent_pass(more: list[str], capsys: Capture) -> None:
    assert main(["check", RAG, "--prompt-tokens", "8000", *more]) == 0
    assert capsys.readouterr().err == (
        "kvguard: of the requests of 8,000 tokens it is judged only whether one can run: --concurrent-requests N asks "
        "for so many at once\n"
    )


def test_what_fits_of_such_a_request_is_told(capsys: Capture) -> None:
    main(["check", RAG, "--prompt-tokens", "8000", "--model-config", "llama-3.1-8b"])
    headline = capsys.readouterr().out.splitlines()[0]
    assert headline == "PASS  5.1 requests of 8,000 tokens fit without preemption; no number of them was asked for"


@pytest.mark.parametrize(
    "content, line",
    [
        (b"", "UNKNOWN  the log is empty"),
        (bytes(range(256)) * 40, "UNKNOWN  none of the "),
        (b"2026-01-01 nginx: worker process 7 exited\n" * 3, "UNKNOWN  none of the 3 lines is a vLLM server's"),
        (b"2026-01-01 nginx: worker process 7 exited\n", "UNKNOWN  the one line is not a vLLM server's"),
    ],
    ids=["empty", "binary", "another program's", "one line of it"],
)
def test_a_log_that_says_nothing_is_unknown(content: bytes, line: str, tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(content)

    assert main(["check", str(log), "--min-concurrency", "2"]) == 3
    assert capsys.readouterr().out.splitlines()[0].startswith(line)


def test_a_log_cut_before_its_capacity_is_unknown(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check", cut(CAPACITY_LINE, tmp_path), "--min-concurrency", "2"]) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN  ")


def test_a_log_cut_behind_its_capacity_is_judged(tmp_path: Path, capsys: Capture) -> None:
    log = cut(b"Starting vLLM server", tmp_path)

    assert main(["check", log, "--min-concurrency", "2"]) == 0
    assert "! start-not-finished: " in capsys.readouterr().out
    assert main(["check", log, "--min-concurrency", "2", "--require-ready"]) == 3


def test_a_log_cut_in_the_middle_of_its_capacity_line_is_not_guessed(tmp_path: Path) -> None:
    content = RUN.read_bytes()
    log = tmp_path / "cut.log"
    log.write_bytes(content[: content.index(CAPACITY_LINE) + len(CAPACITY_LINE) + 4])

    assert main(["check", str(log), "--min-concurrency", "2"]) == 3


def test_what_cannot_be_read_is_a_usage_error(tmp_path: Path, capsys: Capture) -> None:
    broken = tmp_path / "broken.log.gz"
    broken.write_bytes(gzip.compress(RUN.read_bytes())[:200])
    cases = {
        str(tmp_path / "missing.log"): "no such file",
        str(tmp_path): "is a directory: name the log file in it",
        str(broken): "broken archive (Compressed file ended before the end-of-stream marker was reached): "
        "decompress what is left of it, and check that",
    }
    for log, reason in cases.items():
        assert main(["check", log, "--min-concurrency", "2"]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", f"kvguard: {log}: {reason}\n")


def test_an_archive_is_read_as_it_is(tmp_path: Path) -> None:
    packed = tmp_path / "server.log.gz"
    packed.write_bytes(gzip.compress(RUN.read_bytes()))

    assert main(["check", str(packed), "--min-concurrency", "256"]) == 0


def test_several_logs_are_nodes_of_one_deployment(capsys: Capture) -> None:
    nodes = [str(FIXTURES / "logs" / "shapes" / name) for name in ("two-nodes.log", "two-nodes.second.log")]

    assert main(["check", *nodes, "--min-total-concurrency", "28", "--format", "json"]) == 0

    report = json.loads(capsys.readouterr().out)
    assert report["sources"] == nodes
    assert report["start"]["capacity"]["total_kv_cache_tokens"] == 927_520
    assert report["lines"]["kv_cache_tokens"]["source"] == nodes[1]
    assert "460,000 tokens" in report["lines"]["kv_cache_tokens"]["text"]


@pytest.mark.parametrize(
    "words, message",
    [
        (["check"], "kvguard check: the following arguments are required: LOG"),
        (["check", RAG, "--until", "never"], "kvguard check: argument --until: 'never' is neither capacity nor ready"),
        (["check", RAG, "--timeout", "soon"], "kvguard check: argument --timeout: 'soon' is not a duration: write a "),
        (["check", RAG, "--min-concurrency", "x"], "kvguard check: argument --min-concurrency: 'x' is not a number"),
        (["check", RAG, "--min-concurency", "2"], "kvguard check: unrecognized arguments: --min-concurency 2; did"),
        (
            ["check", RAG, "--min-concurency=2"],
            "kvguard check: unrecognized arguments: --min-concurency=2; did you mean --min-concurrency?",
        ),
        (["check", RAG, "--colour"], "kvguard check: unrecognized arguments: --colour (see kvguard check --help)"),
        (["chekc", RAG], "kvguard: no command 'chekc'; did you mean check? (see kvguard --help)"),
    ],
)
def test_a_mistake_in_the_call_is_one_line(words: list[str], message: str, capsys: Capture) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message)
    assert captured.err.count("\n") == 1


def test_a_refusal_that_names_a_length_that_fits_is_helped_by_it(capsys: Capture) -> None:
    log = FIXTURES / "logs/runs/vllm-0.32.0-cpu-toolong/server.log"

    assert main(["check", str(log)]) == 1
    page = capsys.readouterr().out
    assert "✔ --max-model-len 16256  1 of 16,256 tokens" in page
    assert "nothing that can be computed is surely enough" not in page


def test_stdin_is_one_log_only(capsys: Capture) -> None:
    assert main(["check", "-", "-"]) == 2
    assert capsys.readouterr().err.endswith("kvguard: stdin can be one log only: name the others as files\n")


def run_piped(content: bytes, *words: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "kvguard", "check", "-", *words]
    return subprocess.run(command, input=content, capture_output=True, env={**os.environ, "PYTHONPATH": "src"})


def test_a_pipe_is_read_to_its_end() -> None:
    done = run_piped(Path(RAG).read_bytes(), "--min-concurrency", "2.5", "--format", "json")

    assert (done.returncode, done.stderr) == (
        1,
        b"kvguard: fail: maximum concurrency at 32,768 tokens is 1.25 requests, below the 2.50 asked for\n",
    )
    assert json.loads(done.stdout)["checks"][0]["observed"] == 1.25


def test_a_pipe_is_called_stdin_and_no_tool_is_told_to_open_it() -> None:
    page, annotations, junit = (
        run_piped(Path(RAG).read_bytes(), "--min-concurrency", "2.5", "--format", form).stdout.decode()
        for form in ("text", "github", "junit")
    )

    assert "\n  stdin: ready" in page
    assert annotations.startswith("::error title=")
    assert "file=" not in junit


def test_an_unset_variable_is_told_from_a_missing_log(capsys: Capture) -> None:
    assert main(["check", ""]) == 2
    assert capsys.readouterr().err.endswith("an empty name for a LOG: is the variable set that it comes from?\n")


@pytest.mark.parametrize("key", ["min_concurrency", "min-concurrency"])
def test_an_objective_s_severity_is_named_by_its_key_or_its_flag(key: str) -> None:
    assert main(["check", RAG, "--min-concurrency", "99", "--severity", f"{key}=warn"]) == 0


class TestWaiting:
    """A start that somebody else began."""

    def test_a_file_that_is_not_there_is_said_to_be_missing(self, tmp_path: Path, capsys: Capture) -> None:
        log = tmp_path / "nowhere.log"
        assert main(["check", str(log), "--follow", "--timeout", "0.1s", "--min-concurrency", "2"]) == 3
        told = f"{log} does not exist yet: waiting for it"
        page, talk = capsys.readouterr()
        assert " ".join(page.split()).startswith(f"UNKNOWN {told}")
        assert talk.splitlines()[0] == f"kvguard: 0.0 s: {told}"

    def test_what_stands_in_a_log_is_read_however_short_the_time(self, capsys: Capture) -> None:
        assert main(["check", str(RUN), "--timeout", "0", "--min-concurrency", "2"]) == 0
        assert capsys.readouterr().out.startswith("PASS")

    def test_a_miss_ends_it_before_the_pipe_does(self, tmp_path: Path, capsys: Capture) -> None:
        fifo = tmp_path / "pipe"
        os.mkfifo(fifo)
        done = threading.Event()

        def write() -> None:
            with fifo.open("wb", buffering=0) as pipe:
                pipe.write(Path(RAG).read_bytes())
                done.wait(20)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert main(["check", str(fifo), "--until", "ready", "--min-concurrency", "2.5"]) == 1
        finally:
            done.set()
            writer.join()
        assert capsys.readouterr().err.splitlines()[-1].endswith(": ready")

    def test_the_time_runs_out(self, tmp_path: Path, capsys: Capture) -> None:
        log = cut(CAPACITY_LINE, tmp_path)

        assert main(["check", log, "--timeout", "300ms", "--min-concurrency", "2"]) == 3
        captured = capsys.readouterr()
        assert captured.out.startswith("UNKNOWN  ")
        assert captured.err.endswith("kvguard: no answer within 0.3 s\n")

    def test_who_has_waited_is_not_told_to_wait(self, tmp_path: Path, capsys: Capture) -> None:
        log = cut(CAPACITY_LINE, tmp_path)

        main(["check", log, "--timeout", "300ms", "--min-concurrency", "2", "--format", "json", "-q"])
        report = json.loads(capsys.readouterr().out)
        remedies = {one["remedy"] for one in (*report["verdict"]["reasons"], *report["checks"])}
        assert len(remedies) == 1
        assert remedies.pop().startswith("allow more than 0.3 s (--timeout); if the log has stopped growing, ")

    def test_who_has_waited_for_no_log_is_told_to_look_where_it_goes(self, tmp_path: Path, capsys: Capture) -> None:
        main(["check", str(tmp_path / "none.log"), "--timeout", "10ms", "-q"])

        advice = "→ see that vLLM writes its stdout and stderr there, or allow more than 0.0 s (--timeout)"
        assert " ".join(capsys.readouterr().out.split()).count(advice) == 1

    def test_a_start_that_is_not_ready_does_not_pass(self, tmp_path: Path) -> None:
        log = cut(b"Starting vLLM server", tmp_path)

        assert main(["check", log, "--timeout", "400ms", "--min-concurrency", "2"]) == 3
        assert main(["check", log, "--timeout", "5s", "--until", "capacity", "--min-concurrency", "2"]) == 0

    def test_the_newest_of_several_starts_is_waited_for(self, tmp_path: Path) -> None:
        log = tmp_path / "two.log"
        second = RUN.read_bytes()
        log.write_bytes(Path(RAG).read_bytes() + second[: second.index(CAPACITY_LINE) - 200])

        assert main(["check", str(log), "--timeout", "700ms", "--min-concurrency", "1"]) == 3

    def test_a_file_that_appears_late_is_read(self, tmp_path: Path) -> None:
        log = tmp_path / "late.log"
        writer = threading.Timer(0.3, log.write_bytes, [RUN.read_bytes()])
        writer.start()

        assert main(["check", str(log), "--follow", "--timeout", "20s", "--min-concurrency", "2", "-q"]) == 0
        writer.join()

    def test_a_pipe_that_ends_too_early_is_unknown(self) -> None:
        content = RUN.read_bytes()
        done = run_piped(content[: content.index(CAPACITY_LINE)], "--until", "ready", "--min-concurrency", "2")

        assert done.returncode == 3

    def test_a_directory_is_not_waited_for(self, tmp_path: Path) -> None:
        assert main(["check", str(tmp_path), "--follow", "--min-concurrency", "2"]) == 2
