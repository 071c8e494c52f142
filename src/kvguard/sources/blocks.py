"""Read a log once, from its first byte to its last: a regular file, a pipe, stdin, plain or compressed."""

import errno
import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from kvguard.errors import SourceError

STDIN = "-"
BLOCK_BYTES = 2 * 1024 * 1024
"""From here on larger blocks are read no faster: what is done once a block is less, but it leaves the core's cache."""

_ADVICE = {
    errno.ENOENT: "no such file",
    errno.EISDIR: "is a directory: name the log file in it",
    errno.EACCES: "permission denied: make it readable for this user",
}


def describe_os_error(name: str, error: OSError) -> str:
    """What is wrong with a path, in one line: what, where, and what to do where that is known."""
    reason = _ADVICE.get(error.errno or 0) or f"cannot be read ({error.strerror or error})"
    return f"{name}: {reason}"


def read_blocks(name: str, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The content of a log in blocks of at most `block_bytes`, decompressed; never the whole of it in memory.

    `-` is stdin. What is compressed is told by its first bytes, not by its name. Opening a named pipe waits for a
    writer; it ends with its last writer.

    Zeros that it begins with are left out: behind a cut a writer that does not append goes on at its old place.

    Raises:
        SourceError: at the first block where nothing can be read, at a later one where reading fails or an archive
            turns out to be broken.
    """
    with opened(name) as descriptor:
        yield from content(name, descriptor, block_bytes)


@contextmanager
def opened(name: str) -> Iterator[int]:
    """A log's descriptor, for as long as it is read.

    Raises:
        SourceError: it cannot be opened or is no log, and in place of an `OSError` that reading it meets.
    """
    shown = "stdin" if name == STDIN else name
    try:
        descriptor = os.dup(0) if name == STDIN else os.open(name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            refuse_what_is_no_log(shown, descriptor)
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SourceError(describe_os_error(shown, error)) from None


def content(name: str, descriptor: int, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """What `read_blocks` gives, of a log that is open."""
    return _behind_zeros(_content(name, descriptor, block_bytes))


def is_plain_file(descriptor: int) -> bool:
    """Whether a log's bytes are the file's from here on, so that any part of it can be read by its place."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        return False
    first = os.pread(descriptor, _LONGEST_MAGIC, os.lseek(descriptor, 0, os.SEEK_CUR))
    return not first.startswith((*_ARCHIVES, b"\0"))


def refuse_what_is_no_log(shown: str, descriptor: int) -> None:
    """A device that is neither a terminal nor empty has no end and no lines (/dev/zero, /dev/full, a disk).

    Raises:
        SourceError: it is such a device, or a folder.
    """
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise SourceError(f"{shown}: {_ADVICE[errno.EISDIR]}")
    is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    if is_device and not os.isatty(descriptor) and status.st_rdev != os.stat(os.devnull).st_rdev:  # noqa: PTH116 - see cli.paths
        raise SourceError(f"{shown}: is a device: name the log file")


def data_at(descriptor: int, offset: int) -> int:
    """Where the next data stands, at a place or behind the hole in it; the file's end where there is none."""
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return max(offset, os.fstat(descriptor).st_size)
        return offset  # a pipe, or a file system that does not tell; a read will say more


def _skip_hole(descriptor: int) -> None:
    """A hole can be larger than any disk: reading its zeros takes minutes a TiB."""
    with suppress(OSError):  # a pipe has none
        here = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, data_at(descriptor, here), os.SEEK_SET)


def _behind_zeros(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The content from its first letter on; a single zero is half a letter of UTF-16."""
    first = next(blocks, b"")
    if first.startswith(b"\0\0"):
        while first and not (data := first.lstrip(b"\0")):
            first = next(blocks, b"")
        first = data
    if first:
        yield first
    yield from blocks


def read_descriptor(descriptor: int, name: str, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The same of a file that is open and stays so, from its beginning.

    Raises:
        SourceError: reading fails, or an archive turns out to be broken.
    """
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield from _content(name, descriptor, block_bytes)
    except OSError as error:
        raise SourceError(describe_os_error(name, error)) from None


def _content(name: str, descriptor: int, block_bytes: int) -> Iterator[bytes]:
    first = b""
    while len(first) < min(_LONGEST_MAGIC, block_bytes) and (more := os.read(descriptor, block_bytes)):
        first += more
    _refuse_other_archives(name, first)
    for magic, open_archive in _ARCHIVES.items():
        if first.startswith(magic):
            reader, broken = open_archive(io.BufferedReader(_Rest(first, descriptor), block_bytes))
            try:
                block = reader.read(block_bytes)
                if block.startswith(tuple(_ARCHIVES)):
                    raise SourceError(f"{name}: an archive in an archive: unpack the outer one, and check that")
                while block:
                    yield block
                    block = reader.read(block_bytes)
            except broken as error:
                advice = "decompress what is left of it, and check that"
                raise SourceError(f"{name}: broken archive ({error}): {advice}") from None
            return
    if first == bytes(len(first)):
        _skip_hole(descriptor)
    while first:
        yield first
        first = os.read(descriptor, block_bytes)


class _Rest(io.RawIOBase):
    """A descriptor whose first bytes were taken already, to see what it holds; given to the decompressors whole."""

    def __init__(self, first: bytes, descriptor: int) -> None:
        self._first = first
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]  # what BufferedReader hands in
        if not self._first:
            return os.readv(self._descriptor, [buffer])
        given = self._first[: len(buffer)]
        self._first = self._first[len(given) :]
        buffer[: len(given)] = given
        return len(given)


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


_Opened = tuple[_Reader, tuple[type[Exception], ...]]  # and what it raises over a broken archive


def _open_gzip(packed: io.BufferedReader) -> _Opened:
    import gzip
    import zlib

    return gzip.GzipFile(fileobj=packed, mode="rb"), (EOFError, zlib.error, gzip.BadGzipFile)


def _open_zstd(packed: io.BufferedReader) -> _Opened:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdFile(packed, mode="rb"), (EOFError, zstd.ZstdError)


# the modules behind these are loaded when an archive is met: a plain log, the usual case, does not pay for them
_ARCHIVES: dict[bytes, Callable[[io.BufferedReader], _Opened]] = {
    b"\x1f\x8b": _open_gzip,
    b"\x28\xb5\x2f\xfd": _open_zstd,
}
_OTHER_ARCHIVES = (
    (re.compile(rb"\xfd7zXZ\0"), "xz", "xzcat"),
    (re.compile(rb"BZh[1-9]1AY&SY"), "bzip2", "bzcat"),
    (re.compile(rb"PK\x03\x04"), "zip", "unzip -p"),
)
"""What is not read, and what unpacks it."""
_LONGEST_MAGIC = 10
"""Of any of these."""


def _refuse_other_archives(name: str, first: bytes) -> None:
    for magic, kind, tool in _OTHER_ARCHIVES:
        if magic.match(first):
            import shlex  # for this line alone

            raise SourceError(f"{name}: packed by {kind}: {tool} {shlex.quote(name)} | kvguard check -")
