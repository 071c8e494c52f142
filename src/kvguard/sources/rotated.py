"""Rotated files beside a log: which of them hold bytes that were never read.

Between two looks a log can be rotated twice, or be copied and cut with bytes in it that nobody had read yet. Both
leave those bytes in a neighbour. Neighbours that stood there when the log was opened are not read: they are older.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kvguard.errors import SourceError
from kvguard.sources.blocks import read_blocks
from kvguard.sources.source import READ_BYTES
from kvguard.sources.tracked import HEAD_BYTES, TAIL_BYTES, Identity, Mark, identity_of

READ_WHOLLY = 2**63
"""The offset of a file of which nothing is wanted."""

# logrotate's .1 and -20261129, Python's .2026-11-29_20-02, the kubelet's .20261129-200211: never the name of another
# program's log (vllm.log.err)
_ROTATED = r"[-._](?:\d[\dTZ:._+-]*|old|bak|prev)"
_PACKED = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A file that looks like an earlier one of the log."""

    path: Path
    identity: Identity
    size: int
    head: bytes
    """Its first bytes as they are on disk, packed or not."""

    @property
    def packed(self) -> bool:
        """Whether it was compressed, going by its name."""
        return self.path.suffix in _PACKED

    def mark(self, offset: int) -> Mark:
        """What is remembered of it when it was read so far."""
        return Mark(offset, self.head, b"")

    def is_of(self, mark: Mark) -> bool:
        """Whether it still is the file of this mark, or another that was given the same number."""
        return self.head.startswith(mark.head)


@dataclass(frozen=True, slots=True)
class Remainder:
    """What is left to read of a neighbour."""

    path: Path
    begin: int
    end: int
    continues: bool
    """Whether it goes on exactly where reading stopped: a copy of the file that was cut."""

    def blocks(self) -> Iterator[bytes]:
        """The bytes from `begin` to `end`; an empty block for each that is skipped, so that no step takes long.

        Raises:
            SourceError: it cannot be read (any more).
        """
        position = 0
        for block in read_blocks(str(self.path), READ_BYTES):
            yield block[max(0, self.begin - position) : max(0, self.end - position)]
            position += len(block)


def neighbours(log: Path) -> list[Neighbour]:
    """The rotated files of a log, oldest first; behind a symlink, also those of the file that it leads to."""
    paths = _matching(log.parent, _rotated_name(log.name))
    if log.is_symlink():
        target = log.resolve()
        like_it = re.sub(r"\d+", r"\\d+", re.escape(target.name))
        paths |= _matching(target.parent, f"{_rotated_name(target.name)}|{like_it}")
    found: dict[Identity, tuple[tuple[int, int, str], Neighbour]] = {}
    for path in paths:
        if path.suffix in _PACKED and path.with_suffix("") in paths:
            continue  # it is being packed: it stands there whole as well
        with suppress(OSError), path.open("rb", buffering=0) as file:  # one that went away meanwhile is no neighbour
            status = os.fstat(file.fileno())
            neighbour = Neighbour(path, identity_of(status), status.st_size, file.read(HEAD_BYTES))
            found[neighbour.identity] = ((status.st_mtime_ns, _newness(path), path.name), neighbour)
    return [neighbour for _, neighbour in sorted(found.values(), key=lambda item: item[0])]


def remainders(
    found: Iterable[Neighbour], seen: Mapping[Identity, Mark], open_files: Collection[Mark], cut: Mark | None
) -> Iterator[Remainder]:
    """What the neighbours hold that was never read, in their order.

    `seen` are the marks of the neighbours that were there before, `open_files` those of the files that are read now;
    `cut` is the mark of a file that was just cut, of which one neighbour may be the copy.
    """
    known = [*seen.values(), *open_files]
    for neighbour in found:
        mark = seen.get(neighbour.identity)
        end = READ_WHOLLY if neighbour.packed else neighbour.size
        if cut and is_copy(neighbour, cut):
            yield Remainder(neighbour.path, cut.offset, end, continues=True)
        elif mark and neighbour.is_of(mark):
            if mark.offset < end:
                yield Remainder(neighbour.path, mark.offset, end, continues=False)
        elif not (neighbour.packed and _is_packed_copy(neighbour, known)):
            yield Remainder(neighbour.path, 0, end, continues=False)


def marks_after(found: Iterable[Neighbour], seen: Mapping[Identity, Mark]) -> dict[Identity, Mark]:
    """What is known of the neighbours once their remainders were read."""
    marks = {}
    for neighbour in found:
        mark = seen.get(neighbour.identity)
        unwanted = mark is not None and mark.offset == READ_WHOLLY and neighbour.is_of(mark)
        marks[neighbour.identity] = neighbour.mark(READ_WHOLLY if unwanted or neighbour.packed else neighbour.size)
    return marks


def is_this(neighbour: Neighbour, identity: Identity, begin: Mark) -> bool:
    """Whether a neighbour is the very file, renamed or packed."""
    return neighbour.identity == identity or (neighbour.packed and _is_packed_copy(neighbour, [begin]))


def is_copy(neighbour: Neighbour, mark: Mark) -> bool:
    """Whether a neighbour is a copy of the file with this mark: whole, up to some place, or packed."""
    if neighbour.packed:
        return bool(mark.head) and _unpacked_head(neighbour).startswith(mark.head)
    with suppress(OSError), neighbour.path.open("rb", buffering=0) as file:
        return mark.is_in(file.fileno())
    return False


def _matching(folder: Path, pattern: str) -> set[Path]:
    try:
        with os.scandir(folder) as entries:
            return {folder / entry.name for entry in entries if re.fullmatch(pattern, entry.name) and entry.is_file()}
    except OSError:
        return set()


def _rotated_name(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    patterns = [re.escape(name) + _ROTATED]
    if stem:
        patterns.append(re.escape(stem) + _ROTATED + re.escape(dot + extension))
    return f"(?:{'|'.join(patterns)})(?:{'|'.join(map(re.escape, _PACKED))})?"


def _newness(path: Path) -> int:
    """Order among files of the same time: of numbered ones the highest is the oldest."""
    plain = path.with_suffix("") if path.suffix in _PACKED else path
    return -int(plain.suffix[1:]) if re.fullmatch(r"\.\d{1,4}", plain.suffix) else 0


def _is_packed_copy(neighbour: Neighbour, marks: Iterable[Mark]) -> bool:
    head = _unpacked_head(neighbour)
    return any(mark.head and head.startswith(mark.head) for mark in marks)


def _unpacked_head(neighbour: Neighbour) -> bytes:
    try:
        return next(read_blocks(str(neighbour.path), HEAD_BYTES + TAIL_BYTES), b"")
    except SourceError:
        return b""
