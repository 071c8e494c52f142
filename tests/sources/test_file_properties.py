"""Whatever a writer and a rotator do between two looks, every line arrives once and in its order."""

import gzip
import os
import shutil
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kvguard.sources.file import FileSource
from kvguard.sources.source import Boundary, Chunk
from tests.sources.following import Following

KEPT = 25


class Writer:
    """A process that appends numbered lines to a log, and the tools that rotate it."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.written = ""
        self.log.touch()

    def write(self) -> None:
        line = f"line {self.written.count(chr(10))}\n"
        self.written += line
        with self.log.open("a") as file:
            file.write(line)

    def rename(self) -> None:
        self._shift()
        self.log.rename(self._old(1))
        self.log.touch()

    def copytruncate(self) -> None:
        self._shift()
        shutil.copyfile(self.log, self._old(1))
        self.log.write_bytes(b"")

    def pack(self) -> None:
        """Compress the newest rotated file, keeping its time, as gzip does."""
        if (plain := self._old(1)).exists():
            packed = self._old(1, ".gz")
            packed.write_bytes(gzip.compress(plain.read_bytes()))
            os.utime(packed, ns=(plain.stat().st_atime_ns, plain.stat().st_mtime_ns))
            plain.unlink()

    def _shift(self) -> None:
        for number, ending in product(range(KEPT, 0, -1), ("", ".gz")):
            if self._old(number, ending).exists():
                self._old(number, ending).rename(self._old(number + 1, ending))

    def _old(self, number: int, ending: str = "") -> Path:
        return self.log.with_name(f"{self.log.name}.{number}{ending}")


steps = st.lists(st.sampled_from(["write", "write", "write", "rename", "copytruncate", "pack", "look"]), max_size=KEPT)


@settings(max_examples=200, deadline=None)
@given(steps)
def test_every_line_arrives_once_and_in_order(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = Writer(Path(folder) / "vllm.log")
        writer.write()
        following = Following(FileSource(writer.log))
        events = following.look()
        actions: dict[str, Callable[[], None]] = {
            "write": writer.write,
            "rename": writer.rename,
            "copytruncate": writer.copytruncate,
            "pack": writer.pack,
            "look": lambda: events.extend(following.look()),
        }
        for name in names:
            actions[name]()
        writer.write()
        events += following.look(times=2)
        assert b"".join(event.data for event in events if isinstance(event, Chunk)).decode() == writer.written
        rotated = sum(isinstance(event, Boundary) for event in events)
        assert rotated <= names.count("rename") + names.count("copytruncate")
        following.source.close()
