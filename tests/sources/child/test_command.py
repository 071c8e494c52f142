"""A command's output goes through untouched and is told in whole lines; its status is the command's own."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kvguard.errors import SourceError
from kvguard.sources.child import command
from kvguard.sources.child.command import ChildSource
from kvguard.sources.source import Chunk, SourceEvent, State
from kvguard.sources.wait import wait
from tests.sources.following import arrivals

Start = Callable[..., ChildSource]


@pytest.fixture
def outputs(tmp_path: Path) -> Iterator[list[Path]]:
    return [tmp_path / "stdout", tmp_path / "stderr"]


@pytest.fixture
def start(outputs: list[Path]) -> Iterator[Start]:
    descriptors = tuple(os.open(path, os.O_WRONLY | os.O_CREAT) for path in outputs)
    children = []

    def start(*command: str, targets: tuple[int, int] = descriptors) -> ChildSource:
        children.append(ChildSource(command, outputs=targets))
        return children[-1]

    yield start
    for child in children:
        child.close()
    for descriptor in descriptors:
        os.close(descriptor)


def run(child: ChildSource) -> list[SourceEvent]:
    return [event for events in arrivals(child) for event in events]


def heard(events: list[SourceEvent]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Chunk))


def python(code: str) -> tuple[str, str, str]:
    return (sys.executable, "-c", code)


def test_output_goes_through_byte_for_byte_each_to_its_own(start: Start, outputs: list[Path]) -> None:
    bar = "\\r\\x1b[32m 50%%|#####\\x1b[0m"
    child = start("printf", f"one\\n{bar}\\0\\377end")
    assert heard(run(child)) == outputs[0].read_bytes() == b"one\n\r\x1b[32m 50%|#####\x1b[0m\0\xffend"
    assert outputs[1].read_bytes() == b""


def test_both_outputs_are_heard(start: Start, outputs: list[Path]) -> None:
    events = run(start("sh", "-c", "echo to stdout; echo to stderr >&2"))
    assert sorted(heard(events).splitlines()) == [b"to stderr", b"to stdout"]
    assert [path.read_bytes() for path in outputs] == [b"to stdout\n", b"to stderr\n"]


def test_a_line_of_one_output_never_stands_inside_a_line_of_the_other(start: Start) -> None:
    code = (
        "import os\n"
        "for n in range(200):\n"
        "    os.write(1, b'out '); os.write(2, b'err '); os.write(1, b'line\\n'); os.write(2, b'line\\n')"
    )
    lines = heard(run(start(*python(code)))).splitlines()
    assert sorted(lines) == [b"err line"] * 200 + [b"out line"] * 200


def test_a_lot_of_output_arrives_whole(start: Start, outputs: list[Path]) -> None:
    code = "import sys\nfor n in range(100_000): print('line', n)\nsys.stderr.write('x' * 3_000_000)"
    child = start(*python(code))
    events = run(child)
    assert outputs[0].read_bytes() == b"".join(b"line %d\n" % n for n in range(100_000))
    assert outputs[1].stat().st_size == 3_000_000
    assert heard(events).count(b"\n") == 100_000


@pytest.mark.parametrize(
    "script, status", [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
def test_the_status_is_the_commands_as_a_shell_gives_it(start: Start, script: str, status: int) -> None:
    child = start("sh", "-c", script)
    events = run(child)
    assert child.exit_status == status
    assert events[-1].state is State.ENDED
    assert child.status.message == f"sh ended with status {status}"


@pytest.mark.parametrize(
    "script, one_place, left",
    [
        ("printf 'done\\n' >&2", False, False),
        ("printf '\\r50%%|###' >&2", False, True),
        ("printf '\\r50%%|###\\r' >&2", False, True),
        ("printf '50%%'", False, False),
        ("printf '50%%'", True, True),
        (":", True, False),
    ],
)
def test_whether_it_left_our_stderr_in_a_line(
    start: Start, tmp_path: Path, script: str, one_place: bool, left: bool
) -> None:
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        child = start("sh", "-c", script, targets=(out.fileno(), out.fileno() if one_place else err.fileno()))
        run(child)
        assert child.left_in_line is left


def test_its_arguments_are_never_told(start: Start) -> None:
    child = start("true", "--api-key", "secret")
    events = run(child)
    assert "secret" not in repr(events) + repr(child.status)
    assert child.status.name == "run:true"


@pytest.mark.parametrize("command, reason", [("no-such-command", "no such file"), ("/etc/passwd", "permission denied")])
def test_a_command_that_cannot_be_started(start: Start, command: str, reason: str) -> None:
    with pytest.raises(SourceError, match=f"{command}: cannot be started \\({reason}"):
        start(command)


def open_descriptors() -> set[str]:
    """What this process holds open."""
    return {path.name for path in Path("/proc/self/fd").iterdir()}


@pytest.mark.parametrize("starts", [0, 1])
def test_where_no_process_can_be_made_it_is_told_and_nothing_stays_behind(
    starts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit strikes at the guardian, or at the command behind it."""
    real, made = subprocess.Popen, []
    before = open_descriptors()

    def limited(*arguments: object, **named: object) -> object:
        if len(made) == starts:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        made.append(real(*arguments, **named))  # type: ignore[call-overload]
        return made[-1]

    monkeypatch.setattr(subprocess, "Popen", limited)
    with pytest.raises(SourceError, match=r"^vllm: cannot be started \(resource temporarily unavailable\): too many"):
        ChildSource(["vllm", "serve"])
    assert [process.poll() for process in made] == [0] * starts
    assert open_descriptors() == before


def test_asked_to_end_it_may_say_goodbye(start: Start) -> None:
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('goodbye'), sys.exit(0)))\n"
        "print('ready', flush=True)\n"
        "signal.pause()"
    )
    child = start(*python(code))
    steps = arrivals(child)
    said = b""
    while b"ready" not in said:
        said += heard(list(next(steps)))
    child.end()
    said += heard([event for events in steps for event in events])
    assert said == b"ready\ngoodbye\n"
    assert child.exit_status == 0


def test_the_grace_is_counted_in_the_time_of_the_polls(start: Start) -> None:
    child = start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done")
    said = b""
    while b"ready" not in said:
        said += heard(list(child.poll(100.0)))
    child.end()
    child.poll(200.0)
    assert child.delay(200.0) == 30.0
    child.poll(229.0)
    assert child.exit_status is None
    while child.status.state is not State.ENDED:
        child.poll(230.0)
    assert child.exit_status == 128 + signal.SIGKILL


@pytest.mark.parametrize("again_after, status", [(0.0, 128 + signal.SIGKILL), (1000.0, None)])
def test_who_asks_again_means_it(
    start: Start, monkeypatch: pytest.MonkeyPatch, again_after: float, status: int | None
) -> None:
    """A second ^C of somebody who waits; not the second of two signals that `timeout` sends at once."""
    monkeypatch.setattr(command, "AGAIN_S", again_after)
    child = start("sh", "-c", "trap '' TERM INT; echo ready; while :; do sleep 1000; done")
    said = b""
    while b"ready" not in said:
        said += heard(list(child.poll(100.0)))
    child.send(signal.SIGINT)
    child.send(signal.SIGTERM)
    for _ in range(100):
        child.poll(100.0)
        wait(child, 0.01, 100.0)
        if child.exit_status is not None:
            break
    assert child.exit_status == status
    monkeypatch.setattr(command, "AGAIN_S", 0.0)  # what is left need not be waited for


def test_a_slow_reader_of_ours_slows_the_command_and_loses_nothing(start: Start, outputs: list[Path]) -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    child = start(*python("print('x' * 1_000_000)"), targets=(writer, writer))
    received = b""
    while child.status.state is not State.ENDED:
        told = child.poll(1.0)
        if child.delay(1.0) > 0:  # the pipe to our reader is full, or the command has not written yet
            assert not heard(list(told))
            with suppress(BlockingIOError):
                received += os.read(reader, 1 << 20)
        wait(child, 0.01, 1.0)
    os.close(writer)
    with os.fdopen(reader, "rb") as rest:
        assert received + rest.read() == b"x" * 1_000_000 + b"\n"


def test_a_reader_of_ours_that_went_away_does_not_stop_the_listening(start: Start) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    child = start("sh", "-c", "echo one; echo two; exit 5", targets=(writer, writer))
    assert heard(run(child)) == b"one\ntwo\n"
    assert child.exit_status == 5
    os.close(writer)


def test_the_command_reads_our_stdin(start: Start, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"typed\n")
    saved = os.dup(0)
    with (tmp_path / "input").open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        assert heard(run(start("cat"))) == b"typed\n"
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_closing_ends_it(start: Start) -> None:
    child = start("sleep", "1000")
    child.close()
    assert child.exit_status == 128 + signal.SIGTERM
    child.close()
