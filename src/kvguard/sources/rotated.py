"""Rotated files beside a log: which of them hold bytes that were never read.

Between two looks a log can be rotated several times, or be copied and cut with bytes in it that nobody had read yet.
All leave those bytes in a neighbour. Neighbours that stood there when the log was opened are not read: they are older.

Names move on while they are looked at, so a neighbour is opened at once and only its descriptor counts from there on.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.slotted import dataclass
from kvguard.sources.blocks import read_descriptor
from kvguard.sources.source import READ_BYTES
from kvguard.sources.tracked import HEAD_BYTES, Identity, Mark, first_data, identity_of

READ_WHOLLY = 2**63
"""The offset of a file of which nothing is wanted."""

# logrotate's .1 and -20261129, Python's .2026-11-29_20-02, the kubelet's .20261129-200211: never the name of another
# program's log (vllm.log.err)
_ROTATED = r"[-._](?:\d[\dTZ:._+-]*|old|bak|prev)"
_PACKED = (".gz", ".zst")
_TRIES = 5  # to find the names at rest
_MOST_NEIGHBOURS = 200  # the newest; they are open for a moment
_MOST_BLOCKS_OF_HOLE = 1024  # 256 MiB of zeros are unpacked at most to find what stands behind them


class Neighbour:
    """A file that looks like an earlier one of the log, held open until it is closed or was read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packed = path.suffix in _PACKED
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            status = os.fstat(self._descriptor)
            self.head_at, self.head = first_data(self._descriptor)
            """Its first bytes as they are on the disk, packed or not, and where they stand."""
        except OSError:
            self.close()
            raise
        self.identity = identity_of(status)
        self.size = status.st_size

    @cached_property
    def unpacked_head(self) -> bytes:
        """The first bytes of what was packed in it, without the zeros of a hole."""
        try:
            for block in islice(read_descriptor(self._descriptor, str(self.path), READ_BYTES), _MOST_BLOCKS_OF_HOLE):
                if data := block.lstrip(b"\0"):
                    return data[:HEAD_BYTES]
        except SourceError:
            pass
        return b""

    def mark(self, offset: int) -> Mark:
        """What is remembered of it when it was read so far."""
        return Mark(offset, self.head_at, self.head, b"")

    def is_of(self, mark: Mark) -> bool:
        """Whether it still is the file of this mark, and not another that was given the same number."""
        return self.head_at == mark.head_at and self.head.startswith(mark.head)

    def is_copy_of(self, mark: Mark) -> bool:
        """Whether it is a copy of the file with this mark: whole, up to some place, or packed."""
        return self.is_packed_copy_of(mark) if self.packed else mark.is_in(self._descriptor)

    def is_packed_copy_of(self, mark: Mark) -> bool:
        """Whether the file with this mark was packed into it."""
        return self.packed and bool(mark.head) and self.unpacked_head.startswith(mark.head)

    def may_go_beyond(self, mark: Mark) -> bool:
        """Whether what was packed into it can be longer than the file was when it was read."""
        if mark.offset == READ_WHOLLY:
            return False
        if self.path.suffix != ".gz":
            return True  # it says so nowhere: it has to be unpacked
        # of what was packed, modulo 2**32 (RFC 1952, ISIZE)
        length = os.pread(self._descriptor, 4, max(self.size - 4, 0))
        return int.from_bytes(length, "little") != mark.offset % 2**32

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing (yet): a copy that is being made can look so."""
        return not self.head

    def blocks(self, begin: int) -> Iterator[bytes]:
        """What it held from `begin` on when it was found; of a packed one an empty block for each that is skipped.

        What comes into it later is left for later: it may be a copy in the making, of what is read elsewhere.

        Raises:
            SourceError: it is packed badly, or cannot be read to be unpacked.
            OSError: it cannot be read.
        """
        if self.packed:
            yield from self._unpacked(begin)
            return
        place = max(begin, self.head_at)
        while block := os.pread(self._descriptor, min(READ_BYTES, max(self.size - place, 0)), place):
            yield block
            place += len(block)

    def _unpacked(self, begin: int) -> Iterator[bytes]:
        position, in_hole = 0, begin == 0
        for block in read_descriptor(self._descriptor, str(self.path), READ_BYTES):
            fresh = block[max(0, begin - position) :]
            position += len(block)
            if in_hole:
                fresh = fresh.lstrip(b"\0")
                in_hole = not fresh
            yield fresh

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left to read of a neighbour."""

    neighbour: Neighbour
    begin: int
    continues: bool
    """Whether it goes on exactly where reading stopped: a copy of the file that was cut."""

    @property
    def unread(self) -> int:
        """Bytes of it; 0 of a packed one, whose length nobody knows."""
        return 0 if self.neighbour.packed else max(0, self.neighbour.size - self.begin)


def neighbours(log: Path) -> tuple[list[Neighbour], bool]:
    """The rotated files of a log, oldest first; behind a symlink, also those of the file that it leads to.

    And whether the names were at rest meanwhile: if not, some can be missing.
    """
    for _ in range(_TRIES):
        found = _open_all(log)
        if {each.path: each.identity for each in found} == _identities(log):
            return found, True
        close_all(found)
    return _open_all(log), False


def close_all(unused: Iterable[Neighbour]) -> None:
    """Let go of neighbours that nothing is left to read of."""
    for neighbour in unused:
        neighbour.close()


def remainders(
    found: Iterable[Neighbour], seen: Mapping[Identity, Mark], others: Collection[Mark], cut: Mark | None
) -> Iterator[Remainder]:
    """What the neighbours hold that was never read, in their order.

    `seen` are the marks of the neighbours that were there before, `others` of what else was read; `cut` is the mark of
    a file that was just cut, of which one neighbour may be the copy.
    """
    for neighbour in found:
        if neighbour.is_empty:
            continue
        mark = seen.get(neighbour.identity)
        if cut and neighbour.is_copy_of(cut):
            yield Remainder(neighbour, cut.offset, continues=True)
        elif mark and neighbour.is_of(mark):
            if mark.offset < neighbour.size:
                yield Remainder(neighbour, mark.offset, continues=False)
        elif not any(neighbour.is_packed_copy_of(other) for other in others):
            packed = next((mark for mark in seen.values() if neighbour.is_packed_copy_of(mark)), None)
            if packed is None or neighbour.may_go_beyond(packed):  # lines can have come late, before it was packed
                yield Remainder(neighbour, packed.offset if packed else 0, continues=False)


def _open_all(log: Path) -> list[Neighbour]:
    found = []
    for path in _paths(log):
        with suppress(OSError):  # it went away just now
            neighbour = Neighbour(path)
            if neighbour.packed and path.with_suffix("").exists():  # since just now: it can be half of an archive
                neighbour.close()
            else:
                found.append(neighbour)
    return found


def _identities(log: Path) -> dict[Path, Identity]:
    found = {}
    for path in _paths(log):
        with suppress(OSError):
            found[path] = identity_of(path.stat())
    return found


def _paths(log: Path) -> list[Path]:
    """Names of neighbours, oldest first."""
    paths = _matching(log.parent, _rotated_name(log.name))
    if log.is_symlink():
        target = log.resolve()
        like_it = re.sub(r"\d+", r"\\d+", re.escape(target.name))
        paths |= _matching(target.parent, f"{_rotated_name(target.name)}|{like_it}")
    # one that is being packed stands there whole as well
    whole = [path for path in paths if not (path.suffix in _PACKED and path.with_suffix("") in paths)]
    return sorted(whole, key=_age)[-_MOST_NEIGHBOURS:]


def _age(path: Path) -> tuple[bool, int, str]:
    """A key that sorts the oldest first: `.3` before `.2`, dates and the runs of a container (`0.log`) as they are."""
    name = path.name.removesuffix(path.suffix) if path.suffix in _PACKED else path.name
    if number := re.fullmatch(r".*\.(\d{1,4})", name):
        return False, -int(number[1]), name
    return True, 0, re.sub(r"\d+", lambda digits: digits[0].zfill(20), name)


def _matching(folder: Path, pattern: str) -> set[Path]:
    matches = re.compile(pattern).fullmatch  # looked up once: a folder can hold thousands of names
    try:
        with os.scandir(folder) as entries:
            return {folder / entry.name for entry in entries if matches(entry.name) and entry.is_file()}
    except OSError:
        return set()


def _rotated_name(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    patterns = [re.escape(name) + _ROTATED]
    if stem:
        patterns.append(re.escape(stem) + _ROTATED + re.escape(dot + extension))
    return f"(?:{'|'.join(patterns)})(?:{'|'.join(map(re.escape, _PACKED))})?"
