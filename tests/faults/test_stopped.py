"""SIGSTOP and SIGCONT of either side: nothing is lost, nothing is decided meanwhile, and nobody stays stopped."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.programs import ENVIRON, command, start_of_vllm
from tests.live_prometheus import free_port
from tests.serve.driven import LOADING, READY
from tests.serve.process import Served, served

FLOOD = 4 * 2**20
"""More than the pipes between the two hold."""


def state_of(pid: int) -> str:
    """The letter that /proc gives: T is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    """A command that floods its output between its pid and its start, and then serves."""
    (tmp_path / "start.log").write_bytes(start_of_vllm())
    script = (
        f'echo $$ > "{tmp_path}/pid"; read line < "{tmp_path}/go"; '
        f'head -c {FLOOD} /dev/zero; echo; cat "{tmp_path}/start.log"; exec sleep 60'
    )
    os.mkfifo(tmp_path / "go")
    return ["sh", "-c", script]


def test_a_stopped_kvguard_loses_nothing(server: list[str], tmp_path: Path) -> None:
    words = command("run", "-q", "--until", "ready", "--min-concurrency", "2", "--", *server)
    with (tmp_path / "out").open("wb") as out:
        running = subprocess.Popen(words, stdout=out, stderr=subprocess.PIPE, env=ENVIRON)
        wait_for(tmp_path / "pid")
        running.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, running.pid, os.WSTOPPED)
        (tmp_path / "go").write_text("\n")  # it writes until the pipe is full, and waits for us
        running.send_signal(signal.SIGCONT)
        _, said = running.communicate(timeout=60)

    assert (running.returncode, said) == (0, b"")
    assert (tmp_path / "out").read_bytes() == bytes(FLOOD) + b"\n" + start_of_vllm()


def test_a_stopped_command_is_ended_when_its_time_is_up(server: list[str], tmp_path: Path) -> None:
    words = command("run", "-q", "--timeout", "2s", "--min-concurrency", "2", "--", *server)
    running = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRON)
    wait_for(tmp_path / "pid")
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    _, said = running.communicate(timeout=60)

    assert (running.returncode, b"kvguard: no answer within 2.0 s\n" in said) == (3, True)
    with pytest.raises(FileNotFoundError):
        state_of(pid)


def test_a_stopped_sidecar_reads_on_where_it_was(tmp_path: Path) -> None:
    log = tmp_path / "vllm.log"
    log.write_bytes(LOADING)
    with served("--log", str(log), "--min-concurrency", "2.5") as running:
        running.log_line(phase="profiling")
        running.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, running.process.pid, os.WSTOPPED)
        with log.open("ab") as file:
            file.write(READY[len(LOADING) :])
        running.process.send_signal(signal.SIGCONT)

        assert running.log_line(phase="ready")["gate"] == "open"
        assert running.get("/readyz").status == 200


def test_a_sidecar_whose_log_nobody_takes_serves_all_the_same(tmp_path: Path) -> None:
    """A runtime that is stuck leaves the pipe full: no probe waits for it, and the log is read on."""
    log = tmp_path / "vllm.log"
    log.write_bytes(LOADING)
    port = free_port()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    words = command("serve", "--listen", f"127.0.0.1:{port}", "--log", str(log), "--min-concurrency", "2.5")
    process = subprocess.Popen(words, stderr=writer, env=ENVIRON)
    try:
        running = Served(process, port)  # type: ignore[arg-type]  # whose log nobody reads
        assert answered(running, "/readyz", 503) == "unknown"
        with log.open("ab") as file:
            file.write(READY[len(LOADING) :])
        assert answered(running, "/readyz", 200) == "pass"
        process.terminate()
        assert process.wait(timeout=10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(reader)
        os.close(writer)


def answered(running: Served, path: str, status: int) -> str:
    """The verdict beside that answer, once it is given."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError):
            answer = running.get(path)
            if answer.status == status:
                return answer.headers["X-Kvguard-Verdict"]
        time.sleep(0.02)
    raise AssertionError(f"{path} has not answered {status}")
