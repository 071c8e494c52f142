"""How a row's messages can begin: never wrong about a message that the row describes, and telling for most rows."""

import pytest

from kvguard.events import Origin
from kvguard.lines.formats import FORMATS
from kvguard.lines.line_format import LineFormat, match, may_continue
from kvguard.lines.openings import Opening, may_open, openings
from tests.lines.corpus import LINES


@pytest.mark.parametrize(
    ("pattern", "begins"),
    [
        (r"Loading weights took (?P<seconds>\d++)", ("Loading weights took ",)),
        (r"(?:CUDA|ACL) graph", ("CUDA", "ACL")),
        (r"(?P<message>(?:[A-Za-z_][\w.]*+: )?Engine core\.)", ("Engine core.",)),
        (r"(?:Value error, )?User-specified", ("Value error, ", "User-specified")),
        (r"\[shutdown\] .*+", ("[shutdown] ",)),
        (r"words?", ("word",)),
        (r"\w++ KV cache", (("\\w++", " KV cache"),)),
        (r"(?!Engine)\d{1,15}+ errors?", (("\\d{1,15}+", " errors?"),)),
        (r"\(?+[']?+Worker failed", ((r"\(?+", "[']?+Worker failed"),)),
        (r".*+ failed", ("",)),
    ],
)
def test_the_beginnings_of_a_pattern(pattern: str, begins: tuple[Opening, ...]) -> None:
    assert openings(pattern) == begins


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_beginning_of_a_sample_may_open_its_row(row: LineFormat) -> None:
    lines = (LINES / f"{row.name}.log").read_text(encoding="utf-8").splitlines()
    # behind any prefix: what the row describes whole is one of the line's ends
    ends = [line[place:] for line in lines for place in range(len(line)) if row.literal in line[place:]]
    messages = [end for end in ends if match(row, end, Origin(line=1)) is not None]

    for message in messages:
        assert all(may_open(row.pattern, message[:size]) for size in range(1, len(message) + 1))


def test_a_row_whose_beginning_tells_nothing_would_go_on_from_any_text() -> None:
    silent = {row.name for row in FORMATS if "" in openings(row.pattern)}

    assert silent == {row.name for row in FORMATS if may_continue(row, "qz 9 x")}
    assert len(silent) < 10
