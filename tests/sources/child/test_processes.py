"""Reading /proc, and the guardian."""

import io
import os
import signal
import subprocess

import pytest

from kvguard.sources.child import guardian, processes


def test_a_name_with_blanks_and_brackets_is_no_trap(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    table = {
        "10": "10 (vllm) S 1 10 10 0",
        "11": "11 (VLLM::EngineCore) S 10 10 10 0",
        "12": "12 (a) S 99 (b) R 11 10 10 0",
        "13": "13 (gone) Z 11 10 10 0",
        "14": "14 (stranger) S 1 14 14 0",
    }
    for pid, stat in table.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(stat)
    (tmp_path / "self").mkdir()
    (tmp_path / "15").mkdir()  # it ended while we looked
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    assert sorted(process.pid for process in processes.descendants(10)) == [11, 12, 13]
    assert [process.pid for process in processes.descendants(10, without=[11])] == []
    assert [process.pid for process in processes.descendants(11) if process.dead] == [13]


def test_our_own_children_are_found() -> None:
    child = subprocess.Popen(["sleep", "1000"])
    assert child.pid in {process.pid for process in processes.descendants(os.getpid())}
    child.kill()
    child.wait()
    assert child.pid not in {process.pid for process in processes.descendants(os.getpid())}


@pytest.mark.parametrize(
    "said, ended",
    [("", None), (guardian.FAREWELL, None), ("42\n", 42), (f"42\n{guardian.FAREWELL}", None), ("42\nhalf a fare", 42)],
)
def test_the_guardian_ends_the_group_unless_it_is_told_goodbye(
    monkeypatch: pytest.MonkeyPatch, said: str, ended: int | None
) -> None:
    groups: list[int] = []
    monkeypatch.setattr(guardian.sys, "stdin", io.StringIO(said))
    monkeypatch.setattr(guardian.signal, "signal", lambda *_: None)
    monkeypatch.setattr(guardian, "end", lambda group, grace: groups.append(group))
    guardian.watch()
    assert groups == ([] if ended is None else [ended])


def test_the_guardian_kills_who_does_not_listen() -> None:
    command = ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    child.stdout.readline()
    guardian.end(child.pid, 0.05)
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
