"""What nobody foresaw, inside kvguard itself: no process is left, and no probe goes on saying that all is well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvguard.cli.attend import attend
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Verdict
from tests.faults.programs import ENVIRON
from tests.serve.process import Served


@pytest.mark.parametrize("kind", [RuntimeError, MemoryError, RecursionError, OSError, KeyboardInterrupt, SystemExit])
def test_whatever_is_raised_around_a_command_ends_the_command(kind: type[BaseException], tmp_path: Path) -> None:
    def strike(verdict: Verdict, seconds: float, awaited: str | None) -> None:
        if (tmp_path / "pid").exists():
            raise kind

    script = f'echo $$ > "{tmp_path}/new"; mv "{tmp_path}/new" "{tmp_path}/pid"; while :; do echo; sleep 0.05; done'
    with pytest.raises(kind):
        attend(["sh", "-c", script], Slo(), strike)

    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("kind, said", [("MemoryError", "kvguard: out of memory: "), ("RuntimeError", "Traceback ")])
def test_a_judge_that_breaks_down_has_not_judged(kind: str, said: str) -> None:
    """Python's own status for an uncaught exception is the one of a missed objective."""
    program = (
        "import sys; from kvguard import cli; from kvguard.guard import Guard\n"
        f"def feed(self, data, now=None): raise {kind}\n"
        "Guard.feed = feed; sys.argv[1:] = ['check', 'README.md', '-q']; cli.entry_point()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENVIRON)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)


@pytest.mark.parametrize("kind", ["MemoryError", "RuntimeError"])
def test_a_sidecar_whose_reader_has_died_is_not_alive(kind: str, tmp_path: Path) -> None:
    """The kubelet restarts it; the gate does not open by a log that nobody reads."""
    log = tmp_path / "vllm.log"
    program = (
        "import sys; from kvguard import cli; from kvguard.guard import Guard\n"
        f"def feed(self, data, now=None): raise {kind}\n"
        "Guard.feed = feed; sys.exit(cli.main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", program, "serve", "--listen", "127.0.0.1:0", "--log", str(log)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=ENVIRON)
    try:
        running = Served(process, 0)
        running.port = running.log_line()["port"]
        before = running.get("/livez").status
        log.write_text("a line\n")
        assert process.stderr is not None
        while kind not in process.stderr.readline():
            pass
        # between the last words of a thread and its end there is a moment
        after = next(status for _ in range(1000) if (status := running.get("/livez").status) != 200)
        assert (before, after, running.get("/readyz").status) == (200, 503, 503)
    finally:
        process.kill()
        process.communicate()
