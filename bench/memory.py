"""Peak resident memory of a check: from a file, a pipe, gzip and zstd, over sizes from a mebibyte up."""

import gzip
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from inputs import MIB, Recipe, blocks, write
from measured import peak_resident, table


def report(folder: Path, size: int, largest: int) -> str:
    """One row a source and size; the largest log is on the disk only as long as it takes."""
    rows = []
    for mebibytes in sorted({1, 64, size // MIB, largest // MIB}):
        path = write(folder, Recipe("plain", mebibytes * MIB))
        packed = {"file": path, "gzip": _gzip(path), "zstd": _zstd(path)}
        for name, file in packed.items():
            rows.append([name, f"{mebibytes} MiB", _peak([str(file)])])
        rows.append(["pipe", f"{mebibytes} MiB", _peak(["-"], blocks(Recipe("plain", mebibytes * MIB)))])
        for file in packed.values():
            file.unlink()
    return table(["from", "log", "peak resident"], rows)


def _gzip(path: Path) -> Path:
    packed = path.with_suffix(".log.gz")
    with path.open("rb") as log, gzip.open(packed, "wb", compresslevel=1) as out:
        while block := log.read(MIB):
            out.write(block)
    return packed


def _zstd(path: Path) -> Path:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    packed = path.with_suffix(".log.zst")
    with path.open("rb") as log, zstd.open(packed, "wb") as out:
        while block := log.read(MIB):
            out.write(block)
    return packed


def _peak(words: Sequence[str], content: Iterable[bytes] = ()) -> str:
    return f"{peak_resident(['check', *words], content) / MIB:.1f} MiB"
