"""A log file that is followed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kvguard.sources.file import FileSource
from tests.sources.following import Following


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "vllm.log"


@pytest.fixture
def following(log: Path) -> Iterator[Following]:
    source = FileSource(log)
    yield Following(source)
    source.close()
