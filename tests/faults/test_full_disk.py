"""A full disk, a closed stream, a reader that left: one line, if anybody hears it, and never a miss's exit status."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard.cli import main
from kvguard.cli.records import append
from kvguard.guard import Guard
from tests.faults.programs import ENVIRON, LOG, command, ran, start_of_vllm

FULL = Path("/dev/full")
CHECK = ["check", str(LOG), "--min-concurrency", "2"]
MISSED = ["check", str(LOG), "--min-concurrency", "1000"]
PAGES = [
    ["--version"],
    CHECK,
    [*CHECK, "--format", "json"],
    ["inspect", str(LOG)],
    ["explain", str(LOG)],
    ["formats"],
    ["slo", "schema"],
    ["baseline", str(LOG)],
    ["plan", "llama-3.1-8b"],
]


@pytest.fixture
def full() -> Iterator[int]:
    """A descriptor on a full disk."""
    descriptor = os.open(FULL, os.O_WRONLY)
    yield descriptor
    os.close(descriptor)


class TestStdout:
    @pytest.mark.parametrize("words", PAGES, ids=" ".join)
    def test_a_page_that_finds_no_room_is_one_line_and_no_miss(self, words: list[str], full: int) -> None:
        done = ran(words, stdout=full)

        *_, last = done.stderr.decode().splitlines()
        assert (done.returncode, last) == (2, "kvguard: stdout: cannot be written (no space left on device)")
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr

    @pytest.mark.parametrize("words, status", [(CHECK, 0), (MISSED, 1)])
    def test_closed_before_the_start_it_swallows_the_page(self, words: list[str], status: int) -> None:
        done = ran(words, stdout=None, preexec_fn=lambda: os.close(1))
        assert (done.returncode, done.stderr.count(b"\n")) == (status, 0)

    def test_a_file_that_is_opened_instead_gets_no_page(self, tmp_path: Path) -> None:
        """The lowest number that is free is given to the next file, and 1 is where pages go."""
        record = tmp_path / "record.jsonl"
        done = ran([*CHECK, "--record", str(record)], stdout=None, stderr=None, preexec_fn=lambda: os.closerange(0, 3))
        assert done.returncode == 0
        assert [json.loads(line)["kind"] for line in record.read_text().splitlines()] == ["report"]

    def test_a_reader_that_left_is_told_by_the_status_alone(self) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        done = ran(CHECK, stdout=writer)
        os.close(writer)
        assert (done.returncode, done.stderr) == (141, b"")


class TestStderr:
    @pytest.mark.parametrize(
        "words, status",
        [(["check", "no-such.log"], 2), (CHECK, 0), ([*MISSED, "--format", "json"], 1), (["check", os.devnull], 3)],
    )
    def test_what_cannot_be_said_changes_no_status(self, words: list[str], status: int, full: int) -> None:
        assert ran(words, stderr=full).returncode == status

    def test_closed_it_never_gets_into_the_page(self) -> None:
        done = ran(["check", str(LOG), "--format", "json"], stderr=None, preexec_fn=lambda: os.close(2))
        assert json.loads(done.stdout)["verdict"]["outcome"] == "pass"


class TestStdin:
    @pytest.mark.parametrize(
        "words",
        [["check", "-"], ["check", "-", "--until", "ready"], ["inspect", "-"], ["slo", "check", "-"], ["plan", "-"]],
        ids=" ".join,
    )
    def test_closed_it_is_told_and_not_taken_for_an_empty_one(self, words: list[str]) -> None:
        done = ran(words, stdin=None, preexec_fn=lambda: os.close(0))

        *_, last = done.stderr.decode().splitlines()
        assert done.returncode == 2
        assert last.startswith("kvguard: stdin: cannot be read (")


class TestFiles:
    @pytest.mark.parametrize(
        "flags",
        [
            *([f"--format={form}=/dev/full"] for form in ("text", "json", "markdown", "junit", "github", "html")),
            ["--output", "/dev/full"],
            ["--record", "/dev/full"],
        ],
        ids=" ".join,
    )
    def test_a_report_that_finds_no_room(self, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*CHECK, *flags]) == 2
        told = "kvguard: /dev/full: cannot be written (no space left on device): name another file\n"
        assert capsys.readouterr().err == told

    def test_a_baseline_that_finds_no_room(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["baseline", str(LOG), "-o", "/dev/full"]) == 2
        told = "kvguard: /dev/full: cannot be written (no space left on device): name another file\n"
        assert capsys.readouterr().err == told

    def test_a_record_torn_by_a_full_disk_does_not_take_the_next_with_it(self, tmp_path: Path) -> None:
        record = tmp_path / "record.jsonl"
        guard = Guard()
        guard.feed(LOG.read_bytes())
        append(record, guard.verdict)
        record.write_bytes(record.read_bytes()[:-100])  # as much as there was room for

        append(record, guard.verdict)

        torn, whole = record.read_text().splitlines()
        assert json.loads(whole)["kind"] == "report"
        assert not torn.endswith("}")


class TestAroundACommand:
    SERVER = ("sh", "-c", 'cat "$0"; exec sleep 60')

    @pytest.fixture
    def start(self, tmp_path: Path) -> str:
        (tmp_path / "start.log").write_bytes(start_of_vllm())
        return str(tmp_path / "start.log")

    def test_a_gate_without_room_for_its_report_has_not_passed(self, start: str) -> None:
        done = ran(["run", "-q", "--until", "ready", "--format", "junit=/dev/full", "--", *self.SERVER, start])
        told = b"kvguard: /dev/full: cannot be written (no space left on device): name another file\n"
        assert (done.returncode, done.stderr) == (2, told)

    @pytest.mark.parametrize("bound, status", [("2", 0), ("1000", 1)])
    @pytest.mark.parametrize("flags", [[], ["-q", "--format", "text"]], ids=["talking", "quiet"])
    def test_a_gate_that_nobody_hears_has_its_status(
        self, flags: list[str], bound: str, status: int, start: str, full: int
    ) -> None:
        words = ["run", *flags, "--until", "ready", "--min-concurrency", bound, "--", *self.SERVER, start]
        assert ran(words, stderr=full).returncode == status

    def test_output_that_finds_no_room_is_judged_all_the_same(self, start: str, full: int) -> None:
        done = ran(["run", "--until", "ready", "--min-concurrency", "2", "--", *self.SERVER, start], stdout=full)
        assert (done.returncode, b"\nPASS  " in done.stderr) == (0, True)

    @pytest.mark.parametrize("flags", [["--format", "json=/dev/full"], ["--record", "/dev/full"]], ids=" ".join)
    def test_a_server_is_not_ended_because_its_report_finds_no_room(self, flags: list[str], start: str) -> None:
        words = command("run", "-q", "--min-concurrency", "2", *flags, "--", *self.SERVER, start)
        running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRON)
        assert running.stderr is not None
        said = running.stderr.readline().decode()
        assert said == "kvguard: /dev/full: cannot be written (no space left on device): name another file\n"
        assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=30) == 143
        running.stderr.close()

    def test_nor_because_nobody_reads_stderr(self, start: str, tmp_path: Path) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        script = f'cat "{start}"; sleep 1.5; touch "{tmp_path}/lived"; exit 7'
        words = command("run", "--min-concurrency", "2", "--", "sh", "-c", script)
        running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=writer, env=ENVIRON)
        os.close(writer)
        began = time.monotonic()
        assert running.wait(timeout=60) == 7
        assert time.monotonic() - began > 1.0
        assert (tmp_path / "lived").exists()
