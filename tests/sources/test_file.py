"""What is done to one log file, case by case: nothing that is on the disk is lost, nothing is read twice."""

import errno
import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kvguard.sources import tracked
from kvguard.sources.file import LOOK_S, RETRY_S, FileSource
from kvguard.sources.source import READ_BYTES, Chunk, State
from tests.sources.following import Following, append, boundaries, copytruncate, rotate, told


class TestReading:
    def test_a_file_is_read_from_its_beginning(self, log: Path, following: Following) -> None:
        append(log, "one\ntwo\n")
        assert following.read() == "one\ntwo\n"

    def test_what_is_appended_is_read_once(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        assert following.read() == "one\n"
        append(log, "two\n")
        assert following.read() == "two\n"
        assert following.read(times=3) == ""

    def test_a_file_may_come_later(self, log: Path, following: Following) -> None:
        assert told(following.look()) == ""
        assert following.source.status.state is State.WAITING
        assert "does not exist yet" in following.source.status.message
        append(log, "one\n")
        assert following.read() == "one\n"
        assert following.source.status.state is State.READING

    def test_so_may_its_folder(self, tmp_path: Path) -> None:
        following = Following(FileSource(tmp_path / "later" / "vllm.log"))
        assert following.read() == ""
        (tmp_path / "later").mkdir()
        append(tmp_path / "later" / "vllm.log", "one\n")
        assert following.read() == "one\n"
        following.source.close()

    def test_a_line_without_its_end_is_handed_over_as_far_as_it_goes(self, log: Path, following: Following) -> None:
        append(log, "par")
        assert following.read() == "par"
        append(log, "tial\n")
        assert following.read() == "tial\n"

    def test_a_character_may_be_cut_between_two_looks(self, log: Path, following: Following) -> None:
        for byte in "中".encode():
            with log.open("ab") as file:
                file.write(bytes([byte]))
            assert [event.data for event in following.look() if isinstance(event, Chunk)] == [bytes([byte])]

    def test_a_new_line_is_visible_within_the_time_of_a_look(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        assert following.source.delay(following.now) == pytest.approx(LOOK_S)
        assert LOOK_S < 0.3

    def test_a_poll_reads_no_more_than_a_block_and_asks_to_be_called_again(self, log: Path) -> None:
        log.write_bytes(b"x" * (3 * READ_BYTES + 1))
        source = FileSource(log)
        sizes = []
        source.poll(0.0)
        while source.delay(0.0) == 0:
            sizes += [len(event.data) for event in source.poll(0.0) if isinstance(event, Chunk)]
        assert sizes == [READ_BYTES, READ_BYTES, READ_BYTES, 1]
        source.close()

    def test_polling_before_the_next_look_does_nothing(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "two\n")
        assert following.source.poll(following.now) == []

    def test_every_state_is_told_once(self, log: Path, following: Following) -> None:
        assert len(following.look(times=5)) == 1
        append(log, "one\n")
        assert len(following.look(times=5)) == 2  # the text, and that it reads


class TestDeletion:
    def test_deleted_and_written_anew(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.unlink()
        assert following.read() == ""
        assert "was removed" in following.source.status.message
        append(log, "two\n")
        assert following.read() == "|two\n"

    def test_a_deleted_file_that_is_still_written_to_is_still_read(self, log: Path, following: Following) -> None:
        with log.open("a") as file:
            file.write("one\n")
            file.flush()
            following.read()
            log.unlink()
            file.write("two\n")
        assert following.read() == "two\n"

    def test_another_file_moved_over_the_name(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log.with_name("staged"), "two\n")
        log.with_name("staged").rename(log)
        assert following.read() == "|two\n"


class TestTruncation:
    def test_cut_to_nothing(self, log: Path, following: Following) -> None:
        append(log, "one\ntwo\n")
        following.read()
        os.truncate(log, 0)
        append(log, "3\n")
        events = following.look()
        assert told(events) == "|3\n"
        assert boundaries(events) == ["truncated"]
        assert following.source.status.truncations == 1

    def test_cut_and_grown_past_the_old_place_between_two_looks(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.write_text("three\nfour\nfive\n")
        assert following.read() == "|three\nfour\nfive\n"

    def test_cut_and_grown_to_the_very_same_size(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.write_text("two\n")
        assert following.read() == "|two\n"

    def test_copytruncate_loses_nothing_that_is_in_the_copy(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "unread\n")
        copytruncate(log)
        append(log, "two\n")
        assert following.read() == "unread\n|two\n"

    def test_nor_when_the_copy_was_packed_already(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "unread\n")
        log.with_name("vllm.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
        os.truncate(log, 0)
        append(log, "two\n")
        assert following.read() == "unread\n|two\n"

    def test_two_copytruncates_between_two_looks(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        append(log, "unread\n")
        copytruncate(log, ".2")
        append(log, "two\n")
        copytruncate(log, ".1")
        append(log, "three\n")
        assert following.read() == "unread\n|two\n|three\n"

    def test_a_copy_made_before_the_cut_is_seen_is_not_read_twice(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        shutil.copyfile(log, log.with_name("vllm.log.1"))
        append(log, "between\n")
        assert following.read() == "between\n"
        os.truncate(log, 0)
        append(log, "two\n")
        assert following.read() == "|two\n"

    def test_a_process_that_does_not_append_leaves_a_hole_which_is_not_read(
        self, log: Path, following: Following
    ) -> None:
        with log.open("w") as file:
            file.write("x" * 1_000_000 + "\n")
            file.flush()
            following.read()
            os.truncate(log, 0)
            file.write("after\n")
            file.flush()
            assert following.read() == "|after\n"
            assert log.stat().st_size == 1_000_007
            file.write("more\n")
        assert following.read() == "more\n"

    def test_a_hole_of_a_tebibyte_takes_no_time(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        os.truncate(log, 0)
        os.truncate(log, 2**40)
        append(log, "two\n")
        assert following.read(times=2) == "|two\n"

    def test_nor_does_one_in_a_rotated_file(self, log: Path, following: Following) -> None:
        append(log, "one\n")
        following.read()
        log.with_name("vllm.log.1").touch()
        os.truncate(log.with_name("vllm.log.1"), 2**40)
        os.truncate(log, 0)
        append(log, "two\n")
        assert following.read(times=2) == "|two\n"

    def test_only_the_end_cut_off_is_read_again_rather_than_lost(self, log: Path, following: Following) -> None:
        append(log, "one\ntwo\n")
        following.read()
        os.truncate(log, 4)
        append(log, "new\n")
        assert following.read() == "|one\nnew\n"

    @pytest.mark.parametrize("turn_over", [copytruncate, rotate])
    def test_the_rest_of_a_line_that_was_cut_in_two_is_no_line(
        self, log: Path, following: Following, turn_over: Callable[[Path], object]
    ) -> None:
        """A client fills a line with records of its own making: where the cut falls, one of them would stand alone."""
        append(log, "one\nprompt: 'INFO forged ")
        following.read()
        turn_over(log)
        append(log, "INFO forged INFO forged ")
        assert following.read(times=2) == "|"
        append(log, "INFO forged'\ntwo\n")
        assert following.read() == "two\n"
        assert following.source.status.bytes_skipped == len("INFO forged INFO forged INFO forged'\n")

    def test_a_cut_while_reading_a_large_file(self, log: Path) -> None:
        log.write_bytes(b"a" * (3 * READ_BYTES))
        source = FileSource(log)
        source.poll(0.0)
        assert len(source.poll(0.0)[0].data) == READ_BYTES
        log.write_text("new\n")
        assert told(Following(source).look()) == "|new\n"
        source.close()


class TestSymlinks:
    def test_a_link_that_is_switched(self, log: Path, following: Following) -> None:
        first, second = log.with_name("first"), log.with_name("second")
        append(first, "same\n")
        append(second, "same\n")
        log.symlink_to(first)
        assert following.read() == "same\n"
        log.unlink()
        log.symlink_to(second)
        assert following.read() == "|same\n"

    def test_with_a_look_while_there_is_none(self, log: Path, following: Following) -> None:
        append(log.with_name("first"), "one\n")
        log.symlink_to("first")
        following.read()
        log.unlink()
        assert following.read() == ""
        append(log.with_name("second"), "two\n")
        log.symlink_to("second")
        assert following.read() == "|two\n"

    def test_a_link_that_leads_nowhere_yet(self, log: Path, following: Following) -> None:
        log.symlink_to("target")
        assert following.read() == ""
        append(log.with_name("target"), "one\n")
        assert following.read() == "one\n"

    def test_switched_twice_between_two_looks(self, tmp_path: Path, log: Path, following: Following) -> None:
        pod = tmp_path / "pod"
        pod.mkdir()
        append(pod / "0.log", "one\n")
        log.symlink_to(pod / "0.log")
        following.read()
        for number, text in enumerate(("two\n", "three\n"), start=1):
            append(pod / f"{number}.log", text)
            log.unlink()
            log.symlink_to(pod / f"{number}.log")
        assert following.read() == "|two\n|three\n"

    def test_a_loop_of_links_is_told(self, log: Path, following: Following) -> None:
        log.symlink_to(log.name)
        following.look()
        assert following.source.status.state is State.FAILING


class TestTrouble:
    @pytest.fixture
    def fault(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, OSError | None]:
        """System calls that fail as long as an error stands here."""
        faults: dict[str, OSError | None] = {}

        def failing(name: str) -> object:
            real = getattr(os, name)

            def call(*arguments: object) -> object:
                if error := faults.get(name):
                    raise error
                return real(*arguments)

            return call

        for name in ("pread", "open"):
            monkeypatch.setattr(tracked.os, name, failing(name))
        return faults

    def test_permission_denied_then_granted(
        self, log: Path, following: Following, fault: dict[str, OSError | None]
    ) -> None:
        append(log, "one\n")
        fault["open"] = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        assert following.read(times=2) == ""
        status = following.source.status
        assert (status.state, status.read_errors) == (State.FAILING, 2)
        assert status.message == f"{log}: permission denied: make it readable for this user"
        fault["open"] = None
        assert following.read() == "one\n"
        assert following.source.status.state is State.READING

    def test_a_read_error_is_counted_and_tried_again_at_the_same_place(
        self, log: Path, following: Following, fault: dict[str, OSError | None]
    ) -> None:
        append(log, "one\n")
        following.read()
        append(log, "two\n")
        fault["pread"] = OSError(errno.EIO, os.strerror(errno.EIO))
        assert following.read(times=3) == ""
        assert following.source.delay(following.now) == pytest.approx(RETRY_S)
        assert following.source.status.read_errors == 3
        assert "Input/output error" in following.source.status.message
        fault["pread"] = None
        assert following.read(times=2) == "two\n"
        assert following.source.status.rotations == 0

    def test_a_file_system_that_went_away_and_came_back_under_another_number(
        self, log: Path, following: Following, fault: dict[str, OSError | None]
    ) -> None:
        append(log, "one\n")
        following.read()
        fault["pread"] = OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        following.look()
        fault["pread"] = None
        content = log.read_text()
        log.rename(log.with_name("gone"))
        append(log, content + "two\n")
        assert following.read(times=2) == "two\n"

    def test_and_with_another_log_in_it(
        self, log: Path, following: Following, fault: dict[str, OSError | None]
    ) -> None:
        append(log, "one\n")
        following.read()
        fault["pread"] = OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        following.look()
        fault["pread"] = None
        log.unlink()
        append(log, "two\n")
        assert following.read(times=2) == "|two\n"

    def test_a_folder_in_its_place(self, log: Path, following: Following) -> None:
        log.mkdir()
        following.look()
        assert following.source.status.message == f"{log}: is a directory: name the log file in it"

    def test_a_named_pipe_in_its_place_does_not_hold_us(self, log: Path, following: Following) -> None:
        os.mkfifo(log)
        following.look()
        why = "not a regular file: a pipe must be there before kvguard"
        assert following.source.status.message == f"{log}: cannot be read ({why})"

    def test_what_was_read_in_the_same_step_as_an_error_is_not_lost(
        self, log: Path, following: Following, fault: dict[str, OSError | None]
    ) -> None:
        append(log, "one\n")
        following.read()
        append(log, "two\n")
        log.rename(log.with_name("vllm.log.1"))
        append(log, "three\n")
        fault["open"] = PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        assert following.read() == "two\n"
        fault["open"] = None
        assert following.read() == "|three\n"


def test_the_status_says_what_was_read_and_when(log: Path, following: Following) -> None:
    append(log, "one\n")
    following.look()
    status = following.source.status
    assert (status.name, status.bytes_read, status.last_read) == (str(log), 4, following.now)
    assert status.since is not None
    assert status.since <= following.now
