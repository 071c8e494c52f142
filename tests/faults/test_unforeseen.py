"""What nobody foresaw, inside kvguard itself: no process is left, and no probe goes on saying that all is well."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kvguard.cli.attend import attend
from kvguard.slo.objectives import Slo
from kvguard.slo.verdict import Verdict
from tests.faults.programs import ENVIRON, start_of_vllm
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


@contextmanager
def sidecar(log: Path, fault: str) -> Iterator[Served]:
    """A sidecar into which a fault has been put."""
    program = f"from kvguard import cli\n{fault}\ncli.entry_point()"
    words = [sys.executable, "-c", program, "serve", "--listen", "127.0.0.1:0", "--log", str(log)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=ENVIRON)
    try:
        running = Served(process, 0)
        running.port = running.log_line()["port"]
        yield running
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("kind", ["MemoryError", "RuntimeError"])
def test_a_sidecar_whose_reader_has_died_is_not_alive(kind: str, tmp_path: Path) -> None:
    """The kubelet restarts it; the gate does not open by a log that nobody reads."""
    log = tmp_path / "vllm.log"
    fault = f"from kvguard.guard import Guard\ndef feed(self, data, now=None): raise {kind}\nGuard.feed = feed"
    with sidecar(log, fault) as running:
        before = running.get("/livez").status
        log.write_text("a line\n")
        assert running.process.stderr is not None
        while kind not in running.process.stderr.readline():
            pass
        # between the last words of a thread and its end there is a moment
        after = next(status for _ in range(1000) if (status := running.get("/livez").status) != 200)
        assert (before, after, running.get("/readyz").status) == (200, 503, 503)


def test_a_sidecar_that_finds_no_memory_for_its_pages_ends(tmp_path: Path) -> None:
    fault = "from kvguard.serve import app\ndef create_app(*given): raise MemoryError\napp.create_app = create_app"
    with sidecar(tmp_path / "vllm.log", fault) as running:
        assert running.process.wait(timeout=30) == 2


def test_an_answer_that_finds_no_memory_is_500_and_the_sidecar_lives(tmp_path: Path) -> None:
    fault = (
        "from kvguard.serve import app\ndef expose(accept): raise MemoryError\napp.exposition = lambda current: expose"
    )
    with sidecar(tmp_path / "vllm.log", fault) as running:
        assert [running.get(path).status for path in ("/metrics", "/livez", "/")] == [500, 200, 200]


def test_a_check_needs_no_more_memory_for_a_large_log(tmp_path: Path) -> None:
    """Of addresses, as `ulimit -v` counts: 24 MiB do for any log."""
    log = tmp_path / "vllm.log"
    log.write_bytes(start_of_vllm() + b'INFO:     10.0.0.7:5 - "GET /health HTTP/1.1" 200 OK\n' * 400_000)
    script = f'ulimit -v {64 * 1024}; exec "$0" -m kvguard check "$1" --min-concurrency 2 -q'
    done = subprocess.run(["sh", "-c", script, sys.executable, str(log)], capture_output=True, env=ENVIRON, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_thread_that_is_still_at_work_does_not_see_the_interpreters_end() -> None:
    """A web framework's native code that is being loaded aborts there, or never ends."""
    program = (
        "import atexit, threading, time; from kvguard import cli\n"
        "def main(words):\n"
        "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "    print('answer', end='')\n"
        "    return 7\n"
        "cli.main = main; atexit.register(print, 'the end'); cli.entry_point()"
    )

    done = subprocess.run([sys.executable, "-c", program], env=ENVIRON, capture_output=True, text=True, timeout=30)

    assert (done.returncode, done.stdout, done.stderr) == (7, "answer", "")
