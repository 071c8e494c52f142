"""Whatever ends kvguard, no process of the command stays behind.

Every process of a family opens the same named pipe for writing; the test reads it to its end, and the end comes when
the last of them is gone.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvguard.sources.child.processes import descendants

SHELL_AND_SLEEPER = "exec 9>{pipe}; sleep 1000 & echo ready >&9; wait"
STUBBORN = (
    "trap '' TERM INT HUP QUIT; exec 9>{pipe}; (while :; do sleep 1000; done) & echo ready >&9; while :; do wait; done"
)
LEFT_THE_GROUP = "exec 9>{pipe}; setsid sh -c 'echo ready >&9; exec sleep 1000' & wait"
ORPHAN = "exec 9>{pipe}; (setsid sh -c 'echo ready >&9; exec sleep 1000' &); exec sleep 1000"

Start = Callable[..., "subprocess.Popen[bytes]"]


class Lifeline:
    """The pipe that the processes of a family hold open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self._kept = os.open(path, os.O_WRONLY)  # until the family holds it, so that no end is seen before

    def wait_for_all(self, count: int = 1) -> None:
        """Until so many processes have said that they are ready."""
        said = b""
        while said.count(b"ready\n") < count:
            said += self._read()

    def everybody_is_gone(self) -> bool:
        """Waits for the end, which comes when nobody holds the pipe any more."""
        os.close(self._kept)
        while self._read():
            pass
        os.close(self._reader)
        return True

    def _read(self) -> bytes:
        readable = select.poll()
        readable.register(self._reader, select.POLLIN)
        assert readable.poll(60_000), "somebody is left, or nobody ever came"
        return os.read(self._reader, 100)


@pytest.fixture
def lifeline(tmp_path: Path) -> Lifeline:
    return Lifeline(tmp_path / "lifeline")


@pytest.fixture
def start(lifeline: Lifeline) -> Iterator[Start]:
    started = []

    def start(script: str, grace: float = 30.0) -> "subprocess.Popen[bytes]":
        command = ["sh", "-c", script.format(pipe=lifeline.path)]
        runner = subprocess.Popen(
            [sys.executable, "-m", "tests.sources.child.runner", str(grace), *command],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        started.append(runner)
        lifeline.wait_for_all()
        return runner

    yield start
    for runner in started:
        runner.kill()
        runner.wait()


@pytest.mark.parametrize(
    "number",
    [
        *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
        *(signal.SIGALRM, signal.SIGABRT, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGTRAP),
        *(signal.SIGSYS, signal.SIGIO, signal.SIGRTMIN, signal.SIGRTMAX),
    ],
)
def test_a_signal_ends_the_command_and_gives_its_status(start: Start, lifeline: Lifeline, number: int) -> None:
    runner = start(SHELL_AND_SLEEPER)
    runner.send_signal(number)
    assert runner.wait() == 128 + number
    assert lifeline.everybody_is_gone()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_who_does_not_listen_is_killed_after_the_grace(start: Start, lifeline: Lifeline, number: int) -> None:
    runner = start(STUBBORN, grace=0.1)
    runner.send_signal(number)
    assert runner.wait() == 128 + signal.SIGKILL
    assert lifeline.everybody_is_gone()


@pytest.mark.parametrize("script", [LEFT_THE_GROUP, ORPHAN], ids=["left the group", "orphan"])
def test_who_left_the_process_group_is_found(start: Start, lifeline: Lifeline, script: str) -> None:
    runner = start(script)
    runner.terminate()
    assert runner.wait() == 128 + signal.SIGTERM
    assert lifeline.everybody_is_gone()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS])
def test_when_kvguard_is_killed_or_crashes_the_guardian_ends_the_group(
    start: Start, lifeline: Lifeline, number: int
) -> None:
    runner = start(SHELL_AND_SLEEPER)
    runner.send_signal(number)
    assert runner.wait() == -number
    assert lifeline.everybody_is_gone()


def test_without_the_guardian_the_kernel_still_tells_the_command(start: Start, lifeline: Lifeline) -> None:
    runner = start("exec 9>{pipe}; echo ready >&9; exec sleep 1000")
    [guardian] = [
        process.pid
        for process in descendants(runner.pid)
        if b"guardian.py" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    ]
    os.kill(guardian, signal.SIGKILL)
    runner.kill()
    assert runner.wait() == -signal.SIGKILL
    assert lifeline.everybody_is_gone()


def test_what_the_command_leaves_behind_is_ended_after_it(start: Start, lifeline: Lifeline) -> None:
    runner = start("exec 9>{pipe}; (echo ready >&9; exec sleep 1000) & sleep 0.01; exit 7")
    assert runner.wait() == 7
    assert lifeline.everybody_is_gone()


def test_a_stopped_command_is_woken_to_be_ended(start: Start, lifeline: Lifeline) -> None:
    runner = start("exec 9>{pipe}; echo ready >&9; kill -STOP $$", grace=0.1)
    runner.terminate()
    assert runner.wait() in (128 + signal.SIGTERM, 128 + signal.SIGKILL)  # it stops before or after it is told
    assert lifeline.everybody_is_gone()
