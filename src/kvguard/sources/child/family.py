"""The command's process and all that come from it: started so that none can stay behind, and ended for good.

Three nets, for three ways to go. While kvguard lives it finds every descendant, also one that left the process group:
as a subreaper it becomes the parent of orphans. Killed itself, the kernel tells the command to end (Linux), and the
guardian, a small program beside us, ends the whole group.
"""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.sources.child import guardian
from kvguard.sources.child.processes import adopt_orphans, death_signal, descendants

# A terminal sends these to everybody in front of it; all others go to one process, as `kill` and the kubelet send them.
_TO_THE_GROUP = {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}
_HINTS = {
    errno.ENOENT: ": is it installed and on PATH?",
    errno.EAGAIN: ": too many processes (ulimit -u), or too little memory for another",
    errno.EACCES: ": is it a program, and may it be executed (chmod +x)?",
    errno.ENOEXEC: ": is it built for this machine, or a script without a first line that names its interpreter?",
}


class Family:
    """A command that runs in a session of its own.

    Raises:
        SourceError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], stdout: int, stderr: int) -> None:
        adopt_orphans()
        self._strangers = {process.pid for process in descendants(os.getpid())}
        try:
            self._guardian, self._guardian_ear = _start_guardian()
        except OSError as error:
            raise SourceError(_cannot_start(command[0], error)) from None
        self._strangers.add(self._guardian.pid)
        try:
            self._process = subprocess.Popen(
                command,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                preexec_fn=partial(_enter, self._guardian_ear, death_signal(os.getpid())),
            )
        except (OSError, ValueError) as error:
            self.dismiss()
            raise SourceError(_cannot_start(command[0], error)) from None
        self.pid = self._process.pid

    def status(self) -> int | None:
        """The command's exit status as a shell gives it (128 + the signal that ended it), `None` while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def send(self, number: int) -> None:
        """Give the command a signal, or its whole group where a terminal would do so."""
        with suppress(ProcessLookupError, PermissionError):
            if number in _TO_THE_GROUP:
                os.killpg(self.pid, number)
            elif self._process.returncode is None:
                os.kill(self.pid, number)

    def wake(self) -> None:
        """Let those go on who are stopped, so that they can take what they were sent, as systemd does."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGCONT)

    def send_all(self, number: int) -> None:
        """Give everybody a signal who is left, and wake those who are stopped, so that they can take it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
            os.killpg(self.pid, signal.SIGCONT)
        for process in descendants(os.getpid(), self._strangers):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
                os.kill(process.pid, signal.SIGCONT)

    def is_gone(self) -> bool:
        """Whether nobody is left: the command and all that came from it have ended, and were buried."""
        if self._process.poll() is None:
            return False
        left = [process for process in descendants(os.getpid(), self._strangers) if not self._bury(process.pid)]
        if left or sys.platform == "linux":
            return not left
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return True
        return False

    def bury_orphans(self) -> None:
        """Ask for the status of dead descendants that were adopted, lest they pile up."""
        if sys.platform != "linux":
            return
        while (dead := _peek_at_dead_child()) is not None:
            if dead == self.pid or dead in self._strangers:
                return  # the command's status is asked for in its place, others' in theirs
            self._bury(dead)

    def dismiss(self) -> None:
        """Let the guardian go: nothing is left to guard."""
        with suppress(BrokenPipeError):
            os.write(self._guardian_ear, guardian.FAREWELL.encode())
        os.close(self._guardian_ear)
        self._guardian.wait()

    def _bury(self, pid: int) -> bool:
        try:
            return os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:  # not ours: its own parent does it
            return False


def _cannot_start(program: str, error: OSError | ValueError) -> str:
    code, reason = (error.errno, error.strerror) if isinstance(error, OSError) else (None, str(error))
    if code == errno.ENOENT and Path(program).exists():
        hint = ": its first line names an interpreter that is not there"
    else:
        hint = _HINTS.get(code or 0, "")
    return f"{program}: cannot be started ({(reason or str(error)).lower()}){hint}"


def _enter(guardian_ear: int, die_with_us: Callable[[], None]) -> None:
    """What the new process does before it becomes the command: from its first moment on it is watched."""
    die_with_us()
    os.write(guardian_ear, b"%d\n" % os.getpid())


def _start_guardian() -> tuple["subprocess.Popen[bytes]", int]:
    hears, ear = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-IS", guardian.__file__],
            stdin=hears,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        os.close(ear)
        raise
    finally:
        os.close(hears)
    return process, ear


def _peek_at_dead_child() -> int | None:
    try:
        dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if dead is None else dead.si_pid
