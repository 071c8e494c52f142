"""From what a user writes to a source."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kvguard.errors import ConfigError, SourceError
from kvguard.sources.file import FileSource
from kvguard.sources.opening import OPEN_A_LOG, OPEN_BESIDES, followed, hold_open
from kvguard.sources.pipe import PipeSource


def test_a_file_even_before_it_is_there(tmp_path: Path) -> None:
    assert isinstance(followed(str(tmp_path / "vllm.log")), FileSource)


def test_a_named_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    source = followed(str(tmp_path / "pipe"))
    assert isinstance(source, PipeSource)
    source.close()


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is a directory: name the log file in it"):
        followed(str(tmp_path))


@pytest.mark.parametrize("name", ["pod:team/vllm-0/vllm", "pod:nonsense"])
def test_a_pods_log_outside_of_a_cluster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="pod:"):
        followed(name)


def test_following_a_file_loads_no_http_client() -> None:
    heavy = {"httpx", "ssl", "asyncio", "gzip", "zlib"}
    code = f"import kvguard.sources.opening, sys; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert loaded.stdout == "[]\n"


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The soft and the hard limit of open files, of which the process is told."""
    told = [256, 1024]

    def changed(_which: int, limits: tuple[int, int]) -> None:
        told[:] = limits

    monkeypatch.setattr(resource, "getrlimit", lambda _which: tuple(told))
    monkeypatch.setattr(resource, "setrlimit", changed)
    return told


def test_as_many_files_are_let_open_as_the_logs_need(limits: list[int]) -> None:
    hold_open(10)
    assert limits == [256, 1024]
    hold_open(100)
    assert limits == [OPEN_BESIDES + 100 * OPEN_A_LOG, 1024]


def test_more_logs_than_may_be_open_are_refused_in_one_line(limits: list[int]) -> None:
    with pytest.raises(SourceError, match=r"^1000 logs to follow need 3032 open files, 1024 are allowed: raise ulimit"):
        hold_open(1000)
    limits[1] = resource.RLIM_INFINITY
    hold_open(1000)
    assert limits == [3032, resource.RLIM_INFINITY]
