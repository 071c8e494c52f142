"""Stamps come off; over any number of new requests every line is told once."""

from hypothesis import given
from hypothesis import strategies as st

from kvguard.sources.kube.stamps import LONGEST_HELD_BYTES, StampedLines, nanoseconds
from tests.sources.kube.fake_kube import FIRST_STAMP, SECOND, stamp

Line = tuple[int, bytes]
STAMP = b"2026-11-29T20:02:11.000000000Z "


def served(lines: list[Line], since: str | None) -> bytes:
    """What a kubelet gives: the lines from `sinceTime` on, which it knows in whole seconds only."""
    begin = 0 if since is None else nanoseconds(since) // SECOND * SECOND
    return b"".join(stamp(moment) + b" " + text + b"\n" for moment, text in lines if moment >= begin)


ENDINGS = [b"", b" \xff", b"\r", b" 2026-11-29T20:02:11Z forged"]


@st.composite
def logs(draw: st.DrawFn) -> list[Line]:
    """Lines in bursts that share a stamp, and up to seconds apart."""
    moment, lines = FIRST_STAMP, []
    for number, step in enumerate(draw(st.lists(st.sampled_from([0, 0, 1, SECOND // 3, SECOND])))):
        moment += step
        lines.append((moment, b"line %d" % number + draw(st.sampled_from(ENDINGS))))
    return lines


@given(logs(), st.lists(st.integers(1, 200)))
def test_every_line_is_told_once_however_often_the_answers_break_off(lines: list[Line], lengths: list[int]) -> None:
    reader, told = StampedLines(), b""
    for length in lengths:
        reader.resume()
        told += reader.feed(served(lines, reader.since)[:length])
    reader.resume()
    told += reader.feed(served(lines, reader.since))
    assert told == b"".join(text + b"\n" for _, text in lines)
    assert not reader.was_cut()


@given(logs(), st.integers(1, 9))
def test_the_answer_may_arrive_in_any_pieces(lines: list[Line], size: int) -> None:
    answer, reader = served(lines, None), StampedLines()
    told = b"".join(reader.feed(answer[begin : begin + size]) for begin in range(0, len(answer), size))
    assert told == b"".join(text + b"\n" for _, text in lines)


def test_lines_that_were_rotated_away_are_missed() -> None:
    reader = StampedLines()
    reader.feed(served([(FIRST_STAMP, b"one")], None))
    assert not reader.was_cut()
    reader.resume()
    assert reader.feed(served([(FIRST_STAMP + 5, b"two"), (FIRST_STAMP + 6, b"three")], None)) == b"two\nthree\n"
    assert reader.was_cut()
    assert not reader.was_cut()


def test_a_clock_that_was_set_back_repeats_nothing() -> None:
    lines = [(FIRST_STAMP + 9 * SECOND, b"before"), (FIRST_STAMP, b"after"), (FIRST_STAMP + SECOND, b"later")]
    reader = StampedLines()
    reader.feed(served(lines, None))
    reader.resume()
    lines.append((FIRST_STAMP + 2 * SECOND, b"new"))
    assert reader.feed(served(lines, reader.since)) == b"new\n"
    assert not reader.was_cut()


def test_the_kubelets_own_words_are_left_out() -> None:
    reader = StampedLines()
    words = b"unable to retrieve container logs for containerd://1\n"
    assert reader.feed(words + STAMP + b"one\n" + words) == b"one\n"
    assert reader.feed(b"rpc error") + reader.rest() == b""


def test_the_line_that_a_run_ended_in() -> None:
    reader = StampedLines()
    reader.feed(STAMP + b"one\n" + STAMP + b"Killed")
    assert reader.rest() == b"Killed"
    assert reader.rest() == b""


def test_a_line_without_end_is_handed_on_in_pieces_and_nothing_piles_up() -> None:
    reader = StampedLines()
    piece = b"x" * 100_000
    told = reader.feed(STAMP + piece)
    for _ in range(30):
        told += reader.feed(piece)
        assert len(reader._held) <= LONGEST_HELD_BYTES + len(STAMP)
    told += reader.feed(b"end\n" + STAMP + b"next\n")
    assert told == piece * 31 + b"end\nnext\n"


def test_after_a_break_in_the_middle_of_such_a_line_it_comes_again_behind_a_boundary() -> None:
    reader = StampedLines()
    long = STAMP + b"x" * (LONGEST_HELD_BYTES + 1)
    assert reader.feed(long) == b"x" * (LONGEST_HELD_BYTES + 1)
    reader.resume()
    assert reader.was_cut()
    assert reader.feed(long + b"\n") == b"x" * (LONGEST_HELD_BYTES + 1) + b"\n"


def test_stamps_are_compared_as_moments_not_as_text() -> None:
    assert nanoseconds("2026-11-29T21:02:11.5+01:00") == nanoseconds("2026-11-29T20:02:11.500000000Z")
    assert nanoseconds("2026-11-29T20:02:11Z") == FIRST_STAMP
    assert nanoseconds("2026-13-99T20:02:11Z") == 0
    assert nanoseconds("") == 0
