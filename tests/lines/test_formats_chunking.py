"""The same bytes give the same events, however they come; bytes of any kind give events or none, and never an error."""

import itertools
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kvguard.events import Event
from kvguard.guard import Guard
from kvguard.lines.parser import StartupLogParser
from tests.lines.corpus import LINES, PREFIXES, samples

SAMPLES = [sample.line for folder in (LINES, PREFIXES) for sample in samples(folder)]
CORPUS = "\n".join(SAMPLES).encode() + b"\n"
FRAGMENTS = sorted({fragment for line in SAMPLES for fragment in re.findall(r"[A-Za-z]+ ?|[^A-Za-z]+", line[:400])})
SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def events(*chunks: bytes) -> list[Event]:
    parser = StartupLogParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + list(parser.end())


WHOLE = events(CORPUS)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(places), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def test_the_corpus_tells_something():
    assert len(WHOLE) > len(SAMPLES) / 2


def test_byte_by_byte():
    assert events(*(CORPUS[index : index + 1] for index in range(len(CORPUS)))) == WHOLE


@pytest.mark.parametrize("size", [2, 3, 7, 4096, 65_536])
def test_by_chunks_of_one_size(size):
    assert events(*(CORPUS[index : index + size] for index in range(0, len(CORPUS), size))) == WHOLE


@given(st.lists(st.integers(0, len(CORPUS)), max_size=50))
@settings(parent=SLOW, max_examples=5)
def test_cut_anywhere(places):
    assert events(*cut(CORPUS, places)) == WHOLE


def test_without_the_last_newline():
    assert events(CORPUS.removesuffix(b"\n")) == WHOLE


def test_with_windows_line_ends():
    assert events(CORPUS.replace(b"\n", b"\r\n")) == WHOLE


def test_behind_a_byte_order_mark_and_as_utf_16():
    text = CORPUS.decode()

    assert events(text.encode("utf-8-sig")) == WHOLE
    assert events(text.encode("utf-16")) == WHOLE


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5))
@settings(parent=SLOW, max_examples=200)
@example(b"\xff\xfe", [])
@example(b"\r", [])
def test_bytes_of_any_kind_never_raise(data, places):
    guard = Guard()
    for chunk in cut(data, [place for place in places if place <= len(data)]):
        guard.feed(chunk)
    guard.end()

    assert guard.verdict.outcome is not None


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3) | st.sampled_from(["\n", "9" * 400, "-", "\x1b["])))
@settings(parent=SLOW, max_examples=200)
def test_the_words_of_the_corpus_in_any_order_never_raise(fragments):
    data = "".join(fragments).encode("utf-8", "surrogatepass")

    assert events(data) == events(*(data[index : index + 1] for index in range(len(data))))


@given(st.data())
@settings(parent=SLOW, max_examples=300)
def test_a_sample_with_something_spoilt_never_raises(data):
    line = data.draw(st.sampled_from(SAMPLES))
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, len(line)))
    between = data.draw(st.sampled_from(["", " ", "9" * 400, "-", ",", ".", "\x00", "\n", line]))

    Guard().feed(f"{line[:start]}{between}{line[end:]}\n".encode())


@pytest.mark.parametrize("figure", ["9" * 15, "9" * 400, "0", "-1", "1e999", "٣"])
def test_a_sample_with_every_figure_replaced_never_raises(figure):
    for line in SAMPLES:
        guard = Guard()
        guard.feed(re.sub(r"\d+", figure, line).encode() + b"\n")
        guard.end()

        assert guard.verdict.outcome is not None
