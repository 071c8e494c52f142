"""Objects as tools lay them out: each record is a line, and what is no record stays as it came."""

import json

import pytest

from kvguard.lines.framing import LineFramer
from kvguard.lines.objects import MAX_LINES

RECORD = {
    "levelname": "INFO",
    "labels": {"app": "vllm", "on": ["a", "b"]},
    "message": "GPU KV cache size: 4,096 tokens",
}


def lines_of(text: str, size: int = 10**6) -> list[tuple[int, str]]:
    framer = LineFramer()
    chunks = [text.encode()[start : start + size] for start in range(0, len(text), size)]
    lines = [line for chunk in chunks for line in framer.feed(chunk)] + list(framer.end())
    return [(number, line.decode()) for number, line in lines]


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_an_object_over_several_lines_is_a_line_with_the_number_of_its_first(size: int) -> None:
    text = "before\n" + json.dumps(RECORD, indent=2) + "\nbehind\n"
    (_, before), (number, whole), (last, behind) = lines_of(text, size)

    assert (before, number, behind, last) == ("before", 2, "behind", 2 + text.count("\n", 7) - 1)
    assert json.loads(whole) == RECORD


def test_each_entry_of_a_list_is_a_line() -> None:
    text = json.dumps({"events": [RECORD, RECORD], "next": "f/1"}, indent=4)
    records = [line for _, line in lines_of(text) if "message" in line]

    assert [json.loads(line) for line in records] == [RECORD, RECORD]


def test_a_list_on_one_line_is_read_as_far_as_it_is_there() -> None:
    text = json.dumps([RECORD, {"tokens": 1}, RECORD, RECORD])

    assert [number for number, _ in lines_of(f"before\n{text}\nbehind")] == [1, 2, 3, 4, 5]
    assert [json.loads(line) for _, line in lines_of(text)] == [RECORD] * 3
    assert [json.loads(line) for _, line in lines_of(f'{{"hits": {{"total": 4, "hits": {text}}}}}')] == [RECORD] * 3
    assert [json.loads(line) for _, line in lines_of(text[:-20])] == [RECORD] * 2


@pytest.mark.parametrize(
    "text",
    [
        "{\nplain\n}\n",
        '{\n  "tokens": 1\n}\n',
        '{\n  "tokens": 1,\nINFO 01-01 00:00:00 [x.py:1] y\n}\n',
        '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n',
        "[{'a': 1}]\n",
        '{"message": "a", "of": [{"message": "b"}]}\n',
        '{"tokens": [{"of": 1}]}\n',
        "{\n{\n{\n",
    ],
)
def test_what_is_no_record_stays_as_it_came(text: str) -> None:
    assert lines_of(text) == list(enumerate(text.splitlines(), 1))


@pytest.mark.parametrize("member", ['"a": 1,\n', f'"a": "{"x" * 2**12}",\n'])
def test_an_object_that_never_ends_holds_up_no_more_than_its_bound(member: str) -> None:
    text = "{\n" + member * (2 * MAX_LINES)
    framer = LineFramer()
    given = list(framer.feed(text.encode()))

    assert [number for number, _ in given] == list(range(1, len(given) + 1))
    assert len(given) > MAX_LINES


def test_nothing_is_passed_over_behind_a_record_over_several_lines() -> None:
    framer = LineFramer()
    list(framer.feed(json.dumps(RECORD, indent=2).encode() + b"\n"))
    framer.skim = lambda data, start, number: (len(data), number)

    assert [line for _, line in framer.feed(b"one\ntwo\n")] == [b"one", b"two"]
