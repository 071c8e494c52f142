"""Peak resident memory of a check: from a file, a pipe, gzip and zstd, over sizes from a mebibyte up."""

import gzip
import subprocess
import sys
from pathlib import Path

from inputs import MIB, Recipe, blocks, write
from measured import KVGUARD, once, table

SIZES = (1, 64, 1024)


def report(folder: Path, size: int, largest: int) -> str:
    """One row a source and size; the largest log is a pipe that nobody stores."""
    rows = []
    for mebibytes in (mib for mib in SIZES if mib * MIB <= size):
        path = write(folder, Recipe("plain", mebibytes * MIB))
        packed = {"file": path, "gzip": _gzip(path), "zstd": _zstd(path)}
        for name, file in packed.items():
            rows.append([name, f"{mebibytes} MiB", f"{once([*KVGUARD, 'check', str(file)]).resident / MIB:.1f} MiB"])
        rows.append(["pipe", f"{mebibytes} MiB", f"{_piped(mebibytes * MIB):.1f} MiB"])
        for file in packed.values():
            file.unlink()
    rows.append(["pipe", f"{largest // MIB} MiB", f"{_piped(largest):.1f} MiB"])
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


def _piped(size: int) -> float:
    """Peak resident mebibytes of a check that reads its standard input; GNU time's figure by way of `wait4`."""
    import os

    from measured import ENVIRON

    reader = subprocess.Popen(
        [*KVGUARD, "check", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=ENVIRON,
    )
    assert reader.stdin is not None
    for block in blocks(Recipe("plain", size)):
        reader.stdin.write(block)
    reader.stdin.close()
    _, _, used = os.wait4(reader.pid, 0)
    reader.returncode = 0
    return used.ru_maxrss / 1024
