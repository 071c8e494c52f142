"""Logs that are rotated, also while they are looked at: what the old name held is read first, and once."""

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvguard.sources import rotated, tracked
from kvguard.sources.file import LINGER_S, LOOK_S
from kvguard.sources.source import Boundary, State
from tests.sources.following import Following, append, boundaries, rotate, told

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


class TestRotation:
    def test_rename_and_create(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "two\n")
        events = following.look()
        assert told(events) == "|two\n"
        assert boundaries(events) == ["new-file"]
        assert following.source.status.rotations == 1

    def test_rename_with_a_look_before_the_new_file_is_there(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.rename(log.with_name("vllm.log.1"))
        assert following.read() == ""
        assert following.source.status.state is State.WAITING
        append(log, "two\n")
        assert following.read() == "|two\n"

    def test_a_new_file_may_hold_the_same_text(self, log: Path, following: Following) -> None:
        append(log, "same\n")
        following.read()
        rotate(log)
        append(log, "same\n")
        assert following.read() == "|same\n"

    def test_the_old_file_is_read_to_its_end_first(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "last words\n")
        rotate(log)
        append(log, "two\n")
        assert following.read() == "last words\n|two\n"

    def test_a_process_that_keeps_its_old_file_is_still_read(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        old = log.with_name("vllm.log.1")
        append(old, "still here\n")
        assert following.read() == "still here\n"

    def test_so_it_is_when_another_writes_to_the_new_one_already(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "new\n")
        assert following.read() == "|new\n"
        append(log.with_name("vllm.log.1"), "late\n")
        append(log, "newer\n")
        assert following.read() == "late\nnewer\n"

    def test_late_lines_never_stand_inside_a_line(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "half")
        assert following.read() == "|half"
        append(log.with_name("vllm.log.1"), "late\nunfinished")
        assert following.read() == ""
        append(log, " line\n")
        assert following.read(times=2) == " line\nlate\n"

    def test_the_old_file_is_let_go_after_a_while(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "two\n")
        following.read()
        held = open_descriptors()
        following.now += LINGER_S
        following.look()
        assert open_descriptors() == held - 1

    def test_what_came_into_it_afterwards_is_found_at_the_next_rotation(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "two\n")
        following.read()
        following.now += LINGER_S
        following.look()
        append(log.with_name("vllm.log.1"), "much later\n")
        rotate(log)
        append(log, "three\n")
        assert following.read() == "|much later\n|three\n"

    def test_two_rotations_between_two_looks(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "one more\n")
        rotate(log)
        append(log, "two\n")
        rotate(log)
        append(log, "three\n")
        assert following.read() == "one more\n|two\n|three\n"
        assert following.source.status.rotations == 2

    def test_five_rotations_between_two_looks(self, log: Path, following: Following) -> None:
        append(log, "0\n")
        following.read()
        for number in range(1, 6):
            rotate(log)
            append(log, f"{number}\n")
        assert following.read() == "|1\n|2\n|3\n|4\n|5\n"

    def test_dated_names(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.rename(log.with_name("vllm-20261128.log"))
        append(log, "two\n")
        log.rename(log.with_name("vllm-20261129.log"))
        append(log, "three\n")
        assert following.read() == "|two\n|three\n"

    def test_a_rotated_file_that_was_packed_meanwhile(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.rename(log.with_name("vllm.log.2"))
        log.with_name("vllm.log.1.gz").write_bytes(gzip.compress(b"two\n"))
        append(log, "three\n")
        assert following.read() == "|two\n|three\n"

    def test_the_packed_copy_of_a_file_that_was_read_is_not_read_again(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.with_name("vllm.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
        log.unlink()
        append(log, "two\n")
        assert following.read() == "|two\n"

    def test_a_broken_packed_file_is_counted_and_passed_over(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.rename(log.with_name("vllm.log.2"))
        log.with_name("vllm.log.1.gz").write_bytes(gzip.compress(b"two\n" * 9999)[:40])
        append(log, "three\n")
        assert following.read().endswith("|three\n")
        assert following.source.status.read_errors == 1

    def test_older_files_that_stood_there_before_are_not_read(self, log: Path, following: Following) -> None:
        append(log.with_name("vllm.log.1"), "yesterday\n")
        append(log, "one\n")
        assert following.read() == "one\n"
        rotate(log)
        append(log, "two\n")
        assert following.read() == "|two\n"

    def test_other_programs_logs_are_not_read(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        for name in ("vllm.log.err", "vllm.log-decode", "vllm.logger.1", "other.log.1", "vllm.log.1.swp"):
            append(log.with_name(name), "foreign\n")
        rotate(log)
        append(log, "two\n")
        assert following.read() == "|two\n"

    def test_a_file_number_that_is_used_again_is_another_file(
        self, log: Path, following: Following, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append(log.with_name("vllm.log.1"), "yesterday\n")
        append(log, "one\n")
        following.read()
        reused = tracked.identity_of(log.with_name("vllm.log.1").stat())
        log.with_name("vllm.log.1").unlink()
        log.rename(log.with_name("vllm.log.2"))
        append(log, "two\n")
        fresh = tracked.identity_of(log.stat())
        log.rename(log.with_name("vllm.log.1"))
        append(log, "three\n")
        real = tracked.identity_of
        monkeypatch.setattr(
            "kvguard.sources.rotated.identity_of",
            lambda status: reused if real(status) == fresh else real(status),
        )
        assert following.read() == "|two\n|three\n"


class TestWhileNamesMove:
    """What a soak beside a real logrotate showed (`python -m tests.sources.rotation_soak`)."""

    def test_two_rotations_in_a_row_of_which_the_second_left_an_empty_file(
        self, log: Path, following: Following
    ) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "two\n")
        rotate(log)
        log.touch()
        assert following.read() == "|two\n|"
        append(log, "three\n")
        assert following.read() == "three\n"

    def test_three_in_a_row_while_the_first_is_still_being_read(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "two\n")
        following.now += following.source.delay(following.now)
        while not isinstance(next(iter(following.source.poll(following.now)), None), Boundary):
            pass  # it has opened the second file, and read nothing of it
        rotate(log)
        append(log, "three\n")
        rotate(log)
        log.touch()
        assert following.read(times=2) == "two\n|three\n|"

    def test_an_empty_file_alone_does_not_end_the_one_before_it(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        log.touch()
        append(log.with_name("vllm.log.1"), "two\n")
        assert following.read(times=3) == "two\n"

    @pytest.mark.parametrize("late", ["", "late\n"])
    @pytest.mark.parametrize("suffix, pack", [(".gz", gzip.compress), (".zst", zstd.compress)])
    def test_lines_that_came_late_into_a_file_and_were_packed_with_it(
        self, log: Path, following: Following, late: str, suffix: str, pack: Callable[[bytes], bytes]
    ) -> None:
        append(log, "one\n")
        following.read()
        log.rename(log.with_name("vllm.log.2"))
        between = log.with_name("vllm.log.1")
        append(between, "two\n")
        append(log, "three\n")
        assert following.read() == "|two\n|three\n"
        append(between, late)
        between.rename(log.with_name("vllm.log.2"))
        log.rename(between)
        log.with_name(f"vllm.log.2{suffix}").write_bytes(pack(log.with_name("vllm.log.2").read_bytes()))
        log.with_name("vllm.log.2").unlink()
        append(log, "four\n")
        assert following.read().replace("|", "") == f"{late}four\n"

    def test_an_archive_in_the_making_is_not_taken_for_a_whole_one(
        self, log: Path, following: Following, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append(log, "one\n")
        following.read()
        log.rename(log.with_name("vllm.log.2"))
        append(log.with_name("vllm.log.1"), "two\n" * 9999)
        half = log.with_name("vllm.log.1.gz")
        half.write_bytes(gzip.compress(b"two\n" * 9999)[:40])
        append(log, "three\n")
        seen = iter([[half]] * 11)  # the names do not come to rest
        real = rotated._paths
        monkeypatch.setattr(rotated, "_paths", lambda path: next(seen, None) or real(path))
        assert following.read() == "|" + "two\n" * 9999 + "|three\n"
        assert following.source.status.read_errors == 0

    def test_a_file_is_read_under_whatever_name_it_has_by_then(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        rotate(log)
        append(log, "two\n")
        rotate(log)
        append(log, "three\n")
        following.now += LOOK_S
        while not isinstance(first := next(iter(following.source.poll(following.now)), None), Boundary):
            assert first is None  # it found the second file, but has not read it yet
        rotate(log)
        append(log, "four\n")
        assert following.read() == "two\n|three\n|four\n"

    @pytest.mark.parametrize(
        "at_rest, at_once, after_the_next",
        [(False, "|three\n|two\n|", "four\n"), (True, "|three\n", "|two\n|four\n")],
    )
    def test_a_name_that_was_missed_is_read_later_and_once(
        self,
        log: Path,
        following: Following,
        monkeypatch: pytest.MonkeyPatch,
        at_rest: bool,
        at_once: str,
        after_the_next: str,
    ) -> None:
        append(log, "one\n")
        following.read()
        for text in ("two\n", "three\n"):
            rotate(log)
            append(log, text)
        real = rotated.neighbours
        looks = iter([([], at_rest)] * 2)
        monkeypatch.setattr("kvguard.sources.file.neighbours", lambda path: next(looks, None) or real(path))
        assert following.read(times=3) == at_once
        rotate(log)
        append(log, "four\n")
        assert following.read() == after_the_next

    def test_a_copy_in_the_making_is_no_unread_file(self, log: Path, following: Following) -> None:
        following.look()
        log.touch()
        following.look()
        append(log, "one\n")
        copy = log.with_name("vllm.log.1")
        copy.touch()
        assert following.read() == "one\n"
        append(log, "two\n")
        shutil.copyfile(log, copy)
        os.truncate(log, 0)
        append(log, "three\n")
        assert following.read() == "two\n|three\n"

    @pytest.mark.parametrize("dense", [True, False])
    def test_copies_of_a_file_that_begins_with_a_hole(self, log: Path, following: Following, dense: bool) -> None:
        def copy_and_cut(number: int) -> None:
            target = log.with_name(f"vllm.log.{number}")
            if dense:
                target.write_bytes(log.read_bytes())
            else:
                subprocess.run(["cp", "--sparse=always", log, target], check=True)
            os.truncate(log, 0)

        with log.open("w") as file:

            def write(text: str) -> None:
                file.write(text)
                file.flush()

            write("x" * 3_000_000 + "\n")
            following.read()
            copy_and_cut(9)
            write("one\n")
            assert following.read() == "|one\n"
            write("unread\n")
            copy_and_cut(3)
            write("two\n")
            copy_and_cut(2)
            write("three\n")
            assert following.read() == "unread\n|two\n|three\n"

    def test_zeros_that_were_really_written_are_read(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "a\0\0b\0\n")
        assert following.read(times=3) == "a\0\0b\0\n"

    def test_zeros_of_a_file_that_was_cut_while_it_was_read_are_not(
        self, log: Path, following: Following, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        append(log, "one\n")
        following.read()
        append(log, "two\n")
        real = os.pread

        def cut_meanwhile(descriptor: int, size: int, place: int) -> bytes:
            monkeypatch.setattr(tracked.os, "pread", real)
            data = real(descriptor, size, place)
            log.with_name("vllm.log.1").write_bytes(b"one\ntwo\nmore\n")
            os.truncate(log, 0)
            with log.open("r+b") as file:
                file.seek(13)
                file.write(b"three\n")
            return data + bytes(5) + b"three\n"

        monkeypatch.setattr(tracked.os, "pread", cut_meanwhile)
        assert following.read(times=2) == "two\nmore\n|three\n"
