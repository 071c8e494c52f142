"""Whole lines only, whatever way they are cut."""

from hypothesis import given
from hypothesis import strategies as st

from kvguard.sources.child.lines import LONGEST_LINE_BYTES, WholeLines


@given(st.lists(st.binary(max_size=8) | st.sampled_from([b"\n", b"\r", b"a\nb"])))
def test_nothing_is_lost_and_nothing_is_handed_over_before_its_newline(pieces: list[bytes]) -> None:
    lines = WholeLines()
    whole = [lines.feed(piece) for piece in pieces]
    assert all(not part or part.endswith(b"\n") for part in whole)
    assert b"".join(whole) + lines.rest() == b"".join(pieces)


def test_a_line_without_end_is_held_up_to_a_bound_and_never_broken_in_two() -> None:
    lines = WholeLines()
    for _ in range(5):
        assert lines.feed(b"x" * LONGEST_LINE_BYTES) == b""
    assert lines.feed(b"tail\nnext\n") == b"x" * LONGEST_LINE_BYTES + b"\nnext\n"
    assert lines.skipped_bytes == 4 * LONGEST_LINE_BYTES + 4
