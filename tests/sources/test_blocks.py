"""One reading from beginning to end: what kinds of input there are, and how each goes wrong."""

import bz2
import gzip
import lzma
import os
import threading
import tracemalloc
import zlib
from pathlib import Path

import pytest

from kvguard.errors import SourceError
from kvguard.sources.blocks import BLOCK_BYTES, STDIN, read_blocks

try:
    from compression import zstd
except ImportError:
    from backports import zstd

TEXT = b"INFO 11-29 20:02:11 [gpu_worker.py:298] Available KV cache memory: 3.47 GiB\n" * 20_000


def content(path: Path, block_bytes: int = BLOCK_BYTES) -> bytes:
    return b"".join(read_blocks(str(path), block_bytes))


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch):
    """Put bytes at descriptor 0 and give the old one back afterwards."""
    saved = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)
    with os.fdopen(writer, "wb") as file:
        yield file
    os.dup2(saved, 0)
    os.close(saved)


class TestKinds:
    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
    def test_what_is_packed_is_told_by_its_first_bytes_not_by_its_name(self, tmp_path: Path, pack) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(pack(TEXT))
        assert content(path) == TEXT

    @pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
    def test_several_archives_one_after_the_other_are_one_log(self, tmp_path: Path, pack) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(pack(b"one\n") + pack(b"two\n"))
        assert content(path) == b"one\ntwo\n"

    @pytest.mark.parametrize("text", [b"", b"\n", b"\x1f", b"\x1f\x8a", b"\x28\xb5\x2f", b"PK\x03", b"BZh9"])
    def test_short_and_odd_content_is_handed_over_as_it_is(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(text)
        assert content(path) == text

    @pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress], ids=["plain", "gzip", "zstd"])
    @pytest.mark.parametrize("zeros", [2, 1000, 3 * BLOCK_BYTES + 1])
    def test_zeros_before_the_log_are_left_out(self, tmp_path: Path, pack, zeros: int) -> None:
        """copytruncate under a writer that does not append: what stands behind them is a line like any other."""
        path = tmp_path / "vllm.log"
        path.write_bytes(pack(bytes(zeros) + TEXT))
        assert content(path) == TEXT

    @pytest.mark.parametrize("text", [b"\0I\0N", b"one\n\0\0two\n", b"\0"])
    def test_other_zeros_are_not(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(text)
        assert content(path) == text

    @pytest.mark.parametrize("text", [b"", TEXT], ids=["nothing", "a log"])
    def test_a_hole_of_a_tebibyte_is_passed_over(self, tmp_path: Path, text: bytes) -> None:
        path = tmp_path / "vllm.log"
        with path.open("wb") as file:
            file.truncate(2**40)
            file.seek(2**40)
            file.write(text)
        assert content(path) == text

    def test_zeros_that_come_through_a_pipe(self, stdin) -> None:
        stdin.write(bytes(5000) + b"one\n")
        stdin.close()
        assert b"".join(read_blocks(STDIN, 1000)) == b"one\n"

    def test_blocks_are_as_large_as_asked_for(self, tmp_path: Path) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(b"x" * 2500)
        assert [len(block) for block in read_blocks(str(path), 1000)] == [1000, 1000, 500]

    def test_a_named_pipe_is_read_until_its_writer_closes_it(self, tmp_path: Path) -> None:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(TEXT),))
        writer.start()
        assert content(path) == TEXT
        writer.join()

    def test_stdin(self, stdin) -> None:
        stdin.write(b"one\n")
        stdin.close()
        assert list(read_blocks(STDIN)) == [b"one\n"]

    def test_an_archive_at_stdin_that_arrives_byte_by_byte(self, stdin) -> None:
        packed = zstd.compress(b"one\n")

        def trickle() -> None:
            for byte in packed:
                os.write(stdin.fileno(), bytes([byte]))
            stdin.close()

        writer = threading.Thread(target=trickle)
        writer.start()
        assert b"".join(read_blocks(STDIN)) == b"one\n"
        writer.join()


class TestErrors:
    def error(self, path: Path) -> str:
        with pytest.raises(SourceError) as raised:
            content(path)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    def test_no_such_file(self, tmp_path: Path) -> None:
        assert self.error(tmp_path / "vllm.log") == f"{tmp_path}/vllm.log: no such file"

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom"])
    def test_a_device_without_an_end(self, device: str) -> None:
        with pytest.raises(SourceError, match=f"^{device}: is a device: name the log file$"):
            next(read_blocks(device))

    def test_the_empty_device_is_an_empty_log(self) -> None:
        assert list(read_blocks(os.devnull)) == []

    def test_a_folder(self, tmp_path: Path) -> None:
        assert self.error(tmp_path) == f"{tmp_path}: is a directory: name the log file in it"

    def test_no_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def denied(*_: object) -> int:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("kvguard.sources.blocks.os.open", denied)
        expected = f"{tmp_path}/x: permission denied: make it readable for this user"
        assert self.error(tmp_path / "x") == expected

    def test_a_disk_that_fails_halfway(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(b"x" * 10)
        blocks = read_blocks(str(path), 5)
        assert next(blocks) == b"xxxxx"

        def failing(*_: object) -> bytes:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr("kvguard.sources.blocks.os.read", failing)
        with pytest.raises(SourceError, match=r"cannot be read \(Input/output error\)"):
            next(blocks)

    @pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
    def test_an_archive_that_stops_in_the_middle_gives_what_it_holds_and_then_says_so(
        self, tmp_path: Path, pack
    ) -> None:
        path = tmp_path / "vllm.log"
        path.write_bytes(pack(os.urandom(BLOCK_BYTES) * 3)[:-9])
        blocks = read_blocks(str(path), 1000)
        assert len(next(blocks)) == 1000
        with pytest.raises(SourceError, match="broken archive"):
            list(blocks)

    @pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
    def test_an_archive_with_garbage_in_it(self, tmp_path: Path, pack) -> None:
        packed = bytearray(pack(TEXT))
        packed[len(packed) // 2 :] = b"\xff" * 99
        path = tmp_path / "vllm.log"
        path.write_bytes(packed)
        assert "broken archive" in self.error(path)

    @pytest.mark.parametrize(
        "pack, told",
        [
            (lzma.compress, "packed by xz: xzcat '{}' | kvguard check -"),
            (bz2.compress, "packed by bzip2: bzcat '{}' | kvguard check -"),
            (lambda text: b"PK\x03\x04" + text, "packed by zip: unzip -p '{}' | kvguard check -"),
            (
                lambda text: gzip.compress(zstd.compress(text)),
                "an archive in an archive: unpack the outer one, and check that",
            ),
        ],
        ids=["xz", "bzip2", "zip", "twice"],
    )
    def test_an_archive_of_another_kind(self, tmp_path: Path, pack, told: str) -> None:
        path = tmp_path / "a log"
        path.write_bytes(pack(TEXT))
        with pytest.raises(SourceError) as error:
            content(path)
        assert str(error.value) == f"{path}: {told.format(path)}"

    def test_closed_stdin(self) -> None:
        saved = os.dup(0)
        os.close(0)
        try:
            with pytest.raises(SourceError, match="stdin: cannot be read"):
                list(read_blocks(STDIN))
        finally:
            os.dup2(saved, 0)
            os.close(saved)


class TestMemory:
    @pytest.mark.parametrize("pack", ["gzip", "zstd"])
    def test_a_decompression_bomb_stays_flat(self, tmp_path: Path, pack: str) -> None:
        size = 256 * 1024 * 1024
        path = tmp_path / "bomb"
        with path.open("wb") as file:
            engine = zlib.compressobj(1, wbits=31) if pack == "gzip" else zstd.ZstdCompressor()
            for _ in range(size // BLOCK_BYTES):
                file.write(engine.compress(b"x" * BLOCK_BYTES))
            file.write(engine.flush())
        tracemalloc.start()
        assert sum(map(len, read_blocks(str(path)))) == size
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 12 * BLOCK_BYTES
