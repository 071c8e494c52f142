"""Patterns match whole messages in linear time, by their structure and by counting an engine's steps."""

import re

import pytest

from kvguard.events import KvCacheMemory
from kvguard.lines.formats import FORMATS
from kvguard.lines.head import clean, envelope, strip
from kvguard.lines.line_format import LineFormat, Scope, up_to
from kvguard.lines.row_rules import faults
from tests.lines.corpus import LINES, samples
from tests.lines.step_counter import StepCounter

MESSAGES: dict[str, list[str]] = {}
for sample in samples(LINES):
    if not sample.near_miss:
        outer = envelope(clean(sample.line))
        head = strip(outer.message, outer)
        MESSAGES.setdefault(sample.row, []).extend([head.message.strip(), *head.others])


def row(pattern: str, literal: str = "KV budget") -> LineFormat:
    return LineFormat("a-row", literal, pattern, (KvCacheMemory,), Scope.RANK, ("1.0",), "a file")


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (r"KV budget .*", "a repeat of 0 to MAXREPEAT may be tried again and again"),
        (r"(?:KV budget )+x", "a repeat of 1 to MAXREPEAT may be tried again and again"),
        (r"KV budget .*?x", "a lazy repeat may be tried again and again"),
        (r"(?>.*?\d)x", "a lazy repeat must run up to plain text"),
        (r"KV budget [\d,]++, more", "a possessive repeat takes ',', with which the text behind it may begin"),
        (r"KV budget [\w ]++GiB", "a possessive repeat takes 'G', with which the text behind it may begin"),
        (r"KV budget (?:\w++ )*+at last", "a possessive repeat takes 'a', with which the text behind it may begin"),
        (r"KV budget .++ GiB", "a possessive repeat takes ' ', with which the text behind it may begin"),
        (r"^KV budget$", "anchors and references to groups are not needed"),
        (r"(?P<a>KV) budget (?P=a)", "anchors and references to groups are not needed"),
        (r"(?i:KV budget)", "flags inside a pattern are not read"),
        (r"KV budget (", "its pattern cannot be read"),
        (r"KV budget (?P<kv_cache_gib>\d++) GiB", "'kv_cache_gib' may have any number of digits"),
        (r"KV budget (?P<kv_cash_gib>\d{1,9}+) GiB", "'kv_cash_bytes' is a field of none of its events"),
        ("KV budget" + "(?: x)?" * 13, "more than 12 optional parts"),
    ],
)
def test_a_pattern_that_breaks_a_rule_is_told(pattern, fault):
    assert any(fault in found for found in faults(row(pattern))), faults(row(pattern))


@pytest.mark.parametrize(
    "pattern",
    [
        r"KV budget (?P<kv_cache_gib>-?+\d{1,9}+(?:\.\d{1,9}+)?+) GiB",
        r"KV budget [^()]*+\(of .++",
        rf"KV budget {up_to(' is ')}(?P<kv_cache_gib>\d{{1,9}}+) GiB",
        r"KV budget (?:[a-z]++, )*+\d{1,9}+ GiB",
        r"KV budget of .++(?<=\.\.\.)",
    ],
)
def test_a_pattern_that_keeps_the_rules_has_no_fault(pattern):
    assert faults(row(pattern)) == []


def test_a_row_without_a_literal_is_told():
    assert "its literal is empty: name a part of the message to find it by" in faults(row("KV budget", literal=" "))


def test_the_counter_agrees_with_the_engine_on_every_sample():
    for format_ in FORMATS:
        counter = StepCounter(format_.pattern)
        matching = [text for text in MESSAGES[format_.name] if format_.literal in text and counter.fullmatch(text)]

        assert matching, format_.name
        assert not any(counter.fullmatch(f"{text[: len(text) // 2]}\x01") for text in matching), format_.name


def test_the_counter_sees_what_backtracks():
    assert not is_linear(StepCounter(r"a.*?b.*?c"), "a", "ab")
    assert is_linear(StepCounter(r"a[^b]*+b[^c]*+c"), "a", "ab")


@pytest.mark.parametrize("format_", FORMATS, ids=lambda format_: format_.name)
def test_a_message_with_any_part_repeated_costs_time_linear_in_its_length(format_):
    """Every word, figure and mark of a message, many times over, and an end that spoils the match."""
    message = next(text for text in MESSAGES[format_.name] if format_.literal in text)
    counter = StepCounter(format_.pattern)
    parts = {found[0]: found.start() for found in re.finditer(r"\d+|[A-Za-z]+|[^\w\s]|\s", message[:400])}
    for part, at in parts.items():
        assert is_linear(counter, message[:at], part, message[at:]), (format_.name, part)


def is_linear(counter: StepCounter, before: str, repeated: str, after: str = "") -> bool:
    """Whether twice the text costs twice the steps (and not four times), measured beyond the constant part."""
    costs = []
    for times in (15, 30, 60):
        counter.steps = 0
        counter.fullmatch(f"{before}{repeated * times}{after}\x01")
        costs.append(counter.steps)
    return costs[2] - costs[1] <= 2.6 * max(costs[1] - costs[0], 0) + 64
