"""The wrapper that copies vLLM's log for the reader: vLLM keeps its signals, its status and its output."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

WRAPPER = Path(__file__).parents[2] / "helm/kvguard/kustomize/tee/kvguard-tee"
SHELLS = ["sh", "bash"]
FORWARDED = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"]

REPORTS_SIGNALS = f"""
import os, signal, sys
def told(number, frame):
    os.write(1, (signal.Signals(number).name + "\\n").encode())  # print is in the way of a print that it interrupts
for name in {FORWARDED!r}:
    signal.signal(getattr(signal, "SIG" + name), told)
os.write(1, b"up\\n")
sys.stdin.close()
while True:
    signal.pause()
"""
LEAVES_ON_TERM = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("bye", flush=True), sys.exit(0)))
print("up", flush=True)
signal.pause()
"""


class Wrapped:
    """A command under the wrapper, in a session of its own, with its copy in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.copy = folder / "vllm.log"
        self.environment = {**os.environ, "KVGUARD_LOG": str(self.copy)}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *command: str, shell: str = "sh", **options: object) -> subprocess.Popen[str]:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen(
            [shell, str(WRAPPER), *command],
            text=True,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env=self.environment,
            **streams,  # type: ignore[call-overload]
        )
        self.started.append(process)
        return process

    def run(self, *command: str, **options: object) -> tuple[int, str]:
        process = self.start(*command, **options)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out


def still_running(session: int) -> list[str]:
    """The commands of a session's processes that are neither gone nor zombies."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().rsplit(")", 1)
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, _, _, of_session = fields.split()[:4]
        if int(of_session) == session and state != "Z":
            found.append(name)
    return found


@pytest.fixture
def wrapped(tmp_path: Path) -> Iterator[Wrapped]:
    server = Wrapped(tmp_path)
    yield server
    for process in server.started:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("shell", SHELLS)
def test_both_streams_reach_stdout_and_the_copy_in_order_and_the_status_is_the_servers(
    wrapped: Wrapped, shell: str
) -> None:
    status, out = wrapped.run("sh", "-c", "echo one; echo two >&2; echo three; exit 7", shell=shell)
    assert (status, out) == (7, "one\ntwo\nthree\n")
    assert wrapped.copy.read_text() == out


@pytest.mark.parametrize("shell", SHELLS)
def test_every_signal_reaches_the_server(wrapped: Wrapped, shell: str) -> None:
    process = wrapped.start(sys.executable, "-c", REPORTS_SIGNALS, shell=shell)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    for name in FORWARDED:
        process.send_signal(getattr(signal, f"SIG{name}"))
        assert process.stdout.readline() == f"SIG{name}\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_server_that_leaves_orderly_on_sigterm_gives_status_zero_and_its_last_words(
    wrapped: Wrapped, shell: str
) -> None:
    process = wrapped.start(sys.executable, "-c", LEAVES_ON_TERM, shell=shell)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.terminate()
    assert process.communicate(timeout=60)[0] == "bye\n"
    assert process.returncode == 0
    assert wrapped.copy.read_text() == "up\nbye\n"


@pytest.mark.parametrize(("number", "status"), [("TERM", 143), ("INT", 130), ("QUIT", 131), ("KILL", 137)])
def test_a_server_ended_by_a_signal_gives_the_status_that_kubernetes_shows(
    wrapped: Wrapped, number: str, status: int
) -> None:
    assert wrapped.run("sh", "-c", f"kill -{number} $$")[0] == status


def test_interrupts_are_not_ignored_by_the_server_as_in_other_background_commands(wrapped: Wrapped) -> None:
    source = "import signal; print(signal.getsignal(2) is signal.default_int_handler, signal.getsignal(3) == 0)"
    assert wrapped.run(sys.executable, "-c", source) == (0, "True True\n")


def test_a_killed_server_leaves_the_shells_word_in_the_copy(wrapped: Wrapped) -> None:
    wrapped.run("sh", "-c", "echo loading; kill -KILL $$")
    assert wrapped.copy.read_text() == "loading\nKilled\n"


def test_each_run_begins_a_new_file_and_keeps_the_one_before(wrapped: Wrapped) -> None:
    wrapped.run("echo", "first, and longer than the second")
    before = wrapped.copy.stat().st_ino
    wrapped.run("echo", "second")
    assert wrapped.copy.read_text() == "second\n"
    assert wrapped.copy.stat().st_ino != before
    assert wrapped.copy.with_name("vllm.log.1").read_text() == "first, and longer than the second\n"


def test_a_full_copy_neither_blocks_the_server_nor_shortens_its_output(wrapped: Wrapped) -> None:
    wrapped.environment["KVGUARD_LOG_MIB"] = "1"
    status, out = wrapped.run("sh", "-c", "yes 0123456789abcde | head -c 8388608; echo end; exit 3")
    assert status == 3
    assert len(out) == 8 * 1024 * 1024 + len("end\n")
    assert out.endswith("0123456789abcde\nend\n")
    assert wrapped.copy.stat().st_size == 1024 * 1024


@pytest.mark.parametrize("shell", SHELLS)
def test_the_bound_is_the_copys_alone_where_stdout_is_a_file_too(wrapped: Wrapped, tmp_path: Path, shell: str) -> None:
    wrapped.environment["KVGUARD_LOG_MIB"] = "1"
    target = tmp_path / "container.log"
    with target.open("w") as stdout:
        wrapped.run("sh", "-c", "yes 0123456789abcde | head -c 3145728", stdout=stdout, shell=shell)
    assert target.stat().st_size == 3 * 1024 * 1024
    assert wrapped.copy.stat().st_size == 1024 * 1024


def test_the_last_lines_are_never_lost(wrapped: Wrapped) -> None:
    for _ in range(20):
        _, out = wrapped.run(
            "sh", "-c", "head -c 60000 /dev/zero | tr '\\0' x; echo; echo ValueError: no memory; exit 1"
        )
        assert out.endswith("ValueError: no memory\n")
        assert wrapped.copy.read_text() == out


def test_a_process_left_behind_cannot_hold_the_container_open(wrapped: Wrapped) -> None:
    wrapped.environment["KVGUARD_DRAIN_S"] = "0"
    process = wrapped.start("sh", "-c", "sleep 300 & echo gone; exit 4")
    assert process.wait(timeout=30) == 4


def test_nothing_of_the_wrapper_stays_behind(wrapped: Wrapped) -> None:
    process = wrapped.start("echo", "done")
    process.communicate(timeout=60)
    assert still_running(process.pid) == []
    assert not wrapped.copy.with_name("vllm.log.pipe").exists()


def test_an_unwritable_volume_costs_the_copy_and_not_the_server(wrapped: Wrapped, tmp_path: Path) -> None:
    wrapped.environment["KVGUARD_LOG"] = str(tmp_path / "absent" / "vllm.log")
    process = wrapped.start("sh", "-c", "echo serving; exit 5")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (5, "serving\n")
    assert "the server runs without a copy of its log" in err


def test_the_copy_can_be_read_by_another_user(wrapped: Wrapped) -> None:
    wrapped.run("sh", "-c", "umask 077; echo x")
    assert wrapped.copy.stat().st_mode & 0o777 == 0o644


def test_a_command_that_does_not_exist_gives_127_and_none_at_all_gives_2(wrapped: Wrapped) -> None:
    assert wrapped.run("kvguard-no-such-command")[0] == 127
    assert wrapped.run()[0] == 2
