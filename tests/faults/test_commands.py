"""Commands that `kvguard run` has around it: mute, prolific, or without a terminal; each ends with its own status."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from kvguard.sources.child.command import ChildSource
from tests.faults.programs import ENVIRON, command, start_of_vllm
from tests.sources.following import arrivals

TAKEN_CARE_OF = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
HARMLESS = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
DEADLY = [*sorted(set(signal.Signals) - TAKEN_CARE_OF - HARMLESS), signal.SIGKILL]


@pytest.mark.parametrize("number", DEADLY, ids=lambda number: number.name)
def test_who_dies_of_a_signal_has_its_status(number: signal.Signals) -> None:
    code = f"import os, signal; signal.signal({number:d}, signal.SIG_DFL); os.kill(os.getpid(), {number:d})"
    if number is signal.SIGKILL:
        code = "import os; os.kill(os.getpid(), 9)"
    child = ChildSource([sys.executable, "-IS", "-c", code])
    for _ in arrivals(child):
        pass
    child.close()
    assert child.exit_status == 128 + number


def test_who_closes_both_outputs_is_waited_for_without_haste() -> None:
    """Nothing more can come, and there is nobody to ask again and again."""
    child = ChildSource(["sh", "-c", "exec >&- 2>&-; exec sleep 0.5"])
    looks = sum(1 for _ in arrivals(child, tick=0.2))
    child.close()
    assert child.exit_status == 0
    assert looks < 20


def test_a_crowd_that_is_left_behind_is_ended_with_its_command() -> None:
    script = "i=0; while [ $i -lt 100 ]; do (exec sleep 987654 &); i=$((i + 1)); done; exit 4"
    done = subprocess.run(command("run", "-q", "--", "sh", "-c", script), capture_output=True, env=ENVIRON, timeout=60)

    assert done.returncode == 4
    living = [path for path in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x00987654" in _read(path)]
    assert living == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


def test_a_terminal_that_goes_away_takes_the_command_with_it(tmp_path: Path) -> None:
    (tmp_path / "start.log").write_bytes(start_of_vllm())
    script = f'echo $$ > "{tmp_path}/pid"; cat "{tmp_path}/start.log"; while :; do echo; sleep 0.05; done'
    screen, terminal = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    running = subprocess.Popen(
        command("run", "--min-concurrency", "2", "--", "sh", "-c", script),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=ENVIRON,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(terminal)
    while b"PASS" not in os.read(screen, 65536):
        pass
    os.close(screen)

    assert running.wait(timeout=30) == 128 + signal.SIGHUP
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
