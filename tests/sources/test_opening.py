"""From what a user writes to a source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvguard.errors import ConfigError, SourceError
from kvguard.sources.file import FileSource
from kvguard.sources.opening import followed
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
