"""`kvguard run`: the command's output untouched, the status of the answer or of the command, and nobody left behind."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults import programs

REFUSED = programs.RUNS / "vllm-0.32.0-cpu-toolong/server.log"


def kvguard(*words: str) -> list[str]:
    return programs.command("run", *words)


def ran(*words: str) -> "subprocess.CompletedProcess[bytes]":
    return programs.ran(["run", *words])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[list[str]]:
    """A command that prints a real start up to its ready line, tells its pid, and then serves until it is told."""
    log = tmp_path / "start.log"
    log.write_bytes(programs.start_of_vllm())
    program = tmp_path / "serve"
    program.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\ncat "${{1:-{log}}}"\nexec sleep 60\n')
    program.chmod(0o755)
    yield [str(program)]
    pid = tmp_path / "pid"
    assert not pid.exists() or not is_alive(int(pid.read_text()))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class TestTheGate:
    """With `--until` or `--timeout` the command is ended and the status is the answer's."""

    def test_a_good_start_passes_and_is_ended(self, server: list[str]) -> None:
        done = ran("--until", "ready", "--min-concurrency", "2", "--", *server)

        assert done.returncode == 0, done.stderr.decode()
        assert b"\nPASS  both objectives are met\n" in done.stderr
        assert done.stdout.endswith(b"Application startup complete.\n")

    def test_a_miss_ends_it_as_well(self, server: list[str]) -> None:
        assert ran("--until", "ready", "--min-concurrency", "1000", "--", *server).returncode == 1

    def test_a_refused_start_fails_before_the_command_gives_up(self, server: list[str]) -> None:
        done = ran("--until", "ready", "--min-concurrency", "2", "--", *server, str(REFUSED))

        assert done.returncode == 1
        assert b"\nFAIL  the start failed: a context of 131,072 tokens was asked for" in done.stderr

    def test_the_time_runs_out(self) -> None:
        done = ran("--timeout", "400ms", "--min-concurrency", "2", "--", "sleep", "60")

        assert done.returncode == 3
        assert b"kvguard: no answer within 0.4 s\n" in done.stderr

    def test_a_command_that_dies_first_is_a_failed_start(self) -> None:
        done = ran("--until", "ready", "--min-concurrency", "2", "--", "sh", "-c", "kill -9 $$")

        assert done.returncode == 1
        assert b"\nFAIL  the command ended with status 137 (SIGKILL) before its server was ready\n" in done.stderr
        assert b"kvguard check" not in done.stderr  # there is no log to wait for

    def test_its_report_says_the_same(self, tmp_path: Path) -> None:
        report = tmp_path / "report.json"
        done = ran("-q", "--until", "ready", "--format", f"json={report}", "--", "false")

        ended = "the command ended with status 1 before its server was ready"
        verdict = json.loads(report.read_text())["verdict"]
        assert (done.returncode, verdict["outcome"]) == (1, "fail")
        assert [(reason["code"], reason["message"]) for reason in verdict["reasons"]] == [
            ("command-ended", ended),
            ("require_ready", ended),
        ]
        assert verdict["reasons"][0]["remedy"] == "read what the command printed last"
        assert done.stderr.decode() == f"kvguard: fail: {ended}\n"

    def test_a_command_that_only_ends_is_unknown(self) -> None:
        """Behind `docker run -d` the server may be well: nothing is seen of it."""
        done = ran("--until", "ready", "--min-concurrency", "2", "--", "true")

        assert done.returncode == 3
        assert b"\nUNKNOWN  the command ended with status 0 before its server was ready\n" in done.stderr
        assert b"run the server in the foreground" in done.stderr

    @pytest.mark.parametrize(
        "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM]
    )
    def test_a_signal_ends_both(self, number: int, server: list[str], tmp_path: Path) -> None:
        command = kvguard("--until", "ready", "--min-concurrency", "2", "--", *server, os.devnull)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=programs.ENVIRON)
        wait_for(tmp_path / "pid")
        running.send_signal(number)
        running.communicate(timeout=30)

        assert running.returncode == 128 + number

    @pytest.mark.parametrize(
        "strike, status", [(os.close, 129), (lambda terminal: os.write(terminal, b"\x03"), 130)], ids=["hang-up", "^C"]
    )
    def test_so_does_the_terminal(
        self, strike: Callable[[int], object], status: int, server: list[str], tmp_path: Path
    ) -> None:
        """Nothing can be written to one that has hung up, which is not what the status is about."""
        terminal, ours = pty.openpty()
        running = subprocess.Popen(
            kvguard("--until", "ready", "--min-concurrency", "2", "--", *server, os.devnull),
            stdin=ours,
            stdout=ours,
            stderr=ours,
            env=programs.ENVIRON,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(ours)
        wait_for(tmp_path / "pid")
        strike(terminal)

        assert running.wait(timeout=30) == status
        with suppress(OSError):
            os.close(terminal)


class TestTheWrapper:
    """Without, the command runs on, and the status is its own."""

    @pytest.mark.parametrize("status", [0, 1, 7, 130])
    def test_the_status_is_the_commands(self, status: int) -> None:
        assert ran("-q", "--min-concurrency", "2", "--", "sh", "-c", f"exit {status}").returncode == status

    def test_both_outputs_pass_untouched(self) -> None:
        script = r"printf '\033[32mgreen\033[0m\r 50%%\r100%%\377\n'; printf 'to \033[1mstderr' >&2"
        done = ran("-q", "--format", "json=/dev/null", "--", "sh", "-c", script)

        assert done.stdout == b"\033[32mgreen\033[0m\r 50%\r100%\xff\n"
        assert done.stderr.startswith(b"to \033[1mstderr")

    def test_the_report_is_there_while_the_server_serves(self, server: list[str], tmp_path: Path) -> None:
        report = tmp_path / "report.json"
        command = kvguard("-q", "--min-concurrency", "2", "--format", f"json={report}", "--", *server)
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=programs.ENVIRON)
        try:
            wait_for(report)
            assert running.poll() is None
        finally:
            running.terminate()
            running.communicate(timeout=30)

        assert json.loads(report.read_text())["start"]["phase"] == "ready"
        assert running.returncode == 143

    def test_a_commands_own_dashes_are_its_own(self) -> None:
        done = ran("-q", "--", "printf", "%s|", "--until", "--", "-x", "--")

        assert done.stdout == b"--until|--|-x|--|"

    @pytest.mark.parametrize("gate", [[], ["--until", "ready"]])
    @pytest.mark.parametrize(
        "program, why",
        [
            ("no-such-program", "no such file or directory): is it installed and on PATH?"),
            ("{}/orphan", "no such file or directory): its first line names an interpreter that is not there"),
            ("{}/plain", "permission denied): is it a program, and may it be executed (chmod +x)?"),
            ("{}", "permission denied): is it a program, and may it be executed (chmod +x)?"),
        ],
    )
    def test_what_cannot_be_started_is_a_usage_error(
        self, program: str, why: str, gate: list[str], tmp_path: Path
    ) -> None:
        (tmp_path / "orphan").write_text("#!/no/such/interpreter\n")
        (tmp_path / "orphan").chmod(0o755)
        (tmp_path / "plain").write_text("#!/bin/sh\n")
        program = program.format(tmp_path)
        done = ran(*gate, "--", program, "--port", "1")

        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.decode() == f"kvguard: {program}: cannot be started ({why}\n"


def test_progress_says_how_long_the_last_start_took(server: list[str], tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    late = ["sh", "-c", f"sleep 0.3; exec {server[0]}"]
    for _ in range(2):
        done = ran("--until", "ready", "--min-concurrency", "2", "--record", str(record), "--", *late)

    assert len(record.read_text().splitlines()) == 2
    first = done.stderr.decode().splitlines()[0]
    assert first.startswith("kvguard: 0.0 s: waiting for the first line of a start (the last start was ready ")
    assert first.endswith(" after its first line)")


def wait_for(path: Path) -> None:
    end = time.monotonic() + 20
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.02)
